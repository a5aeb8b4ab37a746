"""The console: who sees it, what it shows and never shows, and how documents are written with it."""
import base64
import html
import itertools
import pathlib
import re
import shutil
import urllib.parse

import pytest

import harness
import test_login

NUMBERS = itertools.count(1)
PAGE = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
DATA = {"Accept": "application/json"}
SAME = {"Sec-Fetch-Site": "same-origin"}
PAGES = ["", "docs", "search?q=a", "changes", "apps", "tokens", "people", "health", "edit"]
ODD = ["100%", "what?", "a#b", "it's \"so\"", "<b>&amp;", "plus+and space", "שלום/عربى", "ü/ä ö", "semi;colon&x=1", "%2e%2e/x"]


def url(key):
    return urllib.parse.quote(key, safe="")


@pytest.fixture
def place(site):
    """A folder of this test's own."""
    return "console%d/" % next(NUMBERS)


def page(site, path, status=200, **more):
    answer = site.get("/console/" + path, PAGE, **more)
    assert answer.status == status, answer
    assert answer.header("Content-Type") == "text/html; charset=utf-8"
    return answer.body.decode()


def data(site, path, **more):
    answer = site.get("/console/" + path, DATA, **more)
    assert answer.status == 200, answer
    return answer.json()


def post(site, path, fields, headers=None, **more):
    return site.http("POST", "/console/" + path, urllib.parse.urlencode(fields).encode(),
                     {"Content-Type": "application/x-www-form-urlencoded", **PAGE, **SAME, **(headers or {})}, **more)


def put(site, key, body, type_="text/plain; charset=utf-8"):
    answer = site.put("/docs/" + urllib.parse.quote(key), body, {"Content-Type": type_})
    assert answer.status in (201, 204), answer
    return int(answer.header("ETag").strip('"'))


def names(site, path):
    return [row["name"] + "/" * row["folder"] for row in data(site, path)["items"]]


# ---- who sees it


@pytest.mark.smoke
@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_there(site, path):
    got = page(site, path)
    assert "<h1>" in got and got.rstrip().endswith("</html>")


def test_without_a_slash_one_is_led_on(site):
    answer = site.get("/console", token=None)
    assert answer.status == 308 and answer.header("Location") == "/console/"


@pytest.mark.parametrize("path", PAGES + ["static/console.js", "doc?key=a", "person?name=alice"])
def test_nothing_without_a_credential(site, path):
    assert site.get("/console/" + path, DATA, token=None).status == 401


def test_who_is_not_logged_in_gets_the_page_for_that_and_comes_back(site):
    answer = site.get("/console/docs?in=a%2Fb", PAGE, token=None)
    assert answer.status == 401 and b'name="password"' in answer.body
    assert b'name="next" value="/console/docs?in=a%2Fb"' in answer.body


def test_a_right_to_documents_is_none_to_the_console(site):
    token = site.hanji.new_token("docs%d" % next(NUMBERS), read=["/docs/"], write=["/docs/"])
    assert site.get("/console/", DATA, token=token).status == 403
    assert post(site, "edit", {"key": "x", "body": "y", "type": "text/plain"}, token=token).status == 403


def test_who_may_read_it_may_not_write(site, place):
    token = site.hanji.new_token("look%d" % next(NUMBERS), read=["/console/"])
    seq = put(site, place + "a", b"x")
    assert site.get("/console/", DATA, token=token).status == 200
    for path, fields in (("edit", {"key": place + "b", "body": "y", "type": "text/plain"}), ("delete", {"key": place + "a", "seq": seq}),
                         ("tokens", {"name": "mine", "read": "/"}), ("revoke", {"name": "full"}), ("person", {"name": "alice"})):
        assert post(site, path, fields, token=token).status == 403, path
    assert site.get("/docs/" + place + "a").body == b"x"
    assert not site.hanji.rows("SELECT 1 FROM token WHERE name = 'mine'")


