"""POST /batch: several operations, all or none, in order; and everything that is no batch."""
import base64
import json
import threading
import time

import pytest

import fastcgi
import harness
from test_documents import noise

JSON = {"Content-Type": "application/json"}


def key_of(box):
    return box[len("/docs/"):]


def send(site, operations, **more):
    """A list of operations, or bytes."""
    body = operations if isinstance(operations, bytes) else json.dumps(operations).encode()
    return site.http("POST", "/batch", body, JSON, **more)


def refused(answer, status, index=None, key=None):
    assert answer.status == status, answer
    problem = answer.json()
    assert problem["status"] == status
    assert problem.get("index") == index and problem.get("key") == key, problem
    return problem["detail"]


def items(site, box):
    return {item["key"][len(key_of(box)):]: item["etag"] for item in site.get(box).json()["items"]}


@pytest.mark.smoke
def test_put_replace_and_delete(site, box):
    key = key_of(box)
    site.put(box + "old", b"x")
    site.put(box + "gone", b"x")
    answer = send(site, [{"op": "put", "key": key + "new", "body": {"a": 1}}, {"op": "put", "key": key + "old", "text": "y"},
                         {"op": "delete", "key": key + "gone"}])
    assert answer.status == 200 and answer.header("Content-Type") == "application/json"
    out = answer.json()
    assert set(out) == {"seq", "results"}
    assert [(one["key"], one["status"]) for one in out["results"]] == [(key + "new", 201), (key + "old", 204), (key + "gone", 204)]
    assert out["results"][0]["etag"] == site.get(box + "new").header("ETag")
    assert out["results"][1]["etag"] == site.get(box + "old").header("ETag")
    assert "etag" not in out["results"][2]
    assert site.get(box + "gone").status == 404
    numbers = [int(one["etag"].strip('"')) for one in out["results"][:2]]
    assert numbers == [out["seq"] - 2, out["seq"] - 1]


def test_nothing_to_do(site):
    before = site.hanji.status()["seq"]
    out = send(site, []).json()
    assert out["results"] == [] and out["seq"] >= before


