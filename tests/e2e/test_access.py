"""Who may do what: tokens, prefixes and their borders, public collections, and what is left in the file."""
import base64
import re
import stat
import time

import pytest

import fastcgi

TOKEN = re.compile(r"hanji_[A-Za-z0-9_-]{43}\Z")


@pytest.fixture(scope="module")
def tokens(site):
    """Tokens by name."""
    hanji = site.hanji
    made = {
        "notes reader": hanji.new_token("notes-reader", read=["notes/"]),
        "notes writer": hanji.new_token("notes-writer", write=["notes/"]),
        "notes both": hanji.new_token("notes-both", read=["notes/"], write=["notes/"]),
        "exact": hanji.new_token("exact", read=["notes"], write=["notes"]),
        "by path": hanji.new_token("by-path", read=["/docs/notes/"], write=["/docs/notes/"]),
        "all documents": hanji.new_token("all-documents", read=[""], write=[""]),
        "everything to read": hanji.new_token("everything-to-read", read=["/"]),
        "monitor": hanji.new_token("monitor", read=["/metrics", "/status"]),
        "several": hanji.new_token("several", read=["a/", "b/c/"], write=["b/"]),
        "odd": hanji.new_token("odd", read=["ä/", "a b/"], write=["ä/", "a b/"]),
        "elsewhere": hanji.new_token("elsewhere", read=["elsewhere/"], write=["elsewhere/"]),
    }
    for name in ("notes/a", "notes/deep/a", "notes", "notes2", "notes2/a", "notes.txt", "a/x", "b/x", "b/c/x", "other"):
        assert site.put("/docs/" + name, name.encode()).status in (201, 204)
    return made


def rights(site, token, path):
    """Which of read and write this token has there, as "rw", "r", "w" or ""; checked with GET, HEAD, PUT, DELETE."""
    read = site.get(path, token=token).status
    assert read in (200, 403, 404) and (site.head(path, token=token).status == read)
    if path.endswith("/"):
        return "r" if read == 200 else ""
    write = site.put(path, b"again", token=token).status
    assert write in (201, 204, 403)
    assert (site.delete(path, token=token).status == 403) == (write == 403)
    site.put(path, b"restored")
    return ("r" if read != 403 else "") + ("w" if write != 403 else "")


RIGHTS = [
    ("notes reader", "notes/a", "r"), ("notes reader", "notes/deep/a", "r"), ("notes reader", "notes/", "r"),
    ("notes reader", "notes/deep/", "r"), ("notes reader", "notes", ""), ("notes reader", "notes2", ""),
    ("notes reader", "notes2/a", ""), ("notes reader", "notes.txt", ""), ("notes reader", "other", ""),
    ("notes reader", "", ""), ("notes reader", "Notes/a", ""), ("notes reader", "not", ""),
    ("notes writer", "notes/a", "w"), ("notes writer", "notes/new", "w"), ("notes writer", "notes/", ""),
    ("notes writer", "notes", ""), ("notes writer", "notes2/a", ""), ("notes both", "notes/a", "rw"),
    ("notes both", "other", ""), ("exact", "notes", "rw"), ("exact", "notes/a", "rw"), ("exact", "notes/", "r"),
    ("exact", "notes2", ""), ("exact", "notes2/a", ""), ("exact", "notes.txt", ""), ("exact", "note", ""),
    ("by path", "notes/a", "rw"), ("by path", "notes", ""), ("by path", "notes2/a", ""), ("by path", "other", ""),
    ("all documents", "notes/a", "rw"), ("all documents", "other", "rw"), ("all documents", "", "r"),
    ("everything to read", "other", "r"), ("everything to read", "", "r"),
    ("monitor", "other", ""), ("monitor", "", ""),
    ("several", "a/x", "r"), ("several", "b/x", "w"), ("several", "b/c/x", "rw"), ("several", "b/c/", "r"),
    ("several", "b/", ""), ("odd", "%C3%A4/x", "rw"), ("odd", "a%20b/x", "rw"), ("odd", "a+b/x", ""),
    ("odd", "a%CC%88/x", ""), ("elsewhere", "other", ""), ("elsewhere", "", ""),
]


