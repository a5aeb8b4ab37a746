"""quick.sh's measurements: every bar of the README on this machine, in a few minutes.

    quick.py [--rounds N] [--seconds S] [--quiet] [--save] [BAR]...      BARs: get put mixed idle scale memory (all)

Rounds alternate between the sides of a comparison, the order turning from round to round. Every answer is checked for status
and length and compared byte by byte (bench/work.c tells how); a single wrong one fails the run. Exit status: 0 all
bars met, 1 some missed, 2 it could not be measured.
"""

import json
import os
import subprocess
import sys
import time

import rig as rigs
from report import median, quotients
from rig import Hanji, NoWork, Rig, finish_load, memory_kib, run_load, start_load
from runner import WARM_S, callgrind_control, callgrind_total, choose, parser_for, run

GET = "GET /docs/bench/{} 200 64"
PUT = "PUT /docs/bench/{} 201,204 64"


# ---- get: the speed of reading, and its CPU ----

def bar_get(bench):
    static = bench.rig.static_port
    with Hanji(bench.rig, "main", documents=1000) as hanji, NoWork(bench.rig, "null", hanji) as null:
        bench.alternate({
            "hanji": lambda: bench.load("get", "hanji", hanji.port, [GET], hanji=hanji, k=1000),
            "no work": lambda: bench.load("get", "no work", null.port, [GET], hanji=null, k=1000),
            "sendfile on": lambda: bench.load("get", "sendfile on", static, ["GET /on/file 200 64"]),
            "sendfile off": lambda: bench.load("get", "sendfile off", static, ["GET /off/file 200 64"]),
        })
    table = bench.table
    rates = {side: bench.rates("get", side) for side in ("hanji", "sendfile on", "sendfile off")}
    cpu = {who: bench.cpu("get", "hanji", who) for who in ("hanji", "nginx")}
    table.add("64 B GET through nginx", rates["hanji"], unit="/s")
    for side, least in (("sendfile on", 0.95), ("sendfile off", 0.85)):
        table.add(f"  the same nginx, static file, {side}", rates[side], unit="/s")
        table.add(f"  GET : static, {side}", quotients(rates["hanji"], rates[side]), ("≥", least))
    null = bench.rates("get", "no work")
    table.add("  the same nginx, a FastCGI backend that does no work", null, unit="/s",
              note="same parameters, same answer: about what any backend can reach")
    table.add("  GET : backend that does no work", quotients(rates["hanji"], null))
    table.add("  hanji's CPU per GET", cpu["hanji"], unit="µs")
    table.add("  nginx's CPU per GET, same run", cpu["nginx"], unit="µs")
    table.add("  hanji's CPU : nginx's CPU", quotients(cpu["hanji"], cpu["nginx"]), ("≤", 0.6))
    for side in ("sendfile on", "sendfile off"):
        static_cpu = bench.cpu("get", side, "nginx")
        table.add(f"  nginx's CPU per static file, {side}", static_cpu, unit="µs")
        table.add("  that : nginx's CPU per GET", quotients(static_cpu, cpu["nginx"]),
                  note="the rates' quotient if nginx's CPU were the only limit")
    own = [s["load"]["cpu_us_per_request"] for s in bench.of("get", "hanji")]
    table.add("  the load generator's CPU per GET", own, unit="µs")


# ---- put: group commit ----

def put_round(bench, hanji, side, connections):
    """Writes for a while, then reads back every key that was written and compares all bytes."""
    keys = 10000
    nonce = bench.next_nonce()
    seq = hanji.status()["seq"]
    syncs = hanji.syncs()
    result = bench.load("put", side, hanji.port, [PUT], hanji=hanji, c=connections, k=keys, D=True, N=nonce)
    after = hanji.syncs()
    calls = max(1, after[0] - syncs[0])
    bench.samples[-1].update(syncs=calls, sync_us=(after[2] - syncs[2]) / calls / 1000,
                             real_sync_us=(after[1] - syncs[1]) / calls / 1000, writes_per_sync=result["issued"] / calls)
    if hanji.status()["seq"] - seq != result["answered"]:
        bench.wrong += 1
        bench.say(f"put {side}: {result['answered']} acknowledged, seq rose by {hanji.status()['seq'] - seq}")
    back = run_load("load", ["127.0.0.1", hanji.port], [GET], token=hanji.token, c=16, k=keys, D=True, N=nonce,
                    n=min(keys, result["issued"]), l=f"read back {side}")
    bench.take("put", f"read back {side}", back)


