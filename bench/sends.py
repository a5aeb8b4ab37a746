"""sends.sh's measurements: the bars for sends on this machine, in about five minutes.

    sends.py [--quick] [--rounds N] [--seconds S] [--quiet] [--save] [BAR]...
        BARs: accept seal deliver inbox fifo dead memory (all)

Rounds alternate between the sides of a comparison. What a receiver got is checked: nginx logs each post, and every message must
be there once, with its length; an inbox's rows are compared byte by byte with what was sent. What is accepted must stand on its
line with numbers that rose by exactly as many. Exit status: 0 all bars met, 1 some missed, 2 it could not be measured.
"""

import http.client
import json
import os
import re
import socket
import subprocess
import sys
import time

import rig as rigs
from report import median, quotients
from rig import Hanji, Rig, RigError, clean_environment, cpu_seconds, finish_load, free_ports, memory_kib, pinned
from runner import choose, parser_for, run

SIZE = 1024
LINES = 8
FLYING = 16  # of one host, COURIER_FLYING_HOST
SECRET = "whsec_aGFuamktYmVuY2gtMjQtYnl0ZXMtYW5kLW1vcmU="
TYPE = "text/plain; charset=utf-8"
BOTH = ",".join(str(cpu) for cpu in rigs.CPUS[:2])

RECEIVER_CONF = """\
    log_format got '$msec $uri $http_webhook_id $content_length $status';
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        client_max_body_size 1m;
        client_body_buffer_size 1m;
        access_log {folder}/got.log got buffer=64k flush=200ms;
        location / {{ return 200 ""; }}
    }}
}}
"""


class SendsRig(Rig):
    """With a receiver: the same nginx on a port of its own, which takes everything with 200 and logs it."""

    def __init__(self, names):
        super().__init__(names)
        self.receiver_port = free_ports(1)[0]

    def write_files(self):
        super().write_files()
        path = os.path.join(self.folder, "nginx.conf")
        with open(path, encoding="utf-8") as file:
            text = file.read().rstrip()
        self.write("nginx.conf", text[:-1] + RECEIVER_CONF.format(port=self.receiver_port, folder=self.folder))

    def receiver(self, path="/"):
        return f"http://127.0.0.1:{self.receiver_port}{path}"

    def mark(self):
        """Where the receiver's log ends now."""
        return os.path.getsize(os.path.join(self.folder, "got.log"))

    def got(self, mark):
        """[(seconds, path, id, length, status)] behind a mark."""
        with open(os.path.join(self.folder, "got.log"), encoding="utf-8") as file:
            file.seek(mark)
            rows = [line.split() for line in file.read().splitlines()]
        return [(float(at), path, name, int(length), int(status)) for at, path, name, length, status in rows]

    def await_got(self, mark, count, patience_s):
        """What came behind the mark, when it is that many."""
        end = time.monotonic() + patience_s
        while time.monotonic() < end:
            rows = self.got(mark)
            if len(rows) >= count:
                return rows
            time.sleep(0.1)
        raise RigError(f"the receiver got {len(self.got(mark))} of {count} posts within {patience_s:.0f} s")


