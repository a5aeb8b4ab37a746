"""HTTP Basic where it is allowed, and hanji as the guard of other parts of a site (auth_request)."""
import base64
import itertools
import re
import time

import pytest

import fastcgi
import harness
import http1
from test_login import add, ask, login, through

NUMBERS = itertools.count(1)
PASSWORD = "correct horse"


@pytest.fixture
def hanji(site):
    return site.hanji


@pytest.fixture
def person(hanji):
    """Reads feeds/ and notes/, writes feeds/."""
    return add(hanji, "basic%d" % next(NUMBERS), read=["feeds/", "notes/"], write=["feeds/"])


@pytest.fixture(scope="module", autouse=True)
def documents(site):
    for key in ("feeds/a", "notes/a", "feedsb"):
        site.put("/docs/" + key, b"x")


def basic(user, password=PASSWORD):
    return "Basic " + base64.b64encode(("%s:%s" % (user, password)).encode()).decode()


def get(hanji, path, credentials, method="GET", **extra):
    return fastcgi.ask(hanji.socket, method, path, body=extra.pop("body", None),
                       extra={"HTTP_AUTHORIZATION": credentials, **extra})


@pytest.mark.smoke
def test_a_name_and_a_password_may_read_there(hanji, person):
    got = get(hanji, "/docs/feeds/a", basic(person))
    assert got.status == 200 and got.body == b"x" and got.header("Set-Cookie") is None
    assert get(hanji, "/docs/feeds/a", basic(person.upper()), "HEAD").status == 200
    assert get(hanji, "/docs/feeds/", basic(person)).status == 200
    assert get(hanji, "/docs/feeds/absent", basic(person)).status == 404
    assert get(hanji, "/docs/feeds/a", basic(person), HTTP_IF_NONE_MATCH=got.header("ETag")).status == 304
    assert get(hanji, "/docs/feeds/", basic(person), QUERY_STRING="limit=x").status == 400


def test_nowhere_else(hanji, person):
    for path in ("/docs/notes/a", "/docs/feedsb", "/docs/", "/status", "/auth/session", "/changes"):
        got = get(hanji, path, basic(person))
        assert got.status == 401 and "Basic" not in got.header("WWW-Authenticate"), path


def test_reading_only(hanji, person):
    for method in ("PUT", "DELETE"):
        got = get(hanji, "/docs/feeds/a", basic(person), method, body=b"y" if method == "PUT" else None)
        assert got.status == 401 and "Basic" not in got.header("WWW-Authenticate")
    assert get(hanji, "/docs/feeds/a", basic(person)).body == b"x"


def test_rights_are_those_of_the_user(hanji, person):
    assert get(hanji, "/docs/feeds/a", basic(person)).status == 200
    hanji.command("user", "grant", person, "--read", "notes/", "--write", "/")
    assert get(hanji, "/docs/feeds/a", basic(person)).status == 403


def test_the_way_in_is_offered_there(hanji):
    got = fastcgi.ask(hanji.socket, "GET", "/docs/feeds/a")
    assert got.status == 401 and got.header("WWW-Authenticate") == 'Basic realm="hanji", charset="UTF-8", Bearer realm="hanji"'
    assert fastcgi.ask(hanji.socket, "GET", "/docs/notes/a").header("WWW-Authenticate") == 'Bearer realm="hanji"'


def test_what_was_offered_to_one_is_not_offered_to_the_next(hanji):
    """The page to log in, where nginx shows it in the place of another, says nothing of Basic."""
    for path in ("/docs/feeds/a", "/docs/notes/a"):
        fastcgi.ask(hanji.socket, "GET", path)
        got = fastcgi.ask(hanji.socket, "GET", "/auth/login", extra={"REQUEST_URI": "/private/x", "HTTP_ACCEPT": "application/json"})
        assert (got.status, got.header("WWW-Authenticate")) == (401, 'Bearer realm="hanji"')