@pytest.mark.parametrize("name,key,may", RIGHTS)
def test_rights(site, tokens, name, key, may):
    assert rights(site, tokens[name], "/docs/" + key) == may


@pytest.mark.parametrize("spelling", ["notes%2Fa", "other/../notes/a", "//notes//a", "./notes/a", "%6eotes/a"])
def test_a_spelling_gives_no_other_right(site, tokens, spelling):
    assert site.get("/docs/" + spelling, token=tokens["notes reader"]).status == 200


@pytest.mark.parametrize("spelling",
                         ["notes/../other", "notes/%2e%2e/other", "notes%2F..%2Fother", "notes/deep/../../other"])
def test_dots_do_not_lead_out_of_a_prefix(site, tokens, spelling):
    assert site.get("/docs/" + spelling, token=tokens["notes reader"]).status == 403
    assert site.put("/docs/" + spelling, b"x", token=tokens["notes both"]).status == 403


@pytest.mark.parametrize("name,path,status", [
    ("monitor", "/status", 200), ("monitor", "/metrics", 200), ("everything to read", "/status", 200),
    ("everything to read", "/metrics", 200), ("notes both", "/status", 403), ("notes both", "/metrics", 403),
    ("all documents", "/status", 403), ("all documents", "/metrics", 403), ("elsewhere", "/metrics", 403),
    ("elsewhere", "/health", 200)])
def test_status_and_metrics_need_their_own_right(site, tokens, name, path, status):
    assert site.get(path, token=tokens[name]).status == status


@pytest.mark.smoke
def test_no_credential(site, box):
    site.put(box + "k", b"x")
    for method in ("GET", "HEAD", "PUT", "DELETE"):
        got = site.http(method, box + "k", b"x" if method == "PUT" else None, token=None)
        assert got.status == 401, (method, got)
        assert got.header("WWW-Authenticate").lower().startswith("bearer")
    for path in (box, "/docs/", "/status", "/metrics", box + "missing"):
        got = site.get(path, token=None)
        assert got.status == 401 and got.header("WWW-Authenticate")
    assert site.get(box + "k").body == b"x"
    assert site.get(box + "k", token=None).json()["status"] == 401


def test_forbidden_is_not_unauthenticated(site, tokens):
    got = site.get("/docs/other", token=tokens["notes reader"])
    assert got.status == 403 and got.header("WWW-Authenticate") is None
    assert got.json()["status"] == 403


def test_a_forbidden_document_does_not_tell_whether_it_is_there(site, tokens):
    here, missing = (site.get("/docs/" + key, token=tokens["notes reader"]) for key in ("other", "missing-other"))
    assert here.status == missing.status == 403
    assert here.json()["detail"].replace("other", "") == missing.json()["detail"].replace("missing-other", "")


def near_misses(token):
    yield from (token[:-1], token + "x", token[:-1] + ("A" if token[-1] != "A" else "B"), token.swapcase(), token[6:],
                "hanji_", "hanji_" + "A" * 43, "hanji-" + token[6:], token + "=", token.upper(),
                token[:10] + "*" + token[11:], "x" * 5000, token + " " + token, token + "," + token)


def test_tokens_that_are_none(site, box):
    site.put(box + "k", b"x")
    for wrong in near_misses(site.token):
        got = site.get(box + "k", token=wrong)
        assert got.status == 401 and "Bearer" in got.header("WWW-Authenticate"), wrong


@pytest.mark.parametrize("header",
                         ["", "Bearer", "Bearer ", "Basic {0}", "{0}", "Bearer={0}", "Bearer:{0}", "Bearer\"{0}\"",
                          "Bearer {0} x", "Token {0}", "BearerX {0}", "Negotiate", "Bearer {0}\x01", "Bearer \xff",
                          "Bearer\t\t", ", Bearer {0}", "Digest username=x"])