BODIES = {
    "object": b'{ "b" :1,\n "a":[ ] }', "big integer": b"123456789012345678901234567890", "spelling": b"[1.50,1E5,-0,0.10]",
    "names twice": b'{"a":1,"a":2}', "NUL": b'{"a":"\\u0000"}', "escapes": b'"\\u00e9\\/"', "null": b"null", "false": b"false",
    "string": b'"text"', "utf-8": '"é😀"'.encode(), "half a pair": b'"\\ud800"', "deep": b"[" * 900 + b"]" * 900,
    "brackets in text": b'{"}]\\"":"[{,"}',
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_body_is_stored_as_it_stands(site, box, body):
    text = b'[ {"op":"put", "body" : ' + body + b' , "key":"%sk"} ]' % key_of(box).encode()
    assert send(site, text).status == 200
    got = site.get(box + "k")
    assert got.body == body and got.header("Content-Type") == "application/json"


@pytest.mark.parametrize("text", ["", "plain", "é😀\n\"\\", "a\0b", " {} ", "\x7f\u2028", "x" * 100000])
def test_text(site, box, text):
    assert send(site, [{"op": "put", "key": key_of(box) + "k", "text": text}]).status == 200
    got = site.get(box + "k")
    assert got.body == text.encode() and got.header("Content-Type") == "text/plain; charset=utf-8"


@pytest.mark.parametrize("data", [b"", b"\0", b"\xff\xfe", b"abc", bytes(range(256)), b"\xff\xef\xbe" * 5], ids=repr)
def test_base64(site, box, data):
    text = base64.b64encode(data).decode()
    assert send(site, [{"op": "put", "key": key_of(box) + "k", "base64": text}]).status == 200
    got = site.get(box + "k")
    assert got.body == data and got.header("Content-Type") == "application/octet-stream"
    escaped = json.dumps([{"op": "put", "key": key_of(box) + "k2", "base64": text}]).replace("/", "\\/").encode()
    assert send(site, escaped).status == 200
    assert site.get(box + "k2").body == data


def test_a_type_that_is_named(site, box):
    key = key_of(box)
    assert send(site, [{"op": "put", "key": key + "a", "body": [1], "type": "application/x+json"},
                       {"op": "put", "key": key + "b", "text": "<p>", "type": "text/html"},
                       {"op": "put", "key": key + "c", "text": "[1]", "type": "application/json"},
                       {"op": "put", "key": key + "d", "body": {}, "type": "text/plain"},
                       {"op": "put", "key": key + "e", "base64": "e30=", "type": "application/json"}]).status == 200
    types = {item["key"][-1]: item["type"] for item in site.get(box).json()["items"]}
    assert types == {"a": "application/x+json", "b": "text/html", "c": "application/json", "d": "text/plain",
                     "e": "application/json"}
    forms = site.hanji.rows("SELECT substr(key, -1), typeof(body) FROM doc WHERE key LIKE ? ORDER BY key", key + "%")
    assert forms == [("a", "text"), ("b", "text"), ("c", "text"), ("d", "text"), ("e", "text")]


# ---- all or none -----------------------------------------------------------------------------------------------------


def test_the_second_of_three_fails(site, box):
    """The case of CouchDB and TrailBase: nothing is kept, and the index says which."""
    key = key_of(box)
    site.put(box + "b", b"there")
    before, seq = items(site, box), site.hanji.status()["seq"]
    answer = send(site, [{"op": "put", "key": key + "a", "text": "1"},
                         {"op": "put", "key": key + "b", "text": "2", "if_none_match": "*"},
                         {"op": "put", "key": key + "c", "text": "3"}])
    refused(answer, 412, 1, key + "b")
    assert items(site, box) == before and site.hanji.status()["seq"] == seq
    assert site.get(box + "b").body == b"there"


@pytest.mark.parametrize("place", range(4))
def test_wherever_it_fails(site, box, place):
    operations = [{"op": "put", "key": key_of(box) + "k%d" % i, "text": "x"} for i in range(4)]
    operations[place] = {"op": "delete", "key": key_of(box) + "absent"}
    refused(send(site, operations), 422, place, key_of(box) + "absent")
    assert items(site, box) == {}


def test_the_same_key_again_in_order(site, box):
    key = key_of(box) + "k"
    out = send(site, [{"op": "put", "key": key, "text": "1", "if_none_match": "*"}, {"op": "delete", "key": key, "if_match": "*"},
                      {"op": "put", "key": key, "text": "2", "if_none_match": "*"}, {"op": "put", "key": key, "text": "3"}])
    assert [one["status"] for one in out.json()["results"]] == [201, 204, 201, 204]
    assert site.get(box + "k").body == b"3"
    refused(send(site, [{"op": "put", "key": key, "text": "4"}, {"op": "put", "key": key, "text": "5", "if_none_match": "*"}]),
            412, 1, key)
    assert site.get(box + "k").body == b"3"


CONDITIONS = [("if_match", "{tag}", 200), ("if_match", "*", 200), ("if_match", 'W/{tag}', 200), ("if_match", '"0", {tag}', 200),
              ("if_match", '"999999999"', 412), ("if_none_match", "*", 412), ("if_none_match", "{tag}", 412),
              ("if_none_match", '"999999999"', 200)]


@pytest.mark.parametrize("verb", ["put", "delete"])
@pytest.mark.parametrize("member,value,status", CONDITIONS)
def test_conditions(site, box, verb, member, value, status):
    tag = site.put(box + "k", b"x").header("ETag")
    operation = {"op": verb, "key": key_of(box) + "k", member: value.replace("{tag}", tag)}
    if verb == "put":
        operation["text"] = "y"
    answer = send(site, [operation])
    assert answer.status == status, answer
    if status == 412:
        refused(answer, 412, 0, key_of(box) + "k")
    assert (site.get(box + "k").header("ETag") == tag) == (status == 412)


@pytest.mark.parametrize("member,status", [("if_match", 412), ("if_none_match", 200)])
def test_conditions_on_what_is_absent(site, box, member, status):
    assert send(site, [{"op": "put", "key": key_of(box) + "k", "text": "x", member: "*"}]).status == status


def test_twenty_at_once_one_wins(site, box):
    body = json.dumps([{"op": "put", "key": key_of(box) + "a", "text": "x"},
                       {"op": "put", "key": key_of(box) + "k", "text": "x", "if_none_match": "*"}]).encode()
    clients = [site.hanji.client() for _ in range(20)]
    for client in clients:
        client.send(fastcgi.request("POST", "/batch", site.token, body=body, extra={"CONTENT_TYPE": "application/json"}))
    statuses = sorted(client.answer().status for client in clients)
    for client in clients:
        client.close()
    assert statuses == [200] + [412] * 19


def test_a_reader_sees_all_of_it_or_nothing(site, box):
    key, stop, seen = key_of(box), threading.Event(), []

    def read():
        with site.hanji.client() as client:
            while not stop.is_set():
                answer = client.ask("GET", box, site.token)
                seen.append(len(json.loads(answer.body)["items"]))
    reader = threading.Thread(target=read)
    reader.start()
    try:
        for _ in range(20):
            assert send(site, [{"op": "put", "key": key + "k%d" % i, "text": "x"} for i in range(10)]).status == 200
            assert send(site, [{"op": "delete", "key": key + "k%d" % i} for i in range(10)]).status == 200
    finally:
        stop.set()
        reader.join()
    assert set(seen) <= {0, 10}


# ---- rights ----------------------------------------------------------------------------------------------------------


def test_each_key_is_judged(site, box):
    key = key_of(box)
    token = site.hanji.new_token("batch" + key.strip("/"), write=[key + "mine/"])
    mine, other = {"op": "put", "key": key + "mine/a", "text": "x"}, {"op": "put", "key": key + "other", "text": "x"}
    assert send(site, [mine], token=token).status == 200
    refused(send(site, [mine, other], token=token), 403, 1, key + "other")
    refused(send(site, [{"op": "delete", "key": key + "nothing"}], token=token), 403, 0, key + "nothing")
    refused(send(site, [dict(mine, key=key + "mine/../other")], token=token), 400, 0, key + "mine/../other")
    assert items(site, box) == {"mine/a": items(site, box)["mine/a"]}


def test_public_is_for_reading(site):
    operation = [{"op": "put", "key": "pub/x", "text": "x"}]
    assert send(site, operation, token=None).status == 401
    assert send(site, operation, token="hanji_" + "A" * 43).status == 401
    assert send(site, [], token=None).status == 401
    reader = site.hanji.new_token("batchreader", read=["/"])
    refused(send(site, operation, token=reader), 403, 0, "pub/x")


# ---- what is no batch ------------------------------------------------------------------------------------------------

PUT = '"op":"put","key":"k"'
MALFORMED = ["", " ", "[", "[1", "{", "nul", "[{]", "[{}}", "[,]", "[{},]", '[{"op":"put"]', "[]]", "[] []", "[]\0", "\ufeff[]", "NaN",
             '[{"op":"put","key":"k","body":01}]', '[{"op":"put","key":"k","body":}]', "[" * 1001 + "]" * 1001,
             '[{%s,"text":"\t"}]' % PUT]


@pytest.mark.parametrize("body", MALFORMED, ids=lambda body: repr(body)[:40])
def test_no_json(site, body):
    assert "JSON" in refused(send(site, body.encode()), 400)


def test_no_utf8(site):
    refused(send(site, b'[{"op":"put","key":"k","text":"\xff"}]'), 400)


@pytest.mark.parametrize("body", ["{}", "null", "1", '"x"', '{"operations":[]}'])
def test_no_array(site, body):
    assert "array" in refused(send(site, body.encode()), 400)


WRONG = {
    "1": "object", "null": "object", "[]": "object", '"put"': "object", "{}": "op", '{"key":"k"}': "op",
    '{"op":"PUT","key":"k","text":""}': "op", '{"op":"","key":"k"}': "op", '{"op":1,"key":"k"}': "op", '{"op":null}': "op",
    '{"op":"put","text":""}': "key", '{"op":"delete"}': "key", '{"op":"delete","key":1}': "key", '{"op":"delete","key":null}': "key",
    "{%s}" % PUT: "body", '{%s,"text":"","body":1}' % PUT: "only one", '{%s,"text":"","base64":""}' % PUT: "only one",
    '{%s,"txt":"x"}' % PUT: "txt", '{%s,"text":"","Body":1}' % PUT: "Body", '{%s,"text":"","key":"l"}' % PUT: "twice",
    '{%s,"text":"","\\u006bey":"l"}' % PUT: "twice", '{%s,"text":1}' % PUT: "text", '{%s,"base64":[]}' % PUT: "base64",
    '{%s,"base64":"A"}' % PUT: "base64", '{%s,"base64":"AA"}' % PUT: "base64", '{%s,"base64":"A-_="}' % PUT: "base64",
    '{%s,"text":"\\ud800"}' % PUT: "surrogate", '{%s,"text":"x","type":"json"}' % PUT: "type", '{%s,"text":"x","type":""}' % PUT: "type",
    '{%s,"text":"x","type":"a/b\\n"}' % PUT: "type", '{%s,"text":"x","type":"a/%s"}' % (PUT, "b" * 254): "type",
    '{%s,"text":"x","type":1}' % PUT: "type", '{%s,"text":"{","type":"application/json"}' % PUT: "JSON",
    '{%s,"base64":"ew==","type":"a/b+json"}' % PUT: "JSON", '{%s,"base64":"IgAi","type":"a/b+json"}' % PUT: "JSON",
    '{"op":"delete","key":"k","text":"x"}': "text", '{"op":"delete","key":"k","type":"a/b"}': "type",
    '{%s,"text":"","if_match":"7"}' % PUT: "if_match", '{%s,"text":"","if_match":""}' % PUT: "if_match",
    '{%s,"text":"","if_match":7}' % PUT: "if_match", '{%s,"text":"","if_match":["*"]}' % PUT: "if_match",
    '{%s,"text":"","if_none_match":"\\"7"}' % PUT: "if_none_match", '{%s,"text":"","if_none_match":true}' % PUT: "if_none_match",
    '{%s,"text":"","if_match":"%s"}' % (PUT, "x" * 2000): "if_match",
}


@pytest.mark.parametrize("operation", WRONG, ids=lambda text: text[:60])
def test_wrong_operations(site, operation):
    good = '{"op":"put","key":"never","text":"x"}'
    answer = send(site, ("[%s,%s]" % (good, operation)).encode())
    assert answer.status == 400, answer
    assert answer.json()["index"] == 1
    assert WRONG[operation] in answer.json()["detail"]
    assert site.get("/docs/never").status == 404


KEYS = ["", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "a\0b", "a\nb", "a\\b", "x" * 513, "\x7f"]


@pytest.mark.parametrize("verb", ["put", "delete"])
@pytest.mark.parametrize("key", KEYS, ids=lambda key: repr(key)[:20])
def test_keys_that_are_none(site, key, verb):
    operation = {"op": verb, "key": key}
    if verb == "put":
        operation["text"] = "x"
    assert send(site, [operation]).status == 400


def test_keys_as_they_are(site, box):
    """No percent-decoding: the key is the text."""
    names = ["a+b", "a%2Fb", "a b", "é", "e\u0301", "😀", "%", "x" * (512 - len(key_of(box)))]
    assert send(site, [{"op": "put", "key": key_of(box) + name, "text": name} for name in names]).status == 200
    assert set(items(site, box)) == set(names)


@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded", "application/jsonx", "text/json"])
def test_the_type_of_the_request(site, kind):
    answer = site.http("POST", "/batch", b"[]", {"Content-Type": kind} if kind else {})
    assert answer.status == 415 and "application/json" in answer.json()["detail"]


def test_a_thousand_and_no_more(site, box):
    def many(n):
        return [{"op": "put", "key": key_of(box) + "%04d" % i, "text": "x"} for i in range(n)]
    assert "1000" in refused(send(site, many(1001)), 422)
    assert items(site, box) == {}
    out = send(site, many(1000)).json()
    assert len(out["results"]) == 1000 and out["results"][999]["key"] == key_of(box) + "0999"
    assert send(site, [{"op": "delete", "key": key_of(box) + "%04d" % i} for i in range(1000)]).status == 200


def test_too_large(site):
    """Beyond max_body of this site."""
    answer = send(site, [{"op": "put", "key": "k", "text": "x" * 310000}])
    assert answer.status == 413 and "307200" in answer.json()["detail"]


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
def test_other_methods(site, method):
    answer = site.http(method, "/batch", b"" if method in ("PUT", "PATCH") else None)
    assert answer.status == 405 and answer.header("Allow") == "POST"


@pytest.mark.parametrize("path", ["/batch/", "/batch/x", "/Batch"])
def test_other_addresses(site, path):
    assert site.hanji.ask("POST", path, body=b"[]", extra={"CONTENT_TYPE": "application/json"}).status == 404


def test_a_document_that_the_database_refuses(make_hanji):
    hanji = make_hanji()
    hanji.command("sql", "CREATE TRIGGER t BEFORE INSERT ON doc WHEN new.key = 'bad' BEGIN SELECT RAISE(ABORT, 'no'); END")
    body = json.dumps([{"op": "put", "key": "good", "text": "x"}, {"op": "put", "key": "bad", "text": "x"}]).encode()
    answer = hanji.ask("POST", "/batch", body=body, extra={"CONTENT_TYPE": "application/json"})
    assert answer.status == 422 and json.loads(answer.body)["index"] == 1
    assert hanji.status()["documents"] == 0


def test_a_page_for_a_browser(site):
    answer = site.http("POST", "/batch", b"[1]", {**JSON, "Accept": "text/html"})
    assert answer.status == 400 and answer.header("Content-Type").startswith("text/html")


@pytest.mark.alone
def test_one_sync_for_all(make_hanji, slow):
    """A hundred documents in one batch take one sync."""
    slow.set()
    hanji = make_hanji(start=False)
    hanji.env = slow.env()
    hanji.start()
    hanji.token = hanji.new_token("full", read=["/"], write=["/"])
    body = json.dumps([{"op": "put", "key": "k%d" % i, "text": "x"} for i in range(100)]).encode()
    slow.set(sync_ms=100)
    start = time.monotonic()
    assert hanji.ask("POST", "/batch", body=body, extra={"CONTENT_TYPE": "application/json"}).status == 200
    took = time.monotonic() - start
    slow.set()
    assert 0.1 <= took < (2 if harness.sanitized() else 0.5)


def test_large_ones(make_hanji):
    hanji = make_hanji(max_body="20m")

    def ask(body):
        return hanji.ask("POST", "/batch", body=body, extra={"CONTENT_TYPE": "application/json"})
    body = base64.b64encode(noise(2 << 20)).decode()
    assert ask(json.dumps([{"op": "put", "key": "k", "base64": body}]).encode()).status == 200
    assert hanji.ask("GET", "/docs/k").body == noise(2 << 20)
    answer = ask(b'["' + b"x" * (4 << 20) + b'"]')
    assert answer.status == 413 and b"4 MiB" in answer.body


@pytest.mark.parametrize("path", ["/batch", "/snapshot"])
def test_nginx_names_the_limit_of_the_address(site, path):
    answer = site.http("POST", path, b" " * ((4 << 20) + 1), JSON)
    assert answer.status == 413 and "4 MiB" in answer.json()["detail"]
