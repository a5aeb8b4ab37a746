"""Full-text search: what is found and shown, pages, rights, freshness, opting in and out, and what a crash may not break."""
import os
import re
import signal
import threading
import urllib.parse

import pytest

import harness

NOT_SEARCHABLE = "hanji search add"


def key_of(box):
    return box[len("/docs/"):]


def query(box, q, **more):
    return box + "?" + urllib.parse.urlencode(dict(q=q, **more))


def search(site, box, q, **more):
    got = site.get(query(box, q, **more))
    assert got.status == 200, got
    assert got.header("Content-Type") == "application/json"
    return got.json()


def names(site, box, q, **more):
    return [item["key"][len(key_of(box)):] for item in search(site, box, q, **more)["items"]]


def put(site, box, name, text, kind="text/plain"):
    got = site.put(box + urllib.parse.quote(name), text.encode(), {"Content-Type": kind})
    assert got.status in (201, 204), got
    return got.header("ETag")


@pytest.fixture
def shelf(site, box):
    """A searchable collection that no other test uses."""
    site.hanji.command("search", "add", key_of(box))
    yield box
    site.hanji.command("search", "remove", key_of(box))


@pytest.mark.smoke
def test_what_is_found_says_what_a_list_says_and_more(site, shelf):
    put(site, shelf, "a", "We drink tea at five, and tea at six.")
    put(site, shelf, "b", '{"title": "Green tea", "grams": 50}', "application/json")
    put(site, shelf, "c", "coffee")
    page = search(site, shelf, "tea")
    listed = {item["key"]: item for item in site.get(shelf).json()["items"]}
    assert set(page) == {"items", "next"} and page["next"] is None
    assert [item["key"][-1] for item in page["items"]] == ["a", "b"]
    for item in page["items"]:
        assert {name: item[name] for name in ("key", "etag", "type", "size", "modified")} == listed[item["key"]]
        assert set(item) == {"key", "etag", "type", "size", "modified", "score", "snippet"}
        assert item["score"] > 0
    assert page["items"][0]["snippet"] == ["We drink ", "tea", " at five, and ", "tea", " at six."]
    assert page["items"][1]["snippet"] == ["Green ", "tea", "\n50"]
    assert page["items"][0]["score"] > page["items"][1]["score"]


def test_every_second_part_of_a_snippet_is_what_was_looked_for(site, shelf):
    text = "<b>tea</b> \u201ctea\u201d \"tea\" [tea] | tea \U0001f375 t\u00e9a \\tea\\ end"
    put(site, shelf, "a", text)
    item, = search(site, shelf, "tea")["items"]
    assert "".join(item["snippet"]) == text
    assert set(item["snippet"][1::2]) == {"tea", "t\u00e9a"} and len(item["snippet"]) % 2 == 1


@pytest.mark.parametrize("q,found", [
    ("green tea", ["a"]), ('"tea green"', []), ("tea -green", ["b"]), ("gre*", ["a"]), ('"green te"*', ["a"]),
    ("TEA", ["b", "a"]), ("tea OR green", []), ("green+tea", ["a"]), ("'tea'", ["b", "a"]), ("tea;drop table doc", []),
    ("NEAR", []), ("doc_text", []), ("place:c1", []), ("tea\u00a0green", ["a"]), ("\u201ctea\u201d", ["b", "a"])])
def test_queries(site, shelf, q, found):
    put(site, shelf, "a", "green tea of the first pick")
    put(site, shelf, "b", "black tea")
    assert names(site, shelf, q) == found


HOSTILE = ["\"", "\"\"\"", "a\"b\"c", "*", "-*", "(", ")", "a)", "(a", "{a}:b", "a:", ":a", "^a", "a^", "NEAR(", "NEAR(a,",
           "a AND", "AND", "OR OR OR", "NOT a", "a NOT", "--", "/*", "a;--", "%", "_", "\\", "\\\"", "a\\\"b", "'", "''",
           "\u0000x", "\ufffd", "\U0010ffff", "e\u0301", "\u202e", "\r\n", "a\tb", "*a", "a**", "a*b*", "\"a*\"*", "- a",
           "-\"", "+", "a+b", "a&b", "a|b", "~a", "a~2", "[a TO b]", "a" * 512, "ab " * 170, "é" * 256, "日本語", "🍵",
           "\"" * 512, "-a " * 100, "a\" OR \"1", "{text} : a", "text : a", "ab*" * 50]