def test_headers_that_are_no_bearer_token(site, box, header):
    got = site.get(box + "k", {"Authorization": header.format(site.token)}, token=None)
    assert got.status in (400, 401), got


def test_basic_with_a_token_as_password(site, box):
    pair = base64.b64encode(("x:" + site.token).encode()).decode()
    assert site.get(box, {"Authorization": "Basic " + pair}, token=None).status in (200, 401)


@pytest.mark.parametrize("scheme", ["bearer", "BEARER", "bEaReR", "Bearer "])
def test_the_scheme_is_case_insensitive(site, box, scheme):
    assert site.get(box, {"Authorization": scheme + " " + site.token}, token=None).status == 200


def test_a_token_elsewhere_is_none(site, box):
    for path, headers in ((box + "?access_token=" + site.token, {}), (box + "?token=" + site.token, {}),
                          (box, {"X-Authorization": "Bearer " + site.token}), (box, {"Cookie": "token=" + site.token})):
        assert site.get(path, headers, token=None).status == 401


def test_two_authorizations(site, box):
    """nginx refuses a repeated Authorization header itself; on the socket it is ours to refuse."""
    for first, second in ((site.token, "x"), ("x", site.token), (site.token, site.token)):
        with site.hanji.client() as client:
            twice = [("HTTP_AUTHORIZATION", "Bearer " + token) for token in (first, second)]
            client.send(fastcgi.request_of(fastcgi.variables("GET", box) + twice))
            assert client.answer().status == 400


def test_other_variables_give_no_right(site, box):
    for extra in ({"REMOTE_USER": "root"}, {"HTTP_X_USER": "root"}, {"AUTHORIZATION": "Bearer " + site.token},
                  {"HTTP_PROXY": "x"}, {"REMOTE_ADDR": ""}, {"HTTP_HOST": "localhost"},
                  {"http_authorization": "Bearer " + site.token}, {"HTTP_AUTHORIZATION ": "Bearer " + site.token}):
        assert site.hanji.ask("GET", box, token=None, extra=extra).status == 401, extra


# public collections (the shared site has public = pub/,open/)

def test_public_collections_are_readable_by_all(site):
    for name in ("pub/a", "open/deep/a"):
        site.put("/docs/" + name, b"x")
        assert site.get("/docs/" + name, token=None).body == b"x"
        assert site.head("/docs/" + name, token=None).status == 200
    assert site.get("/docs/pub/", token=None).status == 200
    assert site.get("/docs/pub/missing", token=None).status == 404


def test_public_collections_are_writable_by_none(site, tokens):
    site.put("/docs/pub/a", b"x")
    assert site.put("/docs/pub/a", b"y", token=None).status == 401
    assert site.delete("/docs/pub/a", token=None).status == 401
    assert site.put("/docs/pub/a", b"y", token=tokens["notes both"]).status == 403
    assert site.get("/docs/pub/a", token=tokens["notes both"]).body == b"x"


@pytest.mark.parametrize("key",
                         ["pub", "pub2", "pub2/a", "public/a", "pu", "Pub/a", "openx", "", "x/pub/a",
                          "pub%2F..%2Fother", "pub/../other"])
def test_the_border_of_a_public_collection(site, key):
    assert site.get("/docs/" + key, token=None).status == 401


# the life of a token

@pytest.mark.smoke
def test_a_revoked_token_stops_at_the_next_request(site, box):
    token = site.hanji.new_token("short-lived", read=["/"], write=["/"])
    assert TOKEN.match(token)
    link = site.link()
    headers = {"Authorization": "Bearer " + token}
    assert link.once("PUT", box + "k", b"x", headers).status == 201
    assert link.once("GET", box + "k", None, headers).status == 200
    site.hanji.command("token", "revoke", "short-lived")
    assert link.once("GET", box + "k", None, headers).status == 401
    assert link.once("PUT", box + "k", b"y", headers).status == 401
    assert link.once("DELETE", box + "k", None, headers).status == 401
    link.close()
    assert site.get(box + "k").body == b"x"


