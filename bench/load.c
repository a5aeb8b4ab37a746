/*
 * load: an HTTP/1.1 load generator that checks every answer.
 *
 *   load -r 'GET /docs/bench/{} 200 64' -k 1000 -c 64 -d 3 127.0.0.1 8080
 *
 * The engine, its two loops and its options are drive.h's.
 */
#include "http.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void usage(FILE *to)
{
    (void)fprintf(to,
                  "usage: load [OPTION]... ADDRESS PORT\n%s"
                  "  -b        send no User-Agent and no Accept\n",
                  options_help);
}

int main(int argc, char **argv)
{
    static struct options options;
    int letter;

    options_init(&options);
    options.protocol = &http;
    while ((letter = getopt(argc, argv, OPTIONS_LETTERS "bh")) != -1) {
        if (letter == 'h') {
            usage(stdout);
            return 0;
        }
        if (letter == 'b') {
            http_bare = true;
        } else if (!options_set(&options, letter, optarg)) {
            usage(stderr);
            return 2;
        }
    }
    if (argc - optind != 2) {
        usage(stderr);
        return 2;
    }
    http_address(&options, argv[optind], argv[optind + 1]);
    options_check(&options);
    return drive(&options);
}
