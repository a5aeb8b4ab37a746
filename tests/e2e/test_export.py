"""Export and import: every byte comes back, a file that is not whole is seen, and what was cut off goes on."""
import base64
import json
import random
import re
import signal
import stat
import subprocess
import threading
import time

import pytest

import harness
from test_backup import command, files, out      # noqa: F401  (a fixture)

BODIES = {
    "a/text": ("text/plain; charset=utf-8", "h\u00e9 \"\\/\b\f\n\r\t\u007f \U0001f600 \u2028".encode()),
    "a/empty": ("text/plain", b""),
    "a/nul": ("text/plain", b"a\0b"),
    "a/not utf-8": ("text/plain", b"\xff\xfe\xc3"),
    "b/json": ("application/json", b' {"n": 12345678901234567890, "e": 1e999, "n": "\\u0000", "a":[1, 2]}\n'),
    "b/all bytes": ("application/octet-stream", bytes(range(256)) * 5),
    "\u00e9/\U0001f600 \"'": ("x/y", b"the key is odd"),
    "long/" + "k" * 507: ("x/" + "y" * 253, b"names are long"),
}


def put_all(hanji, bodies=None):
    for key, (kind, body) in (bodies or BODIES).items():
        answer = hanji.ask("PUT", "/docs/" + key, body=body, extra={"CONTENT_TYPE": kind})
        assert answer.status == 201, (key, answer)


def holds_all(hanji, bodies=None):
    for key, (kind, body) in (bodies or BODIES).items():
        answer = hanji.ask("GET", "/docs/" + key)
        assert (answer.status, answer.body, answer.header("content-type")) == (200, body, kind), key


def lines(text):
    return [json.loads(line) for line in text.split("\n") if line]


def rows(hanji):
    return hanji.rows("SELECT key, type, modified, size, CAST(body AS BLOB), typeof(body) FROM doc ORDER BY key")


# export

@pytest.mark.smoke
def test_what_an_export_says(make_hanji):
    hanji = make_hanji()
    put_all(hanji)
    first, *documents, last = lines(hanji.command("export").stdout)
    assert first == {"hanji": "export", "version": 1, "seq": len(BODIES), "prefix": "", "after": ""}
    assert last == {"hanji": "end", "documents": len(BODIES)}
    assert [line["key"] for line in documents] == sorted(BODIES, key=str.encode)
    for line in documents:
        kind, body = BODIES[line["key"]]
        got = line["text"].encode() if "text" in line else base64.b64decode(line["base64"], validate=True)
        assert (line["type"], line["size"], got) == (kind, len(body), body)
        assert abs(line["modified"] - time.time()) < 300 and line["seq"] > 0


def test_the_form_of_bodies(make_hanji):
    """Text where it is, base64 where it must be."""
    hanji = make_hanji()
    put_all(hanji)
    form = {line["key"]: "text" in line for line in lines(hanji.command("export").stdout)[1:-1]}
    assert form["a/text"] and form["b/json"] and form["a/empty"]
    assert not form["a/not utf-8"] and not form["b/all bytes"]


@pytest.mark.parametrize("args,keys", [
    (["--prefix", "a/"], ["a/empty", "a/not utf-8", "a/nul", "a/text"]),
    (["--prefix", "a/", "--after", "a/nul"], ["a/text"]),
    (["--after", "b/all bytes", "--prefix", "b/"], ["b/json"]),
    (["--prefix", "nothing/"], []),
    (["--prefix", "a/", "--after", "z"], []),
], ids=lambda value: " ".join(value))
def test_a_part(make_hanji, args, keys):
    hanji = make_hanji()
    put_all(hanji)
    got = lines(hanji.command("export", *args).stdout)
    assert [line["key"] for line in got[1:-1]] == keys and got[-1]["documents"] == len(keys)


def test_into_a_file(make_hanji, out):
    hanji = make_hanji()
    put_all(hanji)
    done = hanji.command("export", "-o", out / "e")
    assert "%d documents" % len(BODIES) in done.stdout
    assert (out / "e").read_text() == hanji.command("export").stdout
    assert stat.S_IMODE((out / "e").stat().st_mode) == 0o600 and files(out) == ["e"]
    assert hanji.command("export", "-o", out / "e", ok=False).returncode == 1
    hanji.command("export", "-o", out / "e", "--force")
    (out / "link").symlink_to("e")
    for name in (out / "link", hanji.database, str(hanji.database) + "-wal"):
        assert hanji.command("export", "-o", name, "--force", ok=False).returncode == 1
    assert hanji.ask("GET", "/docs/a/text").status == 200


