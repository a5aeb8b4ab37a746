"""What is sent on a sealed line is nowhere on the disk in plain text: not now, and not for a moment before.

Everything that hanji, its courier and nginx write into files is recorded (tee.c), also what they overwrite or remove afterwards;
that record, and every file that is left, is searched for what was sent, as it is and as base64, hex and JSON have it.
"""
import base64
import json
import os
import pathlib
import secrets
import subprocess

import pytest

import harness
from harness import wait_for

# Around each size class of an envelope, what nginx and hanji keep in memory by default, and the most that is taken.
SIZES = [30, 190, 250, 500, 1000, 2000, 4050, 8100, 20_000, 130_000, 131_080, 262_144]
APP = {"tell.post.sql": "SELECT send('sealed', :what) AS id;", "schema/001-none.sql": "CREATE TABLE shop_none (x);"}


class Secret:
    """A text that is nowhere else, and the forms in which it may be met."""

    def __init__(self):
        self.word = "secret-" + secrets.token_hex(12)
        raw = self.word.encode()
        self.forms = [raw, raw.hex().encode(), raw.hex().upper().encode(), raw[::-1], self.word.encode("utf-16-le")]
        for shift in range(3):  # wherever it begins in what is encoded, without the ends, which hang on what is beside it
            self.forms.append(base64.b64encode(bytes(shift) + raw)[4:-4])
            self.forms.append(base64.urlsafe_b64encode(bytes(shift) + raw)[4:-4])

    def body(self, size):
        return (self.word + " ") * (size // (len(self.word) + 1)) + "x" * (size % (len(self.word) + 1))

    def is_in(self, data):
        return [form for form in self.forms if form in data]


@pytest.fixture
def tee(base, tmp_path):
    library = base / "tee.so"
    if not library.exists():
        source = pathlib.Path(__file__).with_name("tee.c")
        subprocess.run([os.environ.get("CC") or "cc", "-O1", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    tmp_path.chmod(0o777)
    return library


def tee_env(library, record):
    record.touch()
    record.chmod(0o666)
    asan = os.environ.get("ASAN_OPTIONS", "")
    return {"LD_PRELOAD": str(library), "TEE_FILE": str(record),
            "ASAN_OPTIONS": asan + (":" if asan else "") + "verify_asan_link_order=0"}


@pytest.fixture
def watched(base, certificate, tee, monkeypatch):
    """A site of which every write into a file is recorded."""
    site = harness.Site(base / ("secret%s" % secrets.token_hex(3)), certificate)
    top = site.nginx.base.parent
    site.records = top / "hanji.tee", top / "nginx.tee"
    site.hanji.env = tee_env(tee, site.records[0])
    for name, value in tee_env(tee, site.records[1]).items():
        monkeypatch.setenv(name, value)
    start = site.nginx.start

    def only_nginx():
        start()
        for name in ("LD_PRELOAD", "TEE_FILE"):
            monkeypatch.delenv(name)
    site.nginx.start = only_nginx
    site.hanji.command("key", "new")
    site.start()
    yield site
    site.stop()


def everywhere(site):
    """(name, bytes) of every file below the site's folder, and of what was ever written."""
    top = site.nginx.base.parent
    for path in sorted(top.rglob("*")):
        if path.is_file():
            yield str(path.relative_to(top)), path.read_bytes()


def found(site, secret):
    return sorted({name for name, data in everywhere(site) if secret.is_in(data)})


def sealed_line(site):
    card = site.hanji.command("key", "export").stdout
    site.hanji.command("line", "add", "sealed", "http://127.0.0.1:%d/" % harness.free_port(), "--seal-to", "-", "--allow-private",
                       stdin=card)


TEXT = {"Content-Type": "text/plain; charset=utf-8"}
JSON = {"Content-Type": "application/json"}


def test_nothing_of_a_sealed_send_reaches_the_disk(watched):
    secret = Secret()
    sealed_line(watched)
    watched.app("shop", APP, "read = public\nwrite = public\nsends = sealed\n")
    for size in SIZES:
        body = secret.body(size)
        assert watched.http("POST", "/sends/sealed", body.encode(), TEXT).status == 202
    bodies = [secret.body(size) for size in SIZES[:-1]]
    batch = [{"op": "send", "line": "sealed", "text": body} for body in bodies]
    batch += [{"op": "send", "line": "sealed", "base64": base64.b64encode(body.encode()).decode()} for body in bodies]
    batch += [{"op": "send", "line": "sealed", "body": {"what": body}} for body in bodies]
    answer = watched.http("POST", "/batch", json.dumps(batch).encode(), {**JSON, "Idempotency-Key": '"b"'})
    assert answer.status == 200, answer.body
    for size in (30, 1000, 60_000):
        answer = watched.http("POST", "/apps/shop/tell", json.dumps({"what": secret.body(size)}).encode(), JSON)
        assert answer.status == 200, answer.body
    count = len(SIZES) + len(batch) + 3
    assert watched.hanji.rows("SELECT count(*), min(sealed) FROM outbox") == [(count, 1)]
    watched.hanji.sqlite(readonly=False).execute("PRAGMA wal_checkpoint(PASSIVE)")
    wait_for("a courier to have tried", lambda: watched.hanji.rows("SELECT 1 FROM attempt LIMIT 1"))
    assert found(watched, secret) == []


def test_refused_ones_leave_nothing_either(watched):
    secret = Secret()
    sealed_line(watched)
    body = secret.body(300_000)
    assert watched.http("POST", "/sends/sealed", body.encode(), TEXT).status == 413
    assert watched.http("POST", "/sends/none", secret.body(200_000).encode(), TEXT).status == 404
    assert watched.http("POST", "/sends/sealed", secret.body(200_000).encode(), TEXT, token=None).status == 401
    batch = [{"op": "send", "line": "sealed", "text": secret.body(200_000)}] * 3 + [{"op": "send", "line": "none", "text": "x"}]
    assert watched.http("POST", "/batch", json.dumps(batch).encode(), JSON).status in (404, 409, 422)
    assert found(watched, secret) == []


def test_what_is_not_sealed_is_found(watched):
    """So the search sees what there is: documents, sends on lines without keys, bodies that nginx or hanji spool."""
    plain, large = Secret(), Secret()
    watched.hanji.command("line", "add", "open", "http://127.0.0.1:%d/" % harness.free_port(), "--allow-private")
    assert watched.http("POST", "/sends/open", plain.body(1000).encode(), TEXT).status == 202
    places = found(watched, plain)
    assert "hanji.tee" in places and "nginx.tee" not in places
    assert watched.http("PUT", "/docs/large", large.body(300_000).encode(), TEXT).status == 201
    assert {"hanji.tee", "nginx.tee"} <= set(found(watched, large))


@pytest.mark.parametrize("how", ["as it is", "hex", "base64", "base64, shifted", "JSON"])
def test_the_search_knows_the_forms_of_a_text(how):
    secret = Secret()
    data = {"as it is": secret.word, "hex": secret.word.encode().hex(), "base64": base64.b64encode(secret.word.encode()).decode(),
            "base64, shifted": base64.b64encode(b"x" + secret.word.encode() + b"yz").decode(),
            "JSON": json.dumps({"a": [secret.word]})}[how]
    assert secret.is_in(b"before " + data.encode() + b" after")
    assert not Secret().is_in(data.encode())
