"""Keyset pages through HTTP: links, cursors, and walks while rows come and go."""
import json
import random
import re
import threading

import pytest

import harness

SCHEMA = """
CREATE TABLE pages_row (id INTEGER PRIMARY KEY AUTOINCREMENT, score INTEGER, name TEXT, kept INTEGER NOT NULL DEFAULT 0);
CREATE INDEX pages_row_score ON pages_row (score DESC, id);
"""
FILES = {
    "schema/001-row.sql": SCHEMA,
    "page.get.sql": "-- page: 10 by score desc, id\nSELECT id, score, name FROM pages_row;",
    "page.html": "{{#rows}}<li>{{id}}</li>{{/rows}}{{^rows}}none{{/rows}}{{#prev}}<a rel=prev href=\"{{prev}}\">{{/prev}}{{#next}}<a rel=next href=\"{{next}}\">{{/next}}",
    "some.get.sql": "-- page: 3 by id\nSELECT id FROM pages_row WHERE name LIKE :like;",
    "nulls.get.sql": "-- page: 7 by name, score desc, id\nSELECT id, score, name FROM pages_row;",
    "two.get.sql": "-- name: top\n-- page: 2 by id\nSELECT id FROM pages_row;\n-- page: 3 by id desc\nSELECT id FROM pages_row;",
    "none.get.sql": "-- page: 5 by id\nSELECT id FROM pages_row WHERE 0;",
    "long.get.sql": "-- page: 2 by t, id\nSELECT id, hex(zeroblob(:n)) || id AS t FROM pages_row WHERE id < 10;",
    "fill.post.sql": "INSERT INTO pages_row (id, score, name) SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]')"
                     " FROM json_each(:rows);",
    "add.post.sql": "INSERT INTO pages_row (score, name) VALUES (:score, :name) RETURNING id;",
    "remove.post.sql": "DELETE FROM pages_row WHERE id = :id;",
    "clear.post.sql": "DELETE FROM pages_row;",
}


@pytest.fixture(scope="module")
def pages(site):
    site.app("pages", FILES)
    return site


def post(site, path, **fields):
    answer = site.http("POST", "/apps/pages/" + path, json.dumps(fields).encode(), {"Content-Type": "application/json"})
    assert answer.status == 200, answer
    return answer.json()


def fill(site, rows):
    post(site, "clear")
    post(site, "fill", rows=rows)


def follow(site, path, way="next", most=10000):
    """The rows of each page."""
    out = []
    while path is not None:
        answer = site.get(path)
        assert answer.status == 200, answer
        page = answer.json()
        out.append(page["rows"])
        link = [url for url, rel in re.findall(r'<([^>]+)>; rel="(\w+)"', ", ".join(answer.all("Link"))) if rel == way]
        assert link == ([page[way]] if page[way] else [])
        path = page[way]
        assert len(out) < most
    return out, path


def ids(found):
    return [row["id"] for page in found for row in page]


def by_score(rows):
    return [row[0] for row in sorted(rows, key=lambda row: (-row[1], row[0]))]


ROWS = [[i, i % 7, "n%d" % (i % 3)] for i in range(1, 54)]


def test_forward(pages):
    fill(pages, ROWS)
    found, _ = follow(pages, "/apps/pages/page")
    assert [len(page) for page in found] == [10, 10, 10, 10, 10, 3]
    assert ids(found) == by_score(ROWS)


def test_backward_gives_the_same_pages(pages):
    fill(pages, ROWS)
    path, seen = "/apps/pages/page", []
    while path:
        page = pages.get(path).json()
        seen.append((path, page))
        path = page["next"]
    path = seen[-1][0]
    for _, want in reversed(seen[:-1]):
        page = pages.get(path).json()
        path = page["prev"]
        got = pages.get(path).json()
        assert got["rows"] == want["rows"]
    assert pages.get(path).json()["prev"] is None


def test_the_first_has_nothing_before_and_the_last_nothing_behind(pages):
    fill(pages, ROWS[:10])
    page = pages.get("/apps/pages/page").json()
    assert page["next"] is None and page["prev"] is None and list(page) == ["rows", "next", "prev"]
    fill(pages, ROWS[:11])
    page = pages.get("/apps/pages/page").json()
    assert page["prev"] is None and len(pages.get(page["next"]).json()["rows"]) == 1


