"""documents.sh's measurements: the bars for complete documents on this machine, in about ten minutes.

    documents.py [--quick] [--rounds N] [--seconds S] [--quiet] [--save] [BAR]...
                                            BARs: get accel snapshot list batch upload watchers backup (all)

This file has what is measured by itself; beside.py has what goes on beside something else. Rounds alternate between the sides of
a comparison. Every answer is checked: documents byte by byte against their key, lists and snapshots against one answer of the
same kind that was judged here before. Exit status: 0 all bars met, 1 some missed, 2 it could not be measured.
"""

import json
import os
import random
import sys
import urllib.parse
import urllib.request

import beside
import rig as rigs
from report import median, quotients
from rig import Hanji, NoWork, Rig, RigError, fill, run_load
from runner import callgrind_control, callgrind_total, choose, parser_for, run

KIB = 1024
MIB = 1024 * KIB


def size_name(size):
    return f"{size // MIB} MiB" if size >= MIB else f"{size // KIB} KiB" if size >= KIB else f"{size} B"


def cpu_note(bench, bar, side):
    backend, nginx = (median(bench.cpu(bar, side, who)) for who in ("hanji", "nginx"))
    return f"CPU: backend {backend:.1f} + nginx {nginx:.1f} = {backend + nginx:.1f} µs"


# ---- get: documents of every size against static files ----

def documents_of(size):
    """How many there are of a size: enough to be no single file, little enough to stay in the page cache."""
    return 32 if size >= MIB else 100


def connections_for(size):
    """Fewer for what takes long, so that a short measurement has many answers in it."""
    return 64 if size < 256 * KIB else 16


def put_sizes(bench, bar, hanji, sizes):
    """Puts the documents, starts the server anew, so that the log is in the file and no checkpoint comes between, and gets each
    document once, so that the files for nginx are made."""
    for size in sizes:
        count = documents_of(size)
        bench.load(bar, f"fill {hanji.name} {size_name(size)}", hanji.port, [f"PUT /docs/s{size}/{{}} 201,204 {size}"],
                   hanji=hanji, c=4, n=count, k=count, D=True, d=0, w=0)
    hanji.stop()
    hanji.start()
    for size in sizes:
        get_size(bench, bar, f"first {hanji.name} {size_name(size)}", hanji, size, c=4, n=documents_of(size), D=True, d=0, w=0)


def get_size(bench, bar, side, hanji, size, **options):
    count = documents_of(size)
    bench.load(bar, side, hanji.port, [f"GET /docs/s{size}/{{}} 200 {size}"], hanji=hanji, k=count,
               **{"c": connections_for(size), **options})


def bar_get(bench):
    bars = {16 * KIB: 0.85, 64 * KIB: 0.85, MIB: 0.95}
    for size in bars:
        bench.rig.static_files(f"s{size}", size, documents_of(size))
    with Hanji(bench.rig, "sizes", documents=1) as hanji:
        put_sizes(bench, "get", hanji, bars)
        for size in bars:
            get_rounds(bench, hanji, size)
    for size, least in bars.items():
        name = size_name(size)
        rates = {side: bench.rates("get", f"{name} {side}") for side in ("hanji", "static", "no work", "no work, file")}
        bench.table.add(f"{name} GET through nginx", rates["hanji"], unit="/s", note=cpu_note(bench, "get", f"{name} hanji"))
        bench.table.add("  the same nginx, static files, sendfile on", rates["static"], unit="/s",
                        note=f"CPU: nginx {median(bench.cpu('get', f'{name} static', 'nginx')):.1f} µs")
        bench.table.add("  GET : static", quotients(rates["hanji"], rates["static"]), ("≥", least))
        for side, words in (("no work", "sends the body"), ("no work, file", "has nginx send a file")):
            bench.table.add(f"  a FastCGI backend that does no work and {words}", rates[side], unit="/s",
                            note=cpu_note(bench, "get", f"{name} {side}"))
        best = [max(pair) for pair in zip(rates["no work"], rates["no work, file"])]
        bench.table.add("  GET : the better of these two", quotients(rates["hanji"], best))


