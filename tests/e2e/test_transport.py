"""The same documents over HTTP/1.1 and HTTP/2, plain and TLS; uploads of every kind; the body limit; compression."""
import gzip
import os
import socket
import subprocess

import pytest
import requests

from test_documents import noise, seq

LIMIT = 300 * 1024          # the shared site's max_body

TRANSPORTS = {
    "h1": ("http", "--http1.1"),
    "h1 tls": ("https", "--http1.1"),
    "h2": ("h2c", "--http2-prior-knowledge"),
    "h2 tls": ("https", "--http2"),
}


@pytest.fixture(params=TRANSPORTS)
def curl(request, site):
    """curl over one of the transports: curl(path, *args) → answer."""
    scheme, flag = TRANSPORTS[request.param]

    def run(path, *args, **more):
        return site.curl(flag, *args, site.url(scheme) + path, **more)
    run.version = 2 if "2" in flag else 1
    return run


def file_of(tmp_path, body):
    path = tmp_path / "body"
    path.write_bytes(body)
    return "@%s" % path


@pytest.mark.parametrize("size", [0, 1, pytest.param(1000, marks=pytest.mark.smoke), 65536, 200 * 1024])
def test_there_and_back(curl, box, tmp_path, size):
    body = noise(size, os.urandom(8))
    put = curl(box + "k", "-X", "PUT", "--data-binary", file_of(tmp_path, body), "-H", "Content-Type: image/png")
    assert put.status == 201
    get = curl(box + "k")
    assert (get.status, get.body, get.header("content-type")) == (200, body, "image/png")
    assert get.header("content-length") == str(size) and seq(get) == seq(put)


def test_conditions_and_delete(curl, box):
    tag = curl(box + "k", "-X", "PUT", "--data-binary", "x").header("etag")
    assert curl(box + "k", "-H", "If-None-Match: " + tag).status == 304
    assert curl(box + "k", "-X", "PUT", "--data-binary", "y", "-H", 'If-Match: "1"').status == 412
    head = curl(box + "k", "-I")
    assert head.status == 200 and head.body == b"" and head.header("content-length") == "1"
    assert curl(box + "k", "-X", "DELETE", "-H", "If-Match: " + tag).status == 204
    assert curl(box + "k").status == 404


def test_upload_without_a_length(curl, box):
    """Chunked over HTTP/1.1, no Content-Length over HTTP/2."""
    for size in (0, 1, 70000, 250 * 1024):
        body = noise(size)
        put = curl(box + "k", "-T", "-", stdin=body)
        assert put.status in (201, 204)
        assert curl(box + "k").body == body


def test_expect_continue(curl, box, tmp_path):
    body = noise(100000)
    put = curl(box + "k", "-X", "PUT", "--data-binary", file_of(tmp_path, body), "-H", "Expect: 100-continue")
    assert put.status == 201
    assert curl(box + "k").body == body


def test_the_limit_exactly_and_one_more(curl, box, tmp_path):
    body = noise(LIMIT + 1)
    fits = curl(box + "k", "-X", "PUT", "--data-binary", file_of(tmp_path, body[:-1]))
    assert fits.status == 201
    over = curl(box + "l", "-X", "PUT", "--data-binary", file_of(tmp_path, body))
    assert over.status == 413
    assert str(LIMIT) in over.json()["detail"]
    assert over.header("content-type") == "application/problem+json"
    assert curl(box + "k").body == body[:-1]
    assert curl(box + "l").status == 404


def test_the_limit_without_a_length(curl, box):
    assert curl(box + "k", "-T", "-", stdin=noise(LIMIT)).status == 201
    assert curl(box + "l", "-T", "-", stdin=noise(LIMIT + 1)).status == 413
    assert curl(box + "l").status == 404


def test_too_big_with_expect(curl, box, tmp_path):
    over = curl(box + "k", "-X", "PUT", "--data-binary", file_of(tmp_path, noise(LIMIT + 5000)), "-H",
                "Expect: 100-continue")
    assert over.status == 413


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_much_too_big_meets_nginx(site, box, tmp_path, scheme):
    """Its own answer looks like ours.  (Over HTTP/2 it may reset the stream before a client has read the answer.)"""
    over = site.curl("--http1.1", "-X", "PUT", "--data-binary", file_of(tmp_path, bytes(3 << 20)),
                     site.url(scheme) + box + "k")
    assert over.status == 413
    assert over.header("content-type") == "application/problem+json" and over.json()["status"] == 413


def test_two_versions_of_a_connection_see_the_same(site, box):
    put = site.put(box + "k", b"one", tls=True)
    assert site.get(box + "k").header("ETag") == put.header("ETag")