WRONG = ["Basic", "Basic ", "Basic x", "Basic =", "Basic " + base64.b64encode(b"alice").decode(),
         "Basic " + base64.b64encode(b":correct horse").decode(), "Basic " + base64.b64encode(b"alice:a\0b").decode(),
         "Basic " + base64.b64encode(b"alice:" + b"x" * 2000).decode(), "Basic " + base64.b64encode(b"x" * 65 + b":y").decode(),
         "Basic " + base64.b64encode(b"alice:correct horse").decode()[:-1], "Basic YWxpY2U6Y29ycmVjdCBob3JzZQ== x", "Digest x",
         "basi " + base64.b64encode(b"alice:correct horse").decode()]


@pytest.mark.parametrize("credentials", WRONG, ids=lambda text: text[:40])
def test_what_is_malformed(hanji, credentials):
    assert get(hanji, "/docs/feeds/a", credentials).status == 401


def test_wrong_passwords(hanji, person):
    mark = hanji.mark()
    for user, password in ((person, "wrong wrong"), (person, ""), (person, PASSWORD + "x"), ("nobody", PASSWORD)):
        got = get(hanji, "/docs/feeds/a", basic(user, password))
        assert got.status == 401 and got.header("WWW-Authenticate").startswith("Basic ")
        assert b"do not belong together" in got.body
    assert hanji.log_since(mark).count('msg="login failed"') == 4
    assert get(hanji, "/docs/feeds/a", basic(person)).status == 200


def timed(hanji, credentials):
    start = time.monotonic()
    status = get(hanji, "/docs/feeds/a", credentials).status
    return status, time.monotonic() - start


def test_a_pair_is_remembered_until_it_is_another(hanji, person):
    """Remembered ones take a fraction of what it costs to compare; other ones never profit."""
    first = timed(hanji, basic(person))
    again = min(timed(hanji, basic(person)) for _ in range(10))
    assert first[0] == again[0] == 200 and again[1] < first[1] / 2
    assert timed(hanji, basic(person, PASSWORD + " "))[0] == 401
    hanji.command("user", "passwd", person, stdin="another password\n")
    assert timed(hanji, basic(person))[0] == 401
    assert timed(hanji, basic(person, "another password"))[0] == 200
    hanji.command("sql", "UPDATE user SET hash = '!' WHERE name = '%s'" % person)
    assert timed(hanji, basic(person, "another password"))[0] == 401
    hanji.command("user", "remove", person)
    assert timed(hanji, basic(person, "another password"))[0] == 401


def test_more_pairs_than_are_remembered(hanji):
    names = [add(hanji, "many%d" % i, read=["feeds/"], write=[]) for i in range(3)]
    hanji.command("sql", "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 100)"
                         " INSERT INTO user (name, hash, read) SELECT 'copy' || i, hash, read FROM user, n WHERE name = 'many0'")
    for i in range(100):
        assert get(hanji, "/docs/feeds/a", basic("copy%d" % (i + 1))).status == 200
    assert all(get(hanji, "/docs/feeds/a", basic(name)).status == 200 for name in names)


def test_a_client_that_leaves_while_it_is_compared(hanji, person):
    for _ in range(20):
        with hanji.client() as client:
            client.send(fastcgi.request("GET", "/docs/feeds/a", extra={"HTTP_AUTHORIZATION": basic(person, "wrong wrong")}))
    harness.wait_for("room", lambda: get(hanji, "/docs/feeds/a", basic(person)).status == 200)


def test_through_nginx(site, person):
    assert through(site, "127.0.6.1", "GET", "/docs/feeds/a", headers={"Authorization": basic(person)}).body == b"x"
    assert through(site, "127.0.6.1", "GET", "/docs/feeds/a?x=%20", headers={"Authorization": basic(person)}, tls=True).body == b"x"


@pytest.mark.parametrize("value", ["a//b", "..", "/a\tb"])
def test_a_malformed_prefix_is_refused(make_hanji, value):
    hanji = make_hanji(start=False, basic=value)
    done = hanji.command("conf", ok=False)
    assert done.returncode == 78 and "basic" in done.stderr


