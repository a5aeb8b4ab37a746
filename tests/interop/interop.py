"""What interop.sh runs: hanji and the official libraries of Standard Webhooks, both ways. HANJI_* come from demo.env.

Every message is also changed in a byte, signed for another id, and given an old timestamp: then all must refuse.
"""
import base64
import datetime
import http.server
import json
import os
import pathlib
import queue
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import standardwebhooks

BODIES = ['{"test": 2432232314}', "", "plain, not JSON", "한지 — paper, thin and durable", '{"deep":[[[[1e400]]]],"a":1,"a":2}', "\r\n.\n",
          "x" * 200_000, "\u0000\u0001\u007f", "webhook-id.1796083200.x"]
OTHER = "whsec_" + base64.b64encode(b"another secret, as long as one is").decode()


def hanji(*words):
    return subprocess.run([os.environ["HANJI_BIN"], "-c", os.environ["HANJI_CONF"], *words], check=True, text=True,
                          stdout=subprocess.PIPE).stdout


def ask(method, path, body=None, headers=None):
    request = urllib.request.Request(os.environ["HANJI_URL"] + path, body, headers or {}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


class Python:
    name = "standardwebhooks of Python"

    def verify(self, secret, headers, body):
        try:
            standardwebhooks.Webhook(secret).verify(body, headers, json_parse=False)
            return True
        except standardwebhooks.webhooks.WebhookVerificationError:
            return False

    def sign(self, secret, name, timestamp, body):
        at = datetime.datetime.fromtimestamp(timestamp, datetime.timezone.utc)
        return standardwebhooks.Webhook(secret).sign(name, at, body)


class JavaScript:
    name = "standardwebhooks of JavaScript"

    def __init__(self):
        script = pathlib.Path(__file__).with_name("libs.js")
        self.process = subprocess.Popen(["node", str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, what):
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def verify(self, secret, headers, body):
        return "ok" in self.ask({"verify": {"secret": secret, "headers": headers, "body": body.decode()}})

    def sign(self, secret, name, timestamp, body):
        return self.ask({"sign": {"secret": secret, "id": name, "timestamp": timestamp, "body": body}})["signature"]


class Receiver(http.server.BaseHTTPRequestHandler):
    got = queue.Queue()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
        self.got.put((dict(self.headers), body))

    def log_message(self, *_):
        pass


def changed(headers, **new):
    named = {name.lower(): value for name, value in headers.items()}
    return {**named, **{name.replace("_", "-"): value for name, value in new.items()}}


def they_verify(libraries):
    """hanji sends, the libraries verify."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    said = hanji("line", "add", "interop", "http://127.0.0.1:%d/" % server.server_port, "--secret", "new", "--allow-private")
    secret = [word.strip() for word in said.split() if word.startswith("whsec_")][0]
    for body in BODIES:
        status, answer = ask("POST", "/sends/interop", body.encode(), {
            "Authorization": "Bearer " + os.environ["HANJI_TOKEN"], "Content-Type": "text/plain; charset=utf-8"})
        assert status == 202, answer
        headers, got = Receiver.got.get(timeout=20)
        headers = changed(headers)
        assert got == body.encode() and headers["webhook-id"] == json.loads(answer)["id"]
        entries = headers["webhook-signature"].split(" ")
        assert [entry.split(",")[0] for entry in entries] == ["v1", "v1a"], entries
        for library in libraries:
            assert library.verify(secret, headers, got), (library.name, body[:40])
            assert not library.verify(OTHER, headers, got)
            assert not library.verify(secret, headers, got + b" ")
            assert not library.verify(secret, changed(headers, webhook_id=headers["webhook-id"] + "x"), got)
            assert not library.verify(secret, changed(headers, webhook_timestamp=str(int(time.time()) - 400)), got)
    print("%d messages of hanji are verified by %s" % (len(BODIES), " and ".join(one.name for one in libraries)))
    server.shutdown()


def hanji_verifies(libraries):
    """The libraries sign, an inbox takes it."""
    secret = "whsec_" + base64.b64encode(os.urandom(32)).decode()
    hanji("inbox", "add", "interop", "--secret", secret)
    for library in libraries:
        for i, body in enumerate(BODIES):
            name, now = "msg_%s%d" % (type(library).__name__, i), int(time.time())
            headers = {"webhook-id": name, "webhook-timestamp": str(now), "Content-Type": "text/plain; charset=utf-8",
                       "webhook-signature": "v1,AAAA v1a,AAAA " + library.sign(secret, name, now, body)}
            refused = [(body + " ", {}), (body, {"webhook-id": name + "x"}), (body, {"webhook-timestamp": str(now - 1)}),
                       (body, {"webhook-signature": library.sign(OTHER, name, now, body)}), (body, {"webhook-id": ""}),
                       (body, {"webhook-timestamp": str(now - 400),
                               "webhook-signature": library.sign(secret, name, now - 400, body)})]
            for wrong, new in refused:
                status, answer = ask("POST", "/inbox/interop", wrong.encode(), {**headers, **new})
                assert status in (400, 401), (library.name, new, status, answer)
            for _ in range(2):
                status, answer = ask("POST", "/inbox/interop", body.encode(), headers)
                assert status == 200, (library.name, status, answer)
    rows = hanji("sql", "SELECT count(*), sum(length(CAST(body AS BLOB))) FROM inbox").strip()
    count = len(BODIES) * len(libraries)
    assert rows == "%d|%d" % (count, len(libraries) * sum(len(body.encode()) for body in BODIES)), rows
    print("an inbox took %d messages that they signed, each once, and refused %d changed ones" % (count, 6 * count))


def main():
    libraries = [Python(), JavaScript()]
    they_verify(libraries)
    hanji_verifies(libraries)
    # Why docs/sends.md warns: a public key is taken for a secret.
    key = "whpk_" + base64.b64encode(os.urandom(32)).decode()
    for library in libraries:
        try:
            print("%s signs with a whpk_ key as if it were a secret: %s"
                  % (library.name, library.sign(key, "msg_1", int(time.time()), "x")[:3] == "v1,"))
        except (KeyError, ValueError) as error:
            print("%s does not take a whpk_ key (%s)" % (library.name, error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