def bar_put(bench):
    with Hanji(bench.rig, "sync5", documents=10000, sync_us=5000) as five:
        bench.alternate({
            f"5 ms, {c} connections": lambda c=c: put_round(bench, five, f"5 ms, {c} connections", c) for c in (64, 8, 1)})
    with Hanji(bench.rig, "sync1", documents=10000, sync_us=1000) as one, \
            Hanji(bench.rig, "alone", documents=10000, sync_us=1000, options=["--burst_operations", 1]) as alone:
        bench.alternate({
            "1 ms, bursts": lambda: put_round(bench, one, "1 ms, bursts", 64),
            "1 ms, each alone": lambda: put_round(bench, alone, "1 ms, each alone", 64)})
    table = bench.table
    for connections, least in ((64, 0.45), (8, 0.7), (1, 0.75)):
        side = f"5 ms, {connections} connections"
        rates = bench.rates("put", side)
        table.add(f"durable PUT 64 B, sync {side}", rates, unit="/s", note=sync_note(bench, side))
        table.add(f"  : {connections}/5 ms = {connections * 200:,}/s", [r / (connections * 200) for r in rates], ("≥", least))
    for side in ("1 ms, bursts", "1 ms, each alone"):
        table.add(f"durable PUT 64 B, sync {side}, 64 connections", bench.rates("put", side), unit="/s",
                  note=sync_note(bench, side))
    table.add("  bursts : each alone", quotients(bench.rates("put", "1 ms, bursts"), bench.rates("put", "1 ms, each alone")),
              ("≥", 8.0))


def sync_note(bench, side):
    mine = bench.of("put", side)
    return (f"{median([s['writes_per_sync'] for s in mine]):.1f} writes per sync of "
            f"{median([s['sync_us'] for s in mine]) / 1000:.2f} ms (the disk's own: "
            f"{median([s['real_sync_us'] for s in mine]) / 1000:.2f} ms); hanji's CPU {median(bench.cpu('put', side, 'hanji')):.1f} µs")


# ---- mixed: reading while others write ----

def bar_mixed(bench):
    with Hanji(bench.rig, "sync50", documents=10000, sync_us=50000) as hanji:
        def alone():
            bench.load("mixed", "alone", hanji.port, [GET], hanji=hanji, k=10000)

        def with_writers(side, **options):
            writers = start_load("load", ["127.0.0.1", hanji.port], ["PUT /docs/w/{} 201,204 64"], token=hanji.token,
                                 c=8, k=10000, d=bench.seconds + WARM_S, w=0.1, l="writers")
            time.sleep(0.1)
            bench.load("mixed", side, hanji.port, [GET], hanji=hanji, k=10000, **options)
            bench.take("mixed", f"writers of {side}", finish_load(writers))

        bench.alternate({"alone": alone, "with writers": lambda: with_writers("with writers")})
        calm = median(bench.rates("mixed", "alone")) / 2
        bench.calm(lambda: with_writers("open loop", R=int(calm)))
    table = bench.table
    told = {side: [s["load"] for s in bench.of("mixed", side)] for side in ("alone", "with writers", "open loop")}
    writes = bench.rates("mixed", "writers of with writers")
    table.add("GET alone", [load["rate"] for load in told["alone"]], unit="/s")
    table.add("  99.9 % of answers within", [load["latency_us"]["p99_9"] / 1000 for load in told["alone"]], unit="ms")
    table.add("GET while 8 connections write, sync 50 ms", [load["rate"] for load in told["with writers"]], unit="/s",
              note=f"{median(writes):.0f} writes/s beside it")
    table.add("  99.9 % of answers within", [load["latency_us"]["p99_9"] / 1000 for load in told["with writers"]],
              ("≤", 10.0), unit="ms")
    table.add("  with writers : alone", quotients(bench.rates("mixed", "with writers"), bench.rates("mixed", "alone")),
              ("≥", 0.8))
    table.add(f"  open loop at {calm:,.0f}/s: 99.9 % within", [load["latency_us"]["p99_9"] / 1000 for load in told["open loop"]],
              unit="ms", note=f"{told['open loop'][0]['unsent']} due but not sent")


