"""Standard Webhooks as others see it: what hanji sends verifies, and what others sign is taken, by a verifier that shares no
code with it. The official libraries themselves are asked by tests/interop.sh, which needs PyPI and npm."""
import base64
import hashlib
import hmac
import http.server
import json
import queue
import secrets
import threading
import time

import pytest

import harness

P = 2 ** 255 - 19
D = -121665 * pow(121666, -1, P) % P
L = 2 ** 252 + 27742317777372353535851937790883648493


def add(a, b):
    (x1, y1), (x2, y2) = a, b
    both = D * x1 * x2 * y1 * y2 % P
    return ((x1 * y2 + x2 * y1) * pow(1 + both, -1, P) % P, (y1 * y2 + x1 * x2) * pow(1 - both, -1, P) % P)


def times(n, point):
    out = (0, 1)
    while n:
        if n & 1:
            out = add(out, point)
        point, n = add(point, point), n >> 1
    return out


def point_of(data):
    """RFC 8032, 5.1.3; None when it is no point."""
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & (2 ** 255 - 1)
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    if (x * x - square) % P or y >= P:
        return None
    return (P - x if x & 1 != sign else x), y


BASE = point_of((4 * pow(5, -1, P) % P).to_bytes(32, "little"))


def ed25519(key, data, signature):
    """RFC 8032, 5.1.7."""
    a, r, s = point_of(key), point_of(signature[:32]), int.from_bytes(signature[32:], "little")
    if a is None or r is None or s >= L or len(signature) != 64:
        return False
    k = int.from_bytes(hashlib.sha512(signature[:32] + key + data).digest(), "little") % L
    return times(s, BASE) == add(r, times(k, a))


def signed(name, timestamp, body):
    return b"%s.%s.%s" % (name.encode(), str(timestamp).encode(), body)


def v1(secret, name, timestamp, body):
    key = base64.b64decode(secret[len("whsec_"):], validate=True)
    return "v1," + base64.b64encode(hmac.new(key, signed(name, timestamp, body), hashlib.sha256).digest()).decode()


def v1a_holds(key, entry, name, timestamp, body):
    return entry.startswith("v1a,") and ed25519(key, signed(name, timestamp, body), base64.b64decode(entry[4:], validate=True))