def test_a_revoked_token_stops_on_every_thread(make_hanji):
    hanji = make_hanji(threads=4)
    token = hanji.new_token("t", read=["/"])
    clients = [hanji.client() for _ in range(16)]
    try:
        assert all(client.ask("GET", "/docs/", token).status == 200 for client in clients)
        hanji.command("token", "revoke", "t")
        assert all(client.ask("GET", "/docs/", token).status == 401 for client in clients)
    finally:
        for client in clients:
            client.close()


def test_a_name_can_be_given_again_after_a_revocation(site):
    first = site.hanji.new_token("again", read=["/"])
    site.hanji.command("token", "revoke", "again")
    second = site.hanji.new_token("again", read=["/"])
    assert first != second
    assert site.get("/docs/", token=first).status == 401
    assert site.get("/docs/", token=second).status == 200


def test_a_name_is_taken_once(site):
    first = site.hanji.new_token("unique", read=["/"])
    again = site.hanji.command("token", "new", "--name", "unique", "--read", "", ok=False)
    assert again.returncode == 1 and again.stdout == "" and "name" in again.stderr
    assert site.get("/docs/", token=first).status == 200


def test_revoking_what_is_not_there(site):
    done = site.hanji.command("token", "revoke", "nobody", ok=False)
    assert done.returncode == 1 and done.stdout == "" and "name" in done.stderr


def lines_of(hanji):
    rows = [line.split("\t") for line in hanji.command("token", "list").stdout.splitlines()]
    assert [word.lower() for word in rows[0]] == ["name", "read", "write", "created", "expires"]
    return {row[0]: row[1:] for row in rows[1:]}


def test_the_list_shows_everything_but_the_token(site):
    token = site.hanji.new_token("listed", read=["a/", "b"], write=["c/"], expires="30d")
    listed = lines_of(site.hanji)["listed"]
    assert "a/" in listed[0] and "b" in listed[0] and "c/" in listed[1] and "a/" not in listed[1]
    assert re.match(r"\d{4}-\d\d-\d\d", listed[2]) and re.match(r"\d{4}-\d\d-\d\d", listed[3])
    text = site.hanji.command("token", "list").stdout
    assert token not in text and token[6:] not in text


@pytest.mark.parametrize("when,seconds", [("30d", 30 * 86400), ("12h", 12 * 3600), ("90m", 90 * 60), ("1m", 60)])
def test_how_long_a_token_lives(site, when, seconds):
    before = time.time()
    site.hanji.new_token("expiry-" + when, read=["/"], expires=when)
    (expires,), = site.hanji.rows("SELECT expires FROM token WHERE name = ?", "expiry-" + when)
    assert before + seconds - 1 <= expires <= time.time() + seconds + 1


def test_a_date_as_expiry(site):
    token = site.hanji.new_token("by-date", read=["/"], expires="2099-01-31")
    (expires,), = site.hanji.rows("SELECT expires FROM token WHERE name = 'by-date'")
    assert abs(expires - 4073500800) <= 86400 * 2       # that day, in some zone, its begin or its end
    assert site.get("/docs/", token=token).status == 200


@pytest.mark.parametrize("when",
                         ["", "x", "d", "30", "-1d", "1.5d", "30d ", "2026-02-30", "2026-13-01", "31-01-2027", "0d",
                          "99999999999999d", "1y2", "2001-01-31"])
def test_expiries_that_are_none(site, when):
    done = site.hanji.command("token", "new", "--name", "bad-expiry", "--read", "/", "--expires", when, ok=False)
    assert done.returncode in (1, 2) and done.stdout == "" and done.stderr
    assert "bad-expiry" not in lines_of(site.hanji)


