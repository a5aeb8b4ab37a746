"""seal/ beside an implementation of its own (letters.py, PyNaCl): each opens what the other sealed, and nothing that was
put together wrongly opens.  Through seal/'s functions, not through a server."""
import base64
import ctypes
import glob
import json
import os
import subprocess

import letters
import pytest
from nacl.public import PrivateKey
from nacl.signing import SigningKey

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OK, MALFORMED, SENDER, SIGNATURE, RECIPIENT, UNOPENABLE, NO_MEMORY = range(7)
TRUST = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


class Text(ctypes.Structure):
    _fields_ = [("p", ctypes.c_void_p), ("n", ctypes.c_size_t)]


class Place(ctypes.Structure):
    _fields_ = [("line", Text), ("seq", ctypes.c_uint64), ("fifo", ctypes.c_bool), ("prev", ctypes.c_ubyte * 32),
                ("hash", ctypes.c_ubyte * 32)]


class Opened(ctypes.Structure):
    _fields_ = [("id", Text), ("type", Text), ("place", Place), ("sender", ctypes.c_ubyte * 16), ("created", ctypes.c_int64),
                ("skipped", ctypes.c_bool), ("body", Text), ("memory", ctypes.c_void_p)]


class Receiver(ctypes.Structure):
    _fields_ = [("id", ctypes.c_ubyte * 16), ("key", ctypes.c_ubyte * 32)]


class Letter(ctypes.Structure):
    _fields_ = [("id", Text), ("line", Text), ("type", Text), ("body", Text), ("created", ctypes.c_int64),
                ("to", ctypes.POINTER(Receiver)), ("count", ctypes.c_uint)]


def text(data):
    data = data.encode() if isinstance(data, str) else data
    buffer = ctypes.create_string_buffer(data, len(data))
    t = Text(ctypes.cast(buffer, ctypes.c_void_p), len(data))
    t.keep = buffer
    return t


class Seal:
    """The room seal/ as a shared object, with keys in a folder of its own."""

    def __init__(self, folder):
        self.folder = str(folder)
        so = os.path.join(self.folder, "seal.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-std=c11", "-D_GNU_SOURCE", "-I", ROOT, "-o", so,
                        *sorted(glob.glob(os.path.join(ROOT, "seal", "*.c"))), "-lsodium"], check=True)
        self.lib = ctypes.CDLL(so)
        self.lib.seal_keys_current.restype = ctypes.c_void_p
        self.lib.seal_keys_current.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int64]
        self.lib.seal_envelope_bytes.restype = ctypes.c_size_t
        self.lib.seal_envelope_send.restype = ctypes.c_size_t
        assert self.lib.seal_init()
        room, error, keys = ctypes.create_string_buffer(4096), ctypes.create_string_buffer(256), ctypes.c_void_p()
        where = os.path.join(self.folder, "keys").encode()
        for kind in range(4):
            assert self.lib.seal_key_new(where, kind, ctypes.c_int64(1000), ctypes.c_int64(0), room, error), error.value
        assert self.lib.seal_keys_load(where, ctypes.byref(keys), error), error.value
        self.keys = keys
        self.secrets = {}
        for name in os.listdir(where):
            lines = dict(line.split(" ", 1) for line in open(os.path.join(where, name), encoding="utf-8").read().splitlines())
            self.secrets[lines["kind"].encode()] = base64.b64decode(lines["secret"])

    def open(self, wire, trusted):
        """(result, what was opened) of the bytes that travelled, believing the identities in trusted: id -> key."""
        def trust(_, ident, key):
            known = trusted.get(ctypes.string_at(ident, 16))
            if known:
                ctypes.memmove(key, known, 32)
            return bool(known)

        opened, data = Opened(), text(wire)
        result = self.lib.seal_envelope_open(self.keys, data, TRUST(trust), None, ctypes.byref(opened))
        body = ctypes.string_at(opened.body.p, opened.body.n) if opened.body.n else b""
        seq, skipped = opened.place.seq, opened.skipped
        self.lib.seal_opened_free(ctypes.byref(opened))
        return result, body, seq, skipped

    def make(self, body, recipient, line="orders", kind="text/plain"):
        """The bytes that travel, from this identity to a public key."""
        to = Receiver()
        ctypes.memmove(to.id, letters.key_id("sealing", recipient), 16)
        ctypes.memmove(to.key, recipient, 32)
        parts = [text(t) for t in (letters.new_id(), line, kind, body)]
        letter = Letter(*parts, 2000, ctypes.pointer(to), 1)
        out = ctypes.create_string_buffer(self.lib.seal_envelope_bytes(ctypes.byref(letter)) + 1)
        n, place, proof = ctypes.c_size_t(), Place(), ctypes.create_string_buffer(64)
        place.line, place.seq, place.fifo = parts[1], 9, True
        result = self.lib.seal_envelope_make(self.keys, ctypes.byref(letter), out, ctypes.byref(n), place.hash)
        if result != OK:
            return result
        identity = ctypes.c_void_p(self.lib.seal_keys_current(self.keys, 0, 2000))
        assert self.lib.seal_place_sign(self.keys, identity, ctypes.byref(place), proof)
        wire = ctypes.create_string_buffer(n.value + 256)
        stored = Text(ctypes.cast(out, ctypes.c_void_p), n.value)
        length = self.lib.seal_envelope_send(stored, ctypes.byref(place), proof, wire)
        return wire.raw[:length]


