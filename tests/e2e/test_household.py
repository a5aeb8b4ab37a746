"""The bundled app `household` over HTTP: the shopping list, the chores, the money."""
import json
import re
import urllib.parse

import pytest

import bundled
import harness
from http1 import parse_json

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
HTML = {"Accept": "text/html"}
APP = "/apps/household/"
TABLES = ("share", "expense", "chore", "item", "person")
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20


@pytest.fixture(scope="module")
def site(base, certificate):
    site = bundled.start_site(base / "household", certificate, "household")
    yield site
    site.stop()


@pytest.fixture(autouse=True)
def empty(site):
    link = site.hanji.sqlite(readonly=False)
    for table in TABLES:
        link.execute("DELETE FROM household_%s" % table)
    link.execute("DELETE FROM doc")
    link.close()


def post(site, route, headers=None, status=200, **fields):
    body = urllib.parse.urlencode([(name.rstrip("_"), value) for name, value in fields.items()], doseq=True).encode()
    got = site.http("POST", APP + route, body, {**FORM, **(headers or {})}, token=None)
    assert got.status == status, got
    return got


def made(got):
    return parse_json(got.body)["rows"][0]["id"]


def said(got):
    return parse_json(got.body)["detail"]


def get(site, route="", status=200, headers=None):
    got = site.get(APP + route, headers, token=None)
    assert got.status == status, got
    return parse_json(got.body) if headers is None else got.body.decode()


def people(site, *names):
    return [made(post(site, "people/add", name=name)) for name in names]


def names(site, result):
    return [row["name"] for row in get(site)[result]]


# ---- who is who

def test_people_are_added_once(site):
    people(site, "Anna")
    assert said(post(site, "people/add", name="anna", status=409)) == "Anna lives here already."


def test_a_cookie_remembers_who_one_is(site):
    anna, ben = people(site, "Anna", "Ben")
    got = post(site, "people/me", id=ben)
    cookie = got.header("Set-Cookie")
    assert cookie.startswith("household_person=%d; " % ben) and "Path=/apps/household/" in cookie and "Max-Age=31536000" in cookie
    page = get(site, headers={**HTML, "Cookie": cookie.split(";")[0]})
    assert "You are <b>Ben</b>" in page
    post(site, "add", {"Cookie": cookie.split(";")[0]}, item="Milk")
    assert get(site)["wanted"][0]["person"] == "Ben"


def test_who_is_not_known_is_asked(site):
    assert "Say who you are" in get(site, headers=HTML)
    assert "Say who you are" in get(site, headers={**HTML, "Cookie": "household_person=99"})


@pytest.mark.parametrize("person", ["99", "x", "", None])
def test_nobody_else_can_be_chosen(site, person):
    post(site, "people/me", status=404, id=person)


def test_who_moves_out_is_not_offered_any_more_but_stays_in_old_entries(site):
    anna, ben = people(site, "Anna", "Ben")
    entry = made(post(site, "expense/add", what="Tea", amount="3", payer=anna, **{"for[]": [anna]}))
    post(site, "people/leave", id=anna)
    assert [row["name"] for row in get(site, "people")["people"]] == ["Ben"]
    assert get(site, "expense/%d" % entry)["expense"][0]["payer"] == "Anna"
    assert post(site, "people/add", name="Anna") and len(get(site, "people")["people"]) == 2


def test_nobody_moves_out_with_debts(site):
    anna, ben = people(site, "Anna", "Ben")
    post(site, "expense/add", what="Tea", amount="3", payer=anna, **{"for[]": [anna, ben]})
    assert "still owes" in said(post(site, "people/leave", id=ben, status=409))
    assert "still owed" in said(post(site, "people/leave", id=anna, status=409))


# ---- shopping

def test_something_is_put_on_the_list_into_the_basket_and_off(site):
    milk = made(post(site, "add", item="  Milk "))
    assert names(site, "wanted") == ["Milk"]
    post(site, "tick", id=milk, basket=1)
    assert (names(site, "wanted"), names(site, "basket")) == ([], ["Milk"])
    post(site, "tick", id=milk, basket=0)
    assert (names(site, "wanted"), names(site, "basket")) == (["Milk"], [])
    post(site, "tick", id=milk, basket=1)
    post(site, "clear")
    assert (names(site, "wanted"), names(site, "basket"), names(site, "earlier")) == ([], [], ["Milk"])


