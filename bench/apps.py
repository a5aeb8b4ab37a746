"""apps.sh's measurements: the bars for apps on this machine, in about ten minutes.

    apps.py [--quick] [--rounds N] [--seconds S] [--quiet] [--save] [BAR]...     BARs: get page write mixed slow memory (all)

What runs is the bundled app scores as it is delivered, but that anybody may read and write it, beside documents of the same
server. Rounds alternate between the sides of a comparison. Every answer is checked: documents byte by byte against their key,
answers of apps byte by byte against one that was judged here before; after writes the totals must have risen by exactly the
number of acknowledged ones. Exit status: 0 all bars met, 1 some missed, 2 it could not be measured.
"""

import http.client
import json
import os
import shutil
import subprocess
import sys
import time

import rig as rigs
from report import median, quotients
from rig import Hanji, Rig, RigError, clean_environment, finish_load, memory_kib, run_load, start_load
from runner import WARM_S, callgrind_control, callgrind_total, choose, parser_for, run

GET = "GET /docs/bench/{} 200 64"
HTML = "Accept: text/html"
POINTS = b'{"points":3}'
PAGE = 20
PLAYERS = 1000

SLOW_INI = "title = Slow\nread = public\ntime = 20s\n"
SLOW_SQL = """WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < CAST(:steps AS INTEGER))
SELECT max(i) AS steps FROM n;
"""


def copy_app(folder, name, app="scores"):
    """A bundled app under another name: its tables begin with that name. Public, so that no side has a token more."""
    target = os.path.join(folder, name)
    shutil.copytree(os.path.join(rigs.TOP, "handlers", "bundled", app), target)
    for path, _, files in os.walk(target):
        for file in files:
            if not file.endswith((".sql", ".html", ".js", ".ini")):
                continue
            with open(os.path.join(path, file), encoding="utf-8") as old:
                text = old.read()
            text = text.replace(f"{app}_", f"{name}_")
            if file == "app.ini":
                keys = [line for line in text.splitlines() if line.split("=")[0].strip() not in ("read", "write")]
                text = "\n".join([*keys, "read = public", "write = public", ""])
            with open(os.path.join(path, file), "w", encoding="utf-8") as new:
                new.write(text)


def server(bench, name, apps=("scores",), **more):
    """A server with apps in a folder of its own."""
    folder = os.path.join(bench.rig.data, f"{name}-apps")
    os.makedirs(folder)
    for app in apps:
        copy_app(folder, app)
    options = [*more.pop("options", []), "--apps", folder]
    return Hanji(bench.rig, name, options=options, **more), folder


