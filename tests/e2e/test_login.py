"""People log in: the page, the session and its cookie, where a change may be asked for, and how it ends."""
import base64
import hashlib
import itertools
import json
import re
import threading
import time
import urllib.parse

import pytest

import fastcgi
import harness
import http1

COOKIE = re.compile(r"(?P<name>(__Host-)?hanji_session[\w-]*)=(?P<value>hanjis_[A-Za-z0-9_-]{43}); Path=/; Max-Age=7776000; HttpOnly; "
                    r"SameSite=Lax(?P<secure>; Secure)?\Z")
NUMBERS = itertools.count(1)
PASSWORD = "correct horse"
SAME = {"HTTP_SEC_FETCH_SITE": "same-origin"}
WEEK = 7 * 24 * 3600
BROWSER = {"HTTP_ACCEPT": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.fixture
def hanji(site):
    return site.hanji


@pytest.fixture
def person(hanji):
    """A user of this test's own, who may read everything and write below notes/."""
    return add(hanji, "person%d" % next(NUMBERS))


def add(hanji, name, read=("/",), write=("notes/",), password=PASSWORD):
    flags = [word for prefix in read for word in ("--read", prefix)] + [word for prefix in write for word in ("--write", prefix)]
    hanji.command("user", "add", name, *flags, stdin=password + "\n")
    return name


def post_login(hanji, user, password=PASSWORD, next_=None, **extra):
    form = {"user": user, "password": password, **({"next": next_} if next_ is not None else {})}
    return fastcgi.ask(hanji.socket, "POST", "/auth/login", body=urllib.parse.urlencode(form).encode(),
                       extra={"CONTENT_TYPE": "application/x-www-form-urlencoded", **extra})


def cookie_of(answer):
    """The cookie as a browser sends it back."""
    found = COOKIE.match(answer.header("Set-Cookie") or "")
    assert found, answer
    return "%s=%s" % (found["name"], found["value"])


def login(hanji, user, password=PASSWORD):
    answer = post_login(hanji, user, password)
    assert answer.status == 200, answer
    return cookie_of(answer)


def ask(hanji, method, path, cookie, body=None, **extra):
    """A request with a cookie and without a token; from a page of the site unless `extra` says otherwise."""
    return fastcgi.ask(hanji.socket, method, path, body=body, extra={"HTTP_COOKIE": cookie, **SAME, **extra})


def who(hanji, cookie):
    """The name of who is logged in, or None."""
    answer = ask(hanji, "GET", "/auth/session", cookie)
    return http1.parse_json(answer.body)["name"] if answer.status == 200 else None


# ---- logging in -------------------------------------------------------------------------------------------------------


@pytest.mark.smoke
def test_a_login_gives_a_session(hanji, person):
    answer = post_login(hanji, person.upper())
    assert answer.status == 200 and answer.header("Cache-Control") == "no-store"
    told = http1.parse_json(answer.body)
    assert told["user"] == person and told["expires"] > "2026"
    cookie = cookie_of(answer)
    session = http1.parse_json(ask(hanji, "GET", "/auth/session", cookie).body)
    assert session == {"kind": "user", "name": person, "read": ["/"], "write": ["/docs/notes/"], "expires": told["expires"]}


def test_json(hanji, person):
    def post(body, kind="application/json; charset=utf-8"):
        return fastcgi.ask(hanji.socket, "POST", "/auth/login", body=body, extra={"CONTENT_TYPE": kind})
    answer = post(json.dumps({"user": person, "password": PASSWORD}).encode())
    assert answer.status == 200 and who(hanji, cookie_of(answer)) == person
    assert post(json.dumps({"user": person, "password": "wrong wrong"}).encode()).status == 401
    for body in (b"", b"{", b"[]", b'"x"', b'{"user":"a"}', b'{"user":"a","password":1}', b'{"user":null,"password":"x"}',
                 b'{"user":"a","password":"b"}\0', b"\xff"):
        assert post(body).status == 400, body
    for kind in ("", "text/plain", "application/jsonx", "multipart/form-data", "application/json-patch"):
        assert post(b'{"user":"a","password":"b"}', kind).status == 415, kind


@pytest.mark.parametrize("body,status", [
    (b"", 400), (b"user=a", 400), (b"password=b", 400), (b"user=a&user=b&password=c", 400), (b"user=a&password=b&password=c", 400),
    (b"user=%zz&password=b", 400), (b"user=a&password=%00", 400), (b"user=a&password=%ff", 400), (b"user=&password=", 401),
    (b"user=" + b"a" * 300 + b"&password=b", 401), (b"user=a&password=" + b"b" * 4000, 401),
    (b"user=a&password=" + b"b" * 4200, 400), (b"user=a%0d%0aSet-Cookie:x&password=b", 401), (b"user=a&password=b" + b" " * 8192, 413), (b"x" * 290000, 413)])
def test_forms_that_are_no_login(hanji, body, status):
    answer = fastcgi.ask(hanji.socket, "POST", "/auth/login", body=body,
                         extra={"CONTENT_TYPE": "application/x-www-form-urlencoded"})
    assert answer.status == status and answer.header("Set-Cookie") is None


def test_who_is_not_there_is_answered_as_who_is(hanji, person):
    hanji.command("sql", "INSERT INTO user (name, hash) VALUES ('%s-locked', '!')" % person)
    answers = [post_login(hanji, name, "wrong wrong") for name in (person, person + "-locked", "nobody", "no/body", "x" * 100)]
    answers.append(post_login(hanji, person, ""))
    answers.append(post_login(hanji, person, PASSWORD + "x" * 1100))
    assert {(answer.status, answer.body) for answer in answers} == {(401, answers[0].body)}


def test_a_password_that_is_too_long_is_not_cut(make_hanji):
    hanji = make_hanji()
    add(hanji, "long", password="p" * 1024)
    assert post_login(hanji, "long", "p" * 1024).status == 200
    assert post_login(hanji, "long", "p" * 1025).status == 401
    assert post_login(hanji, "long", "p" * 1023).status == 401


def test_passwords_are_bytes(hanji):
    name = add(hanji, "bytes%d" % next(NUMBERS), password="pässwörd +&=%")
    assert post_login(hanji, name, "pässwörd +&=%").status == 200
    assert post_login(hanji, name, "pa\u0308sswo\u0308rd +&=%").status == 401


def test_a_failure_is_logged_in_one_line(hanji):
    mark = hanji.mark()
    post_login(hanji, 'x" level=warn\nts=1 msg="', "geheimnis-1", REMOTE_ADDR="192.0.2.7")
    log = hanji.log_since(mark)
    assert len(log.splitlines()) == 1 and 'msg="login failed"' in log and 'address="192.0.2.7"' in log
    assert r'user="x\" level=warn' in log and "geheimnis" not in log


def passwords(hanji):
    text = hanji.ask("GET", "/metrics").body.decode()
    return {name: int(value) for name, value in re.findall(r'hanji_passwords_total\{result="(\w+)"\} (\d+)', text)}


def test_passwords_are_counted(hanji, person):
    before = passwords(hanji)
    for password in (PASSWORD, "wrong wrong", PASSWORD, "wrong"):
        post_login(hanji, person, password)
    after = passwords(hanji)
    assert {name: after[name] - before[name] for name in after} == {"right": 2, "wrong": 2, "refused": 0}


def test_many_logins_at_once(hanji, person):
    """More than are computed at a time are refused at once, and none is forgotten."""
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(post_login(hanji, person))) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 40 and {answer.status for answer in answers} <= {200, 503}
    assert all(answer.header("Retry-After") for answer in answers if answer.status == 503)
    assert sum(answer.status == 200 for answer in answers) >= 8
    assert post_login(hanji, person).status == 200