def test_an_empty_list(pages):
    """documents.md 13: nothing there is a whole answer."""
    answer = pages.get("/apps/pages/none")
    assert answer.status == 200 and answer.json() == {"rows": [], "next": None, "prev": None}
    assert int(answer.header("Content-Length")) == len(answer.body)


def test_a_place_that_is_gone(pages):
    fill(pages, ROWS)
    path = pages.get("/apps/pages/page").json()["next"]
    post(pages, "clear")
    page = pages.get(path).json()
    assert page["rows"] == [] and page["next"] is None


def test_other_parameters_stay(pages):
    fill(pages, ROWS)
    page = pages.get("/apps/pages/some?like=n%25&z=%22%C3%A4").json()
    assert page["next"].startswith("/apps/pages/some?like=n%25&z=%22%C3%A4&after=")
    found, _ = follow(pages, "/apps/pages/some?like=n1&format=json")
    assert ids(found) == [row[0] for row in ROWS if row[2] == "n1"]


def test_long_parameters(pages):
    """They come back in the links of the body; a head has no room for them."""
    fill(pages, ROWS)
    long = "/apps/pages/page?z=" + 6000 * "x"
    answer = pages.get(long)
    assert answer.status == 200 and answer.header("Link") is None and long[16:] in answer.json()["next"]
    second = pages.get(answer.json()["next"])
    assert second.status == 200 and second.json()["prev"]


def test_html(pages):
    fill(pages, ROWS)
    path, seen = "/apps/pages/page", []
    while path:
        text = pages.get(path, {"Accept": "text/html"}).body.decode()
        seen += [int(one) for one in re.findall(r"<li>(\d+)</li>", text)]
        link = re.search(r'rel=next href="([^"]+)"', text)
        assert bool(re.search("rel=prev", text)) == (path != "/apps/pages/page")
        path = link and link.group(1).replace("&amp;", "&")
    assert seen == by_score(ROWS)


def test_an_empty_page_of_html(pages):
    post(pages, "clear")
    assert pages.get("/apps/pages/page?format=html").body == b"none"


def test_two_lists_of_a_file(pages):
    fill(pages, ROWS[:9])
    page = pages.get("/apps/pages/two").json()
    assert list(page) == ["top", "top_next", "top_prev", "rows", "next", "prev"]
    second = pages.get(page["top_next"]).json()
    assert ids([second["top"]]) == [3, 4] and ids([second["rows"]]) == [9, 8, 7]
    third = pages.get(second["next"]).json()
    assert ids([third["top"]]) == [3, 4] and ids([third["rows"]]) == [6, 5, 4]
    back = pages.get(third["top_prev"]).json()
    assert ids([back["top"]]) == [1, 2] and ids([back["rows"]]) == [6, 5, 4]


# cursors

def cursor(pages):
    fill(pages, ROWS)
    return pages.get("/apps/pages/page").json()["next"].partition("after=")[2]


@pytest.mark.parametrize("change", [lambda c: c[:-1], lambda c: c + "A", lambda c: "A" + c[1:], lambda c: c[:10] + ("A" if c[10] != "A" else "B") + c[11:],
                                    lambda c: "", lambda c: "x", lambda c: "%ff", lambda c: c + "&after=" + c, lambda c: "A" * 5000, lambda c: c.upper()])
def test_cursors_that_are_none(pages, change):
    answer = pages.get("/apps/pages/page?after=" + change(cursor(pages)))
    assert answer.status == 400 and ("after" in answer.json()["detail"] or "UTF-8" in answer.json()["detail"])


def test_cursors_of_other_lists(pages):
    one = cursor(pages)
    for path in ("some", "nulls", "two"):
        assert pages.get("/apps/pages/%s?after=%s" % (path, one)).status == 400
    answer = pages.get("/apps/pages/page?before=" + one)
    assert answer.status == 200        # the same row is as good a place to look back from
    assert pages.get("/apps/pages/page?after=%s&before=%s" % (one, one)).status == 400


