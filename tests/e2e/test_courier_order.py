"""Order, fairness and loss: what holds when receivers fail at random, lines are dead, and processes are killed."""
import itertools
import os
import random
import signal
import time

import pytest

import harness
import receiver
from outbox import QUICK, Outbox

NAMES = itertools.count(1)


@pytest.fixture(scope="module")
def out(base):
    hanji = harness.Hanji(base / "courier-order", **QUICK)
    box = Outbox(hanji)
    yield box
    hanji.stop()


@pytest.fixture(scope="module")
def there():
    one = receiver.Receiver()
    yield one
    one.stop()


@pytest.fixture
def path():
    return "/q%d" % next(NAMES)


def fails_at_random(seed, most=0.3):
    """Takes what it is given, or not, or takes it and does not say so."""
    dice = random.Random(seed)

    def answer(sock, request):
        draw = dice.random()
        if draw > most:
            sock.sendall(receiver.plain(200))
            return True
        if draw > most / 2:
            sock.sendall(receiver.plain(dice.choice([500, 502, 503, 404])))
            return True
        sock.sendall(b"HTTP/1.1 2")
        return False
    return answer


def firsts(bodies):
    """Each at its first arrival."""
    return list(dict.fromkeys(bodies))


def test_a_fifo_line_keeps_its_order(out, there, path):
    out.line(path[1:], there.script(path, fails_at_random(1)))
    bodies = [b"%d" % i for i in range(150)]
    out.send_many(path[1:], [body.decode() for body in bodies])
    out.wait_quiet(path[1:])
    came = there.bodies(path)
    assert firsts(came) == bodies
    # not even one that was not taken the first time is overtaken: what repeats does so at once
    assert [one for one, _ in itertools.groupby(came)] == bodies


def test_any_order_loses_nothing(out, there, path):
    out.line(path[1:], there.script(path, fails_at_random(2, 0.2)), "--order", "any")
    bodies = {b"%d" % i for i in range(150)}
    out.send_many(path[1:], [body.decode() for body in bodies])
    out.wait_quiet(path[1:])
    assert set(there.bodies(path)) == bodies


def test_dead_lines_do_not_slow_the_others(out, there, path):
    """Three of them hang, and one is not there; each of the others has its messages within a moment."""
    dead = [out.line("%s-dead%d" % (path[1:], i), there.script("%s/dead%d" % (path, i), receiver.hang(20)), "--order", "any")
            for i in range(3)]
    dead.append(out.line(path[1:] + "-gone", "http://127.0.0.1:%d/" % harness.free_port(), "--order", "any"))
    good = [out.line("%s-%d" % (path[1:], i), there.script("%s/%d" % (path, i), 200)) for i in range(8)]
    for name in dead:
        out.send_many(name, map(str, range(50)))
    time.sleep(0.05)
    begun = time.monotonic()
    for name in good:
        out.send_many(name, map(str, range(20)))
    for i in range(8):
        assert there.wait("%s/%d" % (path, i), 20)[-1].at - begun < 3
    for name in dead:
        out.hanji.command("line", "remove", name)


def test_killed_again_and_again(out, there, path):
    """kill -9 in the middle: nothing is lost, and a fifo line stays in order."""
    out.line(path[1:], there.script(path, 200))
    out.line(path[1:] + "-any", there.script(path + "any", 200), "--order", "any")
    bodies = [b"%d" % i for i in range(900)]
    for at in range(0, 900, 300):
        for name in (path[1:], path[1:] + "-any"):
            out.send_many(name, [body.decode() for body in bodies[at:at + 300]])
        there.wait(path, len(there.requests(path)) + random.randrange(1, 100))
        out.kill_courier()
    out.wait_quiet(path[1:])
    out.wait_quiet(path[1:] + "-any")
    assert firsts(there.bodies(path)) == bodies
    assert set(there.bodies(path + "any")) == set(bodies)
    ids = [request.headers["webhook-id"] for request in there.requests(path)]
    assert len(set(ids)) == len(bodies)


def test_the_server_is_away(out, there, path):
    """What was delivered meanwhile is reported when it is back."""
    out.line(path[1:], there.script(path, 200))
    out.send(path[1:], b"0")
    there.wait(path, 1)
    out.hanji.expect_new_worker()
    ids = out.send_many(path[1:], map(str, range(1, 300)))
    os.kill(out.hanji.worker(), signal.SIGKILL)
    out.hanji.wait_healthy()
    out.wait_state(ids[-1], "delivered")
    out.wait_quiet(path[1:])
    assert firsts(there.bodies(path)) == [b"%d" % i for i in range(300)]


def test_another_courier_has_begun(out, there, path):
    """Its fence is the valid one: what the other reports is refused, and that one ends."""
    out.line(path[1:], there.script(path, 200))
    out.wait_state(out.send(path[1:]), "delivered")
    before = out.courier()
    out.write("UPDATE courier SET fence = fence + 1")
    message = out.send(path[1:], b"1")
    harness.wait_for("its end", lambda: not harness.alive(before))
    out.send(path[1:], b"2")
    out.wait_state(message, "delivered")
    out.wait_quiet(path[1:])
    assert firsts(there.bodies(path)) == [b"{}", b"1", b"2"]


def test_asked_to_leave_in_the_middle(out, there, path):
    """SIGTERM: what is on its way ends and is reported, so that nothing goes twice."""
    out.line(path[1:], there.script(path, receiver.hang(0.2)), "--order", "any")
    ids = out.send_many(path[1:], "123")
    there.wait(path, 1)
    os.kill(out.courier(), signal.SIGTERM)
    harness.wait_for("its end", lambda: not out.couriers())
    out.send(path[1:], b"4")
    out.wait_quiet(path[1:])
    assert [out.outcomes(one) for one in ids] == [["delivered"]] * 3


@pytest.mark.parametrize("how", ["pause", "remove"])
def test_no_more_of_a_line(out, there, path, how):
    """A line that is paused or removed while it sends is quiet within a moment."""
    out.line(path[1:], there.script(path, receiver.hang(0.05)))
    out.send_many(path[1:], map(str, range(60)))
    there.wait(path, 3)
    out.hanji.command("line", how, path[1:])

    def quiet():
        count = len(there.requests(path))
        time.sleep(0.15)
        return len(there.requests(path)) == count
    harness.wait_for("quiet", quiet, 2)
    assert len(there.requests(path)) < 55
    if how == "pause":
        out.hanji.command("line", "resume", path[1:])
        out.wait_quiet(path[1:])
        assert firsts(there.bodies(path)) == [b"%d" % i for i in range(60)]
