"""Messages that an app takes, in the transaction that stores them."""
import json

import pytest
import webhook

SCHEMA = "CREATE TABLE shop_order (id TEXT PRIMARY KEY, tea TEXT, grams INTEGER, seen TEXT)"
ORDER = """
SELECT CAST(:refuse AS INTEGER) AS _status, 'no ' || coalesce(:tea, 'tea') AS message WHERE :refuse IS NOT NULL;
INSERT INTO shop_order VALUES (:id, :tea, :grams, json_array(:type, :sender, :line, :seq, :sent > 1000000000, :_now > 1000000000,
    :_method, :_user, length(:_request_id), typeof(:body), typeof(:grams)));
"""


@pytest.fixture(scope="module")
def shop(site):
    webhook.give_keys(site)
    files = {"schema/001-order.sql": SCHEMA, "order.inbox.sql": ORDER,
             "orders.get.sql": "SELECT id, tea, grams, seen AS \"seen:json\" FROM shop_order ORDER BY id"}
    site.app("shop", files)
    return site


NAMES = iter("shop%d" % number for number in range(1, 1000))


@pytest.fixture
def sender(shop):
    name = next(NAMES)
    secret = shop.hanji.command("inbox", "add", name, "--secret", "new", "--app", "shop", "--event", "order").stdout.strip()
    return webhook.Sender(shop, name, secret)


def orders(shop):
    return {one["id"]: one for one in shop.get("/apps/shop/orders").json()["rows"]}


def stored(sender):
    return sender.site.get(sender.path).json()["messages"]


def refused(answer, status, code):
    assert (answer.status, answer.json()["code"]) == (status, code)


def test_a_message_is_handed_over(shop, sender):
    id_ = webhook.new_id()
    assert sender.send(b'{"tea":"sencha","grams":50}', id_=id_).json() == {"ok": 1}
    assert orders(shop)[id_] == {"id": id_, "tea": "sencha", "grams": 50, "seen": [
        "application/json", None, None, None, 1, 1, "INBOX", None, 32, "text", "integer"]}
    assert [one["id"] for one in stored(sender)] == [id_]


def test_a_message_that_comes_again_is_not_handed_over_again(shop, sender):
    id_ = webhook.new_id()
    for _ in range(3):
        assert sender.send(b'{"tea":"once"}', id_=id_).status == 200
    assert orders(shop)[id_]["tea"] == "once"       # a second INSERT would have failed


def test_bytes_and_text_without_members(shop, sender):
    for body, kind, form in [(b"\0\1", "application/octet-stream", "blob"), (b"hello", "text/plain", "text"),
                             (b"[1]", "application/json", "text"), (b"{", "application/json", "text"), (b"", "text/plain", "text")]:
        id_ = webhook.new_id()
        assert sender.send(body, id_=id_, kind=kind).status == 200
        assert orders(shop)[id_]["seen"][9] == form and orders(shop)[id_]["tea"] is None


def test_members_do_not_stand_in_for_facts(shop, sender):
    id_ = webhook.new_id()
    assert sender.send(b'{"id":"forged","type":"x","sender":"y","_user":"root","_method":"GET"}', id_=id_).status == 200
    assert "forged" not in orders(shop) and orders(shop)[id_]["seen"][:2] == ["application/json", None]
    assert orders(shop)[id_]["seen"][6:8] == ["INBOX", None]


@pytest.mark.parametrize("body", [b'{"tea":"a","tea":"b"}', b'{"tea":"\\ud800"}', b'{"x":1,"x":2}'])
def test_members_that_cannot_be_taken(shop, sender, body):
    refused(sender.send(body), 422, "malformed")
    assert stored(sender) == []


@pytest.mark.parametrize("status,later", [(400, False), (409, False), (422, False), (429, True), (500, True), (503, True), (599, True)])
def test_the_app_refuses(shop, sender, status, later):
    id_ = webhook.new_id()
    answer = sender.send(json.dumps({"refuse": status, "tea": "sugar"}).encode(), id_=id_)
    refused(answer, status, "rejected")
    assert answer.json()["detail"] == "no sugar" and (answer.header("Retry-After") is not None) == later
    assert stored(sender) == [] and id_ not in orders(shop)
    assert sender.send(b'{"tea":"better"}', id_=id_).status == 200      # nothing of it was noted


