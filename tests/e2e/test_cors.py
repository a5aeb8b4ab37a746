"""Scripts of other sites: those that `cors` names may read and write, with a token and never with a cookie."""
import hashlib

import pytest

import harness

ORIGIN = "https://app.example"
SIZES = [10, 100 * 1024, (1 << 20) + 5]


@pytest.fixture(scope="module")
def site(base, certificate):
    site = harness.Site(base / "cors", certificate, cors="https://app.example, http://localhost:3000", public="pub/")
    site.start()
    yield site
    site.stop()


def body_of(size):
    return hashlib.shake_128(b"cors").digest(size)


def check_allowed(answer, origin=ORIGIN):
    assert answer.header("access-control-allow-origin") == origin
    assert answer.header("access-control-allow-credentials") is None
    assert "Origin" in answer.header("vary")
    assert {"ETag", "Location", "Content-Range"} <= set(answer.header("access-control-expose-headers").split(", "))


@pytest.mark.parametrize("size", SIZES)
def test_reading_and_writing(site, box, size):
    """Also what was parked, what nginx sends from a file, and what is streamed."""
    headers = {"Origin": ORIGIN}
    made = site.put(box + "k", body_of(size), headers=headers)
    assert made.status == 201
    check_allowed(made)
    for _ in range(3):
        got = site.get(box + "k", headers=headers)
        assert got.body == body_of(size)
        check_allowed(got)
    check_allowed(site.get(box + "k", headers={**headers, "If-Match": made.header("etag")}))
    check_allowed(site.get(box + "k", headers={**headers, "Range": "bytes=0-3"}))
    check_allowed(site.head(box + "k", headers=headers))
    unchanged = site.get(box + "k", headers={**headers, "If-None-Match": made.header("etag")})
    assert unchanged.status == 304
    check_allowed(unchanged)


@pytest.mark.parametrize("path,more,status", [("none", {}, 404), ("k", {"If-Match": '"0"'}, 412), ("%5C", {}, 400)])
def test_errors_can_be_read(site, box, path, more, status):
    site.put(box + "k", b"x")
    got = site.get(box + path, headers={"Origin": ORIGIN, **more})
    assert got.status == status
    check_allowed(got)


def test_without_a_token(site, box):
    got = site.get(box + "k", headers={"Origin": ORIGIN}, token=None)
    assert got.status == 401
    check_allowed(got)


def test_each_origin_sees_itself(site):
    check_allowed(site.get("/health", headers={"Origin": "http://localhost:3000"}), "http://localhost:3000")


@pytest.mark.parametrize("origin", [
    "https://other.example", "http://app.example", "https://app.example:8443", "https://app.example.evil.example",
    "https://evil-app.example", "HTTPS://APP.EXAMPLE", "null", "https://app.example/", "*"])
def test_others_get_nothing(site, box, origin):
    for size in SIZES:
        site.put(box + "k", body_of(size))
        for _ in range(3):
            got = site.get(box + "k", headers={"Origin": origin})
            assert (got.status, got.header("access-control-allow-origin")) == (200, None)
            assert "Origin" in got.header("vary")


def ask_first(site, path, method="PUT", origin=ORIGIN):
    headers = {"Origin": origin, "Access-Control-Request-Method": method,
               "Access-Control-Request-Headers": "authorization,content-type,if-match"}
    return site.http("OPTIONS", path, None, headers, token=None)


@pytest.mark.parametrize("path,methods", [
    ("/docs/k", {"GET", "HEAD", "PUT", "DELETE", "PATCH"}), ("/docs/c/", {"GET", "HEAD", "POST"}), ("/batch", {"POST"}),
    ("/changes", {"GET", "HEAD"})])
def test_a_browser_asks_first(site, path, methods):
    got = ask_first(site, path)
    assert (got.status, got.body) == (204, b"")
    check_allowed(got)
    assert set(got.header("access-control-allow-methods").split(", ")) == methods
    assert {"Authorization", "Content-Type", "If-Match", "Range", "Idempotency-Key"} <= set(
        got.header("access-control-allow-headers").split(", "))
    assert 0 < int(got.header("access-control-max-age")) <= 86400


def test_who_may_not_ask(site):
    assert ask_first(site, "/docs/k", origin="https://other.example").status == 405
    assert site.http("OPTIONS", "/docs/k", None, {"Origin": ORIGIN}, token=None).status == 405


def test_anybody(make_site):
    site = make_site(cors="*")
    got = site.get("/health", headers={"Origin": "https://who.example"})
    assert (got.header("access-control-allow-origin"), got.header("vary")) == ("*", None)
    assert got.header("access-control-allow-credentials") is None


def test_nobody(site, make_site):
    assert site.get("/health").header("access-control-allow-origin") is None
    assert site.get("/health").header("vary") == "Origin", "a cache keeps it from scripts that would get more"
    none = make_site()
    got = none.get("/health", headers={"Origin": ORIGIN})
    assert (got.header("access-control-allow-origin"), got.header("vary")) == (None, None)
    assert ask_first(none, "/docs/k").status == 405


@pytest.mark.parametrize("wrong", ["app.example", "https://app.example/", "https://app.example/path", "https://", "://x",
                                   "HTTPS://app.example", "https://a b", "https://a;b", "https://*.example", "https://a\"b"])
def test_what_is_no_origin(base, wrong):
    hanji = harness.Hanji(base / "cors-wrong", cors=wrong)
    done = hanji.command("conf", ok=False)
    assert done.returncode == 78 and "cors" in done.stderr