@pytest.mark.parametrize("q", HOSTILE)
def test_any_text_is_an_answer_or_a_400_that_names_q(site, shelf, q):
    put(site, shelf, "a", "a b c " + q.replace("\0", ""))
    got = site.get(query(shelf, q))
    assert got.status in (200, 400), got
    if got.status == 400:
        assert re.search(r"\bq\b", got.json()["detail"])


@pytest.mark.parametrize("q", ["q=", "q=%20", "q=%22%22", "q=-tea", "q=a*", "q=%FF", "q=%00", "q=tea&q=tea", "q",
                               "q=" + "a" * 513, "q=" + "ab+" * 33])
def test_bad_q(site, shelf, q):
    got = site.get(shelf + "?" + q)
    assert got.status == 400 and re.search(r"\bq\b", got.json()["detail"]), got


@pytest.mark.parametrize("limit", ["", "x", "-1", "101", "1000", "1.5", "٣", "1&limit=1"])
def test_bad_limit(site, shelf, limit):
    got = site.get(shelf + "?q=tea&limit=" + urllib.parse.quote(limit, safe="&="))
    assert got.status == 400 and "limit" in got.json()["detail"], got


@pytest.mark.parametrize("after", ["", "x", "1", "1.", ".k", "-1.k", "1,k", "1e9.k", "9999999999999.k", "1." + "k" * 513,
                                   "1.%FF", "1.k&after=1.k", "%00"])
def test_bad_after(site, shelf, after):
    got = site.get(shelf + "?q=tea&after=" + after)
    assert got.status == 400 and "after" in got.json()["detail"], got


def test_limit_nought_and_default(site, shelf):
    for i in range(21):
        put(site, shelf, "%02d" % i, "tea")
    page = search(site, shelf, "tea", limit=0)
    assert page["items"] == [] and page["next"] is None
    page = search(site, shelf, "tea")
    assert len(page["items"]) == 20 and page["next"]
    assert len(search(site, shelf, "tea", limit=100)["items"]) == 21


@pytest.mark.parametrize("q", ["tea", '"green tea" -x&y=1 te* "', "tea #+% é"])
def test_following_links_visits_all_once(site, shelf, q):
    keys = ["a+b", "a b", "ä", "a%2Fb", "\U0001f375", "x/y/z", "plain", "a&limit=0", "'"]
    for i, name in enumerate(keys):
        put(site, shelf, name, "green tea é " * (i % 3 + 1))
    path, seen, pages = query(shelf, q, limit=2), [], 0
    while path:
        got = site.get(path)
        assert got.status == 200, got
        page = got.json()
        seen += [item["key"] for item in page["items"]]
        link = got.header("Link")
        assert (link is None) == (page["next"] is None)
        path = link and re.fullmatch(r'<([!-~]+)>; rel="next"', link).group(1)
        pages += 1
        assert pages < 10
    assert sorted(seen) == sorted(key_of(shelf) + name for name in keys)
    assert seen == [item["key"] for item in search(site, shelf, q, limit=100)["items"]]


def test_pages_stay_while_others_write(site, shelf):
    """A score depends on its document alone: what comes and goes elsewhere moves nothing."""
    for i in range(10):
        put(site, shelf, "%d" % i, "tea " * (i + 1))
    first = search(site, shelf, "tea", limit=5)
    for i in range(30):
        put(site, shelf, "other%d" % i, "coffee and much else")
    site.delete(shelf + "9")
    second = search(site, shelf, "tea", limit=5, after=first["next"])
    assert [item["key"][-1] for item in first["items"] + second["items"]] == list("9876543210")


def test_head_and_mount(make_site):
    site = make_site("/h")
    site.hanji.command("search", "add", "notes/")
    for name in "ab":
        put(site, "/docs/notes/", name, "tea")
    got = site.get("/docs/notes/?q=tea&limit=1")
    assert re.match(r"</h/docs/notes/\?q=tea&after=[0-9]+\.notes/a&limit=1>", got.header("Link"))
    head = site.head("/docs/notes/?q=tea&limit=1")
    assert head.status == 200 and head.body == b"" and head.header("Link") == got.header("Link")


# rights