# ---- nginx asks ---------------------------------------------------------------------------------------------------------


def check(hanji, uri, method="GET", **extra):
    return fastcgi.ask(hanji.socket, method, "/auth/check", extra={"HANJI_CHECK_URI": uri, **extra})


def test_a_question_needs_nginx(hanji):
    """No header, query or body of a client is one."""
    for extra in ({}, {"HTTP_X_ORIGINAL_URI": "/docs/pub/"}, {"HTTP_HANJI_CHECK_URI": "/docs/pub/"}):
        got = fastcgi.ask(hanji.socket, "GET", "/auth/check", hanji.token, query="uri=/docs/pub/", extra=extra)
        assert got.status == 404


def test_answers(hanji, person):
    cookie = {"HTTP_COOKIE": login(hanji, person)}
    token = {"HTTP_AUTHORIZATION": "Bearer " + hanji.token}
    got = check(hanji, "/docs/feeds/x", **cookie)
    assert got.status == 204 and got.header("X-Hanji-User") == person and got.header("X-Hanji-Token") is None
    got = check(hanji, "/private/x", **token)
    assert got.status == 204 and got.header("X-Hanji-Token") == "full" and got.header("X-Hanji-User") is None
    got = check(hanji, "/docs/pub/x")
    assert got.status == 204 and got.header("X-Hanji-User") is None
    got = check(hanji, "/docs/feeds/x", HTTP_AUTHORIZATION=basic(person))
    assert got.status == 204 and got.header("X-Hanji-User") == person
    assert check(hanji, "/private/x", **cookie).status == 403
    assert check(hanji, "/private/x").status == 401
    assert check(hanji, "/private/x", HTTP_AUTHORIZATION=basic(person)).status == 401
    assert check(hanji, "/docs/feeds/x", HTTP_AUTHORIZATION=basic(person, "wrong wrong")).status == 401


@pytest.mark.parametrize("uri", ["", "x", "/a//b", "/a/../b", "/a\\b", "/a\x01b", "/a\x7f", "//"])
def test_a_path_with_two_meanings_is_refused(hanji, uri):
    assert check(hanji, uri, HTTP_AUTHORIZATION="Bearer " + hanji.token).status == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"])
def test_other_methods_need_writing_and_this_site(hanji, person, method):
    cookie = {"HTTP_COOKIE": login(hanji, person)}
    here = {"HTTP_SEC_FETCH_SITE": "same-origin"}
    assert check(hanji, "/docs/feeds/x", method, CONTENT_LENGTH="5", **cookie, **here).status == 204
    assert check(hanji, "/docs/feeds/x", method, **cookie).status == 403
    assert check(hanji, "/docs/feeds/x", method, **cookie, HTTP_ORIGIN="http://evil.example").status == 403
    assert check(hanji, "/docs/notes/x", method, **cookie, **here).status == 403
    assert check(hanji, "/docs/feeds/x", method, HTTP_AUTHORIZATION=basic(person)).status == 401


def test_below_a_mount_paths_have_one_meaning(hanji, person):
    token = {"HTTP_AUTHORIZATION": "Bearer " + hanji.new_token(person, read=["/docs/feeds/", "/private/"]),
             "SCRIPT_NAME": "/h", "DOCUMENT_URI": "/h/auth/check"}
    assert check(hanji, "/h/docs/feeds/x", **token).status == 204
    assert check(hanji, "/private/x", **token).status == 204
    assert check(hanji, "/docs/feeds/x", **token).status == 403, "this is not the site's /docs/"
    assert check(hanji, "/h/private/x", **token).status == 204
    assert check(hanji, "/hx/docs/feeds/x", **token).status == 403


# ---- the documented nginx -------------------------------------------------------------------------------------------------