class Sender(Hanji):
    """A hanji with keys and lines. Its processes, and the courier that it starts, may use both CPUs when `spread` is set."""

    def __init__(self, rig, name, spread=False, **more):
        super().__init__(rig, name, **more)
        self.spread = spread
        self.command("key", "new")
        self.queued = 0

    def spawn(self, words, env, wrapper=(), **more):
        super().spawn(words, env, wrapper, **more)
        if self.spread:
            subprocess.run(["taskset", "-acp", BOTH, str(self.process.pid)], check=True, stdout=subprocess.DEVNULL)

    def card(self):
        path = os.path.join(self.folder, "card.json")
        with open(path, "w", encoding="ascii") as file:
            file.write(self.command("key", "export"))
        return path

    def line(self, name, url, *words):
        self.command("line", "add", name, url, "--allow-private", *words)

    def pause(self, names):
        for name in names:
            self.command("line", "pause", name)

    def resume(self, names):
        for name in names:
            self.ask("POST", f"/sends/{name}/resume", None, 200, 204)

    def ask(self, method, path, body, *statuses):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"Authorization": f"Bearer {self.token}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        answer = response.read()
        connection.close()
        if response.status not in statuses:
            raise RigError(f"{method} {path}: {response.status} {answer[:200]!r}")
        return answer

    def queue(self, names, count, size=SIZE):
        """That many messages in all, in turn on the lines, by batches of at most 1,000; their bodies tell their numbers."""
        for first in range(0, count, 1000):
            numbers = range(self.queued, self.queued + min(1000, count - first))
            parts = [{"op": "send", "line": names[n % len(names)], "text": rigs.body(n, size), "type": TYPE} for n in numbers]
            self.ask("POST", "/batch", json.dumps(parts), 200)
            self.queued += len(numbers)

    def courier(self, patience_s=10):
        """Its pid, as soon as there is one."""
        end = time.monotonic() + patience_s
        while time.monotonic() < end:
            for pid in couriers(self.conf):
                return pid
            time.sleep(0.01)
        raise RigError("no courier was started")

    def sql(self, query, database=None):
        done = subprocess.run(["sqlite3", "-readonly", database or self.database, query], stdout=subprocess.PIPE, text=True,
                              check=True)
        return done.stdout.split()

    def await_none_waits(self, patience_s):
        """Until every message is marked as delivered."""
        end = time.monotonic() + patience_s
        while time.monotonic() < end:
            if self.sql("SELECT count(*) FROM outbox WHERE state <> 'delivered'") == ["0"]:
                return
            time.sleep(0.1)
        raise RigError("not everything was delivered: "
                       + " ".join(self.sql("SELECT state, count(*) FROM outbox GROUP BY 1")))


def couriers(conf):
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"hanji-courier") and conf.encode() in words:
            found.append(int(name))
    return found


def rate_of(rows):
    """Posts a second, from the first to the last that the receiver saw."""
    times = sorted(row[0] for row in rows)
    return (len(times) - 1) / max(0.001, times[-1] - times[0])


def keep(bench, bar, side, rows, size=SIZE, busy=None, **more):
    """A sample made of the receiver's rows; every message once, with its length."""
    wrong = sum(status != 200 or (size is not None and length != size) for _, _, _, length, status in rows)
    wrong += len(rows) - len({row[2] for row in rows})
    told = {"rate": rate_of(rows), "answered": len(rows), "compared": 0, "errors_total": wrong, "errors": {"receiver": wrong}}
    bench.take(bar, side, told, **(busy or {}), **more)


def measured(bench, pids, action):
    """What others used of the machine meanwhile; `pids` and nginx's worker are ours."""
    pids = {"nginx": bench.rig.nginx_worker(), **pids}
    before = {name: cpu_seconds(pid) for name, pid in pids.items()}
    start, busy, stolen = time.monotonic(), *rigs.machine_seconds()
    result = action()
    took, busy_after, stolen_after = time.monotonic() - start, *rigs.machine_seconds()
    used = {}
    for name, pid in pids.items():
        try:
            used[name] = cpu_seconds(pid) - before[name]
        except OSError:
            used[name] = 0.0
    return result, {"others": max(0, busy_after - busy - sum(used.values())) / took, "stolen": (stolen_after - stolen) / took,
                    "cpu_s": used}


# ---- accept: unsealed sends against documents ----

def accept_round(bench, hanji, side, c):
    before = int(hanji.sql("SELECT seq FROM line WHERE name = 'open'")[0])
    result = bench.load("accept", side, hanji.port, ["POST /sends/open 202 64"], hanji=hanji, c=c, k=10000)
    risen = int(hanji.sql("SELECT seq FROM line WHERE name = 'open'")[0]) - before
    if risen != result["issued"] and risen != result["answered"]:
        bench.wrong += 1
        bench.say(f"{side}: {result['answered']} acknowledged, the line's number rose by {risen}")


def bar_accept(bench):
    bench.rounds, rounds = min(bench.rounds, 3), bench.rounds
    for name, words, sync_us in (("own", "the disk's sync", 0), ("sync5", "5 ms sync", 5000)):
        with Sender(bench.rig, name, documents=10000, sync_us=sync_us) as hanji:
            hanji.line("open", bench.rig.receiver(), "--order", "any")
            hanji.pause(["open"])
            for c in (8, 64):
                bench.alternate({
                    "send": lambda c=c: accept_round(bench, hanji, f"{name} send {c}", c),
                    "put": lambda c=c: bench.load("accept", f"{name} put {c}", hanji.port, ["PUT /docs/bench/{} 201,204 64"],
                                                  hanji=hanji, c=c, k=10000, D=True)})
        for c in (8, 64):
            send, put = (bench.rates("accept", f"{name} {what} {c}") for what in ("send", "put"))
            bench.table.add(f"{words}, {c} connections: unsealed sends of 64 B accepted", send, unit="/s",
                            note=f"hanji's CPU {median(bench.cpu('accept', f'{name} send {c}', 'hanji')):.1f} µs, "
                                 f"of a PUT {median(bench.cpu('accept', f'{name} put {c}', 'hanji')):.1f} µs")
            bench.table.add("  send : durable PUT", quotients(send, put), ("≥", 0.8), note=f"PUT {median(put):,.0f}/s")
    bench.rounds = rounds


