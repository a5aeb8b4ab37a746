"""hanji line: lines from the shell, through the running server or on the file."""
import json
import re

import pytest

import harness
from test_sends import delivered

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
URL = "http://192.0.2.1:9/in"


@pytest.fixture(scope="module", params=["running", "down"])
def hanji(request, base):
    """The same commands with a server and without one."""
    made = harness.Hanji(base / ("line-" + request.param))
    made.start()
    made.token = made.new_token("full", read=["/"], write=["/"])
    made.command("key", "new")
    if request.param == "down":
        made.stop()
    yield made
    if request.param == "running":
        made.stop()


@pytest.fixture
def name(hanji, request):
    return re.sub("[^a-z0-9]", "-", request.node.originalname)[:64]


def add(hanji, name, *flags, **more):
    done = hanji.command("line", "add", name, URL, *flags, **more)
    hanji.command("line", "pause", name)
    return done


def facts(hanji, name):
    lines = [line.split("\t", 1) for line in hanji.command("line", "show", name).stdout.splitlines()]
    return {key: value for key, value in lines}


def refused(hanji, why, *args, status=2, **more):
    done = hanji.command("line", *args, ok=False, **more)
    assert done.returncode == status and why in done.stderr, done
    assert done.stdout == ""


@pytest.mark.smoke
def test_add_list_show_remove(hanji, name):
    assert add(hanji, name).stdout == ""
    rows = [line.split("\t") for line in hanji.command("line", "list").stdout.splitlines()]
    assert rows[0] == ["name", "state", "order", "sealed", "waiting", "parked", "due", "url"]
    assert [name, "paused", "fifo", "-", "0", "0", "-", URL] in rows
    shown = facts(hanji, name)
    assert (shown["url"], shown["order"], shown["secret"], shown["private addresses"], shown["state"]) == \
        (URL, "fifo", "none", "refused", "paused: paused by an operator")
    hanji.command("line", "remove", name)
    refused(hanji, "no line", "show", name, status=1)
    assert name not in hanji.command("line", "list").stdout


def test_every_flag(hanji, name, base):
    pem = base / "line.pem"
    pem.write_text("-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----\n")
    add(hanji, name, "--order", "any", "--rate", "2.5/s", "--secret", SECRET, "--allow-private", "--ca", pem)
    shown = facts(hanji, name)
    assert (shown["order"], shown["rate"], shown["secret"], shown["private addresses"], shown["certificates"]) == \
        ("any", "2.5/s", "yes", "allowed", "its own")
    assert SECRET[6:] not in str(shown)


def test_set_changes_what_is_given(hanji, name):
    add(hanji, name, "--order", "any", "--secret", SECRET)
    hanji.command("line", "set", name, "--rate", "3")
    shown = facts(hanji, name)
    assert (shown["order"], shown["rate"], shown["secret"], shown["url"]) == ("any", "3/s", "yes", URL)
    hanji.command("line", "set", name, "https://example.org/", "--secret", "none", "--order", "fifo")
    shown = facts(hanji, name)
    assert (shown["order"], shown["secret"], shown["url"]) == ("fifo", "none", "https://example.org/")
    hanji.command("line", "set", name, "--allow-private")
    hanji.command("line", "set", name, "--no-private")
    assert facts(hanji, name)["private addresses"] == "refused"


def test_a_secret_that_is_made_is_printed_once(hanji, name):
    secret = add(hanji, name, "--secret", "new").stdout.strip()
    assert re.fullmatch("whsec_[A-Za-z0-9+/]{43}=", secret)
    assert secret not in hanji.command("line", "show", name).stdout


def test_sealed(hanji, name, base):
    """By a card from a file, from standard input, or as it is; whose it is is told."""
    other = harness.Hanji(base / ("card-" + hanji.base.name))
    other.command("key", "new")
    card = other.command("key", "export").stdout
    file = other.base / "card"
    file.write_text(card)
    told = add(hanji, name, "--seal-to", file).stderr
    assert re.search("([0-9a-z]{4} ){7}[0-9a-z]{4}", told)
    assert hanji.command("line", "set", name, "--seal-to", "-", stdin=card).stderr == told
    assert hanji.command("line", "set", name, "--seal-to", card).stderr == told
    assert hanji.command("line", "show", name).stdout.count("\nkey\t") == 1
    own = hanji.command("key", "export").stdout
    hanji.command("line", "set", name, "--seal-to", card, "--seal-to", own)
    assert hanji.command("line", "show", name).stdout.count("\nkey\t") == 2
    hanji.command("line", "set", name, "--seal-to", "none")
    assert hanji.command("line", "show", name).stdout.count("\nkey\t") == 0


