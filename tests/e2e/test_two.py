"""deploy/demo-two.sh, and "Two machines" of docs/sends.md: its commands, run in order, say what the page says they do.

What differs from run to run (ids, keys, fingerprints, times, ports) is not compared. Where a reader would wait a second, the
test waits until nothing is on its way.
"""
import itertools
import os
import pathlib
import re
import subprocess

import pytest

import harness
import test_examples
from test_examples import BETWEEN, examples

SCRIPT = harness.REPOSITORY / "deploy" / "demo-two.sh"
NUMBERS = itertools.count(1)

VARIES = [
    (r"(?:\b[0-9a-z]{4} ){7}[0-9a-z]{4}\b", "FINGERPRINT"),
    (r"msg_[0-9a-z]{26}", "msg_ID"),
    (r"\b[0-9a-f]{32}\b", "KEY"),
    (r"127\.0\.0\.1:\d+", "127.0.0.1:PORT"),
    (r'"(sent|received|created|delivered|at|took|due|next_at|bytes)":\d+', r'"\1":N'),
    (r"\d{4}-\d\d-\d\d([T ])\d\d:\d\d:\d\dZ?", "TIME"),
]
# Instead of a reader's patience.
SLEEP = """sleep() {
    for _ in $(seq 200); do
        [ "$(here sql "SELECT count(*) FROM line JOIN outbox ON outbox.line = line.id
                       WHERE line.state = 'open' AND outbox.state = 'waiting'")" != 0 ] || return 0
        command sleep 0.1
    done
}
"""


class Two:
    def __init__(self, folder):
        self.folder = folder
        self.ports = [harness.free_port() for _ in range(4)]

    def run(self, verb, *more, expect=0):
        done = subprocess.run([str(SCRIPT), verb, "--data", str(self.folder), *map(str, more)], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120,
                              env={**os.environ, "HANJI_BIN": str(harness.BINARY)})
        assert done.returncode == expect, (verb, done.stdout, done.stderr)
        return done.stdout if expect == 0 else done.stderr

    def start(self):
        return self.run("start", "--ports", ",".join(map(str, self.ports)))

    def shell(self, script, folder):
        return subprocess.run(["bash", "-c", '. "$1"\n' + script, "bash", str(self.folder / "two.env")], cwd=folder,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "TZ": "UTC"}, timeout=60)

    def processes(self):
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                told = (path / "cmdline").read_bytes() + os.readlink(path / "cwd").encode()
            except OSError:
                continue
            if str(self.folder).encode() in told and harness.alive(int(path.name)):
                found.append(told)
        return found


@pytest.fixture(scope="module")
def two(base):
    two = Two(base / ("two%d" % next(NUMBERS)))
    said = two.start()
    assert str(two.folder / "two.env") in said
    yield two
    two.run("stop")
    assert two.processes() == []


def plain(command, text):
    for pattern, word in VARIES:
        text = re.sub(pattern, word, text, flags=re.M)
    return test_examples.plain(command, text)


def test_the_tutorial_does_what_it_says(two, tmp_path):
    found = examples("docs/sends.md")
    assert len(found) > 10
    script = SLEEP + "".join("%s\nprintf '\\n%s\\n'\n" % (command, BETWEEN) for command, _ in found)
    done = two.shell(script, tmp_path)
    outputs = done.stdout.split("\n%s\n" % BETWEEN)
    assert len(outputs) == len(found) + 1, (done.stdout[-2000:], done.stderr[-2000:])
    for (command, expected), output in zip(found, outputs):
        assert plain(command, output) == plain(command, expected), (command, output, done.stderr[-2000:])


def test_pair_does_it_at_once(two, tmp_path):
    assert (two.folder / "two.env").stat().st_mode & 0o77 == 0, "the tokens are nobody else's"
    said = two.run("pair")
    prints = re.findall(VARIES[0][0], said)
    assert len(prints) == 4 and prints[0] == prints[1] != prints[2] == prints[3]
    assert len(re.findall(r"msg_\w{26} went from", said)) == 2
    got = two.shell('curl -s -H "$there" "$THERE_URL/inbox/from-here?include=body"', tmp_path).stdout
    assert "Hello there, it is here" in got
    assert "paired already" in two.run("pair", expect=1)
    assert two.run("status").count("healthy") == 4


@pytest.mark.parametrize("words", [[], ["begin"], ["start", "--data"], ["start", "stop"], ["start", "--ports", "1,2,3"],
                                   ["start", "--ports", "x"], ["start", "--ports", "1,2,3,4,5"],
                                   ["status", "--data", "/nowhere/at/all"], ["pair", "--data", "/nowhere/at/all"]])
def test_wrong_usage(words, tmp_path):
    more = [] if "--data" in words or not words else ["--data", str(tmp_path / "none")]
    done = subprocess.run([str(SCRIPT), *words, *more], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=20)
    assert done.returncode in (1, 2)
