"""Ranges, and documents that nginx sends from a file: the same bytes, headers and answers whatever way they take."""
import email.parser
import email.policy
import email.utils
import hashlib
import os
import re
import threading
import time

import pytest

import harness
from harness import wait_for

SMALL, MIDDLE, LARGE = 1000, 100 * 1024, (1 << 20) + 17
SIZES = [SMALL, MIDDLE, LARGE]


def noise(size, seed=b"n"):
    return hashlib.shake_128(seed).digest(size)


@pytest.fixture(scope="module")
def big(base, certificate):
    """A site that takes large bodies."""
    site = harness.Site(base / "big", certificate, public="pub/", sites="www/", max_body="20m")
    site.start()
    yield site
    site.stop()


@pytest.fixture(scope="module")
def documents(big):
    """{size: (path, body, ETag)}; read before, so that each has its file."""
    made = {}
    for size in SIZES:
        path, body = "/docs/r/%d" % size, noise(size)
        assert big.put(path, body, headers={"Content-Type": "text/x-noise"}).status == 201
        for _ in range(3):
            got = big.get(path)
            assert (got.status, got.body == body) == (200, True)
        made[size] = path, body, got.header("etag")
    return made


def blob_files(site):
    folder = site.hanji.database.with_name("hanji.db.blobs")
    return {path.name: path for path in folder.iterdir() if not path.name.startswith(".")}


def restart(site):
    site.hanji.stop()
    site.hanji.start()


# ---- ranges: [expected slices], None: the whole document, [] unsatisfiable

RANGES = {
    "first": ("bytes=0-0", [(0, 1)]), "some": ("bytes=10-19", [(10, 20)]), "to the end": ("bytes=900-", [(900, None)]),
    "suffix": ("bytes=-5", [(-5, None)]), "all": ("bytes=0-", [(0, None)]), "more than all": ("bytes=0-99999999", [(0, None)]),
    "huge": ("bytes=0-99999999999999999999999999", [(0, None)]), "suffix beyond": ("bytes=-99999999", [(0, None)]),
    "capitals": ("BYTES=1-2", [(1, 3)]), "two": ("bytes=0-1,10-12", [(0, 2), (10, 13)]),
    "two, backwards": ("bytes=10-12, 0-1", [(10, 13), (0, 2)]), "one inside, one not": ("bytes=0-1,99999999-", [(0, 2)]),
    "beyond": ("bytes=99999999-", []), "beyond too": ("bytes=99999999-999999990,88888888-", []), "no suffix": ("bytes=-0", []),
    "backwards": ("bytes=5-4", None), "other unit": ("lines=0-1", None), "no unit": ("0-1", None), "nothing": ("bytes=", None),
    "words": ("bytes=a-b", None), "minus": ("bytes=-", None), "minus minus": ("bytes=--5", None), "blank": ("bytes= 3 - 4", None),
    "more than there is": ("bytes=0-,0-", None),
}


def parts(answer):
    """[(content-range, type, bytes)] of a multipart/byteranges body."""
    head = b"Content-Type: " + answer.header("content-type").encode() + b"\r\n\r\n"
    message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + answer.body)
    found = []
    boundary = re.search(r"boundary=(\S+)", answer.header("content-type")).group(1).encode()
    for raw in answer.body.split(b"--" + boundary)[1:-1]:
        headers, _, body = raw[2:].partition(b"\r\n\r\n")
        found.append((re.search(rb"(?i)content-range: ([^\r]*)", headers).group(1).decode(),
                      re.search(rb"(?i)content-type: ([^\r]*)", headers).group(1).decode(), body[:-2]))
    assert len(list(message.iter_parts())) == len(found)
    return found


def span(size, start, stop):
    first, end, _ = slice(start, stop).indices(size)
    return "bytes %d-%d/%d" % (first, end - 1, size)