@pytest.fixture(scope="module")
def seal(tmp_path_factory):
    return Seal(tmp_path_factory.mktemp("seal"))


@pytest.fixture(scope="module")
def ours(seal):
    """The public key that our hanji opens with."""
    secret = seal.secrets[b"sealing"][:32]
    return bytes(PrivateKey(secret).public_key)


@pytest.fixture
def alice():
    return letters.Sender()


def trusted(*senders):
    return {s.id: s.public for s in senders}


SIZES = [0, 1, 86, 87, 88, 500, 4055, 4056, 5000, 100000]


@pytest.mark.parametrize("size", SIZES)
def test_we_open_what_others_seal(seal, ours, alice, size):
    body = bytes(i * 7 % 256 for i in range(size))
    assert seal.open(alice.place(alice.seal(body, [ours]), seq=3), trusted(alice)) == (OK, body, 3, False)


@pytest.mark.parametrize("size", SIZES)
def test_others_open_what_we_seal(seal, size):
    bob = letters.Recipient()
    body = bytes(i * 5 % 256 for i in range(size))
    identity = bytes(SigningKey(seal.secrets[b"identity"][:32]).verify_key)
    assert bob.open(seal.make(body, bob.public), identity) == body


def test_the_box_for_us_is_found_among_others(seal, ours, alice):
    others = [letters.Recipient().public for _ in range(63)]
    e = alice.seal(b"to all", [*others[:40], ours, *others[40:]])
    assert seal.open(alice.place(e), trusted(alice))[:2] == (OK, b"to all")


def test_a_box_for_nobody_here(seal, alice):
    e = alice.seal(b"x", [letters.Recipient().public])
    assert seal.open(alice.place(e), trusted(alice))[0] == RECIPIENT


def test_an_unknown_sender(seal, ours, alice):
    assert seal.open(alice.place(alice.seal(b"x", [ours])), trusted(letters.Sender()))[0] == SENDER


def resigned(e, by):
    """The same envelope under another's name and signature."""
    stolen = {**e, "from": by.id.hex()}
    stolen["sig"] = letters.b64(by.sign(letters.signed_text(stolen, letters.header_hash(stolen, by.id))))
    return stolen


def test_stripped_and_signed_by_another_whom_we_trust(seal, ours, alice):
    mallory = letters.Sender()
    assert seal.open(mallory.place(resigned(alice.seal(b"x", [ours]), mallory)), trusted(alice, mallory))[0] == UNOPENABLE


def test_sealed_on_by_a_recipient_to_us(seal, ours, alice):
    """Alice signed to Bob; Bob boxes her content key for us: the list of recipients is not what she signed."""
    e = alice.seal(b"x", [letters.Recipient().public])
    forged = {**e, "to": [{"key": letters.key_id("sealing", ours).hex(), "box": e["to"][0]["box"]}]}
    assert seal.open(alice.place(forged), trusted(alice))[0] == SIGNATURE


