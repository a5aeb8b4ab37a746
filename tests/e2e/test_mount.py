"""Mounted below a prefix: every path in and every link out."""
import pytest

import harness


@pytest.fixture(scope="module")
def mounted(base, certificate):
    site = harness.Site(base / "mounted", certificate, mount="/h", public="pub/")
    site.start()
    yield site
    site.stop()


def below(site, location):
    return location[len("http://127.0.0.1:%d" % site.nginx.port):] if location.startswith("http") else location


@pytest.mark.smoke
def test_location_has_the_prefix(mounted, box):
    put = mounted.put(box + "a%20b", b"x")
    assert put.status == 201
    assert below(mounted, put.header("Location")) == "/h" + box + "a%20b"
    assert mounted.get(box + "a%20b").body == b"x"


def test_links_have_the_prefix(mounted, box):
    for name in "abc":
        mounted.put(box + name, b"x")
    got = mounted.get(box + "?limit=2")
    link = got.header("Link")
    assert below(mounted, link[1:link.index(">")]).startswith("/h" + box + "?")
    assert got.json()["next"] == box[6:] + "b", "keys are keys, not paths"


def test_keys_have_no_prefix(mounted, box):
    mounted.put(box + "k", b"x")
    assert mounted.hanji.rows("SELECT count(*) FROM doc WHERE key = ?", box[6:] + "k") == [(1,)]


def test_without_the_prefix_there_is_nothing(mounted, box):
    mounted.put(box + "k", b"x")
    link = mounted.link()
    headers = {"Authorization": "Bearer " + mounted.token}
    for path in (box + "k", "/health", "/hh" + box + "k", "/h/h" + box + "k", "/H" + box + "k"):
        assert link.request("GET", path, None, headers).status == 404
    link.close()


def test_the_rest_is_below_the_prefix(mounted):
    assert mounted.get("/health", token=None).json() == {"status": "ok"}
    assert mounted.get("/status").status == 200
    assert mounted.get("/metrics").status == 200
    assert mounted.get("/status", token=None).status == 401


def test_rights_are_below_the_prefix(mounted):
    token = mounted.hanji.new_token("by-path", read=["/docs/notes/", "/status"])
    mounted.put("/docs/notes/a", b"x")
    assert mounted.get("/docs/notes/a", token=token).status == 200
    assert mounted.get("/status", token=token).status == 200
    assert mounted.get("/docs/other", token=token).status == 403
    outside = mounted.hanji.new_token("outside", read=["/h/docs/notes/"])
    assert mounted.get("/docs/notes/a", token=outside).status == 403
    assert mounted.get("/docs/pub/missing", token=None).status == 404


@pytest.mark.parametrize("script,path,status", [
    ("/h", "/h/docs/k", 200), ("/a/b", "/a/b/docs/k", 200), ("", "/docs/k", 200), ("/h", "/docs/k", 404),
    ("/h", "/hx/docs/k", 404), ("/h", "/h", 404), ("/h", "/h/", 404), ("/h", "/H/docs/k", 404),
    ("/docs", "/docs/docs/k", 200), ("/h", "", 400), ("/hh", "/h/docs/k", 404)])
def test_on_the_socket(mounted, script, path, status):
    """nginx would not send the wrong ones."""
    mounted.put("/docs/k", b"x")
    got = mounted.hanji.ask("GET", path, extra={"SCRIPT_NAME": script})
    assert got.status == status or status >= 400 and got.status in (400, 404), got


@pytest.mark.parametrize("script", ["/h/", "h", "/", "//h", "/h/../x", "/h\r\nX-Evil: 1", "/<script>", "/\xff"])
def test_odd_prefixes_never_break_a_response(mounted, script):
    got = mounted.hanji.ask("PUT", script + "/docs/odd", body=b"x", extra={"SCRIPT_NAME": script})
    assert got.status in (201, 204, 400, 404), got
    assert got.header("X-Evil") is None
    assert "\r" not in (got.header("Location") or "") and "<script>" not in (got.header("Location") or "")
