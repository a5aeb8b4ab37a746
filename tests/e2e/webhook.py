"""A sender of Standard Webhooks, of nothing but Python's own hmac."""
import base64
import hashlib
import hmac
import itertools
import os
import time

import harness

NUMBERS = itertools.count(1)


def new_secret():
    return "whsec_" + base64.b64encode(os.urandom(32)).decode()


def new_id():
    return "msg_%d_%s" % (next(NUMBERS), os.urandom(8).hex())


def sign(secret, id_, at, body):
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = b"%s.%s.%s" % (id_.encode(), str(at).encode(), body)
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def headers(secret, body, id_=None, at=None, kind="application/json", signature=None):
    """Those of one try, signed."""
    id_ = id_ or new_id()
    at = int(time.time()) if at is None else at
    return {"webhook-id": id_, "webhook-timestamp": str(at),
            "webhook-signature": signature or sign(secret, id_, at, body), "Content-Type": kind}


def give_keys(site):
    """Keys for a site that runs; it looks for new ones once a second."""
    site.hanji.command("key", "new")
    settings = {"Content-Type": "application/json"}
    harness.wait_for("the keys", lambda: site.put("/inbox/probe", b'{"secret":"new"}', settings).status == 201)
    assert site.delete("/inbox/probe").status == 204


class Sender:
    """Posts to one inbox of a site."""

    def __init__(self, site, name, secret):
        self.site, self.path, self.secret = site, "/inbox/" + name, secret

    def send(self, body=b'{"n":1}', link=None, **more):
        wanted = headers(self.secret, body, **more)
        if link is not None:
            return link.request("POST", self.path, body, wanted)
        return self.site.http("POST", self.path, body, wanted, token=None)
