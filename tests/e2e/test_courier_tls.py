"""Who a receiver is: certificates that are wrong in every way, and authorities of a line's own."""
import itertools

import pytest

import harness
import receiver
from outbox import QUICK, Outbox

NAMES = itertools.count(1)


@pytest.fixture(scope="module")
def out(base):
    hanji = harness.Hanji(base / "courier-tls", **dict(QUICK, send_timeout="15s"))
    box = Outbox(hanji)
    yield box
    hanji.stop()


@pytest.fixture(scope="module")
def papers(base):
    """An authority and certificates: {name: (certificate, key)}."""
    folder = base / "courier-papers"
    folder.mkdir()
    ours = receiver.make_authority(folder, "ours")
    theirs = receiver.make_authority(folder, "theirs")
    return {"ours": ours, "theirs": theirs,
            "good": receiver.make_certificate(folder, "good", ours),
            "expired": receiver.make_certificate(folder, "expired", ours, expired=True),
            "other-host": receiver.make_certificate(folder, "other-host", ours, names="DNS:elsewhere.example"),
            "other-authority": receiver.make_certificate(folder, "other-authority", theirs),
            "itself": receiver.make_authority(folder, "itself")}


@pytest.fixture
def tls():
    made = []

    def make(certificate):
        made.append(receiver.Receiver(certificate))
        return made[-1]
    yield make
    for one in made:
        one.stop()


@pytest.fixture
def name():
    return "t%d" % next(NAMES)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_an_authority_of_the_line(out, papers, tls, name, host):
    there = tls(papers["good"])
    out.line(name, there.url("/", host), "--ca", papers["ours"][0])
    message = out.send(name)
    out.wait_state(message, "delivered")
    assert out.outcomes(message) == ["delivered"] and len(there.requests("/")) == 1


@pytest.mark.parametrize("which", ["expired", "other-host", "other-authority", "itself"])
def test_nothing_is_sent_to_who_cannot_prove_it(out, papers, tls, name, which):
    there = tls(papers[which])
    out.line(name, there.url("/", "localhost"), "--ca", papers["ours"][0])
    message = out.send(name)
    assert set(out.wait_attempts(message, 2)) == {"tls"}
    assert not there.requests("/") and out.state(message)[:2] == ("waiting", 0)
    out.hanji.command("line", "pause", name)


def test_the_machine_does_not_know_it(out, papers, tls, name):
    there = tls(papers["good"])
    out.line(name, there.url("/", "localhost"))
    message = out.send(name)
    assert set(out.wait_attempts(message, 1)) == {"tls"}
    assert not there.requests("/")
    out.hanji.command("line", "pause", name)


def test_authorities_of_one_line_are_not_those_of_another(out, papers, tls, name):
    """Also on a connection that is kept: it was made for a line that trusts somebody else."""
    there = tls(papers["good"])
    out.line(name + "-a", there.url("/a", "localhost"), "--ca", papers["ours"][0])
    out.line(name + "-b", there.url("/b", "localhost"), "--ca", papers["theirs"][0])
    out.wait_state(out.send(name + "-a"), "delivered")
    message = out.send(name + "-b")
    assert set(out.wait_attempts(message, 1)) == {"tls"}
    out.wait_state(out.send(name + "-a"), "delivered")
    assert len(there.requests("/a")) == 2 and not there.requests("/b")
    out.hanji.command("line", "pause", name + "-b")


def test_no_tls_at_all(out, tls, name):
    there = tls(None)
    out.line(name, there.url("/").replace("http:", "https:"))
    message = out.send(name)
    assert set(out.wait_attempts(message, 1)) == {"tls"}
    assert not there.requests("/")
    out.hanji.command("line", "pause", name)
