"""hanji user: people, their passwords and rights, with the server running and without."""
import itertools
import os
import pty
import re
import select
import signal
import subprocess
import time

import pytest

import harness

ARGON2ID = re.compile(r"\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}\Z")


NUMBERS = itertools.count(1)


@pytest.fixture
def hanji(site):
    return site.hanji


@pytest.fixture
def name():
    """A name that no other test uses."""
    return "user%d" % next(NUMBERS)


def add(hanji, name, *flags, password="correct horse", ok=True):
    return hanji.command("user", "add", name, *(flags or ("--read", "/")), stdin=password + "\n", ok=ok)


def users(hanji):
    """The rows of `hanji user list` by name, without the time."""
    head, *rows = [line.split("\t") for line in hanji.command("user", "list").stdout.splitlines()]
    assert head == ["name", "read", "write", "created", "sessions"]
    for row in rows:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", row[3])
    return {row[0]: (row[1], row[2], row[4]) for row in rows}


@pytest.mark.parametrize("running", [True, False])
def test_a_user_s_life(make_hanji, running):
    hanji = make_hanji(start=running)
    done = add(hanji, "Alice", "--read", "notes/", "--read", "/status", "--write", "notes/")
    assert (done.stdout, done.stderr) == ("", "")
    add(hanji, "bob", "--write", "")
    assert users(hanji) == {"Alice": ("/docs/notes/ /status", "/docs/notes/", "0"), "bob": ("-", "/docs/", "0")}
    before = hanji.rows("SELECT hash FROM user WHERE name = 'alice'")[0][0]
    assert ARGON2ID.match(before)
    hanji.command("user", "passwd", "ALICE", stdin="another password\n")
    after = hanji.rows("SELECT hash FROM user WHERE name = 'alice'")[0][0]
    assert ARGON2ID.match(after) and after != before
    hanji.command("user", "grant", "alice", "--read", "/")
    hanji.command("user", "grant", "bob", "--nothing")
    assert users(hanji) == {"Alice": ("/", "-", "0"), "bob": ("-", "-", "0")}
    hanji.command("user", "remove", "alice")
    assert list(users(hanji)) == ["bob"]
    hanji.command("check")


def test_the_password_is_nowhere(make_hanji):
    hanji = make_hanji()
    add(hanji, "alice", password="Unverwechselbar-4711")
    hanji.command("user", "passwd", "alice", stdin="Unverwechselbar-4712\n")
    for path in hanji.base.rglob("*"):
        if path.is_file():
            assert b"Unverwechselbar" not in path.read_bytes(), path


@pytest.mark.parametrize("password,ok", [
    ("12345678", True), ("1234567", False), ("", False), ("x" * 1024, True), ("x" * 1025, False), ("ä" * 4, True),
    ("        ", True), ("with\ttab and blank ", True), ("1234567\0x", False)])
def test_which_passwords_are_taken(hanji, name, password, ok):
    done = add(hanji, name, password=password, ok=False)
    assert (done.returncode == 0) == ok, done
    assert (name in users(hanji)) == ok
    assert ok or done.returncode == 1 and done.stderr.startswith("hanji user: ")


def test_no_password_at_all(hanji, name):
    done = hanji.command("user", "add", name, "--read", "/", stdin="", ok=False)
    assert done.returncode == 1 and name not in users(hanji)


@pytest.mark.parametrize("args", [
    [], ["add"], ["add", "alice"], ["add", "a b", "--read", "/"], ["add", "", "--read", "/"], ["add", "ä", "--read", "/"],
    ["add", "x" * 65, "--read", "/"], ["add", "alice", "--read"], ["add", "alice", "--read", "a//b"],
    ["add", "alice", "--reads", "/"], ["add", "alice", "/"], ["grant", "alice"], ["grant", "alice", "--nothing", "--read", "/"],
    ["passwd"], ["passwd", "alice", "secret12"], ["remove"], ["remove", "alice", "bob"], ["list", "alice"], ["logout"],
    ["rename", "alice"], ["--read", "/"]])
def test_wrong_usage(hanji, args):
    before = users(hanji)
    done = hanji.command("user", *args, stdin="correct horse\n", ok=False)
    assert done.returncode == 2 and "usage: " in done.stderr and done.stdout == ""
    assert users(hanji) == before


@pytest.mark.parametrize("args", [["passwd", "carol"], ["grant", "carol", "--nothing"], ["remove", "carol"], ["logout", "carol"],
                                  ["add", "NAME", "--read", "/"], ["logout", "NAME"]])
def test_what_is_not_there_or_there_already(hanji, name, args):
    add(hanji, name)
    done = hanji.command("user", *[name.upper() if arg == "NAME" else arg for arg in args], stdin="correct horse\n", ok=False)
    assert done.returncode == 1 and done.stderr.startswith("hanji user: ")
    assert users(hanji)[name] == ("/", "-", "0") and "carol" not in users(hanji)


def on_terminal(hanji, *args, answers):
    """Runs a command on a terminal, answering each prompt; (exit status, all that the terminal showed)."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(harness.BINARY, [str(harness.BINARY), "-c", str(hanji.conf), *args], harness.clean_env())
    shown, deadline = b"", time.monotonic() + 20
    answers = list(answers)
    while time.monotonic() < deadline:
        if select.select([fd], [], [], 0.2)[0]:
            try:
                more = os.read(fd, 1000)
            except OSError:
                break
            shown += more
        if answers and shown.endswith(b": "):
            os.write(fd, answers.pop(0).encode() + b"\n")
            shown += b"|"
    else:
        os.kill(pid, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(fd)
    return code, shown.decode()


def test_the_terminal_asks_twice_and_shows_nothing(hanji, name):
    code, shown = on_terminal(hanji, "user", "add", name, "--read", "/", answers=["correct horse", "correct horse"])
    assert code == 0 and name in users(hanji)
    assert "Password: " in shown and "Once more: " in shown and "correct" not in shown


def test_the_terminal_notices_a_slip(hanji, name):
    code, shown = on_terminal(hanji, "user", "add", name, "--read", "/", answers=["correct horse", "correct hose"])
    assert code == 1 and "not the same" in shown and name not in users(hanji)


def test_an_older_file_is_brought_along(make_hanji):
    """A file of the first schema gets the tables, and keeps what it had."""
    hanji = make_hanji()
    hanji.ask("PUT", "/docs/kept", body=b"x")
    hanji.stop()
    later = sorted((harness.REPOSITORY / "db" / "schema").glob("*.sql"))[1:]
    tables = re.findall(r"^CREATE (?:VIRTUAL )?TABLE (\w+)", "".join(path.read_text() for path in later), re.M)
    subprocess.run(["sqlite3", str(hanji.database), "".join("DROP TABLE %s;" % table for table in reversed(tables)) +
                    "DELETE FROM meta WHERE name GLOB 'search_*'; UPDATE meta SET value = 1 WHERE name = 'schema_version'"], check=True)
    hanji.start()
    add(hanji, "alice")
    assert list(users(hanji)) == ["alice"] and hanji.ask("GET", "/docs/kept").body == b"x"