def test_what_was_bought_before_comes_back(site):
    milk = made(post(site, "add", item="Milk"))
    post(site, "tick", id=milk, basket=1)
    post(site, "clear")
    assert made(post(site, "add", item="milk")) == milk
    assert (names(site, "wanted"), names(site, "earlier")) == (["Milk"], [])


def test_the_same_thing_is_wanted_once(site):
    post(site, "add", item="Milk")
    assert said(post(site, "add", item="MILK", status=409)) == "Milk is on the list already."


@pytest.mark.parametrize("item", ["", "   ", "x" * 61, None, "a\0b"])
def test_an_item_has_a_name(site, item):
    body = json.dumps({"item": item}).encode()
    got = site.http("POST", APP + "add", body, {"Content-Type": "application/json"}, token=None)
    assert got.status == 422 and names(site, "wanted") == []


def test_ticking_twice_is_like_ticking_once(site):
    milk = made(post(site, "add", item="Milk"))
    for _ in range(2):
        post(site, "tick", id=milk, basket=1)
    assert names(site, "basket") == ["Milk"]


def test_what_has_gone_cannot_be_ticked(site):
    milk = made(post(site, "add", item="Milk"))
    post(site, "delete", id=milk)
    post(site, "tick", id=milk, basket=1, status=404)
    post(site, "delete", id=milk)


def test_an_item_is_changed(site):
    milk = made(post(site, "add", item="Mlik"))
    got = post(site, "item/%d" % milk, name="Milk", note="2 l")
    assert got.header("Location") == APP
    assert get(site)["wanted"][0] == {"id": milk, "name": "Milk", "note": "2 l", "person": None}


def test_an_item_cannot_take_the_name_of_another(site):
    milk, bread = (made(post(site, "add", item=name)) for name in ("Milk", "Bread"))
    assert said(post(site, "item/%d" % bread, name="milk", status=409)) == "Milk is on the list already."


def test_an_item_takes_the_name_of_one_that_was_bought(site):
    milk, bread = (made(post(site, "add", item=name)) for name in ("Milk", "Bread"))
    post(site, "tick", id=milk, basket=1)
    post(site, "clear")
    post(site, "item/%d" % bread, name="milk")
    assert names(site, "wanted") == ["milk"] and names(site, "earlier") == []


def test_the_list_has_an_end(site):
    link = site.hanji.sqlite(readonly=False)
    link.execute("WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)"
                 " INSERT INTO household_item (name, state, at) SELECT 'thing ' || i, 'wanted', 0 FROM n")
    link.close()
    assert "full" in said(post(site, "add", item="one more", status=422))


def test_old_things_are_forgotten(site):
    link = site.hanji.sqlite(readonly=False)
    link.execute("WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 505)"
                 " INSERT INTO household_item (name, state, at) SELECT 'thing ' || i, 'past', i FROM n")
    link.close()
    post(site, "tick", id=made(post(site, "add", item="Milk")), basket=1)
    post(site, "clear")
    assert site.hanji.rows("SELECT count(*), min(at) FROM household_item") == [(500, 7)]


def test_a_browser_that_posts_goes_back_to_the_list(site):
    got = post(site, "add", HTML, status=303, item="Milk")
    assert got.header("Location") == APP


def test_an_error_keeps_what_was_typed(site):
    post(site, "add", item="Milk")
    page = post(site, "add", HTML, status=409, item="Milk").body.decode()
    assert "Milk is on the list already." in page and re.search(r'<input id="item"[^>]* value="Milk"', page)


@pytest.mark.parametrize("headers", [{"Origin": "https://elsewhere.example"}, {"Sec-Fetch-Site": "cross-site"}])
def test_another_site_cannot_post(site, headers):
    post(site, "add", headers, status=403, item="Milk")
    assert names(site, "wanted") == []