@pytest.mark.parametrize("args", [["x"], ["--prefix"], ["--prefix", "a"], ["--prefix", "/a/"], ["-o"], ["--force"],
                                  ["--nonsense", "x"], ["-o", ""], ["--after", "k" * 513]], ids=" ".join)
def test_wrong_usage_of_export(make_hanji, args):
    done = make_hanji(start=False).command("export", *args, ok=False)
    assert done.returncode == 2 and "usage" in done.stderr and done.stdout == ""


def test_standard_output_that_is_full(make_hanji):
    hanji = make_hanji()
    put_all(hanji)
    with open("/dev/full", "w") as full:
        done = subprocess.run([str(harness.BINARY), "-c", str(hanji.conf), "export"], stdout=full, timeout=30,
                              stderr=subprocess.PIPE, text=True, env=harness.clean_env())
    assert done.returncode == 1 and "No space" in done.stderr


def test_keys_that_no_json_can_hold(make_hanji):
    hanji = make_hanji()
    put_all(hanji)
    hanji.command("sql", "INSERT INTO doc (key, body) VALUES (CAST(x'61ff' AS TEXT), 'x')")
    done = hanji.command("export", ok=False)
    assert done.returncode == 1 and "1 documents were left out" in done.stderr
    assert len(lines(done.stdout)) == len(BODIES) + 2


def test_a_reader_that_waits_does_not_keep_the_log(make_hanji):
    """Between documents no snapshot is held."""
    hanji = make_hanji(checkpoint_size="64k")
    put_all(hanji, {"k%03d" % i: ("x/y", bytes(10000)) for i in range(200)})
    process = command(hanji, "export")
    process.stdout.read(1000)
    time.sleep(0.3)
    for i in range(40):
        assert hanji.ask("PUT", "/docs/more", body=b"y" * 20000).status in (201, 204)
    assert hanji.status()["wal_bytes"] < 1 << 20
    process.stdout.read()
    process.communicate(timeout=30)
    assert process.returncode == 0


# import

@pytest.mark.smoke
@pytest.mark.parametrize("running", [True, False], ids=["server up", "server down"])
def test_all_of_it_comes_back(make_hanji, out, running):
    first, second = make_hanji(), make_hanji(start=running)
    put_all(first)
    first.command("sql", "UPDATE doc SET modified = 1000000000 + id")
    first.command("export", "-o", out / "e")
    done = second.command("import", out / "e")
    assert "%d documents written, 0 left" % len(BODIES) in done.stdout
    assert rows(second) == rows(first)
    second.command("check")
    if not running:
        second.start()
        second.token = second.new_token("full", read=["/"])
    holds_all(second)


def test_twice_changes_nothing(make_hanji, out):
    hanji = make_hanji()
    put_all(hanji)
    hanji.command("export", "-o", out / "e")
    seq = hanji.status()["seq"]
    done = hanji.command("import", out / "e")
    assert "0 documents written, %d left" % len(BODIES) in done.stdout and hanji.status()["seq"] == seq


def test_what_changed_since_is_put_back(make_hanji, out):
    hanji = make_hanji()
    put_all(hanji)
    hanji.command("export", "-o", out / "e")
    hanji.ask("PUT", "/docs/a/text", body=b"changed")
    hanji.ask("DELETE", "/docs/a/nul")
    hanji.ask("PUT", "/docs/other", body=b"other")
    assert "2 documents written" in hanji.command("import", out / "e").stdout
    holds_all(hanji)
    assert hanji.ask("GET", "/docs/other").status == 200


@pytest.mark.parametrize("running", [True, False], ids=["server up", "server down"])
def test_if_absent(make_hanji, out, running):
    hanji = make_hanji()
    put_all(hanji)
    hanji.command("export", "-o", out / "e")
    hanji.ask("PUT", "/docs/a/text", body=b"changed")
    hanji.ask("DELETE", "/docs/a/nul")
    if not running:
        hanji.stop()
    assert "1 documents written" in hanji.command("import", "--if-absent", out / "e").stdout
    if not running:
        hanji.start()
    assert hanji.ask("GET", "/docs/a/text").body == b"changed"
    assert hanji.ask("GET", "/docs/a/nul").body == b"a\0b"