@pytest.mark.parametrize("headers", [{"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"},
                                     {"Sec-Fetch-Site": "", "Origin": "http://evil.example"}])
def test_a_page_of_another_site_writes_nothing(site, place, headers):
    cookie = test_login.login(site.hanji, "alice")
    headers = {name: value for name, value in {**SAME, "Cookie": cookie, **headers}.items() if value}
    answer = site.http("POST", "/console/edit", b"key=%sx&type=text/plain&body=y" % place.encode(),
                       {"Content-Type": "application/x-www-form-urlencoded", **headers}, token=None)
    assert answer.status == 403
    assert site.get("/docs/" + place + "x").status == 404


def test_no_script_but_its_own(site):
    policy = site.get("/console/", PAGE).header("Content-Security-Policy")
    assert "default-src 'none'" in policy and "script-src 'self'" in policy and "unsafe" not in policy
    for path in PAGES:
        got = page(site, path)
        assert not re.search(r"<script(?! src=\"[^\"]*/console/static/console\.js\" defer></script>)|<style|\sstyle=|\son\w+=", got), path
        assert not re.search(r"(?:src|href|action)=\"(?:https?:|//)", got), path


def test_its_files_are_sent_with_their_types(site):
    for name, type_ in (("console.css", "text/css"), ("console.js", "javascript")):
        answer = site.get("/console/static/" + name)
        assert answer.status == 200 and type_ in answer.header("Content-Type") and len(answer.body) > 1000
    assert site.get("/console/static/none.css").status == 404


@pytest.mark.parametrize("path", ["app.ini", "index.get.sql", "_layout.html", "static/../app.ini", "static/", "static", "nothing"])
def test_what_it_is_made_of_is_no_address(site, path):
    assert site.get("/console/" + path).status == 404


def test_it_is_no_app_beside_the_others(site):
    assert site.get("/apps/console/").status == 404


def test_pages_are_not_kept_by_anybody(site):
    assert "no-" in site.get("/console/docs", PAGE).header("Cache-Control")


# ---- what it never shows


def test_no_hash_and_no_secret_on_any_page(site, place):
    """Every page and its data, searched for every hash and secret of the file, in the forms that bytes are shown in."""
    put(site, place + "a", b"x")
    cookie = test_login.login(site.hanji, "alice")
    assert cookie
    secrets = [bytes(row[0]) for row in site.hanji.rows("SELECT hash FROM token UNION ALL SELECT hash FROM session")]
    secrets += [row[0].encode() for row in site.hanji.rows("SELECT hash FROM user")]
    secrets += [bytes(row[0]) for row in site.hanji.rows("SELECT value FROM secret")]
    forms = [form for secret in secrets for form in (secret, secret.hex().encode(), secret.hex().upper().encode(),
                                                     base64.b64encode(secret), base64.urlsafe_b64encode(secret).rstrip(b"="))]
    assert len(secrets) > 3
    for path in PAGES + ["doc?key=" + url(place + "a"), "person?name=alice", "revoke?name=full", "delete?key=" + url(place + "a")]:
        for headers in (PAGE, DATA):
            body = site.get("/console/" + path, headers).body
            assert not [form for form in forms if form in body], path
            assert b"argon2" not in body.lower(), path


def test_the_hash_is_not_to_be_had_by_csv(site):
    answer = site.get("/console/tokens?format=csv&result=items")
    assert answer.status == 200 and b"hash" not in answer.body


# ---- documents


def test_a_folder_is_one_entry_however_much_is_in_it(site, place):
    for key in ("b", "a/1", "a/2", "a/sub/3", "a"):
        put(site, place + key, b"x")
    assert names(site, "docs?in=" + url(place)) == ["a", "a/", "b"]
    assert names(site, "docs?in=" + url(place + "a/")) == ["1", "2", "sub/"]
    assert names(site, "docs?in=" + url(place + "a")) == ["1", "2", "sub/"]


