"""Envelopes and cards made and opened by PyNaCl: written from docs/envelope.md, not from the C code.

A Sender has an identity and seals; a Recipient has a sealing key and opens.  Every part of an envelope can be replaced on
the way, for those who mean ill."""
import base64
import hashlib
import json
import secrets
import struct
import time

import nacl.bindings
import nacl.public
import nacl.signing

ALG = "x25519-xsalsa20poly1305-seal+xchacha20poly1305+ed25519"
MAGIC = b"hanji/1\0"
ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def b64(data):
    return base64.b64encode(data).decode()


def blake(data, key=b""):
    return hashlib.blake2b(data, digest_size=32, key=key).digest()


def text(t):
    t = t.encode() if isinstance(t, str) else t
    return struct.pack("<I", len(t)) + t


def key_id(kind, public):
    return blake(b"hanji/key/1/" + kind.encode() + b"\0" + public)[:16]


def new_id():
    return "msg_" + "".join(secrets.choice(ALPHABET) for _ in range(26))


def padded_bytes(n):
    """The class of sizes of a text of n bytes, with the byte that ends it."""
    size = 128
    while size < n and size < 4096:
        size *= 2
    return size if n <= size else -(-n // 4096) * 4096


def header_hash(e, sender):
    to = b"".join(bytes.fromhex(one["key"]) for one in e["to"])
    return blake(text("hanji/envelope/header/1") + text(ALG) + text(e["id"]) + text(e["line"]) + text(e["type"]) +
                 struct.pack("<Q", e["created"]) + sender + struct.pack("<Q", len(e["to"])) + to)


def signed_text(e, header):
    boxes = b"".join(base64.b64decode(one["box"]) for one in e["to"])
    return (b"hanji/envelope/sign/1" + header + base64.b64decode(e["kc"]) + blake(boxes) + blake(base64.b64decode(e["ct"])))


def message_hash(signed):
    return blake(text("hanji/message/1") + text(signed))


def place_text(line, fifo, seq, prev, digest, skipped=None):
    head = b"hanji/envelope/place/1" if skipped is None else b"hanji/envelope/skip/1" + bytes([len(skipped)]) + skipped.encode()
    return head + bytes([len(line)]) + line.encode() + bytes([fifo]) + struct.pack("<Q", seq) + prev + digest


def dump(e):
    """The one spelling."""
    return json.dumps(e, separators=(",", ":")).encode()


class Sender:
    def __init__(self):
        self.identity = nacl.signing.SigningKey.generate()
        self.public = bytes(self.identity.verify_key)
        self.id = key_id("identity", self.public)

    def sign(self, data):
        return self.identity.sign(data).signature

    def seal(self, body, to, line="orders", kind="text/plain", created=None, **changes):
        """An envelope without a place, as a dict in the order of its members.  to: public keys.  changes: header, keys (one
        for each recipient), padded, commit_to."""
        e = {"v": 1, "alg": ALG, "id": changes.get("id") or new_id(), "line": line, "type": kind,
             "created": created or int(time.time()), "from": self.id.hex(),
             "to": [{"key": key_id("sealing", k).hex(), "box": ""} for k in to]}
        header = header_hash(e, self.id)
        inner = changes.get("header", header)
        key = secrets.token_bytes(32)
        keys = changes.get("keys", [key] * len(to))
        for one, public, content in zip(e["to"], to, keys):
            one["box"] = b64(nacl.bindings.crypto_box_seal(content + inner, public))
        e["kc"] = b64(blake(b"hanji/envelope/commit/1" + header, key=changes.get("commit_to", keys[0])))
        padded = changes.get("padded")
        if padded is None:
            padded = MAGIC + inner + body + b"\x80"
            padded += bytes(padded_bytes(len(padded)) - len(padded))
        e["ct"] = b64(nacl.bindings.crypto_aead_xchacha20poly1305_ietf_encrypt(padded, header, bytes(24), keys[0]))
        e["sig"] = b64(self.sign(signed_text(e, header)))
        return e

    def hash(self, e):
        return message_hash(signed_text(e, header_hash(e, bytes.fromhex(e["from"]))))

    def place(self, e, seq=1, prev=bytes(32), fifo=True, by=None):
        """The bytes that travel."""
        proof = (by or self).sign(place_text(e["line"], fifo, seq, prev, self.hash(e)))
        return dump({**e, "ord": "fifo" if fifo else "any", "seq": seq, "prev": b64(prev), "proof": b64(proof)})

    def tombstone(self, ident, line, seq, prev, digest, fifo=True):
        proof = self.sign(place_text(line, fifo, seq, prev, digest, ident))
        return dump({"v": 1, "skip": True, "id": ident, "line": line, "from": self.id.hex(),
                     "ord": "fifo" if fifo else "any", "seq": seq, "prev": b64(prev), "hash": b64(digest), "proof": b64(proof)})


class Recipient:
    def __init__(self, secret=None):
        self.secret = nacl.public.PrivateKey(secret) if secret else nacl.public.PrivateKey.generate()
        self.public = bytes(self.secret.public_key)
        self.id = key_id("sealing", self.public)

    def open(self, wire, identity):
        """The body of what a sender with that public identity sealed; everything is verified."""
        e = json.loads(wire)
        assert dump(e) == wire and e["v"] == 1 and e["alg"] == ALG
        header = header_hash(e, bytes.fromhex(e["from"]))
        signed = signed_text(e, header)
        verify = nacl.signing.VerifyKey(identity)
        verify.verify(signed, base64.b64decode(e["sig"]))
        verify.verify(place_text(e["line"], e["ord"] == "fifo", e["seq"], base64.b64decode(e["prev"]), message_hash(signed)),
                      base64.b64decode(e["proof"]))
        box = next(one["box"] for one in e["to"] if one["key"] == self.id.hex())
        boxed = nacl.public.SealedBox(self.secret).decrypt(base64.b64decode(box))
        key, inner = boxed[:32], boxed[32:]
        assert inner == header
        assert base64.b64decode(e["kc"]) == blake(b"hanji/envelope/commit/1" + header, key=key)
        padded = nacl.bindings.crypto_aead_xchacha20poly1305_ietf_decrypt(base64.b64decode(e["ct"]), header, bytes(24), key)
        assert padded[:40] == MAGIC + header
        body = padded[40:].rstrip(b"\0")
        assert body[-1:] == b"\x80" and padded_bytes(len(body) + 40) == len(padded)
        return body[:-1]


def card_keys(keys):
    return struct.pack("<I", len(keys)) + b"".join(k + struct.pack("<qq", start, end) for k, start, end in keys)


def card(sender, transport, sealing, horizon=45 * 86400, start=1, end=0):
    """The card of a sender: transport and sealing are public keys."""
    made = int(time.time())
    lists = [[(k, start, end)] for k in (sender.public, transport, sealing)]
    signed = b"hanji/card/1\0" + struct.pack("<qq", horizon, made) + b"".join(card_keys(one) for one in lists)
    shown = [[{"key": b64(k), "from": a, "until": b} for k, a, b in one] for one in lists]
    return dump({"hanji": "card/1", "identity": shown[0][0], "previous": [], "transport": shown[1], "sealing": shown[2],
                 "horizon": horizon, "made": made, "sig": b64(sender.sign(signed))})
