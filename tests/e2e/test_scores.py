"""The bundled app `scores`: points are added, totals are exact, and pages go through all players."""
import json
import random
import sqlite3
import threading

import pytest

import bundled
import pagecheck
from http1 import parse_json

JSON = {"Content-Type": "application/json"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
HTML = {"Accept": "text/html"}


@pytest.fixture(scope="module")
def site(base, certificate):
    site = bundled.start_site(base / "scores", certificate, "scores")
    yield site
    site.stop()


@pytest.fixture(autouse=True)
def empty(site):
    link = site.hanji.sqlite(readonly=False)
    link.execute("DELETE FROM scores_player")
    link.execute("UPDATE scores_total SET writes = 0")
    link.close()


def add(site, player, points, **more):
    return site.http("POST", "/apps/scores/add", json.dumps({"player": player, "points": points}).encode(), JSON, token=None, **more)


def rows(site, path, **more):
    got = site.get("/apps/scores/" + path, token=None, **more)
    assert got.status == 200, got
    return parse_json(got.body)["rows"]


def totals(site):
    return rows(site, "total")


def test_points_add_up(site):
    assert parse_json(add(site, "ann", 5).body) == {"rows": [{"player": "ann", "score": 5}]}
    assert parse_json(add(site, "ann", -2).body) == {"rows": [{"player": "ann", "score": 3}]}


def test_totals_are_one_row(site):
    for player, points in (("ann", 5), ("ben", 7), ("ann", 1)):
        add(site, player, points)
    assert totals(site) == [{"players": 2, "writes": 3, "total": 13}]


def test_totals_of_nothing(site):
    assert totals(site) == [{"players": 0, "writes": 0, "total": 0}]


def test_a_form_adds_like_json(site):
    got = site.http("POST", "/apps/scores/add", b"player=ann&points=12", FORM, token=None)
    assert (got.status, parse_json(got.body)) == (200, {"rows": [{"player": "ann", "score": 12}]})


def test_a_browser_goes_back_to_the_page(site):
    got = site.http("POST", "/apps/scores/add", b"player=ann&points=12", {**FORM, **HTML}, token=None)
    assert (got.status, got.header("Location")) == (303, "/apps/scores/")


@pytest.mark.parametrize("points", [None, "", "x", "5x", "1.5", 1.5, 10**9 + 1, -10**9 - 1, 2**63 - 1, 10**30, [5], {"a": 1}, "0x10", "--1"])
def test_points_are_whole_numbers(site, points):
    got = add(site, "ann", points)
    assert got.status == 422 and "points: a whole number" in parse_json(got.body)["detail"], got
    assert totals(site) == [{"players": 0, "writes": 0, "total": 0}]


@pytest.mark.parametrize("player", [None, "", "   ", "x" * 41, "a\0b"])
def test_a_player_has_a_name(site, player):
    got = add(site, player, 1)
    assert got.status == 422 and "player: a name" in parse_json(got.body)["detail"], got
    assert totals(site) == [{"players": 0, "writes": 0, "total": 0}]


@pytest.mark.parametrize("player", ["Zoë", "张伟", "<b>", "'; DROP TABLE scores_player; --", "x" * 40, "a\"b", "😀" * 40])
def test_names_come_back_as_they_were_given(site, player):
    add(site, player, 1)
    assert rows(site, "page") == [{"player": player, "score": 1}]


def test_html_is_escaped(site):
    add(site, "<script>alert(1)</script>", 1)
    for path in ("", "page"):
        got = site.get("/apps/scores/" + path, HTML, token=None)
        assert got.status == 200 and b"<script" not in got.body and b"&lt;script&gt;" in got.body


def test_an_error_keeps_what_was_typed(site):
    got = site.http("POST", "/apps/scores/add", b"player=a%26b&points=many", {**FORM, **HTML}, token=None)
    assert got.status == 422
    assert b"points: a whole number" in got.body and b'value="a&amp;b"' in got.body and b'value="many"' in got.body


def test_the_same_request_twice_adds_once(site):
    key = {**JSON, "Idempotency-Key": "one"}
    answers = [site.http("POST", "/apps/scores/add", b'{"player":"ann","points":5}', key) for _ in range(2)]
    assert [parse_json(got.body) for got in answers] == [{"rows": [{"player": "ann", "score": 5}]}] * 2
    assert totals(site) == [{"players": 1, "writes": 1, "total": 5}]


def test_only_post_adds(site):
    got = site.get("/apps/scores/add", token=None)
    assert (got.status, got.header("Allow")) == (405, "POST")


def walk(site, path, link):
    """All rows, page by page."""
    found = []
    while path:
        body = parse_json(site.get(path, token=None).body)
        found.append(body["rows"])
        path = body[link]
    return found


def test_pages_go_through_all_players_and_back(site):
    chosen = random.Random(7)
    fill(site, [("p%03d" % n, chosen.randrange(12)) for n in range(105)])
    expected = [{"player": player, "score": score} for player, score in
                sorted(site.hanji.rows("SELECT player, score FROM scores_player"), key=lambda row: (-row[1], row[0]))]
    pages = walk(site, "/apps/scores/page", "next")
    assert [len(page) for page in pages] == [20, 20, 20, 20, 20, 5]
    assert [row for page in pages for row in page] == expected
    last = parse_json(site.get(forward(site, 5), token=None).body)
    back = walk(site, last["prev"], "prev")
    assert [row for page in reversed(back) for row in page] == expected[:100]


def forward(site, pages):
    path = "/apps/scores/page"
    for _ in range(pages):
        path = parse_json(site.get(path, token=None).body)["next"]
    return path


def fill(site, players):
    link = site.hanji.sqlite(readonly=False)
    link.execute("BEGIN IMMEDIATE")
    link.executemany("INSERT INTO scores_player (player, score, at) VALUES (?, ?, 0)", players)
    link.execute("COMMIT")
    link.close()


def test_totals_follow_what_the_shell_does(site):
    fill(site, [("a", 5), ("b", 6), ("c", 7)])
    link = site.hanji.sqlite(readonly=False)
    link.execute("DELETE FROM scores_player WHERE player = 'b'")
    link.execute("UPDATE scores_player SET score = 10 WHERE player = 'c'")
    link.close()
    assert totals(site) == [{"players": 2, "writes": 4, "total": 15}]


def test_a_score_stays_a_whole_number(site):
    fill(site, [("a", 2**63 - 2)])
    assert add(site, "a", 1).status == 200
    got = add(site, "a", 1)
    assert got.status == 422, got
    assert rows(site, "page") == [{"player": "a", "score": 2**63 - 1}]


def test_many_at_once_are_all_counted(site):
    def some(n):
        link = site.link()
        for i in range(25):
            body = json.dumps({"player": "p%d" % (i % 7), "points": n}).encode()
            assert link.request("POST", "/apps/scores/add", body, JSON).status == 200
        link.close()
    threads = [threading.Thread(target=some, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert totals(site) == [{"players": 7, "writes": 200, "total": 25 * sum(range(8))}]
    assert site.hanji.rows("SELECT count(*), sum(score) FROM scores_player") == [(7, 25 * sum(range(8)))]


def test_pages_are_read_from_the_index_alone(tmp_path):
    link = sqlite3.connect(tmp_path / "x.db")
    link.executescript((bundled.BUNDLED / "scores/schema/001-scores.sql").read_text())
    plan = link.execute("EXPLAIN QUERY PLAN SELECT player, score FROM scores_player WHERE score < 5 ORDER BY score DESC, player LIMIT 21").fetchall()
    assert [row[3] for row in plan] == ["SEARCH scores_player USING COVERING INDEX scores_by_score (score<?)"]


def test_who_may_not_write_does_not(base, make_site):
    site = make_site(apps=bundled.lay_out(base / "scores-as-it-comes", "scores", access=None))
    assert site.get("/apps/scores/total", token=None).status == 200
    assert add(site, "ann", 5).status == 401
    assert site.http("POST", "/apps/scores/add", b'{"player":"ann","points":5}', JSON).status == 200


@pytest.mark.parametrize("path", ["", "page", "total"])
def test_pages_are_for_everybody(site, browser, path):
    fill(site, [("player %03d" % n, n) for n in range(60)])
    browser.open(site.url() + "/apps/scores/" + path)
    browser.shot("scores-" + (path or "index"))
    pagecheck.check_page(browser)


def test_in_a_browser(site, browser):
    browser.open(site.url() + "/apps/scores/")
    browser.fill("Player", "Zoë")
    browser.fill("Points", "5")
    browser.press("Add")
    browser.see("Players: 1. Points: 5. Additions: 1.")
    assert "Zoë" in browser.text("table")