def sql(database, script):
    done = subprocess.run(["sqlite3", "-bail", database], input=script, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        raise RigError(f"sqlite3: {done.stdout.strip()}")
    return done.stdout


def fill_scores(hanji, players):
    """Players with scores of which many are equal, written by SQL while no server runs; the triggers keep the totals."""
    sql(hanji.database, f"""
        PRAGMA wal_autocheckpoint=0; PRAGMA synchronous=OFF; PRAGMA cache_size=-262144;
        BEGIN IMMEDIATE;
        WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {players})
        INSERT INTO scores_player (player, score, at)
            SELECT printf('player %07d', i), i * 7919 % {max(10, players // 100)}, 0 FROM n;
        COMMIT;
        PRAGMA wal_checkpoint(TRUNCATE);""")


def with_tables(hanji, players):
    """The server makes the tables when it starts; then they are filled, and it starts anew."""
    with hanji:
        pass
    fill_scores(hanji, players)


def fetch(hanji, path, html=False):
    connection = http.client.HTTPConnection("127.0.0.1", hanji.port, timeout=30)
    connection.request("GET", path, headers={"Accept": "text/html" if html else "application/json"})
    response = connection.getresponse()
    answer = response.read()
    connection.close()
    if response.status != 200:
        raise RigError(f"{path}: {response.status} {answer[:200]!r}")
    return answer


def kept(hanji, name, answer):
    """A request's answer in a file, so that the load compares each one with it."""
    path = os.path.join(hanji.folder, name)
    with open(path, "wb") as file:
        file.write(answer)
    return path


def judged_page(hanji, path, html=False):
    answer = fetch(hanji, path, html)
    count = answer.count(b"<tr><td>") if html else len(json.loads(answer)["rows"])
    if count != PAGE:
        raise RigError(f"{path}: {count} rows instead of {PAGE}")
    return answer


# ---- get: totals and pages against documents ----

SIDES = {"total": ("/apps/scores/total", False, 0.9), "page, JSON": ("/apps/scores/page", False, 0.6),
         "page, HTML": ("/apps/scores/page", True, 0.5)}
CONNECTIONS = (64, 8, 1)


def bar_get(bench):
    hanji, _ = server(bench, "get")
    with_tables(hanji, PLAYERS)
    with hanji:
        kinds = {}
        for side, (path, html, _) in SIDES.items():
            answer = judged_page(hanji, path, html) if side != "total" else fetch(hanji, path)
            kinds[side] = (f"GET {path} 200 ={kept(hanji, side.replace(', ', '-'), answer)}", html, len(answer))
        sizes = {"document of 64 B": 64, **{f"document as large as {side}": n for side, (_, _, n) in kinds.items()}}
        for size in sizes.values():
            run_load("load", ["127.0.0.1", hanji.port], [f"PUT /docs/s{size}/{{}} 201,204 {size}"], token=hanji.token, c=4,
                     n=100, k=100, D=True, d=0)
        bench.rounds, rounds = min(bench.rounds, 3), bench.rounds
        for c in CONNECTIONS:
            bench.alternate({
                **{side: lambda side=side, c=c: app_load(bench, f"{side}, {c}", hanji, kinds[side], c) for side in kinds},
                **{side: lambda side=side, size=size, c=c: bench.load("get", f"{side}, {c}", hanji.port,
                                                                      [f"GET /docs/s{size}/{{}} 200 {size}"], hanji=hanji, c=c,
                                                                      k=100)
                   for side, size in sizes.items()}})
        bench.rounds = rounds
    for c in CONNECTIONS:
        base = bench.rates("get", f"document of 64 B, {c}")
        bench.table.add(f"{c} connections: document of 64 B", base, unit="/s")
        for side, (_, _, least) in SIDES.items():
            own = bench.rates("get", f"document as large as {side}, {c}")
            rates = bench.rates("get", f"{side}, {c}")
            cpu = {who: median(bench.cpu("get", f"{side}, {c}", who)) for who in ("hanji", "nginx")}
            bench.table.add(f"  scores {side}", rates, unit="/s",
                            note=f"{kinds[side][2]} B; CPU: hanji {cpu['hanji']:.1f} + nginx {cpu['nginx']:.1f} µs")
            bench.table.add(f"  {side} : document of 64 B", quotients(rates, base), ("≥", least))
            bench.table.add(f"  {side} : document of its size", quotients(rates, own))


def app_load(bench, side, hanji, kind, connections):
    request, html, _ = kind
    more = {"H": HTML, "b": True} if html else {}
    bench.load("get", side, hanji.port, [request], c=connections, hanji=hanji, **more)


# ---- page: the first of a million rows against one far behind ----

def walk(hanji, pages):
    """Follows `next` so many times, through nginx, and returns the address of the page that is reached."""
    connection = http.client.HTTPConnection("127.0.0.1", hanji.port, timeout=30)
    path = "/apps/scores/page"
    for _ in range(pages):
        connection.request("GET", path)
        path = json.loads(connection.getresponse().read())["next"]
        if not path:
            raise RigError("the pages end early")
    connection.close()
    return path


def count_page(bench, hanji, out, side, request):
    """Instructions of the worker for one page."""
    count, worker = 40, str(hanji.worker())
    for requests, reset in ((10, True), (count, False)):
        result = run_load("fcgiload", [hanji.socket], [request], token=hanji.token, c=1, n=requests, t=60, l=side)
        bench.take("page", side, result)
        if reset:
            callgrind_control("-z", worker)
    callgrind_control(f"--dump=p{''.join(c for c in side if c.isalnum())}", worker)
    return callgrind_total(f"{out}.{worker}.*") / count


def bar_page(bench):
    players, far = (20_000, 800) if bench.quick else (1_000_000, 39_999)
    hanji, _ = server(bench, "page", documents=1000)
    with_tables(hanji, players)
    with hanji:
        paths = {"page 1": "/apps/scores/page", f"page {far + 1:,}": walk(hanji, far)}
        last = json.loads(judged_page(hanji, paths[f"page {far + 1:,}"]))
        paths["the page before it"] = last["prev"]
        kinds = {where: f"GET {path} 200 ={kept(hanji, f'page{i}', judged_page(hanji, path))}"
                 for i, (where, path) in enumerate(paths.items())}
        bench.rounds, rounds = min(bench.rounds, 3), bench.rounds
        bench.alternate({where: lambda where=where: bench.load("page", where, hanji.port, [kinds[where]], c=8, hanji=hanji)
                         for where in kinds})
        bench.rounds = rounds
    out = os.path.join(hanji.folder, "callgrind.out")
    hanji.start_worker(["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={out}.%p"])
    try:
        told = {where: count_page(bench, hanji, out, f"{where}, counted", kind) for where, kind in kinds.items()}
        document = count_page(bench, hanji, out, "document, counted", GET)
        total = count_page(bench, hanji, out, "total, counted", "GET /apps/scores/total 200 -")
    finally:
        hanji.stop()
    bench.table.add("instructions of hanji for a document of 64 B", [document])
    bench.table.add("  for the total", [total])
    bench.table.add(f"  for page 1 of {players:,} rows", [told["page 1"]])
    for where in list(kinds)[1:]:
        bench.table.add(f"  {where} : page 1, instructions", [told[where] / told["page 1"]], ("≤", 1.25),
                        note=f"{told[where]:,.0f}")
        bench.table.add(f"  page 1 : {where}, answers a second",
                        quotients(bench.rates("page", "page 1"), bench.rates("page", where)))


# ---- write: adding to scores against putting documents ----

def totals(hanji):
    return json.loads(fetch(hanji, "/apps/scores/total"))["rows"][0]


def adding(hanji):
    """Three points for one of many players."""
    return [f"POST /apps/scores/add?player=player{{}} 200 @{kept(hanji, 'points', POINTS)}"]


def add_round(bench, bar, hanji, side, c):
    before = totals(hanji)["writes"]
    result = bench.load(bar, side, hanji.port, adding(hanji), hanji=hanji, c=c, k=10000)
    if totals(hanji)["writes"] - before != result["answered"]:
        bench.wrong += 1
        bench.say(f"{side}: {result['answered']} acknowledged, writes rose by {totals(hanji)['writes'] - before}")


def bar_write(bench):
    bench.rounds, rounds = min(bench.rounds, 3), bench.rounds
    for name, words, sync_us in (("own", "the disk's sync", 0), ("sync5", "5 ms sync", 5000)):
        hanji, _ = server(bench, name, documents=10000, sync_us=sync_us)
        with hanji:
            for c in (8, 64):
                bench.alternate({
                    "add": lambda c=c: add_round(bench, "write", hanji, f"{name} add {c}", c),
                    "put": lambda c=c: bench.load("write", f"{name} put {c}", hanji.port, ["PUT /docs/bench/{} 201,204 64"],
                                                  hanji=hanji, c=c, k=10000, D=True)})
        for c in (8, 64):
            add, put = (bench.rates("write", f"{name} {what} {c}") for what in ("add", "put"))
            bench.table.add(f"{words}, {c} connections: scores add", add, unit="/s",
                            note=f"hanji's CPU {median(bench.cpu('write', f'{name} add {c}', 'hanji')):.1f} µs, "
                                 f"of a PUT {median(bench.cpu('write', f'{name} put {c}', 'hanji')):.1f} µs")
            bench.table.add("  add : durable PUT", quotients(add, put), ("≥", 0.7), note=f"PUT {median(put):,.0f}/s")
    bench.rounds = rounds


# ---- mixed: reading while others write ----

def bar_mixed(bench):
    hanji, _ = server(bench, "mixed", documents=1000, sync_us=5000)
    reads = [GET, "GET /apps/scores/total 200 -", "GET /apps/scores/page 200 -"]
    with_tables(hanji, PLAYERS)
    with hanji:
        def with_writers():
            writers = start_load("load", ["127.0.0.1", hanji.port], adding(hanji), c=8, k=10000, d=bench.seconds + WARM_S,
                                 w=0.1, l="writers")
            time.sleep(0.1)
            bench.load("mixed", "with writers", hanji.port, reads, hanji=hanji, k=1000)
            bench.take("mixed", "writers", finish_load(writers))

        bench.alternate({"alone": lambda: bench.load("mixed", "alone", hanji.port, reads, hanji=hanji, k=1000),
                         "with writers": with_writers})
    bench.table.add("reads (document, total, page) alone", bench.rates("mixed", "alone"), unit="/s")
    bench.table.add("reads while 8 connections add scores, sync 5 ms", bench.rates("mixed", "with writers"), unit="/s",
                    note=f"{median(bench.rates('mixed', 'writers')):.0f} writes/s beside it")
    bench.table.add("  with writers : alone", quotients(bench.rates("mixed", "with writers"), bench.rates("mixed", "alone")),
                    ("≥", 0.8))


# ---- slow: one app runs a query of five seconds ----

def steps_for(hanji, seconds):
    """How far the slow app counts in that time."""
    steps, took = 1_000_000, 0.0
    while took < 0.5:
        start = time.monotonic()
        fetch(hanji, f"/apps/slow/?steps={steps}")
        took = time.monotonic() - start
        steps *= 2
    return int(steps / 2 * 1.3 * seconds / took)


def bar_slow(bench):
    hanji, folder = server(bench, "slow", documents=1000)
    os.makedirs(os.path.join(folder, "slow"))
    for name, text in (("app.ini", SLOW_INI), ("index.get.sql", SLOW_SQL)):
        with open(os.path.join(folder, "slow", name), "w", encoding="utf-8") as file:
            file.write(text)
    with_tables(hanji, PLAYERS)
    reads = [f"{GET} 3", "GET /apps/scores/total 200 - 3", "GET /apps/scores/page 200 - 3"]
    with hanji:
        steps = steps_for(hanji, 1 if bench.quick else 5)

        def both(side):
            writers = start_load("load", ["127.0.0.1", hanji.port], adding(hanji), c=4, k=1000, R=50, d=bench.seconds,
                                 w=WARM_S, l=side)
            bench.load("slow", side, hanji.port, reads, hanji=hanji, c=16, k=1000, R=500)
            bench.take("slow", f"{side}, writes", finish_load(writers))

        def beside():
            query = subprocess.Popen(["curl", "-sS", "-f", "-w", "\n%{time_total}",
                                      f"http://127.0.0.1:{hanji.port}/apps/slow/?steps={steps}"],
                                     stdout=subprocess.PIPE, text=True, env=clean_environment())
            time.sleep(0.1)
            both("beside")
            running = query.poll() is None
            out, _ = query.communicate(timeout=60)
            bench.samples.append({"bar": "slow", "side": "query", "seconds": float(out.splitlines()[-1]), "running": running})

        bench.seconds, seconds = (0.8 if bench.quick else 4), bench.seconds
        bench.rounds, rounds = min(bench.rounds, 3), bench.rounds
        bench.alternate({"alone": lambda: both("alone"), "beside": beside})
        bench.seconds, bench.rounds = seconds, rounds
    query = bench.of("slow", "query")
    bench.table.add("a query of an app that takes", [s["seconds"] for s in query], unit="s",
                    note="it ran until the end of the others" if all(s["running"] for s in query) else "IT ENDED EARLY")
    for side, bar in (("alone", None), ("beside", ("≤", 10.0))):
        for what, words in (("", "500 reads a second"), (", writes", "50 score writes a second")):
            latency = [s["load"]["latency_us"] for s in bench.of("slow", side + what)]
            bench.table.add(f"  {words}, {side}{' it' if side == 'beside' else ''}: 99.9 % within",
                            [one["p99_9"] / 1000 for one in latency], bar, unit="ms",
                            note=f"slowest {max(one['max'] for one in latency) / 1000:.1f} ms")


# ---- memory: twenty apps ----

def rss_with(bench, name, apps):
    """RSS of a worker with those apps after each was asked once, and before."""
    hanji, _ = server(bench, name, apps=apps, documents=1000)
    with hanji:  # makes the tables
        pass
    with hanji:
        bench.load("memory", f"warm {name}", hanji.port, [GET], hanji=hanji, c=4, n=1000, k=1000, d=0, w=0)
        time.sleep(1)
        before = memory_kib(hanji.worker())
        for app in apps:
            fetch(hanji, f"/apps/{app}/total")
            fetch(hanji, f"/apps/{app}/", html=True)
        time.sleep(1)
        return before, memory_kib(hanji.worker())


def bar_memory(bench):
    names = [f"score{chr(ord('a') + i)}" for i in range(20)]
    told = {"none": [], "twenty": []}
    for i in range(1 if bench.quick else 3):
        told["none"].append(rss_with(bench, f"none{i}", []))
        told["twenty"].append(rss_with(bench, f"twenty{i}", names))
    bench.samples.append({"bar": "memory", "side": "RSS", "told": told})
    for when, at in (("before they are used", 0), ("after each was used", 1)):
        added = [(twenty[at]["rss"] - none[at]["rss"]) / 1024 for none, twenty in zip(told["none"], told["twenty"])]
        dirty = [(t[at]["private_dirty"] - n[at]["private_dirty"]) / 1024 for n, t in zip(told["none"], told["twenty"])]
        bench.table.add(f"RSS that 20 apps add, {when}", added, ("≤", 2.0), unit="MiB",
                        note=f"private dirty {median(dirty):.2f} MiB; RSS in all "
                             f"{median([t[at]['rss'] for t in told['twenty']]) / 1024:.2f} MiB")


BARS = {"get": bar_get, "page": bar_page, "write": bar_write, "mixed": bar_mixed, "slow": bar_slow, "memory": bar_memory}
NAMES = ["get", "page", "own", "sync5", "mixed", "slow", *[f"{kind}{i}" for kind in ("none", "twenty") for i in range(3)]]


def main(words):
    parser = parser_for(__doc__, BARS)
    parser.add_argument("--quick", action="store_true", help="fewer rounds and smaller numbers, to see that it runs")
    arguments = parser.parse_args(words)
    choose(parser, arguments, BARS)
    if arguments.quick:
        arguments.rounds, arguments.seconds = min(arguments.rounds, 2), min(arguments.seconds, 0.6)
    return run("apps", arguments, BARS, lambda: Rig(NAMES))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
