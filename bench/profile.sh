#!/bin/sh
# profile.sh [-g] [-s SECONDS] [-o nginx] [get|get1|large|put|list|mix|raw|watch]
#
# Where hanji's worker spends its CPU: starts a rig (bench/rig.py), drives one kind of load, samples the worker with
# `perf record -e cpu-clock` and prints a flat report; -g adds callers, -o nginx samples nginx's worker instead. get: 64
# connections; get1: one; large: 64 KiB; put: 64 with a 5 ms sync; list: 20 entries; mix: get beside 8 writers; raw: get by
# FastCGI, no nginx; watch: 5,000 streams of the change feed by FastCGI.
set -eu

cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin:/sbin
export PATH

usage() { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }

inner() { # inside the rig: BENCH_* are set
    load() { taskset -c "$BENCH_CPU" build/bench/load -H "Authorization: Bearer $BENCH_TOKEN" -k 1000 -d "$seconds" "$@" 127.0.0.1 "$BENCH_PORT"; }
    get='GET /docs/bench/{} 200 64'
    out=build/bench/perf.data
    case $who in nginx) pid=$BENCH_NGINX ;; *) pid=$BENCH_WORKER ;; esac
    # shellcheck disable=SC2086
    perf record -q -e cpu-clock -F 5000 $graph -p "$pid" -o "$out" -- sleep "$seconds" &
    perf=$!
    case $kind in
    get) load -l get -r "$get" ;;
    get1) load -l get1 -c 1 -r "$get" ;;
    put) load -l put -r 'PUT /docs/bench/{} 201,204 64' ;;
    large)
        load -l fill -n 100 -D -c 4 -k 100 -r 'PUT /docs/large/{} 201,204 65536' >/dev/null
        load -l large -k 100 -r 'GET /docs/large/{} 200 65536'
        ;;
    watch) build/bench/watch -m sse -c 5000 -n "$((seconds * 20))" -g 1 -H "Authorization: Bearer $BENCH_TOKEN" "$BENCH_SOCKET" ;;
    list) load -l list -r 'GET /docs/bench/?limit=20 200 -' ;;
    mix)
        load -l writers -c 8 -r 'PUT /docs/w/{} 201,204 64' &
        writers=$!
        load -l mix -r "$get"
        wait "$writers"
        ;;
    raw) taskset -c "$BENCH_CPU" build/bench/fcgiload load -H "Authorization: Bearer $BENCH_TOKEN" -k 1000 -d "$seconds" -l raw -r "$get" "$BENCH_SOCKET" ;;
    esac
    wait "$perf"
    report=build/bench/profile-$kind${who:+-$who}.txt
    # shellcheck disable=SC2086
    perf report --stdio -i "$out" $graph --percent-limit 0.4 --sort dso,symbol 2>/dev/null | grep -v '^$' >"$report"
    head -n 60 "$report"
    echo "whole report: $report"
}

graph='' seconds=4 who='' kind=get
while [ $# -gt 0 ]; do
    case $1 in
    -g) graph=-g ;;
    -s) [ $# -ge 2 ] || usage; seconds=$2; shift ;;
    -o) [ "${2-}" = nginx ] || usage; who=nginx; shift ;;
    get | get1 | large | put | list | mix | raw | watch) kind=$1 ;;
    *) usage ;;
    esac
    shift
done

if [ -n "${BENCH_WORKER-}" ]; then
    inner
    exit
fi
command -v perf >/dev/null || { echo 'profile.sh: perf is missing (package linux-perf)' >&2; exit 2; }
sh bench/build.sh
sync=''
case $kind in put) sync='--sync-us 5000' ;; mix) sync='--sync-us 50000' ;; esac
python=/usr/bin/python3
[ -x "$python" ] || python=python3
# shellcheck disable=SC2086
PYTHONDONTWRITEBYTECODE=1 exec "$python" bench/rig.py run $sync \
    sh bench/profile.sh ${graph:+-g} ${who:+-o nginx} -s "$seconds" "$kind"
