"""Inboxes and envelopes of other hanjis: opened, in order, once; and what does not hold together is refused."""
import base64
import concurrent.futures
import json
import time

import letters
import nacl.signing
import pytest
import webhook


@pytest.fixture(scope="module")
def keyed(site):
    """The site with keys of its own; `ours`: what others seal to."""
    webhook.give_keys(site)
    card = json.loads(site.hanji.command("key", "export").stdout)
    site.ours = base64.b64decode(card["sealing"][0]["key"])
    return site


class Peer:
    """Another hanji, with one line, and what it has sent on it."""

    def __init__(self, **card):
        self.letters, self.transport = letters.Sender(), nacl.signing.SigningKey.generate()
        self.card = letters.card(self.letters, bytes(self.transport.verify_key), letters.Recipient().public, **card)
        self.seq, self.prev = 0, bytes(32)

    def next(self, site, body=b"hello", fifo=True, to=None, **more):
        """The bytes of the next message, and its id."""
        e = self.letters.seal(body, to or [site.ours], **more)
        self.seq += 1
        wire = self.letters.place(e, self.seq, self.prev, fifo)
        self.prev = self.letters.hash(e)
        return wire, e["id"]

    def skip(self, ident, digest, fifo=True):
        self.seq += 1
        wire = self.letters.tombstone(ident, "orders", self.seq, self.prev, digest, fifo)
        self.prev = digest
        return wire, ident

    def post(self, site, name, wire, ident, transport=None, link=None):
        at = str(int(time.time()))
        signed = b"%s.%s.%s" % (ident.encode(), at.encode(), wire)
        signature = "v1a," + letters.b64((transport or self.transport).sign(signed).signature)
        wanted = {"webhook-id": ident, "webhook-timestamp": at, "webhook-signature": signature, "Content-Type": "application/json"}
        if link is not None:
            return link.request("POST", "/inbox/" + name, wire, wanted)
        return site.http("POST", "/inbox/" + name, wire, wanted, token=None)


NAMES = iter("sealed%d" % number for number in range(1, 10000))


class Inbox:
    def __init__(self, site, *peers, **settings):
        self.site, self.name = site, next(NAMES)
        assert self.put(*peers, **settings).status == 201

    def put(self, *peers, **settings):
        wanted = {"from": [json.loads(peer.card) for peer in peers], **settings}
        return self.site.put("/inbox/" + self.name, json.dumps(wanted), {"Content-Type": "application/json"})

    def messages(self):
        return self.site.get("/inbox/%s?include=body&limit=1000" % self.name).json()["messages"]

    def texts(self):
        return [one["text"] for one in self.messages()]


@pytest.fixture
def peer():
    return Peer()


@pytest.fixture
def inbox(keyed, peer):
    made = Inbox(keyed, peer)
    assert peer.post(keyed, made.name, *peer.next(keyed, b"one")).json() == {"ok": 1, "seq": 1}
    return made


def refused(answer, status, code, **more):
    problem = answer.json()
    assert (answer.status, problem.get("code")) == (status, code)
    assert {name: problem[name] for name in more} == more


# what holds together

def test_a_message_is_opened_and_stored(keyed, peer):
    inbox = Inbox(keyed, peer)
    before = int(time.time())
    wire, ident = peer.next(keyed, b'{"tea": 2}', kind="application/json", created=before - 100)
    assert peer.post(keyed, inbox.name, wire, ident).json() == {"ok": 1, "seq": 1}
    [one] = inbox.messages()
    assert one.pop("n") and one.pop("received") >= before
    assert one == {"id": ident, "sender": peer.letters.id.hex(), "line": "orders", "seq": 1, "type": "application/json",
                   "size": 10, "sent": before - 100, "body": {"tea": 2}}


@pytest.mark.parametrize("body", [b"", b"\0\xff" * 50, bytes(200 << 10)], ids=["empty", "bytes", "large"])
def test_every_byte_comes_out(keyed, peer, inbox, body):
    assert peer.post(keyed, inbox.name, *peer.next(keyed, body, kind="application/x-bytes")).status == 200
    answer = keyed.get("/inbox/%s/%d" % (inbox.name, inbox.messages()[-1]["n"]))
    assert answer.body == body and answer.header("Content-Type") == "application/x-bytes"


