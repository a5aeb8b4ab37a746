"""Behind lighttpd in the place of nginx, with the repository's configuration: the same documents, by X-Sendfile."""
import concurrent.futures
import hashlib
import os
import re
import shutil
import signal
import socket
import subprocess

import pytest

import harness
import http1
from harness import wait_for

LARGE = (1 << 20) + 17
GUARDED = "/docs/guarded/secret"


def noise(size, seed=b"l"):
    return hashlib.shake_128(seed).digest(size)


class Lighttpd:
    """A lighttpd of our own in front of one hanji, built from nginx-conf/lighttpd-hanji.conf."""

    def __init__(self, base, hanji, mount=""):
        base.mkdir(mode=0o755)
        self.hanji, self.mount, self.port = hanji, mount, harness.free_port()
        self.errors = base / "error.log"
        text = (harness.REPOSITORY / "nginx-conf" / "lighttpd-hanji.conf").read_text()
        for old, new in (("/run/hanji/hanji.sock", hanji.socket), ("/var/cache/hanji/blobs/", "%s.blobs/" % hanji.database),
                         ("/srv/hanji/apps/", "%s/" % hanji.settings["apps"])):
            assert text.count(old) == 1
            text = text.replace(old, str(new))
        if mount:
            text, count = re.subn(r'^(\$HTTP\["url"\] =~) ".*docs.*"', r'\1 "^%s/"' % mount, text, flags=re.M)
            text = text.replace('( "/" => ((', '( "%s" => ((' % mount)
            assert count == 1 and mount + '" => ((' in text
        user, group = harness.nginx_user()
        (base / "lighttpd.conf").write_text('\n'.join([
            'server.document-root = "/var/empty"', 'server.bind = "127.0.0.1"', "server.port = %d" % self.port,
            'server.errorlog = "%s"' % self.errors, 'server.upload-dirs = ( "%s" )' % base,
            *(['server.username = "%s"' % user, 'server.groupname = "%s"' % group] if os.geteuid() == 0 else []),
            'server.modules = ( "mod_access" )',
            # A rule of somebody's own on a part of the documents.
            '$HTTP["url"] =~ "^%s/docs/guarded/" { url.access-deny = ( "" ) }' % mount, text]))
        self.errors.touch()
        for path in (base, self.errors):
            shutil.chown(path, user if os.geteuid() == 0 else None, group)
        self.command = ["lighttpd", "-f", str(base / "lighttpd.conf")]
        self.process = None

    def start(self):
        path = os.environ.get("PATH", "") + ":/usr/sbin"
        self.command[0] = shutil.which("lighttpd", path=path)
        check = subprocess.run([*self.command, "-tt"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=20)
        assert check.returncode == 0 and "WARN" not in check.stdout, check.stdout
        self.process = subprocess.Popen([*self.command, "-D"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, start_new_session=True)
        wait_for("lighttpd", self.listening)

    def listening(self):
        assert self.process.poll() is None, self.errors.read_text()
        with socket.socket() as sock:
            return sock.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(10)
        said = self.errors.read_text()
        assert code == 0, said
        assert not re.search(r"warn|error(?!log)|fail|not permitted", said, re.I), said

    def ask(self, method, path, body=None, headers=(), token="", raw=None):
        """One request on a connection of its own; `raw` is the target as it is to be sent."""
        headers = [("Authorization", "Bearer " + (token or self.hanji.token)), *dict(headers).items()]
        # A mount that no path is below: lighttpd adds headers of its own, so the answers are not held against the contract.
        link = http1.Link("127.0.0.1", self.port, mount="/none")
        try:
            return link.request(method, raw or self.mount + path, body, [item for item in headers if token is not None
                                                                        or item[0] != "Authorization"])
        finally:
            link.close()


@pytest.fixture(scope="module", params=["", "/h"], ids=["root", "mounted"])
def lighttpd(base, request):
    name = "lighttpd" + request.param.replace("/", "-")
    hanji = harness.Hanji(base / name / "hanji", sendfile_header="x-sendfile", public="pub/", max_body="80m")
    hanji.start()
    try:
        hanji.token = hanji.new_token("full", read=["/"], write=["/"])
        server = Lighttpd(base / name / "lighttpd", hanji, request.param)
        server.start()
        yield server
        server.stop()
    finally:
        hanji.stop()


@pytest.fixture(scope="module")
def large(lighttpd):
    """A document that lighttpd sends from a file: (path, body, its answer)."""
    path, body = "/docs/large", noise(LARGE)
    assert lighttpd.ask("PUT", path, body, {"Content-Type": "text/x-noise"}).status == 201
    for _ in range(2):
        got = lighttpd.ask("GET", path)
        assert (got.status, got.body == body) == (200, True)
    return path, body, got


def test_a_document_is_stored_listed_and_removed(lighttpd):
    put = lighttpd.ask("PUT", "/docs/n/a b", b"paper", {"Content-Type": "text/plain"}, raw=lighttpd.mount + "/docs/n/a%20b")
    assert put.status == 201 and put.header("Location").endswith(lighttpd.mount + "/docs/n/a%20b")
    got = lighttpd.ask("GET", "/docs/n/a%20b")
    assert (got.status, got.body, got.header("Content-Type")) == (200, b"paper", "text/plain")
    assert [item["key"] for item in lighttpd.ask("GET", "/docs/n/").json()["items"]] == ["n/a b"]
    assert lighttpd.ask("DELETE", "/docs/n/a%20b").status == 204
    gone = lighttpd.ask("GET", "/docs/n/a%20b")
    assert gone.status == 404 and gone.header("Content-Type") == "application/problem+json"


def test_the_rest_is_there(lighttpd):
    assert lighttpd.ask("GET", "/health", token=None).json() == {"status": "ok"}
    assert lighttpd.ask("GET", "/status").status == 200
    assert lighttpd.ask("GET", "/status", token=None).status == 401
    assert lighttpd.ask("GET", "/docs").status == 404
    assert lighttpd.ask("POST", "/batch", b'[{"op":"put","key":"b","body":1}]',
                        {"Content-Type": "application/json"}).status in (200, 400, 422)


def test_a_large_document_comes_from_its_file_with_hanjis_headers(lighttpd, large):
    path, body, got = large
    straight = fast(lighttpd, path)
    assert straight.header("X-Sendfile").startswith("%s.blobs/" % lighttpd.hanji.database)
    assert got.header("X-Sendfile") is None, "nobody is told where files are"
    assert int(got.header("Content-Length")) == len(body)
    for name in ("ETag", "Last-Modified", "Content-Type", "Cache-Control", "Content-Security-Policy",
                 "X-Content-Type-Options"):
        assert got.all(name) == [straight.header(name)], name


def fast(lighttpd, path, **extra):
    """hanji's own answer to the request as lighttpd sends it."""
    variables = {"DOCUMENT_URI": None, "REQUEST_URI": lighttpd.mount + path, "SCRIPT_NAME": lighttpd.mount, "PATH_INFO": path}
    return lighttpd.hanji.ask("GET", path, extra={**variables, **extra}, token=lighttpd.hanji.token)


def test_head_of_a_large_document(lighttpd, large):
    path, body, got = large
    head = lighttpd.ask("HEAD", path)
    assert (head.status, head.body, head.header("ETag")) == (200, b"", got.header("ETag"))
    assert head.header("Content-Length") in (None, str(len(body)))


@pytest.mark.parametrize("header, status, part", [
    ("bytes=0-0", 206, slice(0, 1)), ("bytes=1000-1999", 206, slice(1000, 2000)), ("bytes=-17", 206, slice(-17, None)),
    ("bytes=1048000-", 206, slice(1048000, None)), ("bytes=%d-" % (LARGE - 1), 206, slice(-1, None)),
    ("bytes=%d-" % LARGE, 416, None), ("lines=0-1", 200, slice(None)),
], ids=str)
def test_ranges_of_a_large_document(lighttpd, large, header, status, part):
    path, body, _ = large
    got = lighttpd.ask("GET", path, headers={"Range": header})
    assert got.status == status
    if part is not None:
        assert got.body == body[part]


def test_several_ranges_of_a_large_document(lighttpd, large):
    path, body, _ = large
    got = lighttpd.ask("GET", path, headers={"Range": "bytes=0-9, 500000-500019"})
    assert got.status == 206
    assert body[0:10] in got.body and body[500000:500020] in got.body and len(got.body) < 1000


@pytest.mark.parametrize("if_range, status", [("same", 206), ('"0"', 200), ("date", 206), ("Mon, 01 Jan 2001 00:00:00 GMT", 200)])
def test_if_range(lighttpd, large, if_range, status):
    path, body, got = large
    value = {"same": got.header("ETag"), "date": got.header("Last-Modified")}.get(if_range, if_range)
    part = lighttpd.ask("GET", path, headers={"Range": "bytes=0-9", "If-Range": value})
    assert part.status in (status, 200) and part.body == (body[:10] if part.status == 206 else body)
    assert part.status == status or if_range == "date", "a date that is too young is no strong validator"


@pytest.mark.parametrize("name, value, status", [
    ("If-None-Match", "ETAG", 304), ("If-None-Match", "*", 304), ("If-None-Match", '"0"', 200), ("If-Match", "ETAG", 200),
    ("If-Match", '"0"', 412), ("If-Match", "*", 200), ("If-Modified-Since", "DATE", 304),
    ("If-Modified-Since", "Mon, 01 Jan 2001 00:00:00 GMT", 200), ("If-Unmodified-Since", "Mon, 01 Jan 2001 00:00:00 GMT", 412),
    ("If-Unmodified-Since", "DATE", 200),
])
def test_conditions_are_judged_by_the_document(lighttpd, large, name, value, status):
    path, body, got = large
    value = {"ETAG": got.header("ETag"), "DATE": got.header("Last-Modified")}.get(value, value)
    answer = lighttpd.ask("GET", path, headers={name: value})
    assert answer.status == status and answer.body == (body if status == 200 else answer.body)
    assert status == 412 or answer.all("ETag") == [got.header("ETag")]


def test_a_new_state_is_seen_at_once(lighttpd):
    for n in range(4):
        body = noise(LARGE, b"%d" % n)
        assert lighttpd.ask("PUT", "/docs/changing", body).status in (201, 204)
        for _ in range(2):
            assert lighttpd.ask("GET", "/docs/changing").body == body


def test_a_chunked_body(lighttpd):
    body = noise(700000)
    assert lighttpd.ask("PUT", "/docs/chunked", (body[i:i + 7001] for i in range(0, len(body), 7001))).status == 201
    assert lighttpd.ask("GET", "/docs/chunked").body == body


def test_the_largest_body_and_one_byte_more(lighttpd):
    most = bytes(64 << 20)
    assert lighttpd.ask("PUT", "/docs/most", most).status == 201
    assert len(lighttpd.ask("GET", "/docs/most").body) == len(most)
    assert lighttpd.ask("DELETE", "/docs/most").status == 204
    with socket.create_connection(("127.0.0.1", lighttpd.port), 10) as sock:
        sock.sendall(b"PUT %s/docs/more HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
                     % (lighttpd.mount.encode(), len(most) + 1))
        assert b" 413 " in sock.recv(65536).split(b"\r\n")[0]


def test_only_files_of_the_folder_can_be_sent(lighttpd, large):
    """What a client writes never names a file: a header of that name is only a header."""
    got = lighttpd.ask("GET", "/docs/none", headers={"X-Sendfile": "/etc/passwd", "X-Accel-Redirect": "/etc/passwd"})
    assert got.status == 404 and b"root:" not in got.body


def test_events_come_as_they_happen(lighttpd):
    with socket.create_connection(("127.0.0.1", lighttpd.port), 10) as sock:
        sock.sendall(b"GET %s/changes HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nAuthorization: Bearer %s\r\n\r\n"
                     % (lighttpd.mount.encode(), lighttpd.hanji.token.encode()))
        got = b""
        while b"\r\n\r\n" not in got:
            got += sock.recv(65536)
        assert b" 200 " in got.split(b"\r\n")[0]
        lighttpd.ask("PUT", "/docs/event", b"now")
        while b'"event"' not in got:
            more = sock.recv(65536)
            assert more
            got += more


SPELLINGS = ["/docs/guarded/secret", "/docs//guarded/secret", "/docs/./guarded/secret", "/docs/x/../guarded/secret",
             "/docs/%67uarded/secret", "/docs/guarded%2fsecret", "/docs/guarded%2Fsecret", "/docs%2fguarded%2fsecret",
             "/docs/x/%2e%2e/guarded/secret", "/docs/x%2f..%2fguarded/secret", "/docs/x/%2e./guarded/secret",
             "/docs/guarded/./secret", "/docs/guarded//secret", "/docs/x/..//guarded/secret", "//docs/guarded/secret",
             "/docs/guarded\\secret", "/docs/guarded%5csecret", "/docs/guarded/secret%00", "/docs/guarded/secret?x",
             "/docs/guarded/secret#x", "/docs/guarded/x/../secret", "/docs/guarded/secret/", "/docs/guarded/secret;x",
             "/docs/%2567uarded/secret", "/../docs/guarded/secret", "/docs/..;/docs/guarded/secret", "/DOCS/guarded/secret",
             "/docs/x%5c..%5cguarded/secret", "/docs/x/%252e%252e/guarded/secret", "/docs/%c0%afguarded/secret",
             "http://x/docs/guarded/secret", "/docs/\t/../guarded/secret", "/docs/?/../guarded/secret",
             "/docs/%3f/../guarded/secret", "/docs/#/../guarded/secret", "/docs/%23/../guarded/secret"]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_no_spelling_passes_a_rule_of_lighttpds(lighttpd, spelling):
    """A rule that lighttpd has for a part of the documents holds for every spelling that hanji takes for that part."""
    fast_put = lighttpd.hanji.ask("PUT", GUARDED, body=b"the secret", token=lighttpd.hanji.token)
    assert fast_put.status in (201, 204)
    target = spelling.replace("/docs", lighttpd.mount + "/docs", 1) if "//x/" not in spelling else \
        spelling.replace("//x", "//x" + lighttpd.mount)
    got = http1.exchange("127.0.0.1", lighttpd.port,
                         b"GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer %s\r\n\r\n"
                         % (target.encode(), lighttpd.hanji.token.encode()))
    assert b"the secret" not in got, got[:300]
    assert got.startswith(b"HTTP/1.1 4") or re.search("[?#]", spelling), got[:300]


def test_many_at_once(lighttpd, large):
    """lighttpd opens a connection for each request and keeps none."""
    path, body, _ = large
    before = harness.descriptors(lighttpd.hanji.worker())
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        got = list(pool.map(lambda n: lighttpd.ask("GET", path if n % 4 == 0 else "/health"), range(200)))
    assert all(answer.status == 200 for answer in got)
    assert all(answer.body == body for answer in got[::4])
    wait_for("the connections to go", lambda: harness.descriptors(lighttpd.hanji.worker()) <= before)
    lighttpd.hanji.judge()


def test_files_of_an_app(lighttpd):
    css = "body { color: #123; }\n"
    lighttpd.hanji.app("files", {"index.get.sql": "SELECT 1 AS one;\n", "static/a b.css": css, "static/.secret": "no"})
    got = lighttpd.ask("GET", "/apps/files/static/a%20b.css", token=None)
    assert (got.status, got.body, got.header("Content-Type")) == (200, css.encode(), "text/css; charset=utf-8")
    assert got.header("X-Sendfile") is None and got.header("Cache-Control") == "no-cache"
    assert got.header("X-Content-Type-Options") == "nosniff"
    again = lighttpd.ask("GET", "/apps/files/static/a%20b.css", headers={"If-None-Match": got.header("ETag")}, token=None)
    assert again.status == 304
    for path in ("static/.secret", "static/none", "static/../app.ini", "app.ini"):
        assert lighttpd.ask("GET", "/apps/files/" + path, token=None).status == 404, path
    assert lighttpd.ask("GET", "/apps/files/", token=None).json() == {"rows": [{"one": 1}]}