# ---- seal: sealed sends against the calls that sealing is ----

def tool(bench, bar, side, program, *words, cpus=rigs.HANJI_CPU):
    """One of the programs of this folder that prints a line of JSON; what others used meanwhile is noted."""
    start, busy, stolen = time.monotonic(), *rigs.machine_seconds()
    told = finish_load(subprocess.Popen(pinned(cpus, os.path.join(rigs.TOOLS, program), *map(str, words)),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, env=clean_environment()))
    took, busy_after, stolen_after = time.monotonic() - start, *rigs.machine_seconds()
    own = told["cpu_us_per_request"] * told["issued"] / 1e6
    return bench.take(bar, side, told, others=max(0, busy_after - busy - own) / took, stolen=(stolen_after - stolen) / took)


def bar_seal(bench):
    with Sender(bench.rig, "seal") as hanji:
        hanji.line("sealed", bench.rig.receiver(), "--order", "any", "--seal-to", hanji.card())
        hanji.pause(["sealed"])
        kinds = [f"POST /sends/sealed 202 {SIZE}"]
        bench.alternate({
            "send": lambda: bench.load("seal", "send", hanji.port, kinds, hanji=hanji, c=64, k=10000),
            "loop": lambda: tool(bench, "seal", "loop", "seal", "-s", SIZE, "-d", bench.seconds)})
        plain = hanji.sql("SELECT count(*) FROM outbox_body WHERE instr(CAST(body AS BLOB), CAST('keeps-every-byte' AS BLOB))")
        if plain != ["0"]:
            raise RigError("plain text lies in the outbox")
    send, loop = bench.rates("seal", "send"), bench.rates("seal", "loop")
    bench.table.add("sealed sends of 1 KiB accepted, 64 connections", send, unit="/s",
                    note=f"CPU: hanji {median(bench.cpu('seal', 'send', 'hanji')):.0f} "
                         f"+ nginx {median(bench.cpu('seal', 'send', 'nginx')):.0f} µs")
    bench.table.add("a bare loop of the same libsodium calls, one core", loop, unit="/s")
    bench.table.add("  send : loop", quotients(send, loop), ("≥", 0.7))


# ---- deliver: eight lines to a receiver, against a loop of libcurl ----

def names_of(count):
    return [f"line{i}" for i in range(count)]


def deliver_round(bench, sender, bar, side, count):
    """Queues on paused lines, lets them go, and looks at what the receiver saw."""
    names = names_of(LINES)
    sender.pause(names)
    sender.queue(names, count)
    mark = bench.rig.mark()

    def act():
        sender.resume(names)
        return bench.rig.await_got(mark, count, 60 + count / 200)

    rows, busy = measured(bench, {"hanji": sender.worker()}, act)
    keep(bench, bar, side, rows, busy=busy)
    sender.await_none_waits(30)


def post_round(bench, bar, side, count, body):
    """The same number of posts by bench/post."""
    mark = bench.rig.mark()
    urls = [bench.rig.receiver(f"/p{i}") for i in range(LINES)]
    told = tool(bench, bar, f"{side}, by its own clock", "post", "-b", body, "-c", FLYING, "-n", count,
                "-H", f"Content-Type: {TYPE}", "-H", "webhook-timestamp: 1796083200",
                "-H", "webhook-signature: v1a," + "A" * 86 + "==", *urls, cpus=BOTH)
    if told["errors_total"]:
        return
    keep(bench, bar, side, bench.rig.await_got(mark, count, 30))


def body_file(hanji):
    path = os.path.join(hanji.folder, "body")
    with open(path, "w", encoding="ascii") as file:
        file.write(rigs.body(0, SIZE))
    return path


