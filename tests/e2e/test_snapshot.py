"""POST /snapshot: several documents, all of one moment."""
import base64
import json
import threading

import pytest

from test_batch import JSON, key_of, refused


def ask(site, keys, **more):
    body = keys if isinstance(keys, bytes) else json.dumps({"keys": keys}).encode()
    return site.http("POST", "/snapshot", body, JSON, **more)


@pytest.mark.smoke
def test_documents_in_the_order_of_the_keys(site, box):
    key = key_of(box)
    site.put(box + "a", b'{"x":1}', JSON)
    site.put(box + "b", b"text \xc3\xa9\n", {"Content-Type": "text/plain"})
    site.put(box + "c", b"\0\xff", {"Content-Type": "image/png"})
    got = ask(site, [key + "c", key + "absent", key + "a", key + "b", key + "a"])
    assert got.status == 200 and got.header("Content-Type") == "application/json" and got.header("Cache-Control") == "no-store"
    out = got.json()
    assert set(out) == {"seq", "documents"} and out["seq"] == site.hanji.status()["seq"]
    listed = {item["key"]: item for item in site.get(box).json()["items"]}
    expected = [dict(listed[key + "c"], base64=base64.b64encode(b"\0\xff").decode()), None, dict(listed[key + "a"], body={"x": 1}),
                dict(listed[key + "b"], text="text é\n"), dict(listed[key + "a"], body={"x": 1})]
    assert out["documents"] == expected


def test_no_keys(site):
    out = ask(site, []).json()
    assert out["documents"] == [] and out["seq"] == site.hanji.status()["seq"]


@pytest.mark.parametrize("body", [b'{ "b" : 1, "a":[ ] }', b"12345678901234567890123", b"[1.50,1E5]", b'"\\u0000\\u00e9"', b" null\n",
                                  b"[" * 400 + b"]" * 400], ids=lambda body: body[:20].decode())
def test_json_stands_as_it_is(site, box, body):
    site.put(box + "k", body, JSON)
    assert b'"body":' + body + b"}" in ask(site, [key_of(box) + "k"]).body


BODIES = [(b"", "text/plain", "text"), (b"", "image/png", "base64"), (b"a\0b", "text/plain", "text"), (b"\xff", "text/plain", "base64"),
          (b"\"\\\n\x01", "text/html", "text"), (b"{}", "text/plain", "text"), (b"x" * 50000, "a/b", "base64"), (b"abcd", "a/b", "base64")]


@pytest.mark.parametrize("body,kind,member", BODIES)
def test_forms(site, box, body, kind, member):
    site.put(box + "k", body, {"Content-Type": kind})
    document, = ask(site, [key_of(box) + "k"]).json()["documents"]
    value = document[member]
    assert (value.encode() if member == "text" else base64.b64decode(value)) == body
    assert document["size"] == len(body)


@pytest.mark.parametrize("value,member", [("'{'", "text"), ("x'ff7b'", "base64"), ("'{}' || char(0)", "text"), ("''", "text"), ("x'7b7d'", "body")])
def test_rows_from_outside_that_call_themselves_json(site, box, value, member):
    site.hanji.command("sql", "INSERT INTO doc (key, type, body) VALUES ('%sk', 'application/json', %s)" % (key_of(box), value))
    document, = ask(site, [key_of(box) + "k"]).json()["documents"]
    assert member in document


def test_one_moment(site, box):
    """Two documents that are always written together are never seen apart."""
    key, stop = key_of(box), threading.Event()
    pair = [{"op": "put", "key": key + name, "text": "0"} for name in "ab"]
    site.http("POST", "/batch", json.dumps(pair).encode(), JSON)

    def write():
        number = 0
        with site.hanji.client() as client:
            while not stop.is_set():
                number += 1
                body = json.dumps([dict(one, text=str(number)) for one in pair]).encode()
                assert client.ask("POST", "/batch", site.token, body=body, extra={"CONTENT_TYPE": "application/json"}).status == 200
    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(100):
            out = ask(site, [key + "a", key + "b"]).json()
            first, second = out["documents"]
            assert first["text"] == second["text"]
            assert int(second["etag"].strip('"')) == int(first["etag"].strip('"')) + 1 <= out["seq"]
    finally:
        stop.set()
        writer.join()


def test_rights(site, box):
    key = key_of(box)
    site.put(box + "a/1", b"x")
    reader = site.hanji.new_token("sr" + key.strip("/"), read=[key + "a/"])
    writer = site.hanji.new_token("sw" + key.strip("/"), write=[key])
    assert ask(site, [key + "a/1", key + "a/2"], token=reader).status == 200
    refused(ask(site, [key + "a/1", key + "b"], token=reader), 403, 1, key + "b")
    refused(ask(site, [key + "a/1"], token=writer), 403, 0, key + "a/1")
    assert ask(site, [], token="hanji_" + "A" * 43).status == 401


def test_public_ones(site):
    site.put("/docs/pub/snapshot", b"x", {"Content-Type": "text/plain"})
    assert ask(site, ["pub/snapshot"], token=None).json()["documents"][0]["text"] == "x"
    assert ask(site, ["pub/snapshot", "private"], token=None).status == 401
    assert ask(site, [], token=None).status == 200


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b"null", b'"keys"', b'{"keys":1}', b'{"keys":{}}', b'{"keys":[],"x":1}',
                                  b'{"key":["a"]}', b'{"keys":[],"keys":[]}', b'{"keys":["a"]'])
def test_other_bodies(site, body):
    assert ask(site, body).status == 400


@pytest.mark.parametrize("key", [1, None, [], {}, "", "/", "a/", "a//b", "..", "a\0", "x" * 513, "\ud800"], ids=repr)
def test_keys_that_are_none(site, key):
    answer = ask(site, json.dumps({"keys": ["a", key]}).encode())
    assert answer.status == 400 and answer.json()["index"] == 1


def test_a_thousand_and_no_more(site):
    assert ask(site, ["k"] * 1001).status == 422
    assert len(ask(site, ["absent"] * 1000).json()["documents"]) == 1000


@pytest.mark.parametrize("kind", [None, "text/plain"])
def test_the_type_of_the_request(site, kind):
    assert site.http("POST", "/snapshot", b'{"keys":[]}', {"Content-Type": kind} if kind else {}).status == 415


def test_an_answer_has_a_bound(make_hanji):
    """Bodies above 1 MiB, and those beyond 4 MiB together, are left out; the rest is there."""
    hanji = make_hanji(max_body="20m")
    for name, size in [("large", (1 << 20) + 1)] + [("m%d" % i, 1 << 20) for i in range(5)]:
        hanji.ask("PUT", "/docs/" + name, body=b"x" * size, extra={"CONTENT_TYPE": "text/plain"})
    hanji.ask("PUT", "/docs/small", body=b"x", extra={"CONTENT_TYPE": "text/plain"})
    body = json.dumps({"keys": ["large"] + ["m%d" % i for i in range(5)] + ["small"]}).encode()
    answer = hanji.ask("POST", "/snapshot", body=body, extra={"CONTENT_TYPE": "application/json"})
    documents = json.loads(answer.body)["documents"]
    assert documents[0]["omitted"] is True and documents[0]["size"] == (1 << 20) + 1 and "text" not in documents[0]
    assert [len(document.get("text", "")) for document in documents[1:]] == [1 << 20] * 4 + [0, 0]
    assert documents[5]["omitted"] is True and documents[6]["omitted"] is True


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_other_methods(site, method):
    assert site.http(method, "/snapshot", b"" if method == "PUT" else None).status == 405