def test_pages_of_a_folder_have_everything_once_and_lead_back(site, place):
    for i in range(130):
        put(site, "%s%03d" % (place, i), b"x")
    for i in range(0, 130, 2):
        put(site, "%s%03d/below" % (place, i), b"x")
    path, seen, starts = "docs?in=" + url(place), [], []
    while path:
        got = data(site, path)
        seen += [row["name"] + "/" * row["folder"] for row in got["items"]]
        starts.append((path, got["more"][0]["prev_url"]))
        path = got["more"][0]["next_url"] and "docs?in=%s&from=%s" % (url(place), got["more"][0]["next_url"])
    assert len(seen) == len(set(seen)) == 195 and len(starts) == 2
    assert starts[0][1] is None
    back = data(site, "docs?in=%s&from=%s" % (url(place), starts[1][1]))
    assert [row["name"] for row in back["items"]] == [name.rstrip("/") for name in seen[:100]]


@pytest.mark.parametrize("key", ODD)
def test_odd_keys_work_in_every_link(site, place, key):
    key = place + key
    seq = put(site, key, b"odd")
    folder = key.rpartition("/")[0] + "/"
    for path in ("docs?in=" + url(folder), "changes"):
        links = [html.unescape(link) for link in re.findall(r'href="([^"]+)"', page(site, path))]
        mine = [link for link in links if link.startswith("/console/doc?key=") and urllib.parse.unquote(link.partition("=")[2]) == key]
        assert mine, (path, links)
        shown = site.get(mine[0], PAGE)
        assert shown.status == 200 and html.escape(key, quote=False) in shown.body.decode().replace("&quot;", '"').replace("&#39;", "'")
    links = [html.unescape(link) for link in re.findall(r'href="([^"]+)"', shown.body.decode())]
    raw = [link for link in links if link.startswith("/docs/")]
    assert raw and all(site.get(link).body == b"odd" for link in raw)
    edit = [link for link in links if link.startswith("/console/edit?")]
    assert html.escape(key, quote=False) in site.get(edit[0], PAGE).body.decode().replace("&quot;", '"').replace("&#39;", "'")
    assert post(site, "edit", {"key": key, "seq": seq, "type": "text/plain", "body": "again"}).status == 303
    seq = int(site.get("/docs/" + urllib.parse.quote(key)).header("ETag").strip('"'))
    assert post(site, "delete", {"key": key, "seq": seq}).status == 303
    assert site.get("/docs/" + urllib.parse.quote(key)).status == 404


def test_what_a_document_says_is_text(site, place):
    evil = "<script>alert(1)</script><img src=x onerror=alert(2)></pre></textarea>{{_app}}\"'"
    put(site, place + "evil.html", evil.encode(), "text/html")
    for path in ("doc?key=", "edit?key="):
        got = page(site, path + url(place + "evil.html"))
        assert "alert(1)" in got and "<script>alert" not in got and "<img src=x" not in got and got.count("</pre>") <= 1 and "{{_app}}" in got


def test_json_is_indented_and_not_changed(site, place):
    put(site, place + "a.json", b'{"n":1.50,"big":12345678901234567890,"list":[],"deep":{"s":"a,b:{\\"}"}}', "application/json")
    got = data(site, "doc?key=" + url(place + "a.json"))["text"][0]["body"]
    assert got == '{\n  "n": 1.50,\n  "big": 12345678901234567890,\n  "list": [],\n  "deep": {\n    "s": "a,b:{\\"}"\n  }\n}'


def test_deep_json_is_shown_all_the_same(site, place):
    put(site, place + "deep.json", b"[" * 900 + b"]" * 900, "application/json")
    assert data(site, "doc?key=" + url(place + "deep.json"))["text"][0]["body"].startswith("[\n  [")