def test_rights_are_those_of_the_list(site, shelf):
    put(site, shelf, "in/a", "tea")
    put(site, shelf, "out/a", "tea")
    token = site.hanji.new_token("part" + key_of(shelf).strip("/"), read=[key_of(shelf) + "in/"])
    assert site.get(query(shelf, "tea"), token=None).status == 401
    assert site.get(query(shelf, "tea"), token=token).status == 403
    assert site.get(query(shelf + "out/", "tea"), token=token).status == 403
    got = site.get(query(shelf + "in/", "tea"), token=token)
    assert [item["key"] for item in got.json()["items"]] == [key_of(shelf) + "in/a"]


def test_public_collections_can_be_searched_by_anybody(site):
    site.hanji.command("search", "add", "pub/search/")
    put(site, "/docs/pub/search/", "a", "tea")
    assert len(site.get("/docs/pub/search/?q=tea", token=None).json()["items"]) == 1
    assert site.get("/docs/pub/other/?q=tea", token=None).status == 400
    site.hanji.command("search", "remove", "pub/search/")


def test_a_collection_that_is_not_searchable(site, box):
    put(site, box, "a", "tea")
    got = site.get(query(box, "tea"))
    assert got.status == 400 and NOT_SEARCHABLE in got.json()["detail"]
    assert site.get("/docs/?q=tea").status == 400
    assert len(site.get(box + "?x=q").json()["items"]) == 1, "the list goes on as before"


def test_q_on_a_document_is_ignored(site, shelf):
    put(site, shelf, "a", "tea")
    assert site.get(shelf + "a?q=tea").body == b"tea"


# freshness

def test_a_search_sees_every_acknowledged_write(site, shelf):
    for i in range(20):
        word = "word%d" % i
        put(site, shelf, "a", word)
        assert names(site, shelf, word) == ["a"]
        assert i == 0 or names(site, shelf, "word%d" % (i - 1)) == []
    site.delete(shelf + "a")
    assert names(site, shelf, "word19") == []


def test_a_search_sees_rows_written_from_outside(site, shelf):
    key = key_of(shelf)
    put(site, shelf, "a", "tea")
    assert names(site, shelf, "tea") == ["a"]
    site.hanji.command("sql", "INSERT INTO doc (key, type, body) VALUES ('%sb', 'text/plain', 'tea')" % key)
    assert names(site, shelf, "tea") == ["a", "b"]
    site.hanji.command("sql", "UPDATE doc SET body = 'coffee' WHERE key = '%sa'" % key)
    assert names(site, shelf, "tea") == ["b"]
    site.hanji.command("sql", "DELETE FROM doc WHERE key = '%sb'" % key)
    assert names(site, shelf, "tea") == []


