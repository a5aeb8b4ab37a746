"""hanji inbox: add, set, list, show, close, open, remove, with the server up and down."""
import json

import letters
import nacl.signing
import pytest
import webhook


@pytest.fixture
def idle(make_hanji):
    """A configuration with keys, and no server."""
    hanji = make_hanji(start=False)
    hanji.command("key", "new")
    return hanji


def card():
    sender = letters.Sender()
    return sender, letters.card(sender, bytes(nacl.signing.SigningKey.generate().verify_key), letters.Recipient().public).decode()


def fails(hanji, code, said, *words):
    done = hanji.command("inbox", *words, ok=False)
    assert done.returncode == code and said in done.stderr and done.stdout == "", done


def row(hanji, name):
    lines = [line.split("\t") for line in hanji.command("inbox", "list").stdout.splitlines()]
    return dict(zip(lines[0], next(line for line in lines if line[0] == name)))


def test_a_secret_that_is_made_is_printed_alone(idle):
    secret = idle.command("inbox", "add", "payments", "--secret", "new").stdout.strip()
    assert secret.startswith("whsec_") and len(secret) == 50
    assert row(idle, "payments") == {"name": "payments", "state": "open", "keys": "0", "secret": "yes", "app": "-",
                                     "last received": "never"}


def test_a_secret_that_is_given_works(make_site):
    site, secret = make_site(), webhook.new_secret()
    webhook.give_keys(site)
    assert site.hanji.command("inbox", "add", "payments", "--secret", secret).stdout == ""
    assert webhook.Sender(site, "payments", secret).send().status == 200
    assert row(site.hanji, "payments")["last received"].startswith("20")


def test_cards_from_a_file_the_input_and_the_text(idle, tmp_path):
    path = tmp_path / "card.json"
    for number, given in enumerate(("file", "input", "text")):
        sender, text = card()
        path.write_text(text)
        word, stdin = {"file": (path, ""), "input": ("-", text), "text": (text, "")}[given]
        done = idle.command("inbox", "add", "box%d" % number, "--from", word, stdin=stdin)
        assert "fingerprint" in done.stdout and sender.id.hex() in done.stdout
        assert row(idle, "box%d" % number)["keys"] == "2"
        shown = idle.command("inbox", "show", "box%d" % number).stdout
        assert "identity\t" + sender.id.hex() in shown and "transport\t" in shown


def test_several_cards(idle):
    idle.command("inbox", "add", "orders", "--from", card()[1], "--from", card()[1])
    assert row(idle, "orders")["keys"] == "4"


def test_a_card_that_is_none(idle, tmp_path):
    _, text = card()
    idle.command("inbox", "add", "other", "--secret", "new")
    for wrong in ("{}", text.replace('"made":', '"made":1'), text[:-1], str(tmp_path / "nothing.json")):
        done = idle.command("inbox", "add", "orders", "--from", wrong, ok=False)
        assert done.returncode == 1 and done.stderr.startswith("hanji inbox: ")
    assert len(idle.command("inbox", "list").stdout.splitlines()) == 2


def test_set_changes_what_is_named(idle):
    _, text = card()
    idle.command("inbox", "add", "orders", "--from", text)
    idle.command("inbox", "set", "orders", "--app", "shop", "--event", "order")
    assert row(idle, "orders")["keys"] == "2" and row(idle, "orders")["app"] == "shop/order"
    idle.command("inbox", "set", "orders", "--secret", "new", "--start-any")
    one = row(idle, "orders")
    assert (one["keys"], one["secret"], one["app"]) == ("2", "yes", "shop/order")
    shown = idle.command("inbox", "show", "orders").stdout
    assert "start any\tyes" in shown and "app\tshop/order.inbox.sql" in shown
    idle.command("inbox", "set", "orders", "--from", card()[1], "--from", card()[1])
    assert row(idle, "orders")["keys"] == "4" and row(idle, "orders")["secret"] == "yes"


def test_a_name_is_taken_once(idle):
    idle.command("inbox", "add", "orders", "--secret", "new")
    fails(idle, 1, "there is an inbox of that name", "add", "orders", "--secret", "new")


def test_close_open_remove(idle):
    idle.command("inbox", "add", "orders", "--secret", "new")
    idle.command("inbox", "close", "orders")
    assert row(idle, "orders")["state"] == "closed"
    idle.command("inbox", "open", "orders")
    assert row(idle, "orders")["state"] == "open"
    idle.command("inbox", "remove", "orders")
    assert len(idle.command("inbox", "list").stdout.splitlines()) == 1


def test_what_is_not_there(idle):
    idle.command("inbox", "add", "other", "--secret", "new")
    for word in ("show", "close", "open", "remove", "set"):
        fails(idle, 1, "there is no inbox of that name", word, "nothing")


@pytest.mark.parametrize("words", [
    [], ["add"], ["nonsense"], ["list", "x"], ["show"], ["close"], ["add", "Orders", "--secret", "new"], ["add", "-x", "--secret", "new"],
    ["add", "../x", "--secret", "new"], ["add", "x" * 65, "--secret", "new"], ["add", "orders"], ["add", "orders", "--secret"],
    ["add", "orders", "--secret", "short"], ["add", "orders", "--secret", "whsec_AAAA"], ["add", "orders", "--nonsense", "x"],
    ["add", "orders", "--secret", "new", "--app", "x"], ["add", "orders", "--secret", "new", "--event", "x"],
    ["add", "orders", "--secret", "new", "--app", "../x", "--event", "y"], ["remove", "orders", "x"]], ids=" ".join)
def test_words_that_do_not_fit(idle, words):
    fails(idle, 2, "usage: ", *words)


def test_without_a_key_to_hide_a_secret_with(make_hanji):
    hanji = make_hanji(start=False)
    fails(hanji, 1, "run `hanji key new` first", "add", "orders", "--secret", "new")


def test_how_far_a_line_has_come(make_site):
    site = make_site()
    webhook.give_keys(site)
    ours = json.loads(site.hanji.command("key", "export").stdout)["sealing"][0]["key"]
    sender, transport = letters.Sender(), nacl.signing.SigningKey.generate()
    text = letters.card(sender, bytes(transport.verify_key), letters.Recipient().public).decode()
    site.hanji.command("inbox", "add", "orders", "--from", text)
    e = sender.seal(b"x", [letters.base64.b64decode(ours)])
    wire = sender.place(e, seq=5, fifo=False)
    at = str(int(letters.time.time()))
    signature = "v1a," + letters.b64(transport.sign(b"%s.%s.%s" % (e["id"].encode(), at.encode(), wire)).signature)
    answer = site.http("POST", "/inbox/orders", wire, {"webhook-id": e["id"], "webhook-timestamp": at,
                       "webhook-signature": signature}, token=None)
    assert answer.json() == {"ok": 1, "seq": 5}
    assert "line\torders\tfrom %s\tup to 0, and 1 beyond" % sender.id.hex() in site.hanji.command("inbox", "show", "orders").stdout