def test_an_image_is_shown_by_its_own_address(site, place):
    put(site, place + "a.svg", b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>", "image/svg+xml")
    got = page(site, "doc?key=" + url(place + "a.svg"))
    assert '<img src="/docs/%sa.svg"' % place in got and "<script>alert" not in got


def test_bytes_are_not_shown_as_text(site, place):
    put(site, place + "a.bin", bytes(range(256)), "application/octet-stream")
    got = data(site, "doc?key=" + url(place + "a.bin"))
    assert got["text"] == [] and not got["doc"][0]["editable"]


def test_of_a_long_text_the_beginning_is_shown(site, place):
    put(site, place + "long", ("ä" * 50000 + "THE END").encode())
    got = data(site, "doc?key=" + url(place + "long"))
    assert got["text"] == [{"body": "ä" * 32768, "cut": 1}]
    assert "THE END" not in page(site, "doc?key=" + url(place + "long"))


@pytest.mark.parametrize("n", [65535, 65534, 65533])
def test_the_beginning_ends_with_a_whole_character(site, place, n):
    put(site, place + "cut", ("x" * n + "😀tail").encode())
    assert data(site, "doc?key=" + url(place + "cut"))["text"][0]["body"] == "x" * n


@pytest.mark.parametrize("path", ["doc", "doc?key=", "doc?key=none%2Fat%2Fall", "delete?key=none", "revoke?name=none", "person?name=none"])
def test_what_is_not_there_is_404(site, path):
    assert site.get("/console/" + path, PAGE).status == 404


# ---- writing them


def test_a_new_document(site, place):
    answer = post(site, "edit", {"key": place + "new", "seq": "", "type": "text/plain", "body": "one\r\ntwo"})
    assert answer.status == 303 and answer.header("Location") == "/console/doc?key=" + url(place + "new")
    got = site.get("/docs/" + place + "new")
    assert (got.body, got.header("Content-Type")) == (b"one\ntwo", "text/plain")


def test_a_new_one_does_not_take_the_place_of_another(site, place):
    put(site, place + "a", b"mine")
    answer = post(site, "edit", {"key": place + "a", "seq": "", "type": "text/plain", "body": "theirs"})
    assert answer.status == 409 and b"theirs" in answer.body and b"mine" in answer.body
    assert site.get("/docs/" + place + "a").body == b"mine"


@pytest.mark.smoke
def test_an_edit_that_came_too_late_loses_nothing(site, place):
    seq = put(site, place + "a", b"first")
    newer = put(site, place + "a", b"of somebody else")
    answer = post(site, "edit", {"key": place + "a", "seq": seq, "eol": "lf", "type": "text/plain", "body": "<mine>"})
    text = answer.body.decode()
    assert answer.status == 409 and "&lt;mine&gt;</textarea>" in text and "of somebody else</pre>" in text and 'role="alert"' in text
    assert 'name="seq" value="%d"' % newer in text
    assert site.get("/docs/" + place + "a").body == b"of somebody else"
    assert post(site, "edit", {"key": place + "a", "seq": newer, "type": "text/plain", "body": "<mine>"}).status == 303
    assert site.get("/docs/" + place + "a").body == b"<mine>"


def test_an_edit_of_what_was_deleted_loses_nothing(site, place):
    seq = put(site, place + "a", b"first")
    site.delete("/docs/" + place + "a")
    answer = post(site, "edit", {"key": place + "a", "seq": seq, "type": "text/plain", "body": "mine"})
    assert answer.status == 409 and b"mine</textarea>" in answer.body and b'value="%sa"' % place.encode() in answer.body
    assert post(site, "edit", {"key": place + "a", "seq": "", "type": "text/plain", "body": "mine"}).status == 303


def test_an_edit_of_what_became_bytes_loses_nothing(site, place):
    seq = put(site, place + "a", b"first")
    put(site, place + "a", b"\0\1", "application/octet-stream")
    answer = post(site, "edit", {"key": place + "a", "seq": seq, "type": "text/plain", "body": "mine"})
    assert answer.status == 409 and b"mine</textarea>" in answer.body


def test_what_is_no_json_comes_back_with_what_was_typed(site, place):
    answer = post(site, "edit", {"key": place + "a.json", "seq": "", "type": "application/json", "body": "{oops"})
    assert answer.status == 422 and b"{oops</textarea>" in answer.body and b'value="application/json"' in answer.body
    assert site.get("/docs/" + place + "a.json").status == 404


@pytest.mark.parametrize("key", ["", "/a", "a//b", "a/../b", "x" * 513, "new\nline"])
def test_what_is_no_key_is_not_written(site, key):
    answer = post(site, "edit", {"key": key, "seq": "", "type": "text/plain", "body": "typed"})
    assert answer.status == 422 and b"typed</textarea>" in answer.body


@pytest.mark.parametrize("type_", ["", "x" * 300, "text/plain\r\nX: y", "tëxt"])
def test_what_is_no_type_is_not_written(site, place, type_):
    answer = post(site, "edit", {"key": place + "a", "seq": "", "type": type_, "body": "typed"})
    assert answer.status == 422 and b"typed</textarea>" in answer.body


@pytest.mark.parametrize("body, sent, kept", [(b"a\nb\n", "a\r\nb\r\nc", b"a\nb\nc"), (b"a\r\nb\r\n", "a\r\nb\r\nc", b"a\r\nb\r\nc"), (b"\n\nx", "\r\n\r\nx", b"\n\nx")])
def test_line_ends_stay_as_they_were(site, place, body, sent, kept):
    seq = put(site, place + "a", body)
    form = page(site, "edit?key=" + url(place + "a"))
    assert "<textarea" in form and ">\n" + body.decode() in html.unescape(form)
    eol = re.search(r'name="eol" value="(\w+)"', form)[1]
    assert post(site, "edit", {"key": place + "a", "seq": seq, "eol": eol, "type": "text/plain", "body": sent}).status == 303
    assert site.get("/docs/" + place + "a").body == kept


def test_a_file_becomes_a_document(site, place):
    boundary = "XX"
    parts = {"key": place + "up.bin", "seq": "", "type": "text/plain", "body": ""}
    body = "".join('--%s\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % (boundary, name, value) for name, value in parts.items()).encode()
    body += b'--XX\r\nContent-Disposition: form-data; name="file"; filename="x"\r\nContent-Type: image/png\r\n\r\n\0\1\2\r\n--XX--\r\n'
    answer = site.http("POST", "/console/edit", body, {"Content-Type": "multipart/form-data; boundary=XX", **PAGE, **SAME})
    assert answer.status == 303, answer
    got = site.get("/docs/" + place + "up.bin")
    assert (got.body, got.header("Content-Type")) == (b"\0\1\2", "image/png")


def test_deleting_asks_first_and_leads_to_the_folder(site, place):
    seq = put(site, place + "a b", b"x")
    form = page(site, "delete?key=" + url(place + "a b"))
    assert 'name="seq" value="%d"' % seq in form
    assert site.get("/docs/" + urllib.parse.quote(place + "a b")).status == 200
    answer = post(site, "delete", {"key": place + "a b", "seq": seq})
    assert answer.status == 303 and answer.header("Location") == "/console/docs?in=" + url(place)
    assert site.get("/docs/" + urllib.parse.quote(place + "a b")).status == 404


@pytest.mark.parametrize("seq", ["", "1", "x"])
def test_what_was_changed_meanwhile_is_not_deleted(site, place, seq):
    put(site, place + "a", b"x")
    assert post(site, "delete", {"key": place + "a", "seq": seq}).status == 409
    assert site.get("/docs/" + place + "a").status == 200


def test_what_is_deleted_already(site, place):
    seq = put(site, place + "a", b"x")
    site.delete("/docs/" + place + "a")
    answer = post(site, "delete", {"key": place + "a", "seq": seq})
    assert answer.status == 409 and b"deleted already" in answer.body


# ---- finding them


def test_keys_are_found_by_their_beginning(site, place):
    put(site, place + "needle", b"x")
    assert [row["key"] for row in data(site, "search?q=" + url(place + "nee"))["keys"]] == [place + "needle"]


@pytest.fixture(scope="module")
def library(site):
    """A searchable folder; all texts are in the index."""
    site.hanji.command("search", "add", "library/")
    put(site, "library/tea", b"Green tea & <b>strong</b> coffee")
    put(site, "library/water", b"Only water")
    assert site.get("/docs/library/?q=tea").status == 200   # what it answers is behind the index
    return "library/"


def test_texts_are_found(site, library):
    assert [row["key"] for row in data(site, "search?q=green%20%20TEA")["items"]] == ["library/tea"]
    assert [row["key"] for row in data(site, "search?q=wat")["items"]] == ["library/water"]
    assert data(site, "search?q=green%20water")["items"] == []


def test_what_was_found_is_marked_and_nothing_else_is_markup(site, library):
    got = page(site, "search?q=strong")
    assert "&lt;b&gt;<mark>strong</mark>&lt;/b&gt; coffee" in got and "Green tea &amp;" in got


@pytest.mark.parametrize("words", ['"', '""', "*", "tea*", "AND", "NOT tea", "tea OR", "place:c1", "(", ") OR (", "-tea", "^tea", "{text}:x", "'", "\\", "+", "ü\x01\x02", "   ", "a\0b", "a" * 500,
                                   " ".join("w%d" % i for i in range(120))])
def test_no_search_is_a_fault(site, library, words):
    page(site, "search?q=" + url(words))


# ---- changes


def test_changes_are_paged_to_the_first(site, place):
    for i in range(60):
        put(site, place + str(i), b"x")
    got = data(site, "changes")
    assert [row["key"] for row in got["items"]] == [place + str(i) for i in range(59, 9, -1)]
    older = site.get(got["items_next"], DATA).json()
    assert [row["key"] for row in older["items"]][:10] == [place + str(i) for i in range(9, -1, -1)]
    assert older["items_prev"]


def test_a_deletion_is_a_change(site, place):
    put(site, place + "a", b"x")
    site.delete("/docs/" + place + "a")
    assert {key: data(site, "changes")["items"][0][key] for key in ("key", "deleted", "there")} == {"key": place + "a", "deleted": 1, "there": 0}


# ---- tokens and people


def test_a_token_is_made_shown_once_and_revoked(site, place):
    name = "token%d" % next(NUMBERS)
    put(site, place + "a", b"x")
    answer = post(site, "tokens", {"name": name, "read": place + ", /status", "write": "", "days": "3"})
    assert answer.status == 303 and answer.header("Location") == "/console/tokens"
    cookie = answer.header("Set-Cookie")
    assert "HttpOnly" in cookie and "SameSite=Lax" in cookie and "Path=/console/" in cookie
    shown = site.get("/console/tokens", {**PAGE, "Cookie": cookie.partition(";")[0]})
    token = re.search(rb"hanji_[\w-]{43}", shown.body)[0].decode()
    assert "Max-Age=0" in shown.header("Set-Cookie") and "no-store" in shown.header("Cache-Control")
    assert site.get("/docs/" + place + "a", token=token).body == b"x"
    assert site.get("/status", token=token).status == 200
    assert site.put("/docs/" + place + "a", b"y", token=token).status == 403
    row = [row for row in data(site, "tokens")["items"] if row["name"] == name][0]
    assert row["read"] == "/docs/%s, /status" % place and row["until"] and not row["over"]
    assert token not in page(site, "tokens")
    assert post(site, "revoke", {"name": name}).status == 303
    assert site.get("/docs/" + place + "a", token=token).status == 401


@pytest.mark.parametrize("fields, status", [({"name": "full", "read": "/"}, 409), ({"name": "", "read": "/"}, 422), ({"name": "bad name", "read": "/"}, 422),
                                            ({"name": "x"}, 422), ({"name": "x", "read": " , "}, 422), ({"name": "x", "read": "a//b"}, 422),
                                            ({"name": "x", "read": "/", "days": "-1"}, 422), ({"name": "x", "read": "/", "days": "99999999999"}, 422)])
def test_what_is_no_token_is_not_made(site, fields, status):
    before = site.hanji.rows("SELECT count(*) FROM token")
    answer = post(site, "tokens", fields)
    assert answer.status == status and b'role="alert"' in answer.body, answer
    assert site.hanji.rows("SELECT count(*) FROM token") == before


def test_people_and_their_sessions(site):
    name = test_login.add(site.hanji, "console%d" % next(NUMBERS))
    cookie = test_login.login(site.hanji, name)
    assert name in page(site, "people")
    assert len(data(site, "person?name=" + name)["items"]) == 1
    assert post(site, "person", {"name": name}).status == 303
    assert test_login.who(site.hanji, cookie) is None
    assert data(site, "person?name=" + name)["items"] == []


def test_nobody_is_logged_out(site):
    assert post(site, "person", {"name": "nobody.at.all"}).status in (404, 422)


# ---- health and apps


def test_health_is_what_status_says(site):
    put(site, "console-health", b"x")
    server = data(site, "health")["server"][0]
    status = site.get("/status").json()
    assert server["version"] == status["version"] and server["documents"] == status["documents"] and server["seq"] == status["seq"]
    bars = data(site, "health")["bars"]
    assert {str(bar["upto"]): bar["commits"] for bar in bars} == status["burst"]["histogram"]
    assert max(bar["height"] for bar in bars) == 100 and min(bar["height"] for bar in bars) >= 1
    assert "<svg" in page(site, "health")


def test_an_app_that_does_not_compile_is_told_with_file_and_line(site):
    folder = pathlib.Path(site.hanji.settings["apps"]) / "wobbly"
    folder.mkdir()
    try:
        (folder / "app.ini").write_text("read = public\n")
        (folder / "index.get.sql").write_text("-- fine\nSELECT 1 AS one;\nSELECT <b> FROM;\n")
        rows = harness.wait_for("the fault", lambda: [row for row in data(site, "apps")["faults"] if row["name"] == "wobbly"])
        assert (rows[0]["file"], rows[0]["line"], rows[0]["at_text"][:2]) == ("wobbly/index.get.sql", 3, "20")
        shown = page(site, "apps")
        assert "wobbly/index.get.sql:3</code>" in shown and "does not compile" in shown and "Apps have told faults" in page(site, "")
    finally:
        shutil.rmtree(folder)
    harness.wait_for("no such app", lambda: "wobbly" not in page(site, "apps"))


def test_an_app_that_serves_is_shown_with_its_time(site):
    site.app("steady", {"index.get.sql": "SELECT 1 AS one"}, "title = A <steady> one\nread = public\n")
    row = [row for row in data(site, "apps")["items"] if row["name"] == "steady"][0]
    assert (row["title"], row["read"], row["write"], row["broken"], row["at"][-1]) == ("A <steady> one", "public", "rights", 0, "Z")
    assert "A &lt;steady&gt; one" in page(site, "apps")


@pytest.fixture(scope="module")
def mounted(base, certificate):
    site = harness.Site(base / "console-mounted", certificate, mount="/h")
    site.start()
    yield site
    site.stop()


def test_below_a_mount_every_link_is_below_it(mounted):
    put(mounted, "a/b", b"x")
    assert mounted.get("/console", token=None).header("Location") == mounted.mount + "/console/"
    for path in PAGES + ["doc?key=a%2Fb"]:
        links = re.findall(r'(?:href|src|action)="([^"#]+)"', page(mounted, path))
        assert links and all(link.startswith(mounted.mount + "/") for link in links), (path, links)