GUARDED = """
    location /private/ {
        set $hanji_asks $document_uri;
        auth_request /auth/check;
        auth_request_set $hanji_user $upstream_http_x_hanji_user;
        error_page 401 /auth/login;
        proxy_set_header X-Hanji-User $hanji_user;
        proxy_set_header Authorization "";
        proxy_pass http://127.0.0.1:@port@;
    }
    location /forgotten/ {
        auth_request /auth/check;
        proxy_pass http://127.0.0.1:@port@;
    }
    location /cors/ {
        set $hanji_asks $document_uri;
        auth_request /auth/check;
        if ($request_method = OPTIONS) { return 204; }
        proxy_pass http://127.0.0.1:@port@;
    }
}
server {
    listen 127.0.0.1:@port@;
    location / { return 200 "$request_method $uri [$http_x_hanji_user] [$http_authorization]"; }
"""


@pytest.fixture(scope="module")
def guarded(base, certificate):
    """A site that guards an application."""
    site = harness.Site(base / "guarded", certificate, basic="/private/feeds/")
    conf = harness.REPOSITORY / "nginx-conf"
    text = site.nginx.conf.read_text()
    http = (conf / "hanji-auth-http.conf").read_text().replace("/run/hanji-auth-cache", str(site.nginx.base / "auth"))
    server = (conf / "hanji-auth.conf").read_text().replace("snippets/hanji-params.conf", "params.conf")
    text = text.replace("include %s/upstream.conf;" % site.nginx.base, "include %s/upstream.conf;\n%s" % (site.nginx.base, http))
    text = text.replace("include %s/locations.conf;" % site.nginx.base, "include %s/locations.conf;\n%s%s" % (
        site.nginx.base, server, GUARDED.replace("@port@", str(harness.free_port()))))
    site.nginx.conf.write_text(text)
    site.start()
    add(site.hanji, "reader", read=["/private/"], write=[])
    add(site.hanji, "writer", read=["/private/"], write=["/private/"])
    add(site.hanji, "other", read=["/docs/"], write=["/"])
    yield site
    site.stop()


def enter(site, path, method="GET", body=None, user=None, source="127.0.7.1", **headers):
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    if user:
        headers["Cookie"] = login(site.hanji, user)
    return through(site, source, method, path, body, headers)


def test_the_guard(guarded):
    assert enter(guarded, "/private/a%20b/../c", user="reader").body == b"GET /private/c [reader] []"
    assert enter(guarded, "/private/x").status == 401
    assert enter(guarded, "/private/x", user="other").status == 403
    assert enter(guarded, "/private/x", Authorization="Bearer " + guarded.token).body == b"GET /private/x [] []"
    assert enter(guarded, "/private/feeds/x", Authorization=basic("reader")).body == b"GET /private/feeds/x [reader] []"
    assert enter(guarded, "/private/x", Authorization=basic("reader")).status == 401


def test_writing_through_the_guard(guarded):
    own = "http://127.0.0.1:%d" % guarded.nginx.port
    assert enter(guarded, "/private/x", "POST", b"hello", "writer", Origin=own).body == b"POST /private/x [writer] []"
    assert enter(guarded, "/private/x", "POST", b"hello", "reader", Origin=own).status == 403
    assert enter(guarded, "/private/x", "POST", b"hello", "writer", Origin="http://evil.example").status == 403
    assert enter(guarded, "/private/x", "POST", b"hello", "writer").status == 403


def test_nobody_names_himself(guarded):
    spoofed = {"X_Hanji_User": "root", "X_Original_URI": "/docs/pub/", "X_Forwarded_Uri": "/docs/", "HANJI_CHECK_URI": "/", "Remote_User": "root"}
    assert enter(guarded, "/private/x", **spoofed).status == 401
    assert enter(guarded, "/private/x", user="reader", **spoofed).body == b"GET /private/x [reader] []"
    assert enter(guarded, "/private/x", Authorization="Bearer " + guarded.token, **spoofed).body == b"GET /private/x [] []"