A = ("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
VECTORS = [
    ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", A, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
    ("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", ("msg_27UH4WbU6Z5A5EzD8u03UvzRbpk", 1649367553,
                                               b'{"email":"test@example.com","username":"test_user"}'),
     "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw="),
    ("whsec_plJ3nmyCDGBKInavdOK15jsl", ("msg_loFOjxBNrRLzqYUf", 1731705121, b'{"event_type":"ping","data":{"success":true}}'),
     "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0="),
]
PUBLIC = base64.b64decode("1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=")
V1A = "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg=="


@pytest.mark.parametrize("secret,message,entry", VECTORS)
def test_this_verifier_knows_v1(secret, message, entry):
    assert v1(secret, *message) == entry
    name, timestamp, body = message
    for wrong in [(name + "x", timestamp, body), (name, timestamp + 1, body), (name, timestamp, body + b" ")]:
        assert v1(secret, *wrong) != entry


def test_this_verifier_knows_v1a():
    assert v1a_holds(PUBLIC, V1A, *A)
    name, timestamp, body = A
    for wrong in [(name + "x", timestamp, body), (name, timestamp + 1, body), (name, timestamp, body + b" ")]:
        assert not v1a_holds(PUBLIC, V1A, *wrong)
    assert not v1a_holds(bytes([PUBLIC[0] ^ 2]) + PUBLIC[1:], V1A, *A)


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()
        self.server.got.put(([(name.lower(), value) for name, value in self.headers.items()], body))

    def log_message(self, *_):
        pass


@pytest.fixture
def receiver():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    server.got = queue.Queue()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def keyed(base, certificate):
    site = harness.Site(base / "webhooks", certificate)
    site.hanji.command("key", "new")
    site.start()
    yield site
    site.stop()


BODIES = [b"", b"plain", b'{"test": 2432232314}', "한지 — paper".encode(), b"\r\n.\n", b"a.1796083200.b", b"\x00\x01", b"x" * 250_000]


def test_what_is_sent_verifies_with_secret_and_with_the_card(keyed, receiver):
    secret = "whsec_" + base64.b64encode(secrets.token_bytes(24)).decode()
    keyed.hanji.command("line", "add", "hooks", "http://127.0.0.1:%d/x?y=z" % receiver.server_port, "--secret", secret,
                        "--allow-private")
    card = json.loads(keyed.get("/keys", token=None).body)
    key = base64.b64decode(card["transport"][0]["key"])
    for body in BODIES:
        answer = keyed.http("POST", "/sends/hooks", body, {"Content-Type": "text/plain; charset=utf-8"})
        assert answer.status == 202, answer.body
        headers, got = receiver.got.get(timeout=20)
        told = dict(headers)
        assert got == body and len(told) == len(headers), "no header comes twice"
        name, timestamp = told["webhook-id"], told["webhook-timestamp"]
        assert name == json.loads(answer.body)["id"] and "." not in name
        assert timestamp.isdigit() and abs(int(timestamp) - time.time()) < 10
        assert told["content-type"] == "text/plain; charset=utf-8" and "expect" not in told and "accept-encoding" not in told
        assert told["user-agent"].startswith("hanji-courier/")
        entries = told["webhook-signature"].split(" ")
        assert entries[0] == v1(secret, name, timestamp, body) and len(entries) == 2
        assert v1a_holds(key, entries[1], name, timestamp, body)


def test_each_try_has_its_own_time_and_the_same_id(keyed, receiver):
    """On a line without a secret there is only `v1a`."""
    keyed.hanji.command("line", "add", "plain", "http://127.0.0.1:%d/" % receiver.server_port, "--allow-private")
    assert keyed.http("POST", "/sends/plain", b"x", {"Content-Type": "text/plain"}).status == 202
    (headers, _), = [receiver.got.get(timeout=20)]
    assert dict(headers)["webhook-signature"].startswith("v1a,") and " " not in dict(headers)["webhook-signature"]


class Poster:
    """What a foreign sender does."""

    def __init__(self, site, inbox, secret):
        self.site, self.inbox, self.secret = site, inbox, secret

    def post(self, body=b"{}", sign=None, **headers):
        """headers: webhook_id and the like; None leaves one out."""
        named = {"webhook-id": "msg_" + secrets.token_hex(8), "webhook-timestamp": str(int(time.time())), "Content-Type": "text/plain"}
        named.update({name.replace("_", "-"): value for name, value in headers.items()})
        sign = sign or (lambda *message: v1(self.secret, *message))
        named.setdefault("webhook-signature", sign(named["webhook-id"] or "", named["webhook-timestamp"] or "", body))
        return self.site.http("POST", "/inbox/" + self.inbox, body, {k: v for k, v in named.items() if v is not None}, token=None)


@pytest.fixture(scope="module")
def poster(keyed):
    secret = "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()
    keyed.hanji.command("inbox", "add", "foreign", "--secret", secret)
    return Poster(keyed, "foreign", secret)


@pytest.mark.parametrize("body", BODIES)
def test_what_others_sign_is_taken_once(keyed, poster, body):
    name = "evt_" + secrets.token_hex(8)
    for _ in range(2):
        assert poster.post(body, webhook_id=name).status == 200
    rows = keyed.hanji.rows("SELECT CAST(body AS BLOB), type FROM inbox WHERE id = ?", name)
    assert rows == [(body, "text/plain")]


@pytest.mark.parametrize("around", ["%s v1,AAAA", "v1,AAAA %s", "v1a,AAAA %s", "v2,anything %s", "v1,%s".replace("%s", "A" * 43) + "= %s"])
def test_other_entries_beside_the_right_one_do_not_matter(poster, around):
    assert poster.post(sign=lambda *message: around % v1(poster.secret, *message)).status == 200


@pytest.mark.parametrize("wrong", [
    dict(webhook_signature="v1,AAAA"), dict(webhook_signature=""), dict(webhook_signature=None), dict(webhook_id=None),
    dict(webhook_id="with.dot"), dict(webhook_id="x" * 300)], ids=lambda wrong: str(wrong)[:60])
def test_what_is_not_signed_so_is_refused_and_not_stored(keyed, poster, wrong):
    refused(keyed, poster, wrong)


@pytest.mark.parametrize("form, off", [(None, 0), ("%d", -900), ("%d", 900), ("%d.9", 0), ("0%d", 0), ("+%d", 0)])
def test_a_time_that_is_none_or_too_far_away(keyed, poster, form, off):
    refused(keyed, poster, {"webhook_timestamp": form and form % (time.time() + off)})


def refused(keyed, poster, wrong):
    before = keyed.hanji.rows("SELECT count(*) FROM inbox")
    answer = poster.post(**wrong)
    assert answer.status in (400, 401), answer.body
    assert keyed.hanji.rows("SELECT count(*) FROM inbox") == before


def test_a_public_key_is_no_secret(keyed):
    """What some libraries do: HMAC with the bytes of a key that everybody knows."""
    card = keyed.hanji.command("key", "export").stdout
    keyed.hanji.command("inbox", "add", "carded", "--from", "-", stdin=card)
    for kind in ("transport", "identity", "sealing"):
        for key in [one for one in [json.loads(card)[kind]] for one in (one if isinstance(one, list) else [one])]:
            poster = Poster(keyed, "carded", "whsec_" + key["key"])
            assert poster.post().status == 401
    assert keyed.hanji.rows("SELECT count(*) FROM inbox JOIN inbox_source s ON s.id = source WHERE s.name = 'carded'") == [(0,)]