def test_writers_and_searchers_at_once(site, shelf):
    """Whoever has written finds it, however many write and search."""
    faults = []

    def run(number):
        link = site.link()
        try:
            for i in range(15):
                word = "w%dx%d" % (number, i)
                path = site.mount + shelf + "%d-%d" % (number, i)
                got = link.request("PUT", path, word.encode(), site.headers({"Content-Type": "text/plain"}, True))
                assert got.status == 201, got
                got = link.request("GET", site.mount + query(shelf, word), None, site.headers({}, True))
                assert got.status == 200 and len(got.json()["items"]) == 1, (word, got)
        except Exception as fault:      # noqa: BLE001 (told below)
            faults.append(fault)
        finally:
            link.close()
    threads = [threading.Thread(target=run, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults, faults
    assert len(names(site, shelf, "w0x*")) == 15
    assert "search" not in site.hanji.command("check", ok=False).stdout


# the operator's side

def fill(hanji, count, prefix="notes/"):
    link = hanji.sqlite(readonly=False)
    link.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
                 " INSERT INTO doc (key, type, body) SELECT ? || printf('%06d', i), 'text/plain',"
                 " 'tea ' || hex(randomblob(400)) FROM n", (count, prefix))
    link.close()


def state(hanji, prefix="notes/"):
    for line in hanji.command("search", "list").stdout.splitlines()[1:]:
        name, what, documents = line.split("\t")
        if name == prefix:
            return what, int(documents)
    return None


def test_add_list_remove(make_hanji):
    hanji = make_hanji()
    fill(hanji, 300)
    assert hanji.command("search", "list").stdout == "prefix\tstate\tdocuments\n"
    assert "300 documents" in hanji.command("search", "add", "/docs/notes").stdout
    assert state(hanji) == ("ready", 300)
    assert hanji.command("check").returncode == 0
    hanji.command("search", "rebuild")
    hanji.command("search", "rebuild", "notes/")
    assert state(hanji) == ("ready", 300)
    hanji.command("search", "remove", "notes")
    assert state(hanji) is None
    assert hanji.command("check").returncode == 0


def test_without_a_server(make_hanji):
    hanji = make_hanji()
    fill(hanji, 100)
    hanji.stop()
    assert "100 documents" in hanji.command("search", "add", "notes/").stdout
    assert state(hanji) == ("ready", 100)
    hanji.start()
    assert len(hanji.ask("GET", "/docs/notes/", query="q=tea&limit=100").body.splitlines()) > 100
    hanji.command("search", "remove", "notes/")


@pytest.mark.parametrize("args,why", [
    (["add", "notes/"], "searchable already"), (["add", "notes/sub/"], "searchable already"),
    (["add", ""], "searchable already"), (["remove", "other/"], "no searchable"), (["rebuild", "other/"], "no searchable")])
def test_refused(make_hanji, args, why):
    hanji = make_hanji()
    hanji.command("search", "add", "notes/")
    done = hanji.command("search", *args, ok=False)
    assert done.returncode == 1 and why in done.stderr and done.stdout == ""


@pytest.mark.parametrize("args", [[], ["add"], ["add", "a", "b"], ["add", "a//b"], ["add", "../a"], ["add", "/a/"],
                                  ["add", "a\nb"], ["add", "a\\b"], ["add", "x" * 513], ["remove"], ["list", "x"],
                                  ["rebuild", "a", "b"], ["nonsense"], ["add", "/"]])
def test_wrong_usage(make_hanji, args):
    hanji = make_hanji(start=False)
    done = hanji.command("search", *args, ok=False)
    assert done.returncode == 2 and done.stdout == "" and "usage" in done.stderr


def test_indexing_survives_a_kill(make_hanji):
    """The worker dies in the middle of it, and another goes on; nothing is missing and nothing is there twice."""
    hanji = make_hanji()
    fill(hanji, 6000)
    link = hanji.sqlite(readonly=False)
    link.execute("INSERT INTO search_collection (prefix) VALUES ('notes/')")
    link.close()
    answer = hanji.ask("GET", "/docs/notes/", query="q=tea")
    assert answer.status == 503 and answer.header("Retry-After")
    assert state(hanji)[0] == "indexing"
    hanji.expect_new_worker()
    os.kill(hanji.worker(), signal.SIGKILL)
    hanji.wait_healthy()
    hanji.ask("PUT", "/docs/notes/zz", body=b"tea and a rare leaf", extra=[("CONTENT_TYPE", "text/plain")])
    harness.wait_for("the index", lambda: state(hanji) == ("ready", 6001), timeout=60, pause=0.2)
    assert b"notes/zz" in hanji.ask("GET", "/docs/notes/", query="q=leaf").body
    assert hanji.command("check").returncode == 0


def test_a_program_without_fts5_can_write(make_hanji):
    """No trigger of doc needs the index."""
    hanji = make_hanji()
    hanji.command("search", "add", "notes/")
    triggers = hanji.rows("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
    assert triggers and not [name for name, sql in triggers if "search" in sql or "doc_text" in sql]


def test_a_damaged_index_stops_searches_only(make_hanji):
    hanji = make_hanji()
    hanji.command("search", "add", "notes/")
    plain = [("CONTENT_TYPE", "text/plain")]
    hanji.ask("PUT", "/docs/notes/a", body=b"tea", extra=plain)
    assert hanji.ask("GET", "/docs/notes/", query="q=tea").status == 200
    link = hanji.sqlite(readonly=False)
    link.execute("UPDATE doc_text_data SET block = x'ffff' WHERE id = 10")
    link.close()
    assert hanji.ask("PUT", "/docs/notes/b", body=b"tea", extra=plain).status == 201
    answer = hanji.ask("GET", "/docs/notes/", query="q=tea")
    assert answer.status == 500 and b"hanji search rebuild" in answer.body
    assert hanji.ask("PUT", "/docs/notes/c", body=b"tea", extra=plain).status == 201
    assert hanji.ask("GET", "/docs/notes/b").body == b"tea"
    assert hanji.command("check", ok=False).returncode == 1
    hanji.command("search", "rebuild")
    assert hanji.ask("GET", "/docs/notes/", query="q=tea").body.count(b'"key"') == 3
    assert hanji.command("check").returncode == 0