def test_the_question_is_not_for_clients(guarded):
    assert enter(guarded, "/auth/check", user="reader").status == 404


def test_a_location_that_does_not_say_what_it_asks_is_closed(guarded):
    assert enter(guarded, "/forgotten/x", Authorization="Bearer " + guarded.token).status == 403


def test_preflight_by_policy(guarded):
    assert enter(guarded, "/cors/x", "OPTIONS").status == 204
    assert enter(guarded, "/cors/x").status == 401
    assert enter(guarded, "/private/x", "OPTIONS").status == 401


def test_a_browser_logs_in_and_comes_back(guarded):
    got = enter(guarded, "/private/x?a=1&b=%2F", Accept="text/html")
    assert got.status == 401 and '<input type="hidden" name="next" value="/private/x?a=1&amp;b=%2F">' in got.body.decode()
    got = through(guarded, "127.0.7.2", "POST", "/auth/login", "user=reader&password=correct+horse&next=%2Fprivate%2Fx%3Fa%3D1",
                  {"Content-Type": "application/x-www-form-urlencoded", "Accept": "text/html"})
    assert got.status == 303 and got.header("Location") == "/private/x?a=1"
    got = enter(guarded, "/private/x", Accept="application/json")
    assert got.status == 401 and got.json()["status"] == 401
    got = enter(guarded, "/private/x", "POST", b"form", Accept="text/html")
    assert got.status == 401 and b'name="password"' in got.body


PREFLIGHT = {"HTTP_ORIGIN": "https://app.example", "HTTP_ACCESS_CONTROL_REQUEST_METHOD": "PUT"}


def test_cors_of_hanji_is_no_verdict(make_hanji):
    """It answers browsers that ask about its own documents, without a credential; about others it is a guard."""
    hanji = make_hanji(cors="https://app.example")
    assert fastcgi.ask(hanji.socket, "OPTIONS", "/docs/x", extra=PREFLIGHT).status == 204
    assert check(hanji, "/private/x", "OPTIONS", **PREFLIGHT).status == 401
    assert check(hanji, "/docs/x", "OPTIONS", **PREFLIGHT).status == 401


def test_a_verdict_holds_for_a_second(guarded):
    cookie = {"Cookie": login(guarded.hanji, "reader")}
    requests = guarded.hanji.status()["requests"]
    for _ in range(50):
        assert through(guarded, "127.0.7.1", "GET", "/private/fast", headers=cookie).status == 200
    assert guarded.hanji.status()["requests"] - requests < 25
    assert through(guarded, "127.0.7.1", "GET", "/private/fast").status == 401, "for that credential only"
    assert through(guarded, "127.0.7.1", "GET", "/docs/x", headers=cookie).status == 403
    guarded.hanji.command("user", "logout", "reader")
    harness.wait_for("the end of the verdict", lambda: through(guarded, "127.0.7.1", "GET", "/private/fast", headers=cookie).status == 401, 5)


def test_without_hanji_there_is_no_yes(guarded):
    cookie = {"Cookie": login(guarded.hanji, "reader")}
    guarded.hanji.stop()
    try:
        assert through(guarded, "127.0.7.1", "GET", "/private/never", headers=cookie).status == 500
    finally:
        guarded.hanji.start()
    assert through(guarded, "127.0.7.1", "GET", "/private/never", headers=cookie).status == 200


def test_a_verdict_about_a_change_is_not_kept(guarded):
    """It hangs on where the change was asked for, which is no part of the key."""
    own = "http://127.0.0.1:%d" % guarded.nginx.port
    cookie = {"Cookie": login(guarded.hanji, "writer")}
    for method in ("POST", "DELETE"):
        for origin, status in ((own, 200), ("http://evil.example", 403), (own, 200), (None, 403)):
            headers = {**cookie, "Origin": origin} if origin else cookie
            assert through(guarded, "127.0.7.1", method, "/private/once", b"", headers).status == status