def bar_deliver(bench):
    count = 2000 if bench.quick else 12000
    with Sender(bench.rig, "deliver", spread=True) as sender:
        for name in names_of(LINES):
            sender.line(name, bench.rig.receiver(f"/{name}"), "--order", "any")
        body = body_file(sender)
        bench.alternate({
            "courier": lambda: deliver_round(bench, sender, "deliver", "courier", count),
            "post": lambda: post_round(bench, "deliver", "post", count, body)})
    courier, post = bench.rates("deliver", "courier"), bench.rates("deliver", "post")
    bench.table.add(f"delivering 1 KiB over {LINES} `any` lines to nginx", courier, unit="/s", note=f"{count:,} messages a round")
    bench.table.add("a bare libcurl multi loop, as many connections", post, unit="/s")
    bench.table.add("  courier : loop", quotients(courier, post), ("≥", 0.7))


# ---- inbox: the same to another hanji ----

def inbox_rows(inbox):
    return int(inbox.sql("SELECT count(*) FROM inbox")[0])


def await_rows(inbox, wanted, patience_s):
    end = time.monotonic() + patience_s
    while inbox_rows(inbox) < wanted:
        if time.monotonic() > end:
            raise RigError(f"the inbox has {inbox_rows(inbox)} of {wanted} messages")
        time.sleep(0.02)


def compare_inbox(bench, inbox, first, size=SIZE):
    """Bodies that are none that could have been sent, and numbers that came twice."""
    filler = rigs.body(0, size)[8:]
    query = (f"SELECT count(*) FILTER (WHERE substr(CAST(body AS TEXT), 9) <> '{filler}'), "
             f"count(*) - count(DISTINCT substr(CAST(body AS TEXT), 1, 8)) FROM inbox WHERE n > {first}")
    wrong, twice = inbox.sql(query)[0].split("|")
    if int(wrong) or int(twice):
        bench.wrong += 1
        bench.say(f"inbox: {wrong} bodies differ, {twice} came twice")


def inbox_round(bench, sender, inbox, side, count):
    names = names_of(LINES)
    sender.pause(names)
    sender.queue(names, count)
    before = inbox_rows(inbox)
    start = time.monotonic()

    def act():
        sender.resume(names)
        await_rows(inbox, before + count, 60 + count / 100)
        return time.monotonic() - start

    took, busy = measured(bench, {"sender": sender.worker(), "inbox": inbox.worker()}, act)
    told = {"rate": count / took, "answered": count, "compared": count, "errors_total": 0, "errors": {}}
    bench.take("inbox", side, told, **busy)
    sender.await_none_waits(30)
    compare_inbox(bench, inbox, before)


def bar_inbox(bench):
    count = 1000 if bench.quick else 6000
    numbers = [0]
    with Sender(bench.rig, "sender", spread=True) as sender, Sender(bench.rig, "inbox", spread=True) as inbox:
        inbox.command("inbox", "add", "bench", "--secret", SECRET)
        inbox.command("inbox", "add", "peer", "--secret", SECRET)
        url = f"http://127.0.0.1:{inbox.port}/inbox"
        for name in names_of(LINES):
            sender.line(name, f"{url}/bench", "--order", "any", "--secret", SECRET)
        body = body_file(sender)

        def post():
            before = inbox_rows(inbox)
            tool(bench, "inbox", "post", "post", "-b", body, "-c", FLYING, "-n", count, "-i", numbers[0], "-w", SECRET,
                 "-H", f"Content-Type: {TYPE}", f"{url}/peer", cpus=BOTH)
            numbers[0] += count
            if inbox_rows(inbox) - before != count:
                bench.wrong += 1
                bench.say("the inbox did not store what was posted")

        bench.alternate({"courier": lambda: inbox_round(bench, sender, inbox, "courier", count), "post": post})
    courier, loop = bench.rates("inbox", "courier"), bench.rates("inbox", "post")
    bench.table.add(f"delivering 1 KiB over {LINES} `any` lines to an inbox", courier, unit="/s",
                    note="stored, each synced before it is answered; v1")
    bench.table.add("a bare libcurl multi loop that signs, as many connections", loop, unit="/s")
    bench.table.add("  courier : loop", quotients(courier, loop))


# ---- fifo: one after another, sealed, to an inbox with a sync of 5 ms ----