def get_rounds(bench, hanji, size):
    """hanji, static files, and backends that do no work: as they would send it themselves and as nginx would for them."""
    name, count, c = size_name(size), documents_of(size), connections_for(size)
    with NoWork(bench.rig, "null", hanji, size=size) as null, NoWork(bench.rig, "nullfile", hanji, files=f"s{size}") as file:
        bench.alternate({
            f"{name} hanji": lambda: get_size(bench, "get", f"{name} hanji", hanji, size),
            f"{name} static": lambda: bench.load("get", f"{name} static", bench.rig.static_port,
                                                 [f"GET /on/s{size}/{{}} 200 {size}"], k=count, c=c),
            **{f"{name} {side}": lambda side=side, backend=backend: bench.load(
                "get", f"{name} {side}", backend.port, [f"GET /docs/bench/{{}} 200 {size}"], hanji=backend, k=count, c=c)
               for side, backend in (("no work", null), ("no work, file", file))}})


# ---- accel: from which size on nginx should send the file ----

def bar_accel(bench):
    sizes = [4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB, 64 * KIB, 256 * KIB, MIB][::2 if bench.quick else 1]
    bench.rounds, rounds = min(bench.rounds, 3), bench.rounds
    with Hanji(bench.rig, "accel", documents=0, options=["--accel_min", 1]) as file, \
            Hanji(bench.rig, "fastcgi", documents=0, options=["--accel_min", "1g"]) as fastcgi:
        for hanji in (file, fastcgi):
            put_sizes(bench, "accel", hanji, sizes)
        for size in sizes:
            name = size_name(size)
            bench.alternate({
                f"{name} {hanji.name}": lambda hanji=hanji: get_size(bench, "accel", f"{name} {hanji.name}", hanji, size,
                                                                    d=min(1.2, bench.seconds)) for hanji in (file, fastcgi)})
    bench.rounds = rounds
    for size in sizes:
        name = size_name(size)
        rates = [bench.rates("accel", f"{name} {side}") for side in ("accel", "fastcgi")]
        bench.table.add(f"{name} GET, nginx sends the file", rates[0], unit="/s", note=cpu_note(bench, "accel", f"{name} accel"))
        bench.table.add("  through FastCGI", rates[1], unit="/s", note=cpu_note(bench, "accel", f"{name} fastcgi"))
        bench.table.add("  file : FastCGI", quotients(*rates), note="above 1: accel_min should be at most this")




# ---- snapshot: many documents in one answer ----

KEYS = 50
SNAPSHOTS = 8