# ---- idle: 10,000 kept connections ----

def bar_idle(bench):
    held = 10000
    with Hanji(bench.rig, "main2", documents=1000) as hanji:
        def rounds(side):
            for _ in range(3):
                bench.calm(lambda: bench.load("idle", side, hanji.port, [GET], hanji=hanji, k=1000, d=min(2, bench.seconds)))

        rounds("before")
        before = memory_kib(hanji.worker())
        command = [os.path.join(rigs.TOOLS, "fcgiload"), "hold", "-c", str(held), "-k", "1000", "-r", GET,
                   "-H", f"Authorization: Bearer {hanji.token}", hanji.socket]
        holder = subprocess.Popen(rigs.pinned(rigs.LOAD_CPU, *command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        opened = json.loads(holder.stdout.readline() or '{"held": 0, "wrong": 1}')
        after = memory_kib(hanji.worker())
        rounds("during")
        busy = memory_kib(hanji.worker())
        out, _ = holder.communicate("")
        closed = json.loads(out or "{}")
        if opened["held"] != held or opened["wrong"] or closed.get("closed_by_server") != 0:
            bench.wrong += 1
            bench.say(f"idle: {opened} {closed}")
        rounds("after")
    bench.samples.append({"bar": "idle", "side": "memory", "before": before, "held": after, "held_busy": busy})
    table = bench.table
    without = median(bench.rates("idle", "before") + bench.rates("idle", "after"))
    table.add("GET without idle connections", bench.rates("idle", "before") + bench.rates("idle", "after"), unit="/s")
    table.add(f"GET with {held:,} idle kept connections", bench.rates("idle", "during"), unit="/s")
    table.add("  with : without", [rate / without for rate in bench.rates("idle", "during")], ("≥", 0.9))
    table.add("  RSS per idle connection", [max(after["rss"], busy["rss"]) / held - before["rss"] / held], ("≤", 2.0), unit="KiB")


# ---- scale: instructions per GET ----

def instructions(bench, name, documents):
    """Instructions that the worker executes per GET: counters set to zero after a warm-up, dumped after `count` more."""
    count = 4000
    hanji = Hanji(bench.rig, name, documents=documents)
    out = os.path.join(hanji.folder, "callgrind.out")
    per_get = {}

    def gets(connections, requests, seed):
        result = run_load("fcgiload", [hanji.socket], [GET], token=hanji.token, c=connections, n=requests, k=documents,
                          t=60, S=seed, l=f"{documents} documents")
        bench.take("scale", f"{documents} documents, {connections} connections, callgrind", result)

    hanji.start_worker(["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={out}.%p"])
    try:
        worker = str(hanji.worker())
        for connections in (1, 16):
            gets(connections, 1000, 1)
            callgrind_control("-z", worker)
            gets(connections, count, 2)
            callgrind_control(f"--dump=gets{connections}", worker)
            per_get[connections] = callgrind_total(f"{out}.{worker}.*") / count
    finally:
        hanji.stop()
    bench.samples.append({"bar": "scale", "side": f"{documents} documents", "instructions_per_get": per_get})
    return hanji, per_get


def bar_scale(bench):
    counts = {"1k": 1000, "1m": 1000000}
    hanjis, per_get = {}, {}
    for name, documents in counts.items():
        bench.say(f"{documents:,} documents")
        hanjis[name], per_get[name] = instructions(bench, name, documents)
    with hanjis["1k"], hanjis["1m"]:
        bench.rounds, rounds = min(bench.rounds, 3), bench.rounds
        bench.alternate({name: lambda name=name: bench.load("scale", name, hanjis[name].port, [GET], hanji=hanjis[name],
                                                            k=counts[name], d=min(2, bench.seconds)) for name in counts})
        bench.rounds = rounds
    table = bench.table
    for connections in (1, 16):
        small, large = per_get["1k"][connections], per_get["1m"][connections]
        what = "1 connection" if connections == 1 else f"{connections} connections"
        table.add(f"instructions per GET, {what}: 1,000 documents", [small])
        table.add(f"instructions per GET, {what}: 1,000,000 documents", [large])
        table.add("  1,000,000 : 1,000", [large / small], ("≤", 1.25))
    for name, documents in counts.items():
        table.add(f"GET at random among {documents:,} documents", bench.rates("scale", name), unit="/s",
                  note=f"hanji's CPU {median(bench.cpu('scale', name, 'hanji')):.1f} µs")


# ---- memory ----

MIX = [GET + " 70", PUT + " 10", "GET /docs/bench/?limit=20 200 - 10", "GET /docs/absent/{} 404 - 10"]


def idle_memory(hanji, seconds=2):
    """The most that the worker has in the seconds after its start; no request is made."""
    rigs.read_libraries(hanji.rig.binary)
    most = {}
    with hanji:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for kind, kib in memory_kib(hanji.worker()).items():
                most[kind] = max(kib, most.get(kind, 0))
            time.sleep(0.1)
    return most


def bar_memory(bench):
    hanji = Hanji(bench.rig, "main3", documents=0)
    idle = [idle_memory(hanji) for _ in range(3)]
    steps = {}
    with hanji:
        bench.load("memory", "fill", hanji.port, [PUT], hanji=hanji, n=10000, k=10000, D=True, d=0, w=0)
        for name, requests in (("after 10,000", 10000), ("after 1,000,000", 990000)):
            bench.load("memory", name, hanji.port, MIX, hanji=hanji, n=requests, k=10000, d=0, w=0)
            steps[name] = memory_kib(hanji.worker())
    bench.samples.append({"bar": "memory", "side": "steps", "idle": idle, **steps})
    table = bench.table
    for kind, words, most in (("private_dirty", "private dirty", 1024), ("pss", "PSS", 1843.2), ("rss", "RSS", 5120)):
        table.add(f"memory, idle after start: {words}", [one[kind] / 1024 for one in idle], ("≤", most / 1024), unit="MiB")
    for kind, words in (("private_dirty", "private dirty"), ("pss", "PSS"), ("rss", "RSS")):
        table.add(f"  {words}: after 1,000,000 mixed requests − after 10,000",
                  [(steps["after 1,000,000"][kind] - steps["after 10,000"][kind]) / 1024], ("≤", 1.0), unit="MiB",
                  note=f"{steps['after 10,000'][kind] / 1024:.2f} → {steps['after 1,000,000'][kind] / 1024:.2f} MiB")
    table.add("  mixed requests", bench.rates("memory", "after 1,000,000"), unit="/s")


BARS = {"get": bar_get, "put": bar_put, "mixed": bar_mixed, "idle": bar_idle, "scale": bar_scale, "memory": bar_memory}
NAMES = ["main", "null", "sync5", "sync1", "alone", "sync50", "main2", "main3", "1k", "1m"]


# ---- the whole ----

def options():
    parser = parser_for(__doc__, BARS)
    arguments = parser.parse_args()
    if arguments.bars and set(arguments.bars) == {"cpu"}:
        arguments.bars = ["get"]
    arguments.bars = [bar for bar in arguments.bars if bar != "cpu"]
    choose(parser, arguments, BARS)
    return arguments


if __name__ == "__main__":
    sys.exit(run("quick", options(), BARS, lambda: Rig(NAMES)))