def fifo_round(bench, sender, inbox, count):
    sender.pause(["order"])
    sender.queue(["order"], count)
    before = inbox_rows(inbox)
    calls, _, all_ns = inbox.syncs()
    sender.resume(["order"])
    await_rows(inbox, before + 1, 20)
    start, first = time.monotonic(), inbox_rows(inbox)
    await_rows(inbox, before + count, 60 + count / 20)
    took = time.monotonic() - start
    calls_after, _, all_after = inbox.syncs()
    told = {"rate": (before + count - first) / took, "answered": count, "compared": count, "errors_total": 0, "errors": {}}
    bench.take("fifo", "courier", told, sync_s=(all_after - all_ns) / 1e9 / max(1, calls_after - calls))
    sender.await_none_waits(30)
    compare_inbox(bench, inbox, before)


def bar_fifo(bench):
    count = 200 if bench.quick else 800
    for sync_us, words in ((1, "the disk's sync"), (5000, "5 ms sync")):
        names = ("from1", "to1") if sync_us == 1 else ("from5", "to5")
        with Sender(bench.rig, names[0], spread=True) as sender, \
                Sender(bench.rig, names[1], sync_us=sync_us, spread=True) as inbox:
            inbox.command("inbox", "add", "order", "--from", sender.card())
            sender.line("order", f"http://127.0.0.1:{inbox.port}/inbox/order", "--order", "fifo", "--seal-to", inbox.card())
            first = len(bench.of("fifo", "courier"))
            bench.rounds, rounds = min(bench.rounds, 3), bench.rounds
            bench.alternate({
                "trip": lambda: bench.load("fifo", f"trip {words}", inbox.port, ["GET /health 200 -"], hanji=inbox, c=1,
                                           d=min(bench.seconds, 1)),
                "courier": lambda: fifo_round(bench, sender, inbox, count)})
            bench.rounds = rounds
            out_of_order = inbox.sql("SELECT count(*) FROM (SELECT seq - lag(seq) OVER (ORDER BY n) AS step FROM inbox) "
                                     "WHERE step <> 1")
            if out_of_order != ["0"]:
                bench.wrong += 1
                bench.say(f"fifo: {out_of_order[0]} messages are out of order")
        samples = bench.of("fifo", "courier")[first:]
        rates = [s["load"]["rate"] for s in samples]
        trips = bench.rates("fifo", f"trip {words}")
        most = [1 / (1 / trip + s["sync_s"]) for trip, s in zip(trips, samples)]
        bench.table.add(f"one fifo line, sealed 1 KiB, to an inbox, {words}", rates, unit="/s",
                        note=f"sync {median([s['sync_s'] for s in samples]) * 1e3:.2f} ms, "
                             f"round trip {1e3 / median(trips):.2f} ms")
        bench.table.add("  that : 1 / (round trip + sync)", quotients(rates, most), ("≥", 0.7))


# ---- dead: one line of a hundred answers nothing ----

class Dead:
    """A port whose queue of connections is full: what connects waits for ever."""

    def __enter__(self):
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(0)
        self.port = self.listener.getsockname()[1]
        self.waiting = []
        for _ in range(3):
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", self.port))
            self.waiting.append(one)
        return self

    def __exit__(self, *_):
        for one in [*self.waiting, self.listener]:
            one.close()


def dead_round(bench, sender, names, side, count):
    """The time that the others need, with messages on the dead line or without."""
    sender.pause(names)
    sender.queue(names, count)
    if side == "with it":
        sender.queue(["dead"], 100)
    mark = bench.rig.mark()

    def act():
        sender.resume(names)
        return bench.rig.await_got(mark, count, 60 + count / 100)

    rows, busy = measured(bench, {"hanji": sender.worker()}, act)
    keep(bench, "dead", side, rows, busy=busy)


def bar_dead(bench):
    count, names = (1980 if bench.quick else 9900), names_of(99)
    with Dead() as dead, Sender(bench.rig, "dead", spread=True) as sender:
        for name in names:
            sender.line(name, bench.rig.receiver(f"/{name}"), "--order", "any")
        sender.line("dead", f"http://127.0.0.1:{dead.port}/", "--order", "any")
        bench.alternate({
            "without": lambda: dead_round(bench, sender, names, "without", count),
            "with it": lambda: dead_round(bench, sender, names, "with it", count)})
    without, beside = bench.rates("dead", "without"), bench.rates("dead", "with it")
    bench.table.add("99 lines to nginx", without, unit="/s", note=f"{count:,} messages a round")
    bench.table.add("  beside a dead line that has messages", beside, unit="/s")
    bench.table.add("  with : without", quotients(beside, without), ("≥", 0.95))