def post(hanji, path, text):
    request = urllib.request.Request(f"http://127.0.0.1:{hanji.port}{path}", data=text.encode(), method="POST",
                                     headers={"Authorization": f"Bearer {hanji.token}", "Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as response:
        return response.read()


def keep(hanji, name, data):
    """A file for load's @ and =."""
    path = os.path.join(hanji.folder, name)
    with open(path, "wb") as file:
        file.write(data)
    return path


def snapshot_kinds(hanji, prefix, count, size):
    """Kinds of request for SNAPSHOTS different sets of keys, and the answer that each must have, judged here once."""
    order = random.Random(size)
    kinds = []
    for i in range(SNAPSHOTS):
        numbers = order.sample(range(count), KEYS)
        asked = json.dumps({"keys": [f"{prefix}/{n:08d}" for n in numbers]})
        answer = post(hanji, "/snapshot", asked)
        for n, document in zip(numbers, json.loads(answer)["documents"], strict=True):
            if document["key"] != f"{prefix}/{n:08d}" or document["text"] != rigs.body(n, size):
                raise RigError(f"/snapshot: not the document {n}: {document}")
        kinds.append("POST /snapshot 200 @{}={}".format(keep(hanji, f"{prefix}{i}.ask", asked.encode()),
                                                        keep(hanji, f"{prefix}{i}.answer", answer)))
    return kinds


def bar_snapshot(bench):
    count = 1000
    hanji = Hanji(bench.rig, "snapshot", documents=0)
    sizes = {64: "small", KIB: "kib"}
    for size, prefix in sizes.items():
        fill(hanji.database, prefix, count, size)
    with hanji:
        for size, prefix in sizes.items():
            kinds = snapshot_kinds(hanji, prefix, count, size)
            for c in (1, 64):
                name = f"{size_name(size)}, {c}"
                bench.alternate({
                    f"GET {name}": lambda: bench.load("snapshot", f"GET {name}", hanji.port,
                                                      [f"GET /docs/{prefix}/{{}} 200 {size}"], hanji=hanji, k=count, c=c),
                    f"snapshot {name}": lambda: bench.load("snapshot", f"snapshot {name}", hanji.port, kinds, hanji=hanji, c=c)})
    for size in sizes:
        for c in (1, 64):
            name = f"{size_name(size)}, {c}"
            get, snapshot = bench.cpu("snapshot", f"GET {name}", "hanji"), bench.cpu("snapshot", f"snapshot {name}", "hanji")
            connections = "1 connection" if c == 1 else f"{c} connections"
            bench.table.add(f"snapshot of {KEYS} × {size_name(size)}, {connections}: hanji's CPU", snapshot, unit="µs",
                            note=f"{median(bench.rates('snapshot', f'snapshot {name}')):,.0f}/s")
            bench.table.add("  a GET of one: hanji's CPU", get, unit="µs",
                            note=f"{median(bench.rates('snapshot', f'GET {name}')):,.0f}/s")
            bench.table.add(f"  {KEYS} GETs : snapshot", [KEYS * a / b for a, b in zip(get, snapshot)], ("≥", 15.0))
            both = [[a + b for a, b in zip(of, bench.cpu("snapshot", f"{what} {name}", "nginx"))]
                    for what, of in (("GET", get), ("snapshot", snapshot))]
            bench.table.add("  the same with nginx's CPU", [KEYS * a / b for a, b in zip(*both)])


# ---- list: a page at any depth ----

PAGE = 100
FOLDERS = 1000


def page_kind(hanji, path, first, folders=False):
    """The kind of request for one page, whose answer was judged here: PAGE entries, in order, from `first` on."""
    answer = hanji.get(path)
    told = json.loads(answer)
    names = told["prefixes"] if folders else [item["key"] for item in told["items"]]
    if len(names) != PAGE or names[0] != first or names != sorted(names) or not told["next"]:
        raise RigError(f"{path}: not the page: {answer[:300]!r}")
    page_kind.kept += 1
    return f"GET {path} 200 ={keep(hanji, f'page{page_kind.kept}', answer)}"


page_kind.kept = 0


def list_pages(hanji, documents):
    """Pages as (kind of page, where, request)."""
    pages = []
    for what, folder, more in (("list page", "bench", ""), ("with delimiter, documents", "bench", "&delimiter=/"),
                               ("with delimiter, folders", "tree", "&delimiter=/")):
        total = FOLDERS if folder == "tree" else documents
        end = "/" if folder == "tree" else ""
        for where, at in (("first", 0), ("middle", total // 2), ("last", total - PAGE - 1)):
            after = f"&after={urllib.parse.quote(f'{folder}/{at - 1:08d}{end}')}" if at else ""
            path = f"/docs/{folder}/?limit={PAGE}{more}{after}"
            pages.append((what, where, page_kind(hanji, path, f"{folder}/{at:08d}{end}", folder == "tree")))
    return pages


def count_page(bench, hanji, worker, out, side, kind):
    """Instructions of the worker for one page."""
    count = 40
    for requests, reset in ((10, True), (count, False)):
        result = run_load("fcgiload", [hanji.socket], [kind], token=hanji.token, c=1, n=requests, t=60, l=side)
        bench.take("list", side, result)
        if reset:
            callgrind_control("-z", worker)
    label = "p" + "".join(c for c in side if c.isalnum())
    callgrind_control(f"--dump={label}", worker)
    return callgrind_total(f"{out}.{worker}.*") / count


def bar_list(bench):
    documents = 50_000 if bench.quick else 1_000_000
    hanji = Hanji(bench.rig, "list", documents=documents)
    fill(hanji.database, "tree", documents, folder=documents // FOLDERS)
    out = os.path.join(hanji.folder, "callgrind.out")
    hanji.start_worker(["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={out}.%p"])
    told = {}
    try:
        for what, where, kind in list_pages(hanji, documents):
            told.setdefault(what, {})[where] = count_page(bench, hanji, str(hanji.worker()), out, f"{what}, {where}", kind)
    finally:
        hanji.stop()
    bench.samples.append({"bar": "list", "side": "instructions", "documents": documents, "pages": told})
    for what, by_place in told.items():
        bench.table.add(f"{what}, {PAGE} of {documents:,}: instructions, first page", [by_place["first"]])
        for where in ("middle", "last"):
            bench.table.add(f"  {where} page : first page", [by_place[where] / by_place["first"]], ("≤", 1.25),
                            note=f"{by_place[where]:,.0f}")


# ---- batch: many writes, one sync ----

PUTS = 100
BATCHES = 8


def batch_kinds(bench, hanji):
    """Requests that put the documents 0 to PUTS × BATCHES - 1 below batch/."""
    kinds = []
    for i in range(BATCHES):
        operations = [{"op": "put", "key": f"batch/{n:08d}", "text": rigs.body(n, 64)} for n in range(i * PUTS, (i + 1) * PUTS)]
        kinds.append(f"POST /batch 200 @{keep(hanji, f'batch{i}', json.dumps(operations).encode())}")
    return kinds


def bar_batch(bench):
    with Hanji(bench.rig, "batch", documents=1000, sync_us=5000) as hanji:
        kinds = batch_kinds(bench, hanji)

        def counted(side, requests, writes, **options):
            seq = hanji.status()["seq"]
            result = bench.load("batch", side, hanji.port, requests, hanji=hanji, c=1, **options)
            risen = hanji.status()["seq"] - seq
            if risen != result["answered"] * writes:
                bench.wrong += 1
                bench.say(f"{side}: {result['answered']} × {writes} acknowledged, seq rose by {risen}")

        bench.alternate({
            "separate": lambda: counted("separate", ["PUT /docs/bench/{} 201,204 64"], 1, k=1000),
            "batch": lambda: counted("batch", kinds, PUTS)})
        back = run_load("load", ["127.0.0.1", hanji.port], ["GET /docs/batch/{} 200 64"], token=hanji.token, c=16,
                        k=PUTS * BATCHES, n=PUTS * BATCHES, D=True, l="read back")
        bench.take("batch", "read back", back)
    separate = bench.rates("batch", "separate")
    batch = [rate * PUTS for rate in bench.rates("batch", "batch")]
    bench.table.add("durable PUT 64 B, sync 5 ms, 1 connection, one by one", separate, unit="/s")
    bench.table.add(f"  in batches of {PUTS}", batch, unit="/s",
                    note=f"hanji's CPU {median(bench.cpu('batch', 'batch', 'hanji')) / PUTS:.1f} µs each")
    bench.table.add("  batches : one by one", quotients(batch, separate), ("≥", 30.0))


# ---- the whole ----

BARS = {"get": bar_get, "accel": bar_accel, "snapshot": bar_snapshot, "list": bar_list, "batch": bar_batch, **beside.BARS}
NAMES = ["sizes", "null", "nullfile", "accel", "fastcgi", "snapshot", "list", "batch", *beside.NAMES]


def options():
    parser = parser_for(__doc__, BARS)
    parser.set_defaults(seconds=2.0)
    parser.add_argument("--quick", action="store_true", help="a short run with smaller numbers: does all of it work?")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rounds = 1
        arguments.seconds = min(arguments.seconds, 0.5)
    choose(parser, arguments, BARS)
    return arguments


if __name__ == "__main__":
    sys.exit(run("documents", options(), BARS, lambda: Rig(NAMES, connections=16384)))