def test_through_a_pipe(make_hanji):
    first, second = make_hanji(), make_hanji()
    put_all(first)
    text = first.command("export").stdout
    second.command("import", "-", stdin=text)
    holds_all(second)


def test_lines_by_hand(make_hanji):
    """Without header and end, with other members, in other order, spelled otherwise."""
    hanji = make_hanji()
    hanji.command("import", "-", stdin='{"text":"\\u00e9","note":null,"key":"\\u0061"}\n\n {"key":"b", "base64":"AP8="} \r\n')
    assert hanji.ask("GET", "/docs/a").body == "\u00e9".encode()
    assert hanji.ask("GET", "/docs/b").body == b"\0\xff"
    assert hanji.ask("GET", "/docs/b").header("content-type") == "application/octet-stream"


GOOD = '{"key":"good%d","text":"x"}\n'
FAULTS = {
    "no JSON": "nonsense\n", "no object": "[1]\n", "no key": '{"text":"x"}\n', "bad key": '{"key":"a/../b","text":"x"}\n',
    "no body": '{"key":"a"}\n', "two bodies": '{"key":"a","text":"x","base64":""}\n', "bad base64": '{"key":"a","base64":"*"}\n',
    "wrong size": '{"key":"a","size":7,"text":"x"}\n', "bad JSON inside": '{"key":"a","type":"application/json","text":"{"}\n',
    "NUL": '{"key":"a","text":"\0"}\n', "newer version": '{"hanji":"export","version":2}\n', "cut off": '{"key":"a","text":"x',
    "an end of nothing": '{"hanji":"end","documents":3}\n',
}


@pytest.mark.parametrize("running", [True, False], ids=["server up", "server down"])
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_names_its_line(make_hanji, name, running):
    """What stands before it is taken, nothing behind it."""
    hanji = make_hanji()
    if not running:
        hanji.stop()
    text = GOOD % 1 + GOOD % 2 + FAULTS[name] + ("" if name == "cut off" else GOOD % 3)
    done = hanji.command("import", "-", stdin=text, ok=False)
    assert done.returncode == 1 and re.search(r"-:3: \w", done.stderr), done
    assert "2 documents written" in done.stderr
    assert hanji.rows("SELECT key FROM doc ORDER BY key") == [("good1",), ("good2",)]
    hanji.command("check")


def test_a_document_that_the_database_refuses(make_hanji):
    """A trigger of somebody's: those before it are taken, and its line is named."""
    hanji = make_hanji()
    hanji.command("sql", "CREATE TRIGGER no BEFORE INSERT ON doc WHEN new.key = 'good3' BEGIN SELECT RAISE(ABORT, 'no'); END")
    done = hanji.command("import", "-", stdin="".join(GOOD % i for i in range(1, 6)), ok=False)
    assert done.returncode == 1 and "-:3: " in done.stderr and "2 documents written" in done.stderr
    assert hanji.rows("SELECT key FROM doc ORDER BY key") == [("good1",), ("good2",)]


