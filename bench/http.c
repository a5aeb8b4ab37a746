#include "http.h"

#include "util.h"

#include <arpa/inet.h>
#include <string.h>

bool http_bare;

static const char *host_name;
static const char *port_name;

static void render(struct kind *kind, const struct workload *load)
{
    struct text text = {0};

    text_print(&text, "%s ", kind->method);
    text_add_path(&text, kind);
    text_print(&text, " HTTP/1.1\r\nHost: %s:%s\r\n", host_name, port_name);
    if (!http_bare)
        text_print(&text, "User-Agent: hanji-bench/1\r\nAccept: */*\r\n");
    for (size_t i = 0; i < load->headers_len; i++)
        text_print(&text, "%s\r\n", load->headers[i]);
    if (kind->sends)
        text_print(&text, "Content-Type: application/%s\r\nContent-Length: %zu\r\n",
                   kind->sent != NULL ? "json" : "octet-stream", kind->size);
    text_print(&text, "\r\n");
    text_add_body(&text, kind, load);
    kind->bytes = text.bytes;
    kind->bytes_len = text.len;
}

static void begin(struct conn *conn)
{
    (void)conn;
}

static enum outcome take(struct conn *conn, const char *bytes, size_t len)
{
    struct answer *answer = &conn->answer;

    if (answer_feed(answer, bytes, len) != MORE)
        return BAD_PROTOCOL;
    if (answer_whole(answer))
        return answer_judge(answer);
    if (answer->head_done && !answer->has_length && answer->body == NULL)
        return BAD_PROTOCOL; /* chunked, or until the connection closes: not what hanji sends */
    return MORE;
}

const struct protocol http = {.render = render, .begin = begin, .take = take};

void http_address(struct options *options, const char *host, const char *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET};

    host_name = host;
    port_name = port;
    address.sin_port = htons((uint16_t)parse_number("PORT", port, 1, 65535));
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1)
        die("ADDRESS: %s is not an IPv4 address", host);
    memcpy(&options->address, &address, sizeof address);
    options->address_len = sizeof address;
}