def test_the_list_names_the_senders(keyed, peer, inbox):
    [one] = [one for one in keyed.get("/inbox/?limit=1000").json()["inboxes"] if one["name"] == inbox.name]
    [sender] = one["senders"]
    assert sender["key"] == sender["sender"] == peer.letters.id.hex() and len(sender["fingerprint"]) == 39


def test_the_same_again_is_known(keyed, peer, inbox):
    wire, ident = peer.next(keyed, b"two")
    assert peer.post(keyed, inbox.name, wire, ident).json() == {"ok": 1, "seq": 2}
    assert peer.post(keyed, inbox.name, wire, ident).json() == {"ok": 1, "seq": 2, "again": True}
    assert inbox.texts() == ["one", "two"]


def test_many_at_once_are_stored_once(keyed, peer, inbox):
    wire, ident = peer.next(keyed, b"two")

    def once(_):
        link = keyed.link()
        try:
            return peer.post(keyed, inbox.name, wire, ident, link=link)
        finally:
            link.close()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = [answer.json() for answer in pool.map(once, range(24))]
    assert {answer["seq"] for answer in answers} == {2}
    assert len([answer for answer in answers if "again" not in answer]) == 1 and inbox.texts() == ["one", "two"]


# the order

def test_numbers_that_are_missing_are_a_gap(keyed, peer, inbox):
    two, three = peer.next(keyed, b"two"), peer.next(keyed, b"three")
    refused(peer.post(keyed, inbox.name, *three), 409, "gap", expected=2)
    assert [peer.post(keyed, inbox.name, *one).status for one in (two, three)] == [200, 200]
    assert inbox.texts() == ["one", "two", "three"]


def test_a_number_that_is_given_again(keyed, peer, inbox):
    peer.seq, peer.prev = 0, bytes(32)      # restored from a backup
    refused(peer.post(keyed, inbox.name, *peer.next(keyed, b"other")), 422, "id_conflict")
    assert inbox.texts() == ["one"]


def test_another_message_before_it(keyed, peer, inbox):
    peer.prev = b"x" * 32
    refused(peer.post(keyed, inbox.name, *peer.next(keyed, b"two")), 422, "id_conflict")
    assert inbox.texts() == ["one"]


def test_any_order(keyed, peer):
    inbox = Inbox(keyed, peer)
    made = [peer.next(keyed, b"%d" % number, fifo=False) for number in range(1, 5)]
    for number in (3, 1, 4, 2):
        assert peer.post(keyed, inbox.name, *made[number - 1]).json() == {"ok": 1, "seq": number}
    assert [peer.post(keyed, inbox.name, *one).json()["again"] for one in made] == [True] * 4
    assert inbox.texts() == ["3", "1", "4", "2"]


def test_it_may_begin_in_the_middle_where_it_may(keyed, peer):
    strict, lenient = Inbox(keyed, peer), Inbox(keyed, peer, start_any=True)
    peer.seq, peer.prev = 41, b"p" * 32
    one = peer.next(keyed, b"one")
    refused(peer.post(keyed, strict.name, *one), 409, "gap", expected=1)
    assert peer.post(keyed, lenient.name, *one).json() == {"ok": 1, "seq": 42}


def test_senders_have_lines_of_their_own(keyed, peer, inbox):
    other = Peer()
    assert inbox.put(peer, other).status == 200
    assert other.post(keyed, inbox.name, *other.next(keyed, b"theirs")).json() == {"ok": 1, "seq": 1}
    assert peer.post(keyed, inbox.name, *peer.next(keyed, b"two")).json() == {"ok": 1, "seq": 2}
    assert peer.post(keyed, inbox.name, *peer.next(keyed, line="alerts")).status == 409     # 3 of a line that begins


def test_a_tombstone_keeps_the_chain_whole(keyed, peer, inbox):
    skipped = peer.letters.seal(b"poison", [keyed.ours])
    assert peer.post(keyed, inbox.name, *peer.skip(skipped["id"], peer.letters.hash(skipped))).json() == {"ok": 1, "seq": 2}
    assert peer.post(keyed, inbox.name, *peer.next(keyed, b"three")).json() == {"ok": 1, "seq": 3}
    assert inbox.texts() == ["one", "three"]


