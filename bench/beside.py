"""Bars of documents.py for what goes on beside something else: large uploads, thousands of watchers, backups.

The common form: small requests at a fixed rate or by writers in a closed loop, once alone and once beside it; the bar is on
the latency of those, and on what the big thing itself is asked for.
"""

import hashlib
import json
import os
import shutil
import subprocess
import threading
import time

import rig as rigs
from report import median, quotients
from rig import Hanji, RigError, clean_environment, fill, finish_load, pinned, start_backend, start_load, stop

MIB = 1024 * 1024
GET = "GET /docs/bench/{} 200 64"
PUT = "PUT /docs/small/{} 201,204 64"


# ---- upload: 64 MiB, by every way a body can come ----

UPLOAD = 64 * MIB
# Requests that are due at a fixed rate, whatever happens: what, how many a second, and the way: through nginx, straight to
# hanji's socket, or to a static file of nginx. The last two tell whose the waiting is.
PROBES = {"GET": (GET, 400, "both"), "PUT": (PUT, 40, "both"), "GET, no nginx": (GET, 200, "hanji"),
          "static file": ("GET /on/file 200 64", 200, "nginx")}


class Uploads:
    """Uploads the same file again and again by curl until told to end; the last is read back."""

    WAYS = {
        "Content-Length": ["-T", "{file}"],
        "Content-Length, 1 Gbit/s": ["-T", "{file}", "--limit-rate", "119M"],
        "chunked": ["-T", "{file}", "-H", "Transfer-Encoding: chunked"],
        "HTTP/2, no length": ["--http2-prior-knowledge", "-T", "-"],
    }

    def __init__(self, hanji, path, way):
        self.hanji, self.path, self.way = hanji, path, way
        port = hanji.rig.http2_ports[hanji.name] if "HTTP/2" in way else hanji.port
        self.address = f"http://127.0.0.1:{port}/docs/large/{''.join(c for c in way if c.isalnum())}"
        self.seconds = []
        self.failed = None

    def one(self):
        words = [word.format(file=self.path) for word in self.WAYS[self.way]]
        with open(self.path, "rb") as file:
            done = subprocess.run(["setpriv", "--pdeathsig", "TERM", "curl", "-sS", "-o", "/dev/null", "--max-time", "120", "-w",
                                   "%{http_code} %{time_total}", "-H", f"Authorization: Bearer {self.hanji.token}",
                                   "-H", "Expect:", *words, self.address],
                                  stdin=file, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        status, _, seconds = done.stdout.strip().partition(" ")
        if done.returncode != 0 or status not in ("201", "204"):
            raise RigError(f"upload, {self.way}: {done.stdout.strip()[:200]}")
        self.seconds.append(float(seconds))

    def several(self, least, seconds):
        """At least so many, and for at least so long."""
        end = time.monotonic() + seconds
        while len(self.seconds) < least or time.monotonic() < end:
            self.one()

    def same(self):
        """Whether what is stored is what was sent."""
        got = subprocess.run(["curl", "-sS", "-f", "--max-time", "120", "-H", f"Authorization: Bearer {self.hanji.token}",
                              *(["--http2-prior-knowledge"] if "HTTP/2" in self.way else []), self.address],
                             stdout=subprocess.PIPE, check=False).stdout
        with open(self.path, "rb") as file:
            return hashlib.sha256(got).digest() == hashlib.sha256(file.read()).digest()


def with_probes(bench, bar, side, hanji, action, patience_s=120):
    """Runs `action` beside the probes, which last until it has ended. Keeps their results as "SIDE, GET" and so on."""
    probes = {}
    seconds = bench.seconds * 1.6
    ended = threading.Event()
    failure = []

    def act():
        try:
            action(seconds)
        except (RigError, OSError) as error:
            failure.append(error)
        ended.set()

    ways = {"both": ("load", ["127.0.0.1", hanji.port]), "hanji": ("fcgiload", [hanji.socket]),
            "nginx": ("load", ["127.0.0.1", bench.rig.static_port])}
    for kind, (request, rate, way) in PROBES.items():
        tool, target = ways[way]
        probes[kind] = start_load(tool, target, [request], token=hanji.token, c=64, k=1 if way == "nginx" else 1000, R=rate,
                                  d=patience_s, t=30, w=0.2, l=f"{side}, {kind}", E=True)
    time.sleep(0.4)
    worker = threading.Thread(target=act)
    worker.start()
    try:
        if not ended.wait(patience_s):
            raise RigError(f"{side}: not over after {patience_s} s")
    finally:
        time.sleep(0.3)  # for what the last moment did to them
        told = {kind: finish_load(probe) for kind, probe in probes.items()}
        worker.join()
    for kind, result in told.items():
        bench.take(bar, f"{side}, {kind}", result)
    if failure:
        raise failure[0]


class Memory:
    """bench/memwatch on a server's worker, for as long as the block lasts."""

    def __init__(self, hanji, interval_us=2000):
        self.command = [os.path.join(rigs.TOOLS, "memwatch"), str(hanji.worker()), str(interval_us)]
        self.told = {}

    def __enter__(self):
        self.process = subprocess.Popen(pinned(rigs.NGINX_CPU, *self.command), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        self.process.stdout.readline()
        return self

    def __exit__(self, *_):
        out, _ = self.process.communicate("", timeout=10)
        self.told = json.loads(out or "{}")


def upload_round(bench, hanji, path, way):
    uploads = Uploads(hanji, path, way)
    memory = Memory(hanji)

    def act(seconds):
        with memory:
            uploads.several(1 if bench.quick else 3, seconds)

    with_probes(bench, "upload", way, hanji, act)
    bench.samples.append({"bar": "upload", "side": f"{way}, uploads", "seconds": uploads.seconds, "memory": memory.told})
    if not uploads.same():
        bench.wrong += 1
        bench.say(f"upload, {way}: not the bytes that were sent")


def bar_upload(bench):
    with Hanji(bench.rig, "upload", documents=1000, options=["--max_body", "64m"]) as hanji:
        path = os.path.join(hanji.folder, "large")
        with open(path, "wb") as file:
            for _ in range(UPLOAD // MIB):
                file.write(os.urandom(MIB))
        bench.rounds, rounds = min(bench.rounds, 3), bench.rounds
        bench.alternate({
            "alone": lambda: with_probes(bench, "upload", "alone", hanji, time.sleep),
            **{way: lambda way=way: upload_round(bench, hanji, path, way) for way in Uploads.WAYS}})
        bench.rounds = rounds
    probe = {kind: [s["load"]["latency_us"] for s in bench.of("upload", f"alone, {kind}")] for kind in PROBES}
    rates = "; ".join(f"{rate} {kind}" for kind, (_, rate, _) in PROBES.items())
    bench.table.add("beside no upload: 99.9 % of GETs within", [p["p99_9"] / 1000 for p in probe["GET"]], unit="ms",
                    note=f"a second: {rates}")
    control_rows(bench, probe)
    bench.table.add("  the slowest PUT", [p["max"] / 1000 for p in probe["PUT"]], unit="ms")
    for way in Uploads.WAYS:
        upload_rows(bench, way)
    all_memory = [s["memory"] for s in bench.samples if "memory" in s]
    bench.table.add("RSS after all uploads and reading them back − before them",
                    [(all_memory[-1]["last_kib"] - all_memory[0]["first_kib"]) / 1024], unit="MiB")


def control_rows(bench, probe):
    for kind, words in (("GET, no nginx", "GETs straight to hanji"), ("static file", "nginx's static files")):
        bench.table.add(f"  of {words} within", [p["p99_9"] / 1000 for p in probe[kind]], unit="ms")


def upload_rows(bench, way):
    taken = bench.of("upload", f"{way}, uploads")
    probe = {kind: [s["load"]["latency_us"] for s in bench.of("upload", f"{way}, {kind}")] for kind in PROBES}
    memory = [s["memory"] for s in taken]
    risen = [(max(m["most_kib"], m["mark_kib"]) - m["first_kib"]) / 1024 for m in memory]
    every = median([m["longest_gap_us"] for m in memory]) / 1000
    bench.table.add(f"uploads of 64 MiB, {way}", [64 / seconds for s in taken for seconds in s["seconds"]], unit="MiB/s")
    bench.table.add("  RSS rises at most by", [max(risen)], ("≤", 4.0), unit="MiB",
                    note=f"by round {', '.join(f'{mib:.2f}' for mib in risen)}; anonymous memory at most "
                         f"{max(m['anonymous_most_kib'] for m in memory) / 1024:.2f} MiB; kernel's mark, and looked at "
                         f"{median([m['looks'] for m in memory]):.0f} times, gaps ≤ {every:.1f} ms")
    bench.table.add("  99.9 % of GETs within", [p["p99_9"] / 1000 for p in probe["GET"]], ("≤", 10.0), unit="ms",
                    note=f"slowest {max(p['max'] for p in probe['GET']) / 1000:.1f} ms")
    control_rows(bench, probe)
    bench.table.add("  the slowest PUT", [p["max"] / 1000 for p in probe["PUT"]], ("≤", 1000.0), unit="ms")


# ---- watchers: a change reaches thousands ----

class Hub:
    """bench/hub: a backend that only writes to those who wait."""

    def __init__(self, rig, name, change, streams):
        self.port = rig.ports[name]
        self.socket = rig.socket_of(name)
        if os.path.exists(self.socket):
            os.unlink(self.socket)
        headers = ["Content-Type: application/json", "Cache-Control: no-cache", "X-Content-Type-Options: nosniff"]
        self.process = start_backend(rig, self.socket, "hub", self.socket, change, *([] if streams else headers))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        stop(self.process)


def watch(bench, side, target, mode, watchers, rounds, **options):
    """One run of bench/watch; the result is kept like that of a load."""
    cpu = rigs.NGINX_CPU if ":" not in target else rigs.LOAD_CPU
    command = [os.path.join(rigs.TOOLS, "watch"), "-m", mode, "-c", str(watchers), "-n", str(rounds)]
    for letter, value in options.items():
        command += [f"-{letter}"] if value is True else [f"-{letter}", str(value)]
    done = subprocess.run(pinned(cpu, *command, target), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=clean_environment(), timeout=120, check=False)
    if not done.stdout.strip() or done.returncode > 1 or not done.stdout.rstrip().endswith("}"):
        raise RigError(f"watch, {side}: {done.stderr.strip() or done.returncode}")
    told = json.loads(done.stdout)
    count = len(told["rounds"]) * watchers
    bench.wrong += told["wrong"]
    bench.samples.append({"bar": "watchers", "side": side, "watch": told,
                          "load": {"answered": count, "compared": count, "errors_total": told["wrong"]}})
    return told


def watch_hanji(bench, hanji, side, mode, target, watchers, keep=None):
    watch(bench, side, target, mode, watchers, 3 if bench.quick else 6, H=f"Authorization: Bearer {hanji.token}",
          s=hanji.status()["seq"], **({"o": keep} if keep else {}))


def watch_hub(bench, side, mode, target_of, watchers, change):
    with Hub(bench.rig, "hub", change, mode == "sse") as hub:
        watch(bench, side, target_of(hub), mode, watchers, 3 if bench.quick else 6, a=True)


def get_beside(bench, hanji, side, action):
    """GETs at a fixed rate straight to the server while `action` goes on."""
    probe = start_load("fcgiload", [hanji.socket], [GET], token=hanji.token, c=16, k=1000, R=500, d=60, w=0.1, t=30, l=side,
                       E=True)
    try:
        action()
    finally:
        bench.take("watchers", side, finish_load(probe))


WATCHED = {
    "sse": ("streams", "on the socket", lambda backend: backend.socket),
    "poll": ("long polls", "on the socket", lambda backend: backend.socket),
    "sse, nginx": ("streams", "through nginx", lambda backend: f"127.0.0.1:{backend.port}"),
}


def bar_watchers(bench):
    watchers = 1000 if bench.quick else 5000
    with Hanji(bench.rig, "watched", documents=1000) as hanji:
        def both(name, target_of):
            mode = name.split(",")[0]
            change = os.path.join(hanji.folder, f"{mode}.change")
            if not os.path.exists(change):
                watch_hanji(bench, hanji, f"{name} warm", mode, target_of(hanji), 10, change)
            bench.alternate({
                f"{name} hanji": lambda: watch_hanji(bench, hanji, f"{name} hanji", mode, target_of(hanji), watchers),
                f"{name} hub": lambda: watch_hub(bench, f"{name} hub", mode, target_of, watchers, change)})

        bench.rounds, rounds = min(bench.rounds, 3), bench.rounds
        for name, (_, _, target_of) in WATCHED.items():
            both(name, target_of)
        get_beside(bench, hanji, "GET alone", lambda: time.sleep(2))
        get_beside(bench, hanji, "GET beside streams",
                   lambda: watch_hanji(bench, hanji, "beside", "sse", hanji.socket, watchers))
        bench.rounds = rounds
    for name, (what, where, _) in WATCHED.items():
        watch_rows(bench, name, f"{watchers:,} {what} {where}")
    for side in ("GET alone", "GET beside streams"):
        latency = bench.of("watchers", side)[0]["load"]["latency_us"]
        bench.table.add(f"{side}, 500/s: 99.9 % within", [latency["p99_9"] / 1000], unit="ms",
                        note=f"slowest {latency['max'] / 1000:.1f} ms; it shares a CPU with the watchers")


def watch_rows(bench, name, words):
    """For each run the median of its rounds, so that one disturbed round does not count."""
    def runs(side, field):
        return [median([r[field] for r in s["watch"]["rounds"]]) / 1000 for s in bench.of("watchers", f"{name} {side}")]

    last = {side: runs(side, "last_us") for side in ("hanji", "hub")}
    bench.table.add(f"a change to {words}: the last has it after", last["hanji"], unit="ms",
                    note=f"the write is answered after {median(runs('hanji', 'answered_us')):.2f} ms, the first watcher has it "
                         f"after {median(runs('hanji', 'first_us')):.2f} ms")
    bench.table.add("  from a hub that only writes", last["hub"], unit="ms")
    bench.table.add("  hanji : hub", quotients(last["hanji"], last["hub"]), ("≤", 2.0))


# ---- backup: while others write ----

class Backups:
    """`hanji backup` again and again. Each must hold the marker that was written before it began, and every write that was
    acknowledged by then; verify() looks when the load is over."""

    def __init__(self, hanji, round_, most):
        self.hanji, self.most = hanji, most
        self.folder = os.path.join(hanji.folder, f"backups{round_}")
        self.made = []  # path, seq before it began
        self.seconds = []
        os.makedirs(self.folder)

    def one(self):
        path = os.path.join(self.folder, f"{len(self.made)}.db")
        marker = ["-X", "PUT", "--data-binary", os.path.basename(self.folder), "-H", "Content-Type: text/plain"]
        put = subprocess.run(["curl", "-sS", "-f", "-o", "/dev/null", "-H", f"Authorization: Bearer {self.hanji.token}", *marker,
                              f"http://127.0.0.1:{self.hanji.port}/docs/marker/{len(self.made)}"], check=False)
        if put.returncode != 0:
            raise RigError("the marker could not be written")
        seq = self.hanji.status()["seq"]
        start = time.monotonic()
        done = subprocess.run(["setpriv", "--pdeathsig", "TERM", self.hanji.rig.binary, "-c", self.hanji.conf, "backup", path],
                              env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=120, check=False)
        if done.returncode != 0:
            raise RigError(f"hanji backup: {done.stdout.strip()[-200:]}")
        self.seconds.append(time.monotonic() - start)
        self.made.append((path, seq))

    def until(self, ended):
        while not ended.is_set() and len(self.made) < self.most:
            self.one()

    SQL = """PRAGMA integrity_check;
        SELECT coalesce(max(seq), 0) FROM change;
        SELECT count(*) FROM doc WHERE key LIKE 'marker/%' AND body = '{marker}';
        SELECT count(*) FROM doc WHERE key LIKE 'w/%'
            AND (length(body) <> 64 OR substr(CAST(body AS TEXT), 1, 8) <> substr(key, -8));"""

    def verify(self):
        """What is wrong, or None. Removes the files."""
        try:
            for i, (path, seq) in enumerate(self.made):
                shell = subprocess.run(["sqlite3", "-bail", f"file:{path}?immutable=1", self.SQL.format(
                    marker=os.path.basename(self.folder))], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
                lines = shell.stdout.split()
                if shell.returncode != 0 or lines[:1] != ["ok"] or len(lines) != 4:
                    return f"backup {i}: {shell.stdout.strip()[:200]}"
                if int(lines[1]) < seq or int(lines[2]) < i + 1 or int(lines[3]) != 0:
                    return f"backup {i}: acknowledged up to {seq}, it holds {lines[1:]}"
            return None
        finally:
            shutil.rmtree(self.folder)


def backup_round(bench, hanji, writers, with_backups):
    side = f"{writers} writers, {'backups' if with_backups else 'alone'}"
    seconds = bench.seconds * 2
    load = start_load("load", ["127.0.0.1", hanji.port], ["PUT /docs/w/{} 201,204 64"], token=hanji.token, c=writers, k=10000,
                      d=seconds, w=0.3, t=30, l=side)
    ended = threading.Event()
    backups = Backups(hanji, len(bench.samples), 4 if bench.quick else 12)
    failure = []

    def act():
        try:
            backups.until(ended)
        except (RigError, OSError, subprocess.SubprocessError) as error:
            failure.append(error)

    thread = threading.Thread(target=act)
    time.sleep(0.3)
    if with_backups:
        thread.start()
    try:
        bench.take("backup", side, finish_load(load))
    finally:
        ended.set()
        if with_backups:
            thread.join()
    bench.samples[-1].update(backups=len(backups.made), backup_seconds=backups.seconds)
    wrong = backups.verify()
    if failure:
        raise failure[0]
    if wrong:
        bench.wrong += 1
        bench.samples[-1]["unverified"] = wrong
        bench.say(f"{side}: {wrong}")


def bar_backup(bench):
    size_mib = 12 if bench.quick else 100
    hanji = Hanji(bench.rig, "backup", documents=0)
    fill(hanji.database, "bench", size_mib * 1024, size=1024)
    counts = (8, 64)
    with hanji:
        bench.rounds, rounds = min(bench.rounds, 3), bench.rounds
        bench.alternate({
            f"{writers}{backups}": lambda writers=writers, backups=backups: backup_round(bench, hanji, writers, backups)
            for writers in counts for backups in (False, True)})
        bench.rounds = rounds
    for writers in counts:
        told = {side: bench.of("backup", f"{writers} writers, {side}") for side in ("alone", "backups")}
        slowest = {side: [s["load"]["latency_us"]["max"] / 1000 for s in samples] for side, samples in told.items()}
        made = sum(s["backups"] for s in told["backups"])
        took = median([t for s in told["backups"] for t in s["backup_seconds"]] or [0])
        bench.table.add(f"{writers} writers, durable PUT 64 B", [s["load"]["rate"] for s in told["alone"]], unit="/s")
        bench.table.add("  the slowest PUT", slowest["alone"], unit="ms")
        bench.table.add(f"  beside backups of {size_mib} MiB", [s["load"]["rate"] for s in told["backups"]], unit="/s",
                        note=f"{made} backups, {took:.2f} s each")
        bench.table.add("  the slowest PUT beside them", [max(slowest["backups"])], ("≤", 100.0), unit="ms",
                        note=f"of all rounds; by round {', '.join(f'{ms:.0f}' for ms in slowest['backups'])}")
        bench.table.add("  backups that did not verify", [sum("unverified" in s for s in told["backups"]) if made else 1],
                        ("≤", 0))


BARS = {"upload": bar_upload, "watchers": bar_watchers, "backup": bar_backup}
NAMES = ["upload", "watched", "hub", "backup"]