def test_reads_go_on_while_a_password_is_computed(hanji, person):
    stop, slowest = threading.Event(), []

    def read():
        with hanji.client() as client:
            while not stop.is_set():
                start = time.monotonic()
                assert client.ask("GET", "/health").status == 200
                slowest.append(time.monotonic() - start)
    thread = threading.Thread(target=read)
    thread.start()
    for _ in range(5):
        post_login(hanji, person)
    stop.set()
    thread.join()
    assert sorted(slowest)[len(slowest) // 2] < 0.01


def test_the_memory_is_given_back(make_hanji):
    hanji = make_hanji()
    add(hanji, "alice")
    post_login(hanji, "alice")
    before = harness.resident_bytes(hanji.worker())
    for _ in range(10):
        post_login(hanji, "alice")
    assert harness.resident_bytes(hanji.worker()) - before < (64 << 20 if harness.sanitized() else 1 << 20)


def test_an_old_hash_is_renewed_and_sessions_stay(hanji, person):
    """From the parameters of a weaker machine; the same password, 1 MiB and three passes."""
    old = "$argon2id$v=19$m=1024,t=3,p=1$c2l4dGVlbiBieXRlcy4uLg$AmCLSWayrfwQE2krP0eO1d++QFQI4cgx/8CAYH30Gr4"
    hanji.command("sql", "UPDATE user SET hash = '%s' WHERE name = '%s'" % (old, person))
    assert post_login(hanji, person, "tea for twO").status == 401
    first = login(hanji, person, "tea for two")
    harness.wait_for("the new hash", lambda: hanji.rows("SELECT hash FROM user WHERE name = ?", person)[0][0].startswith(
        "$argon2id$v=19$m=19456,t=2,p=1$"))
    assert who(hanji, first) == person
    second = login(hanji, person, "tea for two")
    assert hanji.rows("SELECT renewed FROM user WHERE name = ?", person) == [(1,)]
    assert who(hanji, first) == who(hanji, second) == person


# ---- the cookie -------------------------------------------------------------------------------------------------------


def test_cookies_by_scheme_and_mount(hanji, person):
    def name(**extra):
        found = COOKIE.match(post_login(hanji, person, **extra).header("Set-Cookie"))
        return found["name"], found["secure"]
    assert name() == ("hanji_session", None)
    assert name(HTTPS="off") == ("hanji_session", None)
    assert name(HTTPS="on") == ("__Host-hanji_session", "; Secure")
    assert name(SCRIPT_NAME="/h", DOCUMENT_URI="/h/auth/login") == ("hanji_session_2fh", None)
    assert name(SCRIPT_NAME="/a-b/x.y", DOCUMENT_URI="/a-b/x.y/auth/login", HTTPS="on") == (
        "__Host-hanji_session_2fa-b_2fx_2ey", "; Secure")


def test_over_tls_only_the_cookie_for_tls_counts(hanji, person):
    """Whoever sits between can set the other one, on the same name without TLS."""
    plain = login(hanji, person)
    secure = cookie_of(post_login(hanji, person, HTTPS="on"))
    assert who(hanji, plain) == person and who(hanji, secure) is None

    def over_tls(cookie):
        return ask(hanji, "GET", "/auth/session", cookie, HTTPS="on").status
    assert over_tls(secure) == 200 and over_tls(plain) == 401 and over_tls("%s; %s" % (plain, secure)) == 200


def test_other_cookies_do_not_matter(hanji, person):
    cookie = login(hanji, person)
    value = cookie.split("=")[1]
    for header in ("a=b; " + cookie, cookie + ";x", ";;; ; " + cookie, "a=" + "x" * 7000 + "; " + cookie, cookie + "; a=\"b;c\"",
                   "hanji_sessio=1; " + cookie, "hanji_session2=1; " + cookie, "\thanji_session=%s \t" % value, cookie + "; " + cookie):
        assert who(hanji, header) == person, header
    for header in ("hanji_session", "hanji_session=", "HANJI_SESSION=" + value, "hanji_session =" + value, "xhanji_session=" + value,
                   "hanji_session=%s." % value, 'hanji_session="%s"' % value, "a=hanji_session=" + value, value,
                   cookie[:-1], cookie + "A", cookie.lower(), "hanji_session=" + hanji.token):
        assert who(hanji, header) is None, header


def test_two_sessions_at_once_are_none(hanji, person):
    """A neighbour may have put his own beside (cookie tossing)."""
    mine, other = login(hanji, person), login(hanji, "alice")
    assert who(hanji, mine + "; " + other) is None and who(hanji, other + "; " + mine) is None
    assert who(hanji, mine + "; hanji_session=x") is None
    assert who(hanji, mine) == person


def test_repeated_cookie_headers_are_one(hanji, person):
    cookie = login(hanji, person)
    parts = fastcgi.variables("GET", "/auth/session", extra={"HTTP_COOKIE": "a=b"}) + [("HTTP_COOKIE", cookie), ("HTTP_COOKIE", "c=d")]
    with hanji.client() as client:
        client.send(fastcgi.request_of(parts))
        assert client.answer().status == 200


def test_a_session_is_no_token_and_a_token_no_session(hanji, person):
    value = login(hanji, person).split("=")[1]
    assert hanji.ask("GET", "/docs/", token=value).status == 401
    assert who(hanji, "hanji_session=" + hanji.token) is None


def test_a_login_does_not_take_a_session_that_is_given(hanji, person):
    """Session fixation."""
    given = "hanji_session=hanjis_" + "A" * 43
    got = cookie_of(post_login(hanji, person, HTTP_COOKIE=given))
    assert got != given and who(hanji, given) is None and who(hanji, got) == person
    assert cookie_of(post_login(hanji, person, HTTP_COOKIE=got)) != got


def test_the_cookie_is_not_in_the_file(hanji, person):
    secret = login(hanji, person).split("=")[1]
    for path in (hanji.database, str(hanji.database) + "-wal", hanji.log):
        assert secret.encode() not in open(path, "rb").read()
    digest = hashlib.blake2b(secret.encode(), digest_size=32).digest()
    row = hanji.rows("SELECT 1 FROM session WHERE hash = ?", digest)
    assert len(row) == 1


def test_the_browser_is_remembered(hanji, person):
    post_login(hanji, person, HTTP_USER_AGENT="Mozilla/5.0 \t\x01é " + "x" * 300)
    label, = hanji.rows("SELECT label FROM session JOIN user ON user.id = session.user WHERE name = ?", person)[0]
    assert label.startswith("Mozilla/5.0 ???") and len(label) == 120


# ---- what a session may ------------------------------------------------------------------------------------------------


def test_rights_are_those_of_the_user(hanji, person):
    cookie = login(hanji, person)
    assert ask(hanji, "PUT", "/docs/notes/" + person, cookie, b"x").status == 201
    assert ask(hanji, "GET", "/docs/notes/" + person, cookie).body == b"x"
    assert ask(hanji, "PUT", "/docs/other", cookie, b"x").status == 403
    assert ask(hanji, "GET", "/status", cookie).status == 200
    hanji.command("user", "grant", person, "--read", "notes/")
    assert ask(hanji, "GET", "/status", cookie).status == 403
    assert ask(hanji, "PUT", "/docs/notes/" + person, cookie, b"y").status == 403
    assert ask(hanji, "GET", "/docs/notes/" + person, cookie).body == b"x"


def test_a_header_counts_before_a_cookie(hanji, person):
    cookie = login(hanji, person)
    assert ask(hanji, "GET", "/docs/notes/", cookie, HTTP_AUTHORIZATION="Bearer hanji_" + "A" * 43).status == 401
    assert ask(hanji, "PUT", "/docs/else" + person, "hanji_session=x", b"x", HTTP_AUTHORIZATION="Bearer " + hanji.token,
               HTTP_SEC_FETCH_SITE="cross-site").status == 201


def test_a_session_that_is_over_does_not_close_what_is_public(hanji, person):
    hanji.ask("PUT", "/docs/pub/" + person, body=b"x")
    for cookie in ("hanji_session=hanjis_" + "A" * 43, "hanji_session=x"):
        assert ask(hanji, "GET", "/docs/pub/" + person, cookie).status == 200
        assert ask(hanji, "GET", "/docs/notes/x", cookie).status == 401
        assert ask(hanji, "PUT", "/docs/pub/" + person, cookie, b"y").status == 401


HERE = "http://localhost"
ORIGINS = [
    # what the browser says, and whether the write is done
    ({"HTTP_SEC_FETCH_SITE": "same-origin"}, True),
    ({"HTTP_SEC_FETCH_SITE": "none"}, True),
    ({"HTTP_SEC_FETCH_SITE": "same-site"}, False),
    ({"HTTP_SEC_FETCH_SITE": "cross-site"}, False),
    ({"HTTP_SEC_FETCH_SITE": "Same-Origin"}, False),
    ({"HTTP_SEC_FETCH_SITE": "same-origin, none"}, False),
    ({"HTTP_SEC_FETCH_SITE": "cross-site", "HTTP_ORIGIN": HERE, "HTTP_REFERER": HERE + "/"}, False),
    ({"HTTP_SEC_FETCH_SITE": "same-origin", "HTTP_ORIGIN": "http://evil.example"}, True),
    ({"HTTP_ORIGIN": HERE}, True),
    ({"HTTP_ORIGIN": "http://LOCALHOST"}, True),
    ({"HTTP_ORIGIN": "https://localhost"}, False),
    ({"HTTP_ORIGIN": "null"}, False),
    ({"HTTP_ORIGIN": HERE + "/"}, False),
    ({"HTTP_ORIGIN": HERE + ":80"}, False),
    ({"HTTP_ORIGIN": HERE + ".evil.example"}, False),
    ({"HTTP_ORIGIN": HERE + "@evil.example"}, False),
    ({"HTTP_ORIGIN": "http://evil.example/" + HERE}, False),
    ({"HTTP_ORIGIN": "http://evil-localhost"}, False),
    ({"HTTP_ORIGIN": "localhost"}, False),
    ({"HTTP_ORIGIN": "http://evil.example", "HTTP_REFERER": HERE + "/"}, False),
    ({"HTTP_ORIGIN": "http://localhost:8080", "HTTP_HOST": "localhost:8080"}, True),
    ({"HTTP_ORIGIN": "http://localhost:8080"}, False),
    ({"HTTP_ORIGIN": "http://", "HTTP_HOST": ""}, False),
    ({"HTTP_ORIGIN": HERE, "HTTP_HOST": None}, False),
    ({"HTTP_ORIGIN": "http://[::1]:8080", "HTTP_HOST": "[::1]:8080"}, True),
    ({"HTTP_REFERER": HERE}, True),
    ({"HTTP_REFERER": HERE + "/a/page?x=http://evil.example"}, True),
    ({"HTTP_REFERER": "http://evil.example/?" + HERE + "/"}, False),
    ({"HTTP_REFERER": HERE + ".evil.example/"}, False),
    ({"HTTP_REFERER": HERE + "?x"}, False),
    ({"HTTP_REFERER": HERE + ":8080/"}, False),
    ({}, False),
    ({"HTTP_X_FORWARDED_HOST": "localhost", "HTTP_X_REQUESTED_WITH": "XMLHttpRequest"}, False),
]


@pytest.fixture(scope="module")
def cookie(site):
    return login(site.hanji, add(site.hanji, "origins"))


@pytest.mark.parametrize("headers,ok", ORIGINS, ids=str)
def test_where_a_write_was_asked_for(hanji, cookie, headers, ok):
    extra = {"HTTP_COOKIE": cookie, **headers}
    put = fastcgi.ask(hanji.socket, "PUT", "/docs/notes/origin", body=b"x", extra=extra)
    assert (put.status in (201, 204)) == ok and (put.status == 403) == (not ok)
    assert fastcgi.ask(hanji.socket, "GET", "/docs/notes/", extra=extra).status == 200, "reading is free"


def test_over_tls_the_origin_is_https(hanji, person):
    cookie = cookie_of(post_login(hanji, person, HTTPS="on"))
    for origin, status in (("https://localhost", 201), ("http://localhost", 403)):
        assert fastcgi.ask(hanji.socket, "PUT", "/docs/notes/" + person, body=b"x", extra={
            "HTTP_COOKIE": cookie, "HTTPS": "on", "HTTP_ORIGIN": origin}).status == status, origin


def test_reading_by_post_needs_the_origin_too(hanji, cookie):
    """A credential that a browser sends unasked and an unsafe method, whatever it does."""
    body = b'[{"op":"delete","key":"notes/absent"}]'
    answers = [fastcgi.ask(hanji.socket, "POST", "/batch", body=body, extra={
        "HTTP_COOKIE": cookie, "CONTENT_TYPE": "application/json", **extra}).status for extra in ({}, SAME)]
    assert answers == [403, 422]


def test_two_origins_are_malformed(hanji, cookie):
    for name, value in (("HTTP_ORIGIN", HERE), ("HTTP_SEC_FETCH_SITE", "same-origin"), ("HTTP_REFERER", HERE), ("HTTP_HOST", "localhost"),
                        ("HTTPS", "on")):
        parts = fastcgi.variables("PUT", "/docs/notes/x", body=b"x", extra={"HTTP_COOKIE": cookie, name: value}) + [(name, value)]
        with hanji.client() as client:
            client.send(fastcgi.request_of(parts, b"x"))
            assert client.answer().status == 400, name


@pytest.mark.parametrize("headers,status", [
    ({}, 200), (SAME, 200), ({"HTTP_ORIGIN": HERE}, 200), ({"HTTP_SEC_FETCH_SITE": "cross-site"}, 403), ({"HTTP_ORIGIN": "null"}, 403),
    ({"HTTP_REFERER": "http://evil.example/"}, 403)], ids=str)
def test_nobody_is_logged_in_by_another_site(hanji, headers, status):
    assert post_login(hanji, "alice", **headers).status == status


# ---- the end -----------------------------------------------------------------------------------------------------------


@pytest.mark.smoke
def test_logout(hanji, person):
    one, two = login(hanji, person), login(hanji, person)
    answer = ask(hanji, "POST", "/auth/logout", one)
    assert answer.status == 204 and answer.header("Set-Cookie") == "hanji_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax"
    assert who(hanji, one) is None and who(hanji, two) == person
    assert ask(hanji, "POST", "/auth/logout", one).status == 204


def test_logout_everywhere(hanji, person):
    cookies = [login(hanji, person) for _ in range(3)]
    other = login(hanji, "alice")
    answer = ask(hanji, "POST", "/auth/logout", cookies[0], b"everywhere=1", CONTENT_TYPE="application/x-www-form-urlencoded")
    assert answer.status == 204
    assert [who(hanji, cookie) for cookie in cookies] == [None] * 3 and who(hanji, other) == "alice"


def test_nobody_is_logged_out_by_another_site(hanji, person):
    cookie = login(hanji, person)
    for extra in ({"HTTP_SEC_FETCH_SITE": "cross-site"}, {"HTTP_SEC_FETCH_SITE": None}):
        assert ask(hanji, "POST", "/auth/logout", cookie, **extra).status == 403
    for extra in ({"HTTP_SEC_FETCH_SITE": "cross-site"}, {"HTTP_SEC_FETCH_SITE": None, "HTTP_ORIGIN": "http://evil.example"}):
        answer = ask(hanji, "POST", "/auth/logout", "", **extra)    # the browser keeps the cookie back, and would take the answer's
        assert answer.status == 403 and answer.header("Set-Cookie") is None
    assert ask(hanji, "GET", "/auth/logout", cookie).status == 405
    assert who(hanji, cookie) == person


def test_a_browser_logs_out(hanji, person):
    cookie = login(hanji, person)
    answer = ask(hanji, "POST", "/auth/logout", cookie, **BROWSER)
    assert answer.status == 303 and answer.header("Location") == "/auth/login" and "Max-Age=0" in answer.header("Set-Cookie")
    assert who(hanji, cookie) is None
    assert ask(hanji, "POST", "/auth/logout", cookie, **BROWSER).status == 303


@pytest.mark.parametrize("end", ["passwd", "remove", "logout", "sql session", "sql user"])
def test_a_session_ends(hanji, person, end):
    cookie, other = login(hanji, person), login(hanji, "alice")
    ends = {"passwd": lambda: hanji.command("user", "passwd", person, stdin="another password\n"),
            "remove": lambda: hanji.command("user", "remove", person), "logout": lambda: hanji.command("user", "logout", person),
            "sql session": lambda: hanji.command("sql", "DELETE FROM session WHERE user = (SELECT id FROM user WHERE name = '%s')" % person),
            "sql user": lambda: hanji.command("sql", "UPDATE user SET hash = '!' WHERE name = '%s'" % person)}
    ends[end]()
    assert who(hanji, cookie) is None and ask(hanji, "GET", "/docs/", cookie).status == 401
    assert who(hanji, other) == "alice"


def test_a_session_grows_old(hanji, person):
    cookie = login(hanji, person)

    def change(what, seconds):
        hanji.command("sql", "UPDATE session SET %s = %s + %d WHERE user = (SELECT id FROM user WHERE name = '%s')"
                      % (what, what, seconds, person))
    change("seen", -2 * WEEK + 100)
    assert who(hanji, cookie) == person, "used within session_idle"
    harness.wait_for("the note of its use", lambda: hanji.rows(
        "SELECT seen FROM session JOIN user ON user.id = session.user WHERE name = ?", person)[0][0] > time.time() - 100)
    change("seen", -2 * WEEK - 100)
    assert who(hanji, cookie) is None
    change("seen", 2 * WEEK)
    assert who(hanji, cookie) == person
    change("expires", -13 * WEEK)
    assert who(hanji, cookie) is None


def test_use_is_not_written_down_each_time(hanji, person):
    cookie = login(hanji, person)
    before = hanji.status()["burst"]["operations"]
    for _ in range(20):
        assert who(hanji, cookie) == person
    assert hanji.status()["burst"]["operations"] == before


def test_sessions_outlive_the_server(make_hanji):
    hanji = make_hanji()
    cookie = login(hanji, add(hanji, "alice"))
    hanji.stop()
    hanji.start()
    assert who(hanji, cookie) == "alice"


def test_a_full_disk_and_a_broken_one(make_hanji, slow):
    hanji = make_hanji(start=False)
    hanji.env = slow.env()
    hanji.start()
    hanji.token = hanji.new_token("full", read=["/"], write=["/"])
    cookie = login(hanji, add(hanji, "alice"))
    slow.set(full=True)
    try:
        assert post_login(hanji, "alice").status == 507
        assert ask(hanji, "POST", "/auth/logout", cookie).status == 507
        assert who(hanji, cookie) == "alice"
    finally:
        slow.set()
    assert ask(hanji, "POST", "/auth/logout", cookie).status == 204 and who(hanji, cookie) is None


# ---- the page ----------------------------------------------------------------------------------------------------------


def page(hanji, query="", **extra):
    return fastcgi.ask(hanji.socket, "GET", "/auth/login", query=query, extra={**BROWSER, "REQUEST_URI": "/auth/login", **extra})


def test_the_page(hanji):
    got = page(hanji)
    text = got.body.decode()
    assert got.status == 200 and got.header("Content-Type") == "text/html; charset=utf-8" and got.header("Cache-Control") == "no-store"
    for label in ('<form method="post" action="/auth/login">', '<label for="user">', '<label for="password">', 'type="password"',
                  'autocomplete="username"', 'autocomplete="current-password"', '<html lang="en">', "<title>Log in</title>"):
        assert label in text
    assert "<script" not in text and "http" not in text.replace("http-equiv", "")


def test_the_policy_names_the_style_of_the_page(hanji):
    got = page(hanji)
    style = re.search(rb"<style>(.*)</style>", got.body, re.S).group(1)
    digest = base64.b64encode(hashlib.sha256(style).digest()).decode()
    assert "style-src 'sha256-%s';" % digest in got.header("Content-Security-Policy")


def test_the_page_knows_who_is_logged_in(hanji, person):
    text = page(hanji, HTTP_COOKIE=login(hanji, person)).body.decode()
    assert "<title>Logged in</title>" in text
    assert "<b>%s</b>" % person in text and 'action="/auth/logout"' in text and 'name="password"' not in text


@pytest.mark.parametrize("uri,kept", [("/private/x?a=1&b", True), ("//evil.example", False), ("/a b", False),
                                      ("http://evil.example/", False), ("/auth/login", False), ("/auth/login?x", False), ("", False)])
def test_the_page_in_the_place_of_another(hanji, uri, kept):
    got = page(hanji, REQUEST_URI=uri)
    assert got.status == (401 if kept else 200)
    assert ('name="next"' in got.body.decode()) == kept and "evil" not in got.body.decode()
    if kept:
        assert 'value="%s"' % uri.replace("&", "&amp;") in got.body.decode()
        assert page(hanji, REQUEST_URI=uri, HTTP_ACCEPT="*/*").header("Content-Type") == "application/problem+json"


def test_a_wrong_password_shows_the_page_again(hanji):
    got = post_login(hanji, 'a"><script>&\'', "wrong wrong", "/docs/?a=1&b=2", **BROWSER)
    text = got.body.decode()
    assert got.status == 401 and got.header("WWW-Authenticate") and 'role="alert"' in text
    assert 'value="a&quot;&gt;&lt;script&gt;&amp;&#39;"' in text and "wrong wrong" not in text
    assert 'name="next" value="/docs/?a=1&amp;b=2"' in text


NEXT = [("/", True), ("/docs/a?b=c&d#e", True), ("/a%20b%2F%2F", True), ("/" + "x" * 2047, True), ("", True), ("/" + "x" * 2048, False),
        ("//evil.example", False), ("/\\evil.example", False), ("\\\\evil.example", False), ("https://evil.example/", False),
        ("evil.example", False), ("docs/", False), ("javascript:alert(1)", False), (" /", False), ("/ ", False), ("/\t/evil.example", False),
        ("/a\r\nSet-Cookie: x=y", False), ("/a\0b", False), ("/ä", False), ("/a\x7f", False), ("?a", False)]


@pytest.mark.parametrize("next_,ok", NEXT, ids=repr)
def test_where_a_login_may_lead(hanji, next_, ok):
    assert page(hanji, urllib.parse.urlencode({"next": next_})).status == (200 if ok else 400)
    got = post_login(hanji, "alice", next_=next_, **BROWSER)
    assert got.status == (303 if ok else 400)
    assert got.header("Location") == ((next_ or "/auth/login") if ok else None)
    assert (got.header("Set-Cookie") is not None) == ok


def test_an_error_shows_the_way(hanji):
    got = fastcgi.ask(hanji.socket, "GET", "/docs/a b/ä", query="x=1&y=<2>", extra=BROWSER)
    assert got.status == 401
    link = re.search(r'<a href="([^"]*)">Log in</a>', got.body.decode()).group(1)
    query = urllib.parse.parse_qs(urllib.parse.urlsplit(link).query)
    assert link.startswith("/auth/login?next=") and query == {"next": ["/docs/a%20b/%C3%A4?x=1&y=<2>"]}
    assert fastcgi.ask(hanji.socket, "GET", "/auth/login", query=urllib.parse.urlsplit(link).query, extra=BROWSER).status == 200
    assert b"<a href" not in fastcgi.ask(hanji.socket, "GET", "/docs/a", extra={"HTTP_ACCEPT": "application/json"}).body


# ---- through nginx -----------------------------------------------------------------------------------------------------


def through(site, source, method, path, body=None, headers=(), tls=False):
    """One request through nginx from an address of one's own."""
    port, authority = (site.nginx.tls_port, site.nginx.certificate[0]) if tls else (site.nginx.port, None)
    link = http1.Link("127.0.0.1", port, authority, mount=site.mount, source=source)
    try:
        return link.once(method, site.mount + path, body, dict(headers))
    finally:
        link.close()


FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def form(user, password=PASSWORD):
    return urllib.parse.urlencode({"user": user, "password": password})


@pytest.mark.parametrize("tls", [False, True])
def test_through_nginx(site, person, tls):
    scheme, port = ("https", site.nginx.tls_port) if tls else ("http", site.nginx.port)
    got = through(site, "127.0.2.1", "POST", "/auth/login", form(person), FORM, tls)
    cookie = cookie_of(got)
    assert cookie.startswith("__Host-") == tls and ("Secure" in got.header("Set-Cookie")) == tls
    assert through(site, "127.0.2.1", "GET", "/auth/session", headers={"Cookie": cookie}, tls=tls).json()["name"] == person
    own = "%s://127.0.0.1:%d" % (scheme, port)
    for origin, status in ((own, 201), ("%s://127.0.0.1" % scheme, 403), ("http://evil.example", 403)):
        assert through(site, "127.0.2.1", "PUT", "/docs/notes/%s-%s" % (person, tls), b"x", {"Cookie": cookie, "Origin": origin},
                       tls).status == status
    assert through(site, "127.0.2.1", "POST", "/auth/logout", b"", {"Cookie": cookie, "Origin": own}, tls).status == 204
    assert through(site, "127.0.2.1", "GET", "/auth/session", headers={"Cookie": cookie}, tls=tls).status == 401


def test_the_limit_of_logins(site, hanji, person):
    mark = hanji.mark()
    answers = [through(site, "127.0.3.1", "POST", "/auth/login", form(person, "wrong wrong"), FORM) for _ in range(9)]
    assert [answer.status for answer in answers] == [401] * 6 + [429] * 3
    assert answers[-1].json()["status"] == 429 and answers[-1].header("Content-Type") == "application/problem+json"
    assert int(answers[-1].header("Retry-After")) > 0
    assert hanji.log_since(mark).count('address="127.0.3.1"') == 6
    assert through(site, "127.0.3.1", "GET", "/auth/login").status == 200, "looking at the page is free"
    assert through(site, "127.0.3.2", "POST", "/auth/login", form(person), FORM).status == 200, "others are not concerned"


def test_a_large_login_is_refused(site):
    got = through(site, "127.0.2.2", "POST", "/auth/login", b"x" * 9000, FORM)
    assert got.status == 413 and got.json()["status"] == 413


def test_below_a_mount(make_site):
    site = make_site("/h")
    add(site.hanji, "alice")
    got = through(site, "127.0.2.3", "POST", "/auth/login", form("alice"), {**FORM, "Accept": "text/html"})
    assert got.status == 303 and got.header("Location") == "/h/auth/login"
    cookie = cookie_of(got)
    assert cookie.startswith("hanji_session_2fh=")
    text = through(site, "127.0.2.3", "GET", "/auth/login", headers={"Cookie": cookie}).body.decode()
    assert 'action="/h/auth/logout"' in text
    got = through(site, "127.0.2.3", "GET", "/docs/notes/x", headers={"Accept": "text/html"})
    assert b'<a href="/h/auth/login?next=/h/docs/notes/x">' in got.body
    assert through(site, "127.0.2.3", "GET", "/docs/", headers={"Cookie": cookie}).status == 200


REAL_IP = """
    set_real_ip_from 127.0.5.1;
    set_real_ip_from 10.0.0.0/8;
    real_ip_header X-Forwarded-For;
    real_ip_recursive on;
"""


def test_behind_another_proxy(make_site):
    """The address that a trusted proxy names counts; what anybody else says about himself does not."""
    site = make_site()
    add(site.hanji, "alice")
    conf = site.nginx.base / "upstream.conf"
    conf.write_text(conf.read_text() + REAL_IP)
    site.nginx.stop()
    site.nginx.start()

    def addresses(source, forwarded):
        mark = site.hanji.mark()
        statuses = [through(site, source, "POST", "/auth/login", form("alice", "wrong wrong"), {**FORM, "X-Forwarded-For": value}).status
                    for value in forwarded]
        return statuses, re.findall(r'address="([^"]*)"', site.hanji.log_since(mark))
    assert addresses("127.0.5.1", ["192.0.2.1", "192.0.2.2, 10.1.1.1", "198.51.100.9, 192.0.2.3"]) == (
        [401] * 3, ["192.0.2.1", "192.0.2.2", "192.0.2.3"])
    statuses, logged = addresses("127.0.5.2", ["192.0.2.%d" % i for i in range(9)])
    assert statuses == [401] * 6 + [429] * 3 and set(logged) == {"127.0.5.2"}
    statuses, logged = addresses("127.0.5.1", ["203.0.113.1"] * 8)
    assert statuses == [401] * 6 + [429] * 2 and set(logged) == {"203.0.113.1"}