def secret_of(folder, kind):
    """The newest key of a kind in a folder of keys, as PyNaCl has it."""
    found = [dict(line.split(" ", 1) for line in path.read_text().splitlines()) for path in folder.glob(kind + "-*.key")]
    return nacl.signing.SigningKey(base64.b64decode(min(found, key=lambda one: one["retired"] != "0")["secret"])[:32])


def test_a_sender_that_takes_another_identity_goes_on(keyed, make_hanji):
    """Its keys are those of a hanji; the receiver gets the new card, with the old identity in it."""
    sender = make_hanji(start=False)
    sender.command("key", "new")
    folder, peer = sender.base / "keys", Peer()

    def take_keys():
        peer.letters.identity, peer.transport = secret_of(folder, "identity"), secret_of(folder, "transport")
        peer.letters.public = bytes(peer.letters.identity.verify_key)
        peer.letters.id = letters.key_id("identity", peer.letters.public)
        peer.card = sender.command("key", "export").stdout
    take_keys()
    inbox, first = Inbox(keyed, peer), peer.letters.id
    assert peer.post(keyed, inbox.name, *peer.next(keyed, b"one")).json() == {"ok": 1, "seq": 1}
    late = peer.next(keyed, b"two")
    sender.command("key", "rotate", "identity")
    take_keys()
    assert peer.letters.id != first
    three = peer.next(keyed, b"three")
    assert peer.post(keyed, inbox.name, *late).json() == {"ok": 1, "seq": 2}
    refused(peer.post(keyed, inbox.name, *three), 401, "signature")     # not yet known here
    assert inbox.put(peer).status == 200
    assert peer.post(keyed, inbox.name, *three).json() == {"ok": 1, "seq": 3}
    assert [(one["text"], one["sender"]) for one in inbox.messages()] == [(name, first.hex()) for name in ("one", "two", "three")]


# what does not

def test_a_sender_that_is_not_known(keyed, peer, inbox):
    other = Peer()
    refused(other.post(keyed, inbox.name, *other.next(keyed)), 401, "signature")
    # also when one that is known carries it
    refused(peer.post(keyed, inbox.name, *other.next(keyed)), 401, "signature")
    assert inbox.texts() == ["one"]


def test_nobody_delivers_for_another(keyed, peer, inbox):
    other = Peer()
    assert inbox.put(peer, other).status == 200
    refused(peer.post(keyed, inbox.name, *other.next(keyed)), 401, "signature")
    assert inbox.texts() == ["one"]


def test_a_public_key_is_no_secret(keyed, peer, inbox):
    """The mistake of a library: HMAC with the public key, which everybody knows."""
    wire, ident = peer.next(keyed)
    secret = "whsec_" + letters.b64(bytes(peer.transport.verify_key))
    wanted = webhook.headers(secret, wire, id_=ident)
    refused(keyed.http("POST", "/inbox/" + inbox.name, wire, wanted, token=None), 401, "signature")


@pytest.mark.parametrize("when", [{"start": 1, "end": int(time.time()) - 10}, {"start": int(time.time()) + 10**6}], ids=["over", "not yet"])
def test_keys_have_their_time(keyed, when):
    peer = Peer(**when)
    inbox = Inbox(keyed, peer)
    refused(peer.post(keyed, inbox.name, *peer.next(keyed)), 401, "signature")


def test_a_key_that_is_taken_away(keyed, peer, inbox):
    assert inbox.put(Peer()).status == 200
    refused(peer.post(keyed, inbox.name, *peer.next(keyed)), 401, "signature")


def test_sealed_to_somebody_else(keyed, peer, inbox):
    refused(peer.post(keyed, inbox.name, *peer.next(keyed, to=[letters.Recipient().public])), 422, "unknown_recipient_key")


def test_a_machine_that_has_lost_its_keys_says_later(make_site, peer):
    site = make_site()
    site.ours = letters.Recipient().public
    inbox = Inbox(site, peer)
    answer = peer.post(site, inbox.name, *peer.next(site))
    refused(answer, 503, "keys")
    assert answer.header("Retry-After") and inbox.messages() == []


