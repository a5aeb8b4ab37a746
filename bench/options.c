/* The options that load and fcgiload share. Used at start only. */
#include "drive.h"
#include "util.h"

#include <stdlib.h>
#include <string.h>

const char options_help[] =
    "  -r 'METHOD PATH STATUS[,STATUS] SIZE [WEIGHT]'   a kind of request; up to 8, chosen by weight.\n"
    "       {} in PATH is an 8-digit key number; SIZE: bytes of the document, or - for any,\n"
    "       @FILE to send that JSON, =FILE to expect these bytes, @FILE=FILE for both\n"
    "  -c N      connections (64)\n"
    "  -d S      seconds that are counted (5 when -n is not given)\n"
    "  -w S      seconds before counting starts (0)\n"
    "  -n N      this many requests in all\n"
    "  -E        until stdin ends, if that comes first\n"
    "  -R N      open loop: N requests per second, latency from the due time\n"
    "  -H LINE   'Name: value', sent with every request; up to 16\n"
    "  -k N      key numbers 0 to N-1 (1)\n"
    "  -D        each key once per cycle in a shuffled order, instead of at random\n"
    "  -S N      seed of the order (1)\n"
    "  -N TEXT   nonce of 8 characters inside every body (00000000)\n"
    "  -e N      compare the body of every N-th answer (1)\n"
    "  -t S      seconds until an answer counts as missing (10)\n"
    "  -l TEXT   label in the result\n";

void options_init(struct options *options)
{
    memset(options, 0, sizeof *options);
    options->connections = 64;
    options->timeout = 10;
    options->every = 1;
    options->label = "";
    options->load.keys = 1;
    options->load.seed = 1;
    memcpy(options->load.nonce, "00000000", NONCE_DIGITS);
}

static void set_nonce(struct workload *load, const char *value)
{
    if (strlen(value) != NONCE_DIGITS)
        die("-N: %d characters", NONCE_DIGITS);
    memcpy(load->nonce, value, NONCE_DIGITS);
}

static void add_header(struct workload *load, const char *value)
{
    if (load->headers_len == HEADERS_MOST)
        die("-H: at most %d", HEADERS_MOST);
    if (strstr(value, ": ") == NULL || strpbrk(value, "\r\n") != NULL)
        die("-H: not 'Name: value'");
    load->headers[load->headers_len++] = value;
}

static bool set_workload(struct workload *load, int letter, char *value)
{
    switch (letter) {
    case 'r':
        work_add(load, value);
        return true;
    case 'H':
        add_header(load, value);
        return true;
    case 'k':
        load->keys = (uint32_t)parse_number("-k", value, 1, 99999999);
        return true;
    case 'D':
        load->deck = true;
        return true;
    case 'S':
        load->seed = parse_number("-S", value, 1, UINT32_MAX);
        return true;
    case 'N':
        set_nonce(load, value);
        return true;
    default:
        return false;
    }
}

bool options_set(struct options *options, int letter, char *value)
{
    switch (letter) {
    case 'c':
        options->connections = (unsigned)parse_number("-c", value, 1, 60000);
        return true;
    case 'd':
        options->seconds = parse_fraction("-d", value);
        return true;
    case 'w':
        options->warm = parse_fraction("-w", value);
        return true;
    case 'n':
        options->count = parse_number("-n", value, 1, UINT32_MAX);
        return true;
    case 'R':
        options->rate = parse_fraction("-R", value);
        return true;
    case 'e':
        options->every = (unsigned)parse_number("-e", value, 1, 1000000000);
        return true;
    case 't':
        options->timeout = parse_fraction("-t", value);
        return true;
    case 'E':
        options->until_end = true;
        return true;
    case 'l':
        options->label = value;
        return true;
    default:
        return set_workload(&options->load, letter, value);
    }
}

void options_check(struct options *options)
{
    if (options->count == 0 && options->seconds <= 0)
        options->seconds = 5;
    if (options->timeout < 0.01)
        die("-t: at least 0.01");
    if (options->rate > 0 && options->rate < 0.001)
        die("-R: at least 0.001");
    if (strpbrk(options->label, "\"\\\n") != NULL)
        die("-l: no quotes, backslashes or line ends");
    work_ready(&options->load);
    for (size_t i = 0; i < options->load.kinds_len; i++)
        options->protocol->render(&options->load.kinds[i], &options->load);
}