def test_twice(hanji, name):
    add(hanji, name)
    refused(hanji, "there is a line of that name", "add", name, URL, status=1)


@pytest.mark.parametrize("args", [("set", "nothere", "--rate", "1"), ("pause", "nothere"), ("resume", "nothere"), ("remove", "nothere"),
                                  ("retry", "nothere"), ("replay", "nothere", "1"), ("skip", "nothere", "msg_" + 26 * "0")])
def test_no_such_line(hanji, args):
    refused(hanji, "there is no such line", *args, status=1)


def test_no_such_message(hanji, name):
    add(hanji, name)
    message = "msg_" + 26 * "0"
    refused(hanji, "no such", "skip", name, message, status=1)
    refused(hanji, "no such", "retry", name, message, status=1)
    refused(hanji, "no such message", "show", name, message, status=1)
    assert hanji.command("line", "retry", name).stdout == "0\n"


@pytest.mark.parametrize("args,why", [
    ((), "missing"), (("list", "x"), "fit"), (("add",), "fit"), (("add", "x"), "URL"), (("nothing", "x"), "fit"),
    (("add", "UP", URL), "name"), (("add", "-", URL), "name"), (("add", "a" * 65, URL), "name"),
    (("add", "x", "ftp://a/"), "https://"), (("add", "x", "http://0x7f.1/"), "number"), (("add", "x", URL, "more"), "fit"),
    (("add", "x", URL, "--order"), "value"), (("add", "x", URL, "--order", "lifo"), "order"), (("add", "x", URL, "--rate", "fast"), "rate"),
    (("add", "x", URL, "--secret", "short"), "secret"), (("add", "x", URL, "--what", "1"), "unknown"),
    (("replay", "x", "0"), "numbers"), (("replay", "x", "2", "1"), "numbers"), (("replay", "x"), "fit"), (("skip", "x"), "fit"),
    (("skip", "x", "1"), "msg_"), (("retry", "x", "1"), "msg_"), (("show", "x", "y", "z"), "fit"), (("pause",), "fit"),
], ids=str)
def test_wrong_usage(hanji, args, why):
    refused(hanji, why, *args)


@pytest.mark.parametrize("args,why", [
    (("--seal-to", "/nowhere/card"), "/nowhere/card"), (("--seal-to", "{}"), "card"), (("--ca", "/nowhere/pem"), "/nowhere/pem"),
    (("--ca", "/dev/null"), "nothing"), (("--ca", "/etc/hostname"), "PEM"),
], ids=str)
def test_files_that_are_none(hanji, args, why):
    refused(hanji, why, "add", "x", URL, *args, status=1)


def test_messages_from_the_shell(make_hanji):
    hanji = make_hanji()
    add(hanji, "orders")
    text = {"CONTENT_TYPE": "text/plain"}
    ids = [json.loads(hanji.ask("POST", "/sends/orders", body=b"x", extra=text).body)["id"] for _ in range(3)]
    shown = hanji.command("line", "show", "orders", ids[0]).stdout
    assert "id\t%s\nline\torders\nseq\t1\nstate\twaiting\n" % ids[0] in shown
    assert hanji.command("line", "retry", "orders", ids[1]).stdout == "1\n"
    hanji.command("line", "skip", "orders", ids[0])
    refused(hanji, "nothing is left to do", "skip", "orders", ids[0], status=1)
    assert "state\tskipped\n" in hanji.command("line", "show", "orders", ids[0]).stdout
    delivered(hanji, ids[1])
    assert hanji.command("line", "replay", "orders", "1", "2").stdout == "1\n"
    hanji.command("line", "resume", "orders")
    assert facts(hanji, "orders")["state"] == "open"


def test_without_a_key_nothing_is_hidden(make_hanji):
    hanji = make_hanji()
    done = hanji.command("line", "add", "orders", URL, "--secret", "new", ok=False)
    assert done.returncode == 1 and "hanji key new" in done.stderr and done.stdout == ""
    assert "orders" not in hanji.command("line", "list").stdout