# ---- memory: of the courier with 100,000 queued, of the server, and what is left when it is quiet ----

def status_kib(pid, name):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(re.search(rf"(?m)^{name}:\s*(\d+)", file.read()).group(1))


def foreign_libraries(pid):
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as file:
        return sorted(set(re.findall(r"/lib(?:curl|ssl|crypto|nghttp2)[^/\s]*", file.read())))


def bar_memory(bench):
    count, names = (10_000 if bench.quick else 100_000), names_of(LINES)
    with Sender(bench.rig, "memory", spread=True) as sender:
        for name in names:
            sender.line(name, bench.rig.receiver(f"/{name}"), "--order", "any")
        sender.pause(names)
        bench.load("memory", "warm", sender.port, ["PUT /docs/bench/{} 201,204 256"], hanji=sender, n=count, k=10000, d=0, w=0)
        time.sleep(1)
        before = memory_kib(sender.worker())
        bench.load("memory", "queue", sender.port, [f"POST /sends/{name} 202 256" for name in names], hanji=sender, n=count,
                   k=10000, d=0, w=0)
        after_queue = memory_kib(sender.worker())
        mark = bench.rig.mark()
        sender.resume(names)
        pid = sender.courier()
        start_kib = status_kib(pid, "VmHWM")
        watch = subprocess.Popen([os.path.join(rigs.TOOLS, "memwatch"), str(pid), "2000"], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True)
        rows, busy = measured(bench, {"hanji": sender.worker(), "courier": pid},
                              lambda: bench.rig.await_got(mark, count, 60 + count / 100))
        keep(bench, "memory", "drained", rows, size=256, busy=busy)
        memory = json.loads(watch.communicate("", timeout=10)[0].splitlines()[-1])
        sender.await_none_waits(60)
        time.sleep(2)
        after = memory_kib(sender.worker())
        libraries = foreign_libraries(sender.worker()) + foreign_libraries(sender.process.pid)
        left = idle_end(sender)
    bench.table.add(f"RSS of the courier while {count:,} messages wait, at most", [memory["mark_kib"] / 1024], ("≤", 12.0),
                    unit="MiB", note=f"{start_kib / 1024:.1f} while it started; anonymous memory at most "
                                     f"{memory['anonymous_most_kib'] / 1024:.1f} MiB; they went out at {rate_of(rows):,.0f}/s; CPU of the courier "
                                     f"{busy['cpu_s']['courier'] * 1e6 / count:.0f} µs a message, of the server "
                                     f"{busy['cpu_s']['hanji'] * 1e6 / count:.0f} µs")
    bench.table.add("RSS of the server, behind them − behind as many PUTs", [(after["rss"] - before["rss"]) / 1024], unit="MiB",
                    note=f"before {before['rss'] / 1024:.2f}, private dirty {before['private_dirty'] / 1024:.2f} → "
                         f"{after_queue['private_dirty'] / 1024:.2f} → {after['private_dirty'] / 1024:.2f} MiB")
    bench.table.add("  libcurl, OpenSSL mapped into it", [len(libraries)], ("≤", 0), note=" ".join(libraries))
    bench.table.add("couriers that are left when it is quiet", [len(left[1])], ("≤", 0), note=f"gone after {left[0]:.0f} s")


def idle_end(sender, patience_s=60):
    """How long the courier stayed, and who is left."""
    start = time.monotonic()
    while couriers(sender.conf) and time.monotonic() - start < patience_s:
        time.sleep(0.2)
    return time.monotonic() - start, couriers(sender.conf)


BARS = {"accept": bar_accept, "seal": bar_seal, "deliver": bar_deliver, "inbox": bar_inbox, "fifo": bar_fifo, "dead": bar_dead,
        "memory": bar_memory}
NAMES = ["own", "sync5", "seal", "deliver", "sender", "inbox", "from1", "to1", "from5", "to5", "dead", "memory"]


def main(words):
    parser = parser_for(__doc__, BARS)
    parser.add_argument("--quick", action="store_true", help="fewer rounds and smaller numbers, to see that it runs")
    arguments = parser.parse_args(words)
    choose(parser, arguments, BARS)
    if arguments.quick:
        arguments.rounds, arguments.seconds = min(arguments.rounds, 2), min(arguments.seconds, 0.6)
    return run("sends", arguments, BARS, lambda: SendsRig(NAMES))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