@pytest.mark.parametrize("member", ["ct", "kc", "to", "sig", "id", "type", "created", "line"])
def test_a_part_of_another_message(seal, ours, alice, member):
    one, other = alice.seal(b"one", [ours]), alice.seal(b"two", [ours], line="alerts", kind="text/html", created=7)
    assert seal.open(alice.place({**one, member: other[member]}), trusted(alice))[0] == SIGNATURE


def test_another_content_key_for_each_is_found(seal, ours, alice):
    """Who opens with the second box would read something else: the commitment is to one key."""
    e = alice.seal(b"x", [letters.Recipient().public, ours], keys=[b"k" * 32, b"l" * 32])
    assert seal.open(alice.place(e), trusted(alice))[0] == UNOPENABLE


def test_the_commitment_is_to_the_key_that_is_boxed(seal, ours, alice):
    e = alice.seal(b"x", [ours], commit_to=b"other" * 6 + b"ab")
    assert seal.open(alice.place(e), trusted(alice))[0] == UNOPENABLE


def test_what_is_inside_is_of_this_header(seal, ours, alice):
    e = alice.seal(b"x", [ours], header=bytes(32))
    assert seal.open(alice.place(e), trusted(alice))[0] == UNOPENABLE


PADDINGS = {
    "no end": b"hanji/1\0" + bytes(120),
    "another magic": b"hanji/2\0" + bytes(32) + b"x\x80" + bytes(86),
    "nothing but noughts": bytes(128),
}


@pytest.mark.parametrize("padded", PADDINGS.values(), ids=PADDINGS)
def test_a_text_that_is_not_padded_as_it_must_be(seal, ours, alice, padded):
    assert seal.open(alice.place(alice.seal(b"", [ours], padded=padded)), trusted(alice))[0] == UNOPENABLE


@pytest.mark.parametrize("size", [0, 40, 127, 129, 192, 4097, 6144])
def test_a_size_that_padding_does_not_give(seal, ours, alice, size):
    e = alice.seal(b"", [ours], padded=bytes(size))
    assert seal.open(alice.place(e), trusted(alice))[0] == MALFORMED


def test_a_larger_class_than_needed(seal, ours, alice):
    e = alice.seal(b"", [ours])
    header = letters.header_hash(e, alice.id)
    e = alice.seal(b"", [ours], id=e["id"], created=e["created"], padded=letters.MAGIC + header + b"x\x80" + bytes(256 - 42))
    assert seal.open(alice.place(e), trusted(alice))[0] == UNOPENABLE


def test_a_place_signed_by_another(seal, ours, alice):
    mallory = letters.Sender()
    assert seal.open(alice.place(alice.seal(b"x", [ours]), by=mallory), trusted(alice, mallory))[0] == SIGNATURE


@pytest.mark.parametrize("change", [{"seq": 8}, {"ord": "any"}, {"prev": letters.b64(b"p" * 32)}])
def test_a_place_that_was_changed(seal, ours, alice, change):
    wire = json.loads(alice.place(alice.seal(b"x", [ours]), seq=7))
    assert seal.open(letters.dump({**wire, **change}), trusted(alice))[0] == SIGNATURE


def test_a_tombstone(seal, alice):
    wire = alice.tombstone(letters.new_id(), "orders", 5, bytes(32), b"h" * 32)
    assert seal.open(wire, trusted(alice)) == (OK, b"", 5, True)


def test_a_tombstone_is_not_a_place(seal, ours, alice):
    """The proof of a message does not skip it, nor the other way round."""
    e = alice.seal(b"x", [ours])
    wire = json.loads(alice.place(e, seq=5))
    stone = {"v": 1, "skip": True, "id": e["id"], "line": e["line"], "from": e["from"], "ord": "fifo", "seq": 5,
             "prev": wire["prev"], "hash": letters.b64(alice.hash(e)), "proof": wire["proof"]}
    assert seal.open(letters.dump(stone), trusted(alice))[0] == SIGNATURE