@pytest.mark.parametrize("name", ["<b>x</b>", "\"><script>", "{{_app}}", "a & b", "'"])
def test_names_are_escaped_everywhere(site, name):
    anna, = people(site, name)
    cookie = {"Cookie": "household_person=%d" % anna}
    item = made(post(site, "add", cookie, item=name))
    chore = made(post(site, "chore/add", name=name, days=3, turn=anna))
    entry = made(post(site, "expense/add", what=name, amount="1", payer=anna, **{"for[]": anna}))
    escaped = name.translate({ord("<"): "&lt;", ord(">"): "&gt;", ord("&"): "&amp;", ord('"'): "&quot;", ord("'"): "&#39;"})
    for route in ("", "item/%d" % item, "chores", "chore/%d" % chore, "money", "expense/%d" % entry, "people"):
        page = get(site, route, headers={**HTML, **cookie})
        assert escaped in page, route
        assert name == escaped or name not in page.replace("data-app=", ""), route


# ---- chores

def test_a_chore_goes_round(site):
    anna, ben = people(site, "Anna", "Ben")
    bins = made(post(site, "chore/add", name="Bins", days=7, turn=ben))
    today = get(site, "chores")["chores"][0]
    assert (today["due_words"], today["turn"], today["late"]) == ("today", "Ben", 0)
    post(site, "chore/done", {"Cookie": "household_person=%d" % ben}, id=bins, was=today["due"])
    later = get(site, "chores")["chores"][0]
    assert (later["due_words"], later["turn"], later["done_by"], later["may_undo"]) == ("in 7 days", "Anna", "Ben", 1)


def test_two_who_tap_at_once_do_it_once(site):
    people(site, "Anna")
    bins = made(post(site, "chore/add", name="Bins", days=7))
    due = get(site, "chores")["chores"][0]["due"]
    post(site, "chore/done", id=bins, was=due)
    assert said(post(site, "chore/done", id=bins, was=due, status=409)) == "Bins has just been done."


def test_undo_brings_back_the_day_and_the_turn(site):
    anna, ben = people(site, "Anna", "Ben")
    bins = made(post(site, "chore/add", name="Bins", days=7, turn=anna, due="2020-02-29"))
    before = get(site, "chores")["chores"][0]
    assert before["late"] == 1 and before["due_words"].endswith(" days late")
    post(site, "chore/done", id=bins)
    post(site, "chore/undo", id=bins)
    assert get(site, "chores")["chores"][0] == before
    post(site, "chore/undo", id=bins)
    assert get(site, "chores")["chores"][0] == before


@pytest.mark.parametrize("wrong", [{"days": "0"}, {"days": "1001"}, {"days": "x"}, {"days": ""}, {"days": "1.5"}, {"name": ""},
                                   {"name": "x" * 61}, {"due": "2026-02-30"}, {"due": "tomorrow"}, {"due": "now"}])
def test_a_chore_must_make_sense(site, wrong):
    post(site, "chore/add", status=422, **{"name": "Bins", "days": "7", **wrong})
    assert get(site, "chores")["chores"] == []


def test_a_chore_is_changed_and_deleted(site):
    anna, = people(site, "Anna")
    bins = made(post(site, "chore/add", name="Bins", days=7, turn=anna))
    got = post(site, "chore/%d" % bins, name="Paper bins", days="14", due="2030-01-01", turn="")
    assert got.header("Location") == APP + "chores"
    chore = get(site, "chores")["chores"][0]
    assert (chore["name"], chore["days"], chore["due"], chore["turn"]) == ("Paper bins", 14, "2030-01-01", None)
    post(site, "chore/delete", id=bins)
    assert get(site, "chores")["chores"] == []
    get(site, "chore/%d" % bins, status=404)


def test_an_error_keeps_what_was_chosen(site):
    anna, ben = people(site, "Anna", "Ben")
    page = post(site, "chore/add", HTML, status=422, name="Bins", days="often", turn=ben).body.decode()
    assert 'value="often"' in page and '<option value="%d" selected>Ben' % ben in page and "<details open>" in page


# ---- money

def balances(site):
    return {row["name"]: row["amount"] for row in get(site, "money")["balances"]}


def test_shares_are_equal_and_odd_cents_are_not_lost(site):
    anna, ben, cleo = people(site, "Anna", "Ben", "Cleo")
    post(site, "expense/add", what="Food", amount="10,00", payer=anna, **{"for[]": [anna, ben, cleo]})
    assert balances(site) == {"Anna": "+6.66", "Ben": "\u22123.33", "Cleo": "\u22123.33"}
    assert site.hanji.rows("SELECT cents FROM household_share ORDER BY person") == [(334,), (333,), (333,)]


