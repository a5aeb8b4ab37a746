"""From one hanji to another while their processes are killed: what was accepted arrives once, and in order where order was promised.

HANJI_CRASH_SECONDS (4; `make nightly`: minutes) is for how long they are killed.
"""
import os
import random
import signal
import threading
import time

import fastcgi
import harness
import http1
from test_handover import replace_program

SECONDS = float(os.environ.get("HANJI_CRASH_SECONDS") or 4)
NOISE = "the worker ended|the new worker failed|the courier|the supervisor is gone|a hand-over is under way|fenced"


class Pair:
    """A hanji that sends and one that receives, behind an nginx; sealed, with lines of both orders."""

    def __init__(self, make_hanji, make_site):
        self.site = make_site()
        self.to, self.by = self.site.hanji, make_hanji(start=False)
        self.by.binary = self.by.base / "hanji"
        replace_program(self.by)
        # as if pauses were over soon
        self.by.settings.update(courier=harness.BINARY.parent / "hanji-courier", courier_idle="1s", retry_first="100ms", retry_most="200ms")
        self.by.write_conf()
        self.by.start()
        self.by.token = self.by.new_token("full", read=["/"], write=["/"])
        for hanji in (self.by, self.to):
            hanji.command("key", "new")
            hanji.card = hanji.base / "card.json"
            hanji.card.write_text(hanji.command("key", "export").stdout)
        self.to.command("inbox", "add", "in", "--from", self.by.card)
        for name in ("first", "any"):
            self.by.command("line", "add", name, self.site.url() + "/inbox/in", "--seal-to", self.to.card, "--allow-private",
                            "--order", "any" if name == "any" else "fifo")

    def couriers(self):
        return [pid for pid in harness.children(self.by.pid) if b"hanji-courier" in b" ".join(harness.command_line(pid)[:1])]

    def waiting(self):
        return self.by.rows("SELECT count(*) FROM outbox WHERE state <> 'delivered'")[0][0]


class Sender(threading.Thread):
    """Sends on one line, one message after the other; asks again with the same key until it is told what became of it."""

    def __init__(self, hanji, line, number):
        super().__init__(daemon=True)
        self.hanji, self.line, self.number = hanji, line, number
        self.stopped = threading.Event()
        self.accepted = []          # (id, seq, body)
        self.odd = []

    def run(self):
        count = 0
        while not self.stopped.is_set():
            count += 1
            body = b"%s %d %d" % (self.line.encode(), self.number, count)
            while True:
                try:
                    answer = self.hanji.ask("POST", "/sends/" + self.line, body=body, extra={
                        "CONTENT_TYPE": "text/plain", "HTTP_IDEMPOTENCY_KEY": '"%d-%s-%d"' % (self.number, self.line, count)})
                except (OSError, fastcgi.Closed):
                    time.sleep(0.002)
                    continue
                if answer.status == 503:
                    time.sleep(0.002)
                    continue
                break
            if answer.status != 202:
                self.odd.append(answer)
                return
            told = http1.parse_json(answer.body)
            self.accepted.append((told["id"], told["seq"], body))
            time.sleep(0.001)


def disturb(pair, random_number):
    """One of what may happen to them."""
    def kill(pids):
        for pid in pids:
            harness.kill(pid)
    what = random_number.choice(["courier", "courier", "sender", "receiver", "both", "hand-over", "receiver's hand-over"])
    if what == "courier":
        kill(pair.couriers())
    if what in ("sender", "both"):
        kill(pair.by.workers()[-1:])
    if what in ("receiver", "both"):
        kill(pair.to.workers()[-1:])
    if what == "hand-over":
        replace_program(pair.by)
        os.kill(pair.by.pid, signal.SIGUSR2)
    if what == "receiver's hand-over":
        os.kill(pair.to.pid, signal.SIGUSR2)
    return what


def check(pair, senders):
    sent = [one for sender in senders for one in sender.accepted]
    stored = pair.to.rows("SELECT id, line, seq, CAST(body AS BLOB) FROM inbox ORDER BY n")
    assert len({one[0] for one in sent}) == len(sent)
    by_id = {}
    for ident, line, seq, body in stored:
        assert ident not in by_id, "stored twice: %s" % ident
        by_id[ident] = (line, seq, body)
    lost = [one for one in sent if one[0] not in by_id]
    assert not lost, "accepted and not stored: %s" % lost[:3]
    for ident, seq, body in sent:
        assert by_id[ident][1:] == (seq, body)
    assert len(stored) == len(sent), "stored and not accepted"
    for line in ("first", "any"):
        numbers = [row[2] for row in stored if row[1] == line]
        assert sorted(numbers) == list(range(1, len(numbers) + 1)), line
        if line == "first":
            assert numbers == sorted(numbers), "a fifo line came in another order"
    return len(sent)


def test_what_was_accepted_is_stored_once_and_in_order(make_hanji, make_site):
    pair = Pair(make_hanji, make_site)
    for hanji in (pair.by, pair.to):
        hanji.expected.append(NOISE)
        hanji.known_worker = None
    seed = random.randrange(1 << 32)
    print("seed", seed)
    dice = random.Random(seed)
    senders = [Sender(pair.by, line, number) for number in range(2) for line in ("first", "any")]
    for sender in senders:
        sender.start()
    harness.wait_for("a courier", pair.couriers)
    end = time.monotonic() + SECONDS
    done = []
    while time.monotonic() < end:
        time.sleep(dice.uniform(0.02, 0.3))
        done.append(disturb(pair, dice))
    for sender in senders:
        sender.stopped.set()
    for sender in senders:
        sender.join(20)
        assert not sender.is_alive() and sender.odd == []
    harness.wait_for("the last delivery", lambda: pair.waiting() == 0, 60, 0.05)
    total = check(pair, senders)
    print(total, "messages,", {what: done.count(what) for what in sorted(set(done))},
          dict(pair.by.rows("SELECT outcome, count(*) FROM attempt GROUP BY 1")))
    assert total > 10 * SECONDS