def test_chunked_by_hand(site, box):
    """Chunks of odd sizes, extensions and trailers; nothing of them reaches the body."""
    head = ("PUT %sk HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n"
            "Authorization: Bearer %s\r\n\r\n" % (box, site.token)).encode()
    good = b"1;ext=1\r\na\r\n0003\r\nbcd\r\nA\r\n0123456789\r\n0\r\n\r\n"
    assert site.bytes_over_tcp(head + good).status == 201
    assert site.get(box + "k").body == b"abcd0123456789"


BROKEN = {
    "no digits": b"x\r\nabc\r\n0\r\n\r\n", "negative": b"-1\r\na\r\n0\r\n\r\n",
    "huge": b"ffffffffffffffffff\r\na\r\n0\r\n\r\n", "wrong length": b"2\r\nabc\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_chunks_store_nothing(site, box, name):
    head = ("PUT %sk HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n"
            "Authorization: Bearer %s\r\n\r\n" % (box, site.token)).encode()
    assert site.bytes_over_tcp(head + BROKEN[name]).status in (400, 413)
    assert site.get(box + "k").status == 404


SMUGGLED = {
    "both": "Content-Length: 5\r\nTransfer-Encoding: chunked", "two lengths": "Content-Length: 5\r\nContent-Length: 6",
    "plus": "Content-Length: +5", "hex": "Content-Length: 0x5", "two codings": "Transfer-Encoding: chunked, gzip",
    "blank before the colon": "Transfer-Encoding : chunked", "NUL": "X: a\0b",
    "unknown coding": "Transfer-Encoding: cow",
}


@pytest.mark.parametrize("name", SMUGGLED)
def test_contradictory_framing_stores_nothing(site, box, name):
    data = ("PUT %sk HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n%s\r\n\r\n0\r\n\r\n"
            "GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
            % (box, site.token, SMUGGLED[name])).encode()
    assert site.bytes_over_tcp(data).status in (400, 501)
    assert site.get(box + "k").status == 404


def test_upload_cut_by_the_client(site, box):
    for cut in (1, 1000, 99999):
        with socket.create_connection(("127.0.0.1", site.nginx.port)) as sock:
            sock.sendall(("PUT %sk HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\nAuthorization: Bearer %s\r\n\r\n"
                          % (box, site.token)).encode() + b"x" * cut)
    assert site.get(box + "k").status == 404


@pytest.mark.smoke
def test_a_tag_that_nginx_weakened_still_matches(site, box):
    body = b"compressible " * 500
    put = site.put(box + "k", body, {"Content-Type": "text/plain"})
    got = site.get(box + "k", {"Accept-Encoding": "gzip"})
    assert got.header("Content-Encoding") == "gzip" and gzip.decompress(got.body) == body
    weak = got.header("ETag")
    assert weak == "W/" + put.header("ETag")
    assert site.get(box + "k", {"Accept-Encoding": "gzip", "If-None-Match": weak}).status == 304
    assert site.put(box + "k", b"two", {"If-Match": weak}).status == 204
    assert site.put(box + "k", b"three", {"If-Match": weak}).status == 412


def test_requests_library(site, box):
    """A common client: session, JSON, conditional requests, TLS."""
    with requests.Session() as session:
        session.trust_env = False
        session.headers["Authorization"] = "Bearer " + site.token
        session.verify = str(site.nginx.certificate[0])
        for scheme in ("http", "https"):
            url = site.url(scheme) + box + scheme
            put = session.put(url, json={"ä": [1, 2.5, None]})
            assert put.status_code == 201
            got = session.get(url)
            assert got.json() == {"ä": [1, 2.5, None]} and got.headers["Content-Type"] == "application/json"
            assert session.get(url, headers={"If-None-Match": got.headers["ETag"]}).status_code == 304
            assert session.put(url, data=iter([b"a", b"b"]),
                               headers={"If-Match": got.headers["ETag"]}).status_code == 204
            assert session.get(url).content == b"ab"
            assert session.delete(url).status_code == 204
            assert session.get(url).json()["status"] == 404


def test_a_hundred_streams_on_one_connection(site, box, tmp_path):
    """HTTP/2: many requests at once over one connection."""
    urls = []
    for i in range(100):
        site.put(box + "k%d" % i, b"body %d\n" % i)
        urls.append("url = %s%sk%d" % (site.url("https"), box, i))
    config = tmp_path / "curl"
    config.write_text("\n".join(urls) + "\nparallel\nparallel-max = 100\nno-progress-meter\nhttp2\n")
    done = subprocess.run(["curl", "-sS", "--cacert", str(site.nginx.certificate[0]), "-H",
                           "Authorization: Bearer " + site.token, "-K", str(config)], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, timeout=30)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split(b"\n")) == sorted([b"body %d" % i for i in range(100)] + [b""])
