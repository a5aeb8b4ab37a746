#include "handlers/progress.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BAR_WIDTH = 30, REDRAW_MS = 100 };

static struct db_watch *watched;
static bool shown;

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void draw(const char *what, uint64_t done, uint64_t all)
{
    char bar[BAR_WIDTH + 1];
    if (all == 0) {
        fprintf(stderr, "\r\033[K%s %" PRIu64, what, done);
        return;
    }
    double share = done < all ? (double)done / (double)all : 1;
    size_t full = (size_t)(share * BAR_WIDTH);
    memset(bar, ' ', BAR_WIDTH);
    memset(bar, '#', full);
    bar[BAR_WIDTH] = 0;
    fprintf(stderr, "\r\033[K%s [%s] %3d %%", what, bar, (int)(share * 100));
}

void progress_show(void *arg, const char *what, uint64_t done, uint64_t all)
{
    static int64_t drawn_ms;
    int64_t now = now_ms();
    (void)arg;
    if (!isatty(STDERR_FILENO) || (shown && done != 0 && now - drawn_ms < REDRAW_MS))
        return;
    drawn_ms = now;
    shown = true;
    draw(what, done, all);
}

void progress_end(void)
{
    if (shown)
        fputs("\r\033[K", stderr);
    shown = false;
}

static void interrupted(int signal_number)
{
    if (watched->unfinished)
        unlink(watched->temp);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

void progress_watch(struct db_watch *watch)
{
    static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = interrupted}, old;
    watched = watch;
    watch->progress = progress_show;
    watch->arg = NULL;
    sigfillset(&action.sa_mask);
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++)
        if (sigaction(ending[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(ending[i], &action, NULL);
}