def test_settling_makes_everybody_even(site):
    ids = people(site, "Anna", "Ben", "Cleo", "Dan")
    for payer, amount, whom in ((0, "10", (0, 1, 2, 3)), (1, "99.99", (0, 2, 3)), (3, "0.01", (1,)), (2, "7.5", (0, 1))):
        post(site, "expense/add", what="x", amount=amount, payer=ids[payer], **{"for[]": [ids[n] for n in whom]})
    for _ in range(3):
        due = get(site, "money")["settling"]
        if due:
            post(site, "expense/settle", from_=due[0]["from_id"], to=due[0]["to_id"], cents=due[0]["cents"])
    assert set(balances(site).values()) == {"0.00"} and get(site, "money")["settling"] == []


def test_nothing_is_settled_twice(site):
    anna, ben = people(site, "Anna", "Ben")
    post(site, "expense/add", what="Food", amount="10", payer=anna, **{"for[]": [ben]})
    due = get(site, "money")["settling"][0]
    fields = {"from_": due["from_id"], "to": due["to_id"], "cents": due["cents"]}
    post(site, "expense/settle", **fields)
    assert said(post(site, "expense/settle", status=409, **fields)) == "The balances have changed meanwhile."


def test_balances_follow_a_deleted_entry(site):
    anna, ben = people(site, "Anna", "Ben")
    entry = made(post(site, "expense/add", what="Food", amount="10", payer=anna, **{"for[]": [anna, ben]}))
    post(site, "expense/delete", id=entry)
    assert balances(site) == {"Anna": "0.00", "Ben": "0.00"}
    assert site.hanji.rows("SELECT count(*) FROM household_share") == [(0,)]


@pytest.mark.parametrize("wrong,words", [
    ({"amount": ""}, "amount"), ({"amount": "x"}, "amount"), ({"amount": "1.234"}, "amount"), ({"amount": "-1"}, "amount"),
    ({"amount": "0"}, "amount"), ({"amount": "1000000.01"}, "amount"), ({"amount": "1e3"}, "amount"), ({"what": " "}, "What"),
    ({"payer": "99"}, "Who"), ({"payer": ""}, "Who"), ({"for[]": []}, "whom"), ({"for[]": ["99"]}, "whom"), ({"day": "2026-02-30"}, "day")])
def test_an_entry_must_make_sense(site, wrong, words):
    anna, = people(site, "Anna")
    got = post(site, "expense/add", status=422, **{"what": "Food", "amount": "1", "payer": anna, "for[]": [anna], **wrong})
    assert words in said(got) and get(site, "money")["expenses"] == []


def test_an_error_keeps_the_whole_form(site):
    anna, ben, cleo = people(site, "Anna", "Ben", "Cleo")
    page = post(site, "expense/add", HTML, status=422, what="Food", amount="lots", payer=ben, day="2026-11-30",
                **{"for[]": [anna, cleo]}).body.decode()
    assert 'value="Food"' in page and 'value="lots"' in page and 'value="2026-11-30"' in page
    assert '<option value="%d" selected>Ben' % ben in page
    assert re.findall(r'name="for\[\]" value="(\d+)" checked', page) == [str(anna), str(cleo)]


def test_entries_come_in_pages(site):
    anna, = people(site, "Anna")
    link = site.hanji.sqlite(readonly=False)
    link.executemany("INSERT INTO household_expense (what, cents, payer, day) VALUES (?, 100, ?, '2026-11-30')",
                     [("entry %d" % n, anna) for n in range(45)])
    link.close()
    found, path = [], APP + "money"
    while path:
        body = parse_json(site.get(path, token=None).body)
        found += [row["what"] for row in body["expenses"]]
        path = body["expenses_next"]
    assert found == ["entry %d" % n for n in reversed(range(45))]