def respell(wire):
    """The same JSON, or nearly, in other spellings."""
    e = json.loads(wire)
    whole = wire.decode()
    yield "white space", json.dumps(e).encode()
    yield "sorted", json.dumps(e, sort_keys=True, separators=(",", ":")).encode()
    yield "something behind", wire + b"\n"
    yield "something before", b" " + wire
    yield "a member more", letters.dump({**e, "x": 1})
    yield "a member twice", (whole[:-1] + ',"seq":1}').encode()
    yield "a member less", letters.dump({k: v for k, v in e.items() if k != "prev"})
    yield "another version", whole.replace('"v":1', '"v":2').encode()
    yield "another suite", whole.replace("ed25519", "ed448").encode()
    yield "a number with a fraction", whole.replace('"seq":1,', '"seq":1.0,').encode()
    yield "a leading nought", whole.replace('"seq":1,', '"seq":01,').encode()
    yield "no number", whole.replace('"seq":1,', '"seq":-1,').encode()
    yield "a huge number", whole.replace('"seq":1,', '"seq":18446744073709551616,').encode()
    yield "large hex", whole.replace(e["from"], e["from"].upper()).encode() if e["from"].upper() != e["from"] else b"{}"
    yield "an escape that is not needed", whole.replace("text/plain", "text\\/plain").encode()
    yield "base64 without padding", whole.replace(e["kc"], e["kc"].rstrip("=")).encode()
    yield "base64 with bits that mean nothing", whole.replace(e["kc"], e["kc"][:-2] + "B=").encode()
    yield "no recipient", letters.dump({**e, "to": []})
    yield "65 recipients", letters.dump({**e, "to": e["to"] * 65})
    yield "4000 recipients", letters.dump({**e, "to": e["to"] * 4000})
    yield "a short box", letters.dump({**e, "to": [{**e["to"][0], "box": e["to"][0]["box"][:-4]}]})
    yield "no place", letters.dump({k: v for k, v in e.items() if k not in ("ord", "seq", "prev", "proof")})
    yield "cut", wire[:-1]
    yield "empty", b""
    yield "a NUL in the line", whole.replace('"orders"', '"ord\0ers"').encode()


def test_any_other_spelling_is_refused(seal, ours, alice):
    wire = alice.place(alice.seal(b"x", [ours]))
    assert seal.open(wire, trusted(alice))[0] == OK
    for what, other in respell(wire):
        assert seal.open(other, trusted(alice))[0] == MALFORMED, what


LOW_ORDER = [bytes(32), b"\1" + bytes(31), bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"),
             bytes.fromhex("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157")]


@pytest.mark.parametrize("key", LOW_ORDER)
def test_a_key_of_low_order_is_not_sealed_to(seal, key):
    assert seal.make(b"x", key) == MALFORMED


@pytest.mark.parametrize("key", LOW_ORDER)
def test_a_box_of_an_ephemeral_key_of_low_order(seal, ours, alice, key):
    """Its shared secret would be known to everybody."""
    e = alice.seal(b"x", [ours])
    box = base64.b64decode(e["to"][0]["box"])
    forged = {**e, "to": [{**e["to"][0], "box": letters.b64(key + box[32:])}]}
    assert seal.open(alice.place(resigned(forged, alice)), trusted(alice))[0] == UNOPENABLE


@pytest.mark.parametrize("at", [0, 31, 32, 47, 48, 79, 80, 111])
def test_a_box_that_was_changed_and_signed_again(seal, ours, alice, at):
    e = alice.seal(b"x", [ours])
    box = bytearray(base64.b64decode(e["to"][0]["box"]))
    box[at] ^= 0x80
    forged = {**e, "to": [{**e["to"][0], "box": letters.b64(bytes(box))}]}
    assert seal.open(alice.place(resigned(forged, alice)), trusted(alice))[0] == UNOPENABLE


@pytest.mark.parametrize("member", ["ct", "kc", "to"])
def test_a_part_of_another_message_signed_again(seal, ours, alice, member):
    """The sender itself, or somebody with its identity key, cannot make one message of two."""
    one, other = alice.seal(b"one", [ours]), alice.seal(b"two", [ours])
    assert seal.open(alice.place(resigned({**one, member: other[member]}, alice)), trusted(alice))[0] == UNOPENABLE