def test_another_id_in_the_header(keyed, peer, inbox):
    wire, _ = peer.next(keyed)
    refused(peer.post(keyed, inbox.name, wire, letters.new_id()), 422, "does_not_open")


def test_no_envelope_at_all(keyed, peer, inbox):
    """What does not even say who it is from is signed by nobody."""
    said = b'{"from":"%s"' % peer.letters.id.hex().encode()
    for body in (b"", b"hello", b"{}", b"[]", b"null", b"\0", b"\xff", b"{" * 100000, b'{"v":1}' * 1000, said[:-3], b" " * 5000 + said):
        refused(peer.post(keyed, inbox.name, body, letters.new_id()), 401, "signature")
        peer.post(keyed, inbox.name, *peer.next(keyed))     # so that it is not throttled
    for body in (said, said + b"}", said + b"[" * 200000, said + b"\0\xff", said + b"," + said):
        refused(peer.post(keyed, inbox.name, body, letters.new_id()), 422, "does_not_open")


def hostile(keyed, peer):
    """Envelopes of one who is known, and means ill."""
    one, other = (peer.letters.seal(b"x", [keyed.ours], line=line) for line in ("orders", "alerts"))
    place = lambda e, **more: peer.letters.place(e, **more)
    for member in ("ct", "kc", "to", "sig"):
        yield "another's " + member, place({**one, member: other[member]})
    yield "another line", place({**one, "line": "alerts"})
    yield "two content keys", place(peer.letters.seal(b"x", [letters.Recipient().public, keyed.ours], keys=[b"k" * 32, b"l" * 32]))
    yield "another commitment", place(peer.letters.seal(b"x", [keyed.ours], commit_to=b"c" * 32))
    yield "another header inside", place(peer.letters.seal(b"x", [keyed.ours], header=bytes(32)))
    yield "no padding", place(peer.letters.seal(b"", [keyed.ours], padded=bytes(128)))
    yield "another version", place({**one, "v": 2})
    yield "another suite", place({**one, "alg": "none"})
    yield "a member more", place(one)[:-1] + b',"x":1}'
    yield "a member twice", place(one).replace(b'{"v":1', b'{"v":1,"v":1')
    yield "white space", place(one).replace(b",", b", ")
    yield "a piece of it", place(one)[:-20]
    yield "more behind it", place(one) + b"{}"
    yield "number nought", place(one, seq=0)
    yield "a type that is a header", place(peer.letters.seal(b"x", [keyed.ours], kind="text/plain\r\nX-Evil: 1"))
    yield "too many recipients", place(peer.letters.seal(b"x", [keyed.ours] * 65))
    yield "the proof of another place", place(one).replace(b'"seq":1,', b'"seq":2,')
    yield "signed by another", place({**one, "sig": letters.b64(letters.Sender().sign(b"x"))})


def test_envelopes_that_do_not_hold_together(keyed, peer, inbox):
    for what, wire in hostile(keyed, peer):
        found = letters.json.loads(wire)["id"] if what not in ("a piece of it", "more behind it") else letters.new_id()
        answer = peer.post(keyed, inbox.name, wire, found)
        assert (answer.status, answer.json()["code"]) == (422, "does_not_open"), what
    assert inbox.texts() == ["one"]


def test_every_bit_counts(keyed, peer, inbox):
    wire, ident = peer.next(keyed, b"two")
    for at in range(0, len(wire), max(1, len(wire) // 25)):
        changed = wire[:at] + bytes([wire[at] ^ 1]) + wire[at + 1:]
        answer = peer.post(keyed, inbox.name, changed, ident)
        assert answer.status in (401, 422), at
    assert peer.post(keyed, inbox.name, wire, ident).status == 200
    assert inbox.texts() == ["one", "two"]


def test_nothing_of_what_was_sealed_is_logged(keyed, peer, inbox):
    mark = keyed.hanji.mark()
    peer.post(keyed, inbox.name, *peer.next(keyed, b"the secret of the tea"))
    peer.post(keyed, inbox.name, *peer.next(keyed, b"the secret of the tea", to=[letters.Recipient().public]))
    assert "secret of the tea" not in keyed.hanji.log_since(mark)