def test_cursors_tell_nothing(pages):
    import base64
    one = cursor(pages)
    raw = base64.urlsafe_b64decode(one + "=" * (-len(one) % 4))
    assert b"score" not in raw and one == cursor(pages)


def test_cursors_outlive_a_start(make_hanji):
    hanji = make_hanji()
    hanji.app("pages", FILES)
    hanji.ask("POST", "/apps/pages/fill", body=json.dumps({"rows": ROWS}).encode(), extra={"CONTENT_TYPE": "application/json"})
    path = json.loads(hanji.ask("GET", "/apps/pages/page").body)["next"]
    hanji.stop()
    hanji.start()
    answer = hanji.ask("GET", path.partition("?")[0], query=path.partition("?")[2])
    assert answer.status == 200 and len(json.loads(answer.body)["rows"]) == 10


def test_keys_that_are_too_long(pages):
    fill(pages, ROWS)
    assert pages.get("/apps/pages/long?n=300").status == 200
    assert pages.get("/apps/pages/long?n=5000").status == 500


# CSV of a page is the whole list

def test_csv_is_not_paged(pages):
    fill(pages, ROWS)
    lines = pages.get("/apps/pages/page?format=csv").body.splitlines()
    assert [int(line.split(b",")[0]) for line in lines[1:]] == by_score(ROWS)
    assert pages.get("/apps/pages/none?format=csv").body == b"id\r\n"


# any data

def random_rows(rng, n):
    names = [None, "", "a", "A", "b", "ä", "10", "9", "a\u0000b"]
    return [[i, rng.choice([None, 0, 1, -5, 2.5, 10**12]), rng.choice(names)] for i in rng.sample(range(1, 10 * n), n)]


@pytest.mark.parametrize("seed", range(6))
def test_walks_over_any_rows(pages, seed):
    """By three keys with ties and NULLs: as ORDER BY has them, forward, and backward from the end."""
    rng = random.Random(seed)
    rows = random_rows(rng, rng.randrange(1, 80))
    fill(pages, rows)
    want = [row[0] for row in pages.hanji.rows("SELECT id FROM pages_row ORDER BY name, score DESC, id")]
    path, last, found = "/apps/pages/nulls", None, []
    while path:
        page = pages.get(path).json()
        found += ids([page["rows"]])
        last, path = path, page["next"]
    assert found == want
    back, path = [], last
    while path:
        page = pages.get(path).json()
        back = ids([page["rows"]]) + back
        path = page["prev"]
    assert back == want


def walk_meanwhile(pages, link, way):
    """One walk over connection link, backward from the end if way is prev."""
    path = "/apps/pages/page"
    if way == "prev":
        while path:
            answer = json.loads(link.request("GET", path, None, {"Authorization": "Bearer " + pages.token}).body)
            last, path = path, answer["next"]
        path = last
    found = []
    while path:
        page = json.loads(link.request("GET", path, None, {"Authorization": "Bearer " + pages.token}).body)
        found += ids([page["rows"]])
        path = page[way]
    return found


def test_rows_that_come_and_go_while_one_walks(pages):
    """A row that is there all the time is seen once; none is seen twice."""
    fill(pages, [[i, i % 9, "kept"] for i in range(1, 200)])
    stop = threading.Event()

    def disturb(seed):
        rng, mine, link = random.Random(seed), [], pages.link()
        head = {"Authorization": "Bearer " + pages.token, "Content-Type": "application/json"}
        while not stop.is_set():
            if mine and rng.random() < 0.5:
                link.request("POST", "/apps/pages/remove", json.dumps({"id": mine.pop(rng.randrange(len(mine)))}).encode(), head)
            else:
                answer = link.request("POST", "/apps/pages/add", json.dumps({"score": rng.randrange(-2, 12), "name": "new"}).encode(), head)
                mine.append(answer.json()["rows"][0]["id"])
        link.close()
    threads = [threading.Thread(target=disturb, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    try:
        for way in ("next", "next", "prev", "next", "prev"):
            link = pages.link()
            found = walk_meanwhile(pages, link, way)
            link.close()
            kept = [one for one in found if one < 200]
            assert len(found) == len(set(found)) and sorted(kept) == list(range(1, 200))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