@pytest.mark.parametrize("through", ["whoever may", "hanji"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", RANGES)
def test_ranges(big, documents, name, size, through):
    """The same from nginx's file and, with If-Match, from hanji."""
    header, wanted = RANGES[name]
    path, body, etag = documents[size]
    headers = {"Range": header}
    if through == "hanji":
        headers["If-Match"] = etag
    got = big.get(path, headers=headers)
    if wanted is None:
        assert (got.status, got.body == body) == (200, True)
    elif not wanted:
        assert (got.status, got.header("content-range")) == (416, "bytes */%d" % size)
        assert got.header("content-type") == "application/problem+json"
        return
    elif len(wanted) == 1:
        assert (got.status, got.header("content-range")) == (206, span(size, *wanted[0]))
        assert got.body == body[slice(*wanted[0])]
        assert got.header("content-type") == "text/x-noise"
    else:
        assert got.status == 206 and got.header("content-type").startswith("multipart/byteranges")
        assert parts(got) == [(span(size, *one), "text/x-noise", body[slice(*one)]) for one in wanted]
    assert got.header("etag") == etag
    assert got.header("x-content-type-options") == "nosniff"


@pytest.mark.parametrize("size", SIZES)
def test_if_range(big, documents, size):
    path, body, etag = documents[size]
    def status(validator, **more):
        return big.get(path, headers={"Range": "bytes=0-9", "If-Range": validator, **more}).status
    assert status(etag) == 206
    assert status('"%d"' % (int(etag.strip('"')) + 1000)) == 200
    assert status("W/" + etag) == 200           # compressed parts would not fit
    assert status("nonsense") == 200
    assert status(etag, **{"If-Match": etag}) == 206
    assert status("W/" + etag, **{"If-Match": etag}) == 200
    modified = big.get(path).header("last-modified")
    wait_for("another second", lambda: time.time() > email.utils.parsedate_to_datetime(modified).timestamp() + 2.1)     # the server's clock has ticks
    assert status(modified) == 206
    assert status("Mon, 30 Nov 2020 00:00:00 GMT") == 200


@pytest.mark.parametrize("size", SIZES)
def test_a_head_has_no_range(big, documents, size):
    path, body, etag = documents[size]
    got = big.head(path, headers={"Range": "bytes=0-9"})
    assert (got.status, got.header("content-length"), got.body) == (200, str(size), b"")


def test_ranges_of_nothing(big):
    big.put("/docs/r/empty", b"")
    assert big.get("/docs/r/empty", headers={"Range": "bytes=0-"}).status == 416
    got = big.get("/docs/r/empty", headers={"Range": "bytes=-5"})
    assert (got.status, got.body) == (200, b"")


# ---- conditions are the document's, never the file's

@pytest.mark.parametrize("size", SIZES)
def test_conditions(big, documents, size):
    path, body, etag = documents[size]
    modified = big.get(path).header("last-modified")
    def status(**headers):
        return big.get(path, headers={name.replace("_", "-"): value for name, value in headers.items()}).status
    assert status(If_None_Match=etag) == 304
    assert status(If_None_Match="W/" + etag) == 304
    assert status(If_None_Match='"1000000"') == 200
    assert status(If_None_Match='"1000000"', If_Modified_Since=modified) == 200
    assert status(If_Modified_Since=modified) == 304
    assert status(If_Modified_Since="Mon, 30 Nov 2020 00:00:00 GMT") == 200
    assert status(If_Match=etag) == 200
    assert status(If_Match='"1000000"') == 412
    assert status(If_Unmodified_Since=modified) == 200
    assert status(If_Unmodified_Since="Mon, 30 Nov 2020 00:00:00 GMT") == 412


@pytest.mark.parametrize("collection,csp,cache", [("r", "sandbox", "private, no-cache"), ("pub", "sandbox", "no-cache"),
                                                  ("www", None, "no-cache")])
@pytest.mark.parametrize("size", SIZES)
def test_headers_survive(big, collection, csp, cache, size):
    path = "/docs/%s/page%d" % (collection, size)
    big.put(path, noise(size), headers={"Content-Type": "text/html; charset=utf-8"})
    for turn in range(3):       # from memory, then from the file
        got = big.get(path)
        assert got.body == noise(size)
        assert got.header("content-type") == "text/html; charset=utf-8"
        assert got.header("cache-control") == cache
        assert got.header("x-content-type-options") == "nosniff"
        policy = got.header("content-security-policy")
        assert policy.startswith(csp) if csp else policy is None
        assert got.header("last-modified") and got.header("etag").startswith('"')
        assert got.header("x-accel-redirect") is None


# ---- the files

def test_a_new_state_has_a_new_file(big):
    for i in range(4):
        body = noise(MIDDLE, b"%d" % i)
        big.put("/docs/r/changing", body)
        assert [big.get("/docs/r/changing").body == body for _ in range(3)] == [True] * 3


def test_same_content_is_one_file(big):
    body = noise(MIDDLE, b"twice")
    for name in ("one", "two"):
        big.put("/docs/r/" + name, body)
        for _ in range(3):
            big.get("/docs/r/" + name)
    name = hashlib.blake2b(body, digest_size=32).hexdigest()
    assert name in blob_files(big)
    assert blob_files(big)[name].stat().st_mode & 0o777 == 0o640


DAMAGE = {
    "gone": lambda path: path.unlink(), "cut": lambda path: os.truncate(path, 1000), "empty": lambda path: os.truncate(path, 0),
    "changed": lambda path: path.write_bytes(b"x" + path.read_bytes()[1:]),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"x"),
    "replaced": lambda path: (path.unlink(), path.write_bytes(b"y" * MIDDLE)),
    "a link": lambda path: (path.unlink(), path.symlink_to("/etc/passwd")),
    "a folder": lambda path: (path.unlink(), path.mkdir(), path.with_name("inside").touch()),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_file_is_made_again(big, name):
    body = noise(MIDDLE, name.encode())
    path = "/docs/r/damaged"
    big.put(path, body)
    for _ in range(3):
        assert big.get(path).body == body
    file = blob_files(big)[hashlib.blake2b(body, digest_size=32).hexdigest()]
    DAMAGE[name](file)
    for _ in range(3):
        got = big.get(path)
        assert (got.status, got.body == body) == (200, True)
    if file.is_dir():
        file.rmdir()


def test_files_outlive_the_server(make_site):
    site = make_site()
    body = noise(LARGE)
    site.put("/docs/k", body)
    assert site.get("/docs/k").body == body
    inode = {path.stat().st_ino for path in blob_files(site).values()}
    restart(site)
    assert site.get("/docs/k").body == body
    assert {path.stat().st_ino for path in blob_files(site).values()} == inode


def test_a_file_damaged_while_the_server_was_down(make_site):
    site = make_site()
    body = noise(LARGE)
    site.put("/docs/k", body)
    assert site.get("/docs/k").body == body
    site.hanji.stop()
    (path,) = blob_files(site).values()
    path.write_bytes(b"x" + path.read_bytes()[1:])
    site.hanji.start()
    assert site.get("/docs/k").body == body
    assert path.read_bytes() == body


def test_the_folder_is_bounded(make_site):
    """What was not used for ten minutes goes, the rest is answered all the same."""
    site = make_site(blobs_max="2m")
    bodies = [noise(700 * 1024, b"%d" % i) for i in range(6)]
    for i, body in enumerate(bodies):
        site.put("/docs/%d" % i, body)
        assert site.get("/docs/%d" % i).body == body
    assert sum(path.stat().st_size for path in blob_files(site).values()) <= 2 << 20
    for path in blob_files(site).values():
        os.utime(path, (time.time() - 700, path.stat().st_mtime))
    restart(site)
    assert site.get("/docs/5").body == bodies[5]
    assert hashlib.blake2b(bodies[5], digest_size=32).hexdigest() in blob_files(site)
    for i, body in enumerate(bodies):
        assert site.get("/docs/%d" % i).body == body


def test_what_never_fits_makes_no_room(make_site):
    site = make_site(blobs_max="2m")
    site.put("/docs/a", noise(700 * 1024))
    for _ in range(2):
        site.get("/docs/a")
    (path,) = blob_files(site).values()
    os.utime(path, (time.time() - 700, path.stat().st_mtime))
    large = noise(3 << 20)
    site.put("/docs/b", large)
    for _ in range(2):
        assert site.get("/docs/b").body == large
    assert list(blob_files(site).values()) == [path]


def test_the_folder_cannot_be_made(make_site):
    site = make_site(blobs="/proc/no/such/folder")
    site.hanji.expected.append("no folder for blobs")
    body = noise(LARGE)
    site.put("/docs/k", body)
    for _ in range(3):
        assert site.get("/docs/k").body == body


@pytest.mark.parametrize("mount", ["", "/h"])
def test_files_that_nginx_cannot_read(make_site, mount):
    """hanji is asked again and sends the document itself: the same answer."""
    site = make_site(mount)
    body = noise(LARGE)
    path = "/docs/a%20b/k"
    site.put(path, body, headers={"Content-Type": "text/x-noise"})
    good = site.get(path)
    site.hanji.database.with_name("hanji.db.blobs").chmod(0o700)
    for _ in range(2):
        got = site.get(path)
        assert (got.status, got.body == body) == (200, True)
        assert {name.lower() for name, _ in got.headers} - {"x-hanji-status"} == {name.lower() for name, _ in good.headers}
        assert (got.header("etag"), got.header("content-type")) == (good.header("etag"), "text/x-noise")
    assert site.get(path, headers={"Range": "bytes=5-9"}).body == body[5:10]
    assert site.get(path, headers={"Range": "bytes=99999999-"}).status == 416
    assert site.get(path, headers={"If-None-Match": good.header("etag")}).status == 304
    assert site.get(path, token=None).status == 401


def test_two_documents_with_one_number(make_site):
    """A person can write any seq into a row; still each document is itself."""
    site = make_site()
    bodies = {"one": noise(LARGE, b"1"), "two": noise(LARGE, b"2")}
    for name, body in bodies.items():
        site.put("/docs/" + name, body)
        assert site.get("/docs/" + name).body == body
    link = site.hanji.sqlite(readonly=False)
    link.execute("UPDATE doc SET seq = 1")
    link.close()
    for _ in range(2):
        assert {name: site.get("/docs/" + name).body == body for name, body in bodies.items()} == {"one": True, "two": True}


def test_outside_nobody_gets_a_file(big, documents):
    name = next(iter(blob_files(big)))
    for path in ("/_hanji/blobs/" + name, "/_hanji/blobs/", "/_hanji/"):
        assert big.get(path).status == 404


# ---- uploads

@pytest.mark.parametrize("form", ["length", "chunked", "http2"])
@pytest.mark.parametrize("kind", ["application/octet-stream", "text/plain", "application/json"])
def test_large_uploads(big, tmp_path, form, kind):
    body = noise(3 << 20)
    if kind != "application/octet-stream":
        body = b'["' + body.hex().encode() + b'"]'
    file = tmp_path / "body"
    file.write_bytes(body)
    path = "/docs/up/%s-%s" % (form, kind[:4])
    args = {"length": [], "chunked": ["-H", "Transfer-Encoding: chunked"], "http2": ["--http2"]}[form]
    url = big.url("https" if form == "http2" else "http") + path
    assert big.curl("-T", file, *args, "-H", "Content-Type: " + kind, url).status in (201, 204)
    got = big.get(path)
    assert (got.status, got.body == body, got.header("content-type")) == (200, True, kind)
    assert big.hanji.rows("SELECT typeof(body), size FROM doc WHERE key = ?", path[6:]) == [("blob", len(body))]


@pytest.mark.parametrize("size,form", [(200 * 1024, "text"), (300 * 1024, "text"), (1 << 20, "text"), ((1 << 20) + 1, "blob")])
def test_text_is_text_up_to_a_mebibyte(big, size, form):
    body = noise(size // 2).hex().encode() + b"x" * (size % 2)
    big.put("/docs/up/text", body, headers={"Content-Type": "text/plain"})
    assert big.hanji.rows("SELECT typeof(body), length(CAST(body AS BLOB)) FROM doc WHERE key = 'up/text'") == [(form, size)]
    assert big.get("/docs/up/text").body == body


@pytest.mark.parametrize("size", [300 * 1024, 3 << 20])
@pytest.mark.parametrize("where", [0, 0.5, 1])
def test_large_json_that_is_none(big, size, where):
    body = bytearray(b'["' + noise(size // 2).hex().encode() + b'"]')
    body[int(where * (len(body) - 1))] = ord("\x01")
    got = big.put("/docs/up/broken", bytes(body), headers={"Content-Type": "application/json"})
    assert got.status == 400
    assert big.get("/docs/up/broken").status == 404


def test_beyond_the_limit(big):
    """The limit is hanji's own, and named."""
    got = big.put("/docs/up/too-large", noise((20 << 20) + 1))
    assert got.status == 413 and str(20 << 20) in got.body.decode()
    assert big.get("/docs/up/too-large").status == 404


def test_conditions_of_large_uploads(big):
    body = noise(LARGE)
    assert big.put("/docs/up/once", body, headers={"If-None-Match": "*"}).status == 201
    assert big.put("/docs/up/once", body + b"x", headers={"If-None-Match": "*"}).status == 412
    assert big.get("/docs/up/once").body == body
    etag = big.get("/docs/up/once").header("etag")
    assert big.put("/docs/up/once", b"y" + body, headers={"If-Match": etag}).status == 204
    assert big.get("/docs/up/once").body == b"y" + body


def test_a_large_upload_where_an_index_reads_the_body(make_site):
    """SQLite then does not write the column by pieces; somebody's index must not stop uploads."""
    site = make_site()
    site.hanji.stop()
    link = site.hanji.sqlite(readonly=False)
    link.execute("CREATE INDEX by_start ON doc (substr(CAST(body AS TEXT), 1, 10)) WHERE key LIKE 'indexed/%'")
    link.close()
    site.hanji.start()
    body = noise(LARGE)
    assert site.put("/docs/k", body).status == 201
    assert site.get("/docs/k").body == body
    assert site.put("/docs/k", body[::-1]).status == 204
    assert site.get("/docs/k").body == body[::-1]


def test_others_go_on_beside_uploads(big):
    """While large bodies arrive and are stored, small reads and writes are answered."""
    big.put("/docs/up/small", b"x")
    stop, slowest, failed = threading.Event(), [0.0, 0.0], []

    def probe(i, method, body=None):
        link = big.link()
        while not stop.is_set():
            start = time.monotonic()
            status = link.request(method, "/docs/up/small", body, big.headers(None, True)).status
            slowest[i] = max(slowest[i], time.monotonic() - start)
            if status not in (200, 204):
                failed.append(status)
    probes = [threading.Thread(target=probe, args=(0, "GET")), threading.Thread(target=probe, args=(1, "PUT", b"y"))]
    for thread in probes:
        thread.start()
    try:
        for i in range(3):
            assert big.put("/docs/up/huge", noise(19 << 20, b"%d" % i)).status in (201, 204)
    finally:
        stop.set()
        for thread in probes:
            thread.join()
    assert not failed
    assert harness.sanitized() or (slowest[0] < 1 and slowest[1] < 2), slowest


def test_memory_does_not_follow_the_size(make_site):
    """New and replaced, sent and read back."""
    site = make_site(max_body="64m")
    worker = site.hanji.worker()
    site.put("/docs/k", b"x")
    before = harness.resident_bytes(worker)
    for i in range(3):
        body = noise(40 << 20, b"%d" % i)
        assert site.put("/docs/k", body).status == 204
        assert site.get("/docs/k").body == body
        etag = site.head("/docs/k").header("etag")
        assert site.get("/docs/k", headers={"If-Match": etag}).body == body
        assert harness.sanitized() or harness.resident_bytes(worker) < before + (6 << 20)
