"""Sealed sends from a hanji to an inbox, here its own: in order, through nginx, and what a person skipped leaves no hole."""
import json
import pathlib

import pytest

import harness
from outbox import QUICK, Outbox


@pytest.fixture(scope="module")
def loop(base, certificate):
    """A site that sends to its own inbox; an Outbox with what is needed to look into it."""
    site = harness.Site(base / "courier-sealed", certificate, **dict(QUICK, send_timeout="10s"))
    site.hanji.command("key", "new")
    site.start()
    site.hanji.token = site.token
    out = Outbox.__new__(Outbox)
    out.hanji, out.site = site.hanji, site
    card = pathlib.Path(site.hanji.base / "card")
    card.write_text(site.hanji.command("key", "export").stdout)
    out.card = str(card)
    site.hanji.command("inbox", "add", "in", "--from", out.card)
    yield out
    site.stop()


def line(loop, name, *flags):
    loop.hanji.command("line", "add", name, loop.site.url() + "/inbox/in", "--allow-private", "--seal-to", loop.card, *flags)
    return name


def came(loop, name):
    """[(seq, body)] of a line, as it is in the inbox."""
    return loop.hanji.rows("SELECT seq, CAST(body AS TEXT) FROM inbox WHERE line = ? ORDER BY n", name)


@pytest.mark.parametrize("order", ["fifo", "any"])
def test_each_once(loop, order):
    name = line(loop, "once-" + order, "--order", order)
    ids = [loop.send(name, b'{"n":%d}' % i) for i in range(1, 31)]
    loop.wait_quiet(name)
    got = came(loop, name)
    assert sorted(got) == [(i, '{"n":%d}' % i) for i in range(1, 31)]
    if order == "fifo":
        assert got == sorted(got)
    assert all(loop.outcomes(one) == ["delivered"] for one in ids)


def test_a_mark_that_was_lost(loop):
    """It goes again, and is a duplicate there."""
    name = line(loop, "again")
    message = loop.send(name)
    loop.wait_state(message, "delivered")
    loop.hanji.command("line", "replay", name, "1")
    loop.wait_attempts(message, 2)
    loop.wait_quiet(name)
    assert loop.outcomes(message) == ["delivered", "duplicate"] and came(loop, name) == [(1, "{}")]


def test_what_was_skipped_leaves_no_hole(loop):
    name = line(loop, "skipped")
    loop.hanji.command("line", "pause", name)
    ids = [loop.send(name, b"%d" % i) for i in range(1, 4)]
    loop.hanji.command("line", "skip", name, ids[1])
    loop.hanji.command("line", "resume", name)
    loop.wait_quiet(name)
    assert [loop.state(one)[0] for one in ids] == ["delivered", "skipped", "delivered"]
    assert came(loop, name) == [(1, "1"), (3, "3")]


def test_the_inbox_forgot(loop):
    """What an inbox that was put back to an older state misses is sent again, in order."""
    name = line(loop, "forgot")
    ids = [loop.send(name, b"%d" % i) for i in range(1, 5)]
    loop.wait_quiet(name)
    link = loop.hanji.sqlite(readonly=False)
    link.execute("UPDATE inbox_line SET seq = 2, hash = (SELECT hash FROM outbox WHERE id = ?) WHERE line = ?", (ids[1], name))
    link.execute("DELETE FROM inbox WHERE line = ? AND seq > 2", (name,))
    link.execute("DELETE FROM inbox_seen WHERE id IN (?, ?)", (ids[2], ids[3]))
    link.close()
    loop.send(name, b"5")
    harness.wait_for("all of them", lambda: [seq for seq, _ in came(loop, name)] == [1, 2, 3, 4, 5])


def test_nothing_of_it_can_be_read_on_the_way(loop):
    name = line(loop, "secret")
    message = loop.send(name, json.dumps({"word": "xylophonic"}).encode())
    loop.wait_state(message, "delivered")
    body, = loop.one("SELECT b.body FROM outbox AS o, outbox_body AS b WHERE o.id = ? AND b.id = o.body", message)
    assert "xylophonic" not in body and "xylophonic" in came(loop, name)[0][1]