def test_a_script_that_fails_leaves_nothing(shop, sender):
    id_ = webhook.new_id()
    shop.app("broken", {"schema/001-x.sql": "CREATE TABLE broken_x (a TEXT NOT NULL)",
                        "fail.inbox.sql": "INSERT INTO broken_x VALUES ('one');\nINSERT INTO broken_x VALUES (NULL)",
                        "n.get.sql": "SELECT count(*) AS n FROM broken_x"})
    shop.hanji.command("inbox", "set", sender.path.rpartition("/")[2], "--app", "broken", "--event", "fail")
    mark = shop.hanji.mark()
    answer = sender.send(b"{}", id_=id_)
    refused(answer, 500, "app")
    assert "NULL" not in answer.json()["detail"] and answer.header("Retry-After")
    assert stored(sender) == [] and shop.get("/apps/broken/n").json()["rows"] == [{"n": 0}]
    assert "broken/fail.inbox.sql" in shop.hanji.log_since(mark)
    shop.app("broken", {"fail.inbox.sql": "INSERT INTO broken_x VALUES ('mended')"})
    assert sender.send(b"{}", id_=id_).json() == {"ok": 1}


def test_a_script_that_takes_too_long(shop, sender):
    shop.app("slow", {"wait.inbox.sql": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
                                        " SELECT count(*) FROM n LIMIT 1"})
    shop.hanji.command("inbox", "set", sender.path.rpartition("/")[2], "--app", "slow", "--event", "wait")
    refused(sender.send(b"{}"), 503, "app")
    assert stored(sender) == []


def test_an_app_that_is_not_there(shop, sender):
    name = sender.path.rpartition("/")[2]
    for app, event in (("nowhere", "order"), ("shop", "nothing")):
        shop.hanji.command("inbox", "set", name, "--app", app, "--event", event)
        answer = sender.send(b"{}")
        refused(answer, 503, "app")
        assert answer.header("Retry-After") and stored(sender) == []


def test_documents_are_put_in_the_same_commit(shop, sender):
    shop.app("notes", {"note.inbox.sql": "SELECT put_doc('apps/notes/' || :id, :body, 'text/plain')"})
    shop.hanji.command("inbox", "set", sender.path.rpartition("/")[2], "--app", "notes", "--event", "note")
    assert sender.send(b"buy milk", id_="msg_note", kind="text/plain").status == 200
    assert shop.get("/docs/apps/notes/msg_note").body == b"buy milk"


def test_what_it_sends_is_queued_in_the_same_commit(shop, sender):
    """An answer to each message, once; none for one that is refused."""
    shop.hanji.command("line", "add", "replies", "http://127.0.0.1:9/inbox/x", "--allow-private")
    shop.hanji.command("line", "pause", "replies")
    shop.app("answers", {"answer.inbox.sql": "SELECT send('replies', 'to ' || :id); SELECT 422 AS _status WHERE :body = 'no'"},
             ini="read = public\nsends = replies\n")
    shop.hanji.command("inbox", "set", sender.path.rpartition("/")[2], "--app", "answers", "--event", "answer")
    for _ in range(2):
        assert sender.send(b"yes", id_="msg_yes", kind="text/plain").status == 200
    refused(sender.send(b"no", kind="text/plain"), 422, "rejected")
    queued = shop.hanji.rows("SELECT CAST(b.body AS TEXT) FROM outbox JOIN outbox_body AS b ON b.id = outbox.body"
                             " WHERE line = (SELECT id FROM line WHERE name = 'replies')")
    assert queued == [("to msg_yes",)]
    shop.hanji.command("line", "remove", "replies")


def test_a_script_that_does_not_compile_is_told(shop):
    folder = shop.hanji.settings["apps"] / "wrong"
    folder.mkdir()
    (folder / "x.inbox.sql").write_text("INSERT INTO nothing VALUES (:body)")
    done = shop.hanji.command("app", "check", "wrong", ok=False)
    assert done.returncode == 1 and "wrong/x.inbox.sql:1: " in done.stdout + done.stderr