def test_an_expired_token_is_none(make_hanji):
    """Its time is moved into the past by another program, while the server is down and while it runs."""
    hanji = make_hanji()
    token = hanji.new_token("old", read=["/"], expires="1m")
    assert hanji.ask("GET", "/docs/", token=token).status == 200
    hanji.stop()
    link = hanji.sqlite(readonly=False)
    link.execute("UPDATE token SET expires = ? WHERE name = 'old'", (int(time.time()) + 2,))
    link.close()
    hanji.start()
    assert hanji.ask("GET", "/docs/", token=token).status == 200
    time.sleep(max(0, 2.2 - time.time() % 1) + 1)
    assert hanji.ask("GET", "/docs/", token=token).status == 401
    assert hanji.ask("GET", "/docs/").status == 200


def test_commands_without_a_server(make_hanji):
    """Straight into the file, which is made when there is none."""
    hanji = make_hanji(start=False)
    token = hanji.new_token("first", read=["/"], write=["/"])
    assert TOKEN.match(token)
    assert set(lines_of(hanji)) == {"first"}
    second = hanji.new_token("second", read=["/"])
    hanji.command("token", "revoke", "second")
    assert set(lines_of(hanji)) == {"first"}
    hanji.start()
    assert hanji.ask("PUT", "/docs/k", token=token, body=b"x").status == 201
    assert hanji.ask("GET", "/docs/k", token=second).status == 401
    third = hanji.new_token("third", read=["/"])
    hanji.stop()
    assert set(lines_of(hanji)) == {"first", "third"}
    hanji.start()
    assert hanji.ask("GET", "/docs/k", token=third).body == b"x"


@pytest.mark.parametrize("args", [
    [], ["--read", "/"], ["--name"], ["--name", "y"], ["--name", ""], ["--name", "a\tb"], ["--name", "a\nb"],
    ["--name", "x" * 10000],
    ["--name", "y", "--read"], ["--name", "y", "--nonsense", "/"], ["--name", "y", "--read", "a\nb"],
    ["--name", "y", "--read", "a/../b"], ["--name", "y", "--read", "/docs/../x"], ["--name", "y", "--read", "a//b"],
    ["--name", "y", "--read", "\udcff"], ["--name", "y", "extra"]])
def test_wrong_ways_to_make_a_token(site, args):
    done = site.hanji.command("token", "new", *args, ok=False)
    assert done.returncode in (1, 2) and done.stdout == "" and done.stderr, done
    assert "y" not in lines_of(site.hanji)


def test_a_token_is_never_in_the_file(site):
    secret = site.hanji.new_token("secret", read=["/"], write=["/"])
    assert site.get("/docs/", token=secret).status == 200
    raw = base64.urlsafe_b64decode(secret[6:] + "=")
    assert len(raw) == 32
    for path in site.hanji.base.iterdir():
        if path.is_file():
            data = path.read_bytes()
            assert secret[6:].encode() not in data and raw not in data and raw.hex().encode() not in data.lower(), path
    for log in (site.nginx.errors, site.nginx.access):
        assert secret[6:] not in log.read_text()


def test_tokens_differ(site):
    made = {site.hanji.new_token("differ%d" % i, read=["/"]) for i in range(5)}
    assert len(made) == 5 and all(TOKEN.match(token) for token in made)


def test_files_are_not_for_all(site):
    """The control socket is the owner's; the database is not for others."""
    control = site.hanji.database.with_name("hanji.db.control").stat()
    assert stat.S_ISSOCK(control.st_mode) and stat.S_IMODE(control.st_mode) == 0o600
    for suffix in ("", "-wal", "-shm"):
        mode = site.hanji.database.with_name("hanji.db" + suffix).stat().st_mode
        assert not mode & 0o007, (suffix, oct(mode))
    assert stat.S_IMODE(site.hanji.socket.stat().st_mode) == 0o660