def multipart(fields, photo=None, kind="image/png", name="receipt.png"):
    parts = [b'--x\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % (key.encode(), str(value).encode()) for key, value in fields]
    if photo is not None:
        parts.append(b'--x\r\nContent-Disposition: form-data; name="photo"; filename="%s"\r\nContent-Type: %s\r\n\r\n%s\r\n'
                     % (name.encode(), kind.encode(), photo))
    return b"".join(parts) + b"--x--\r\n"


def with_receipt(site, anna, status=200, **photo):
    body = multipart([("what", "Food"), ("amount", "1"), ("payer", anna), ("for[]", anna)], **photo)
    got = site.http("POST", APP + "expense/add", body, {"Content-Type": "multipart/form-data; boundary=x"}, token=None)
    assert got.status == status, got
    return got


def test_a_receipt_is_kept_as_a_document(site):
    anna, = people(site, "Anna")
    entry = made(with_receipt(site, anna, photo=PNG))
    got = site.get(APP + "receipt/%d" % entry, token=None)
    assert (got.status, got.header("Content-Type"), got.body) == (200, "image/png", PNG)
    assert got.header("X-Content-Type-Options") == "nosniff"
    (key, body), = site.hanji.rows("SELECT key, body FROM doc WHERE key GLOB 'apps/household/receipts/*'")
    assert body == PNG
    post(site, "expense/delete", id=entry)
    assert site.hanji.rows("SELECT count(*) FROM doc WHERE key GLOB 'apps/household/receipts/*'") == [(0,)]


@pytest.mark.parametrize("kind", ["text/html", "image/svg+xml", "application/octet-stream"])
def test_a_receipt_is_a_photo(site, kind):
    anna, = people(site, "Anna")
    with_receipt(site, anna, status=422, photo=b"<svg onload=alert(1)>", kind=kind)
    assert site.hanji.rows("SELECT count(*) FROM doc WHERE key GLOB '*receipts*'") == [(0,)]


def test_no_photo_is_no_receipt(site):
    anna, = people(site, "Anna")
    entry = made(with_receipt(site, anna, photo=b"", kind="application/octet-stream", name=""))
    assert get(site, "expense/%d" % entry)["expense"][0]["has_receipt"] == 0
    get(site, "receipt/%d" % entry, status=404)


def test_a_large_receipt(site):
    anna, = people(site, "Anna")
    photo = PNG * (200 if harness.sanitized() else 900)
    entry = made(with_receipt(site, anna, photo=photo, kind="image/jpeg"))
    assert site.get(APP + "receipt/%d" % entry, token=None).body == photo


# ---- who may

def test_it_is_for_those_who_log_in(base, make_site):
    site = make_site(apps=bundled.lay_out(base / "household-as-it-comes", "household", access=None))
    site.hanji.command("user", "add", "anna", "--nothing", stdin="correct horse\n")
    got = site.get(APP, HTML, token=None)
    assert got.status == 401 and b"Log in" in got.body
    body = urllib.parse.urlencode({"user": "anna", "password": "correct horse"}).encode()
    cookie = site.http("POST", "/auth/login", body, FORM, token=None).header("Set-Cookie").split(";")[0]
    assert site.get(APP, {**HTML, "Cookie": cookie}, token=None).status == 200
    own = {**FORM, "Cookie": cookie, "Sec-Fetch-Site": "same-origin"}
    assert site.http("POST", APP + "people/add", b"name=Anna", own, token=None).status == 200
    assert b"You are <b>Anna</b>" in site.get(APP, {**HTML, "Cookie": cookie}, token=None).body


def test_below_a_mount(make_site, base):
    site = make_site(mount="/h", apps=bundled.lay_out(base / "household-mounted", "household"))
    page = site.get(APP, HTML, token=None).body.decode()
    assert 'action="/h/apps/household/add"' in page and 'href="/h/apps/household/static/household.css"' in page
    assert site.get(APP + "static/household.css", token=None).status == 200


def test_every_change_is_in_the_feed(site):
    since = parse_json(site.get(APP + "_changes?since=now", token=None).body)["next"]
    anna, = people(site, "Anna")
    milk = made(post(site, "add", item="Milk"))
    post(site, "chore/add", name="Bins", days=7)
    post(site, "expense/add", what="x", amount="1", payer=anna, **{"for[]": anna})
    keys = [entry["key"] for entry in parse_json(site.get(APP + "_changes?since=%d" % since, token=None).body)["changes"]]
    assert keys == ["apps/household/" + topic for topic in ("people", "shopping", "chores", "money")]
    assert milk
