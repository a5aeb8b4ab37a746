"""The examples of the documents do what they say: each ```console block is run, in order, beside a fresh demo.

A block behind a line that ends in `FOLDER/FILE`: is that file of the demo's apps, and is written in its turn.

A line that begins with `$ ` is a command (`\\` at its end continues it); what follows is its output.  What differs from run
to run (times, request ids, tokens, and every number of /status and /metrics) is not compared, nor is standard error.
"""
import itertools
import os
import re
import shutil
import subprocess

import pytest

import harness
from test_demo import Demo

DOCUMENTS = ["README.md", "docs/api.md", "docs/sql.md", "docs/apps.md"]
NUMBERS = itertools.count(1)

# What the documents tell their readers to do first, and nothing more.
FIRST = """auth="Authorization: Bearer $HANJI_TOKEN"
hanji() { "$HANJI_BIN" -c "$HANJI_CONF" "$@"; }
"""
PRELUDE = '. "$1"\n' + FIRST
WRITE = """mkdir -p "$(dirname "$HANJI_APPS/%s")" && cat > "$HANJI_APPS/%s" <<'END'\n%sEND"""
BLOCK = re.compile(r"^(?:[^\n]*`([\w./:-]+/[\w.:-]+)`[^`\n]*:\n\n)?```(\w+)\n(.*?)^```$", re.S | re.M)
BETWEEN = "=====next====="

VARIES = [
    (r"^(Server: nginx)\S*$", r"\1"),
    (r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT", "DATE"),
    (r"\d{4}-\d\d-\d\d([T ])\d\d:\d\d:\d\d", r"DATE\1TIME"),
    (r'("request_id":)"[0-9a-f]{32}"', r"\1ID"),
    (r"hanji_[A-Za-z0-9_-]{43}", "TOKEN"),
    (r"\b[0-7][0-9a-hjkmnp-tv-z]{25}\b", "MADE"),
]


def examples(path):
    """[(command, expected output)] of all console blocks."""
    found = []
    text = (harness.REPOSITORY / path).read_text(encoding="utf-8")
    for name, language, block in BLOCK.findall(text):
        if language != "console":
            if name:
                found.append((WRITE % (name, name, block), ""))
            continue
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            lines, count = part.split("\n"), 1
            while lines[count - 1].endswith("\\"):
                count += 1
            found.append(("\n".join(lines[:count]), "\n".join(lines[count:])))
    return found


def plain(command, text):
    for pattern, word in VARIES:
        text = re.sub(pattern, word, text, flags=re.M)
    if re.search(r"/(status|metrics)\b", command):
        text = re.sub(r"\d+(\.\d+)*", "N", text)
        text = re.sub(r'"histogram":\{[^}]*\}', '"histogram":{}', text)
    if command.endswith("/keys"):
        text = re.sub(r'"(key|sig)":"[^"]*"|\b\d{10}\b|\n', lambda found: found.group(1) or "", text)
    return [line.rstrip() for line in text.replace("\r", "").strip().split("\n")]


@pytest.fixture
def demo(base):
    demo = Demo(base / ("examples%d" % next(NUMBERS)))
    demo.start()
    yield demo
    demo.run("stop")


@pytest.mark.parametrize("expected,got,same", [
    ("ETag: \"1\"", "ETag: \"2\"", False), ("204", "204\n", True), ("HTTP/1.1 200 OK", "HTTP/1.1 304 Not Modified", False),
    ("Date: Mon, 30 Nov 2026 17:20:00 GMT", "Date: Tue, 01 Dec 2026 07:00:00 GMT", True), ("a\nb", "a", False),
    ("Server: nginx", "Server: nginx/1.22.1", True), ('"seq":4', '"seq":5', False)])
def test_what_counts_as_the_same(expected, got, same):
    assert (plain("curl", expected) == plain("curl", got)) == same


@pytest.mark.parametrize("document", ["README.md", "docs/api.md"])
def test_the_reader_is_told_what_the_examples_need(document):
    text = (harness.REPOSITORY / document).read_text(encoding="utf-8")
    told = text.index(". /var/lib/hanji-demo/demo.env")
    assert told < text.index(FIRST, told) < text.index("```console")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_example_gives_what_it_says(demo, tmp_path, document):
    found = examples(document)
    assert found
    shutil.copy(harness.REPOSITORY / "LICENSE", tmp_path)
    script = PRELUDE + "".join("%s\nprintf '\\n%s\\n'\n" % (command, BETWEEN) for command, _ in found)
    done = subprocess.run(["bash", "-c", script, "bash", str(demo.folder / "demo.env")], cwd=tmp_path,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, "TZ": "UTC"}, timeout=120)
    outputs = done.stdout.split("\n%s\n" % BETWEEN)
    assert len(outputs) == len(found) + 1, (done.stdout[-2000:], done.stderr[-2000:])
    for (command, expected), output in zip(found, outputs):
        assert plain(command, output) == plain(command, expected), (command, done.stderr[-2000:])