@pytest.mark.parametrize("cut", ["end line", "last document", "inside a line", "one document"])
def test_a_file_that_is_not_whole(make_hanji, out, cut):
    hanji = make_hanji()
    put_all(hanji)
    text = hanji.command("export").stdout
    kept = text.splitlines(True)
    broken = {"end line": "".join(kept[:-1]), "last document": "".join(kept[:-2] + kept[-1:]),
              "inside a line": text[:len(text) // 2], "one document": "".join(kept[:3] + kept[4:])}[cut]
    done = make_hanji().command("import", "-", stdin=broken, ok=False)
    assert done.returncode == 1 and "hanji import: -:" in done.stderr


def test_nobody_is_forgotten_beside_writers(make_hanji, out):
    """The import shares the server with others; what both wrote is there."""
    first, second = make_hanji(), make_hanji()
    many = {"m/%04d" % i: ("text/plain", b"%d " % i * 40) for i in range(3000)}
    (out / "e").write_text("".join(json.dumps({"key": key, "type": kind, "text": body.decode()}) + "\n"
                                   for key, (kind, body) in many.items()))
    stop, written = threading.Event(), []

    def write():
        while not stop.is_set():
            assert second.ask("PUT", "/docs/w/%d" % len(written), body=b"x").status == 201
            written.append(1)
    thread = threading.Thread(target=write)
    thread.start()
    try:
        second.command("import", out / "e")
    finally:
        stop.set()
        thread.join()
    assert second.status()["documents"] == 3000 + len(written)
    second.command("check")
    first.command("import", out / "e")


@pytest.mark.parametrize("running", [True, False], ids=["server up", "server down"])
def test_killed_and_run_again(make_hanji, out, running):
    hanji = make_hanji()
    if not running:
        hanji.stop()
    rng = random.Random(5)
    many = {"m/%05d" % i: rng.randbytes(rng.randrange(3000)) for i in range(4000)}
    text = "".join(json.dumps({"key": key, "base64": base64.b64encode(body).decode()}) + "\n" for key, body in many.items())
    (out / "e").write_text('{"hanji":"export","version":1}\n' + text + '{"hanji":"end","documents":4000}\n')
    killed = 0
    for attempt in range(20):       # on a quick machine some are through before they are killed
        process = command(hanji, "import", out / "e")
        time.sleep(rng.uniform(0.01, 0.2 / (1 + attempt)))
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=30)
        killed += process.returncode == -signal.SIGKILL
        if killed == 4:
            break
    assert killed
    hanji.command("import", out / "e")
    assert dict(hanji.rows("SELECT key, CAST(body AS BLOB) FROM doc")) == many
    hanji.command("check")


def test_a_server_that_restarts_meanwhile(make_hanji, out):
    """The import fails, says so, and goes on when it is run again."""
    hanji = make_hanji()
    (out / "e").write_text("".join(GOOD % i for i in range(20000)))
    process = command(hanji, "import", out / "e")
    harness.wait_for("some documents", lambda: hanji.status()["documents"] > 100)
    hanji.stop()
    process.communicate(timeout=60)
    hanji.start()
    hanji.command("import", out / "e")
    assert hanji.status()["documents"] == 20000


@pytest.mark.parametrize("args", [[], ["a", "b"], ["--nonsense", "a"], [""], ["--if-absent"]], ids=" ".join)
def test_wrong_usage_of_import(make_hanji, args):
    done = make_hanji(start=False).command("import", *args, ok=False)
    assert done.returncode == 2 and "usage" in done.stderr and done.stdout == ""


def test_a_file_that_is_not_there(make_hanji, out):
    done = make_hanji(start=False).command("import", out / "nothing", ok=False)
    assert done.returncode == 1 and "nothing" in done.stderr


def test_a_document_that_the_server_does_not_take(make_hanji):
    """Its line is named, and what to do."""
    hanji = make_hanji(max_body="100k")
    done = hanji.command("import", "-", stdin=GOOD % 1 + '{"key":"large","text":"%s"}\n' % ("x" * 200000), ok=False)
    assert done.returncode == 1 and "-:2: " in done.stderr and "max_body" in done.stderr
    assert hanji.rows("SELECT key FROM doc") == [("good1",)]
    hanji.stop()
    hanji.command("import", "-", stdin='{"key":"large","text":"%s"}\n' % ("x" * 200000))
    assert hanji.rows("SELECT size FROM doc WHERE key = 'large'") == [(200000,)]


@pytest.mark.parametrize("running", [True, False], ids=["server up", "server down"])
def test_large_bodies(make_hanji, out, running):
    """By pieces out, one by one in; every byte."""
    settings = {"max_body": "32m"}
    first, second = make_hanji(**settings), make_hanji(start=running, **settings)
    rng = random.Random(9)
    text = ("\u00e9\u2028\U0001f600\"\\\n" * 300000).encode()
    large = {"big/binary": ("x/y", rng.randbytes(5000001)), "big/text": ("text/plain", text), "small": ("x/y", b"1"),
             "big/broken text": ("text/plain", text + b"\xff"), "big/edge": ("text/plain", b"x" * (1 << 20)),
             "big/edge 2": ("text/plain", b"x" * ((1 << 20) + 1))}
    put_all(first, large)
    first.command("export", "-o", out / "e")
    second.command("import", out / "e")
    assert [row[:5] for row in rows(second)] == [row[:5] for row in rows(first)]
    assert "0 documents written, 6 left" in second.command("import", out / "e").stdout
