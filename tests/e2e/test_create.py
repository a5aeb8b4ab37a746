"""POST to a collection: a new document under an id that the server makes."""
import concurrent.futures
import json
import re
import time

import pytest

from test_batch import key_of

ID = r"[0-7][0-9a-hjkmnp-tv-z]{25}"


def create(site, path, body=b"x", headers=None, **more):
    return site.http("POST", path, body, headers or {"Content-Type": "text/plain"}, **more)


@pytest.mark.smoke
def test_location_tag_and_body(site, box):
    got = create(site, box, b'{"a":1}', {"Content-Type": "application/json"})
    assert got.status == 201
    location = got.header("Location")
    assert re.fullmatch(re.escape(box) + ID, location)
    assert got.json() == {"key": location[6:], "etag": got.header("ETag")}
    stored = site.get(location)
    assert (stored.body, stored.header("Content-Type"), stored.header("ETag")) == (b'{"a":1}', "application/json", got.header("ETag"))


def test_below_the_root(site):
    got = create(site, "/docs/")
    assert got.status == 201 and re.fullmatch("/docs/" + ID, got.header("Location"))
    assert site.delete(got.header("Location")).status == 204


def test_below_a_mount(make_site):
    site = make_site(mount="/h")
    got = create(site, "/docs/a%20b/")
    assert got.status == 201 and re.fullmatch("/h/docs/a%20b/" + ID, got.header("Location"))
    assert site.get(got.header("Location")[2:]).body == b"x"


def test_ids_are_in_the_order_of_time(site, box):
    names = [create(site, box).header("Location") for _ in range(30)]
    assert names == sorted(names) and len(set(names)) == 30
    digits = "0123456789abcdefghjkmnpqrstvwxyz"
    number = 0
    for letter in names[-1][len(box):len(box) + 10]:
        number = number * 32 + digits.index(letter)
    assert abs(number / 1000 - time.time()) < 60


def test_many_at_once(site, box):
    def work(_):
        with site.hanji.client() as client:
            return [client.ask("POST", box, site.token, body=b"x").header("Location") for _ in range(20)]
    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        found = [name for names in pool.map(work, range(10)) for name in names]
    assert len(found) == 200 == len(set(found))
    assert len(site.get(box + "?limit=1000").json()["items"]) == 200


@pytest.mark.parametrize("headers,body,kind", [({}, b"", "application/octet-stream"), ({}, b"\0\xff", "application/octet-stream"),
                                               ({"Content-Type": "text/html"}, b"<p>", "text/html")])
def test_types_are_as_for_put(site, box, headers, body, kind):
    got = site.http("POST", box, body, headers)
    assert got.status == 201
    stored = site.get(got.header("Location"))
    assert stored.body == body and stored.header("Content-Type") == kind


@pytest.mark.parametrize("headers,body", [({"Content-Type": "application/json"}, b"{"), ({"Content-Type": "application/json"}, b""),
                                          ({"Content-Type": "nonsense"}, b"x")])
def test_refused_as_a_put_would_be(site, box, headers, body):
    assert site.http("POST", box, body, headers).status == 400
    assert site.get(box).json()["items"] == []


def test_rights(site, box):
    key = key_of(box)
    writer = site.hanji.new_token("cw" + key.strip("/"), write=[key])
    reader = site.hanji.new_token("cr" + key.strip("/"), read=[key])
    assert create(site, box, token=writer).status == 201
    assert create(site, box + "sub/", token=writer).status == 201
    assert create(site, "/docs/", token=writer).status == 403
    assert create(site, box, token=reader).status == 403
    assert create(site, box, token=None).status == 401
    assert create(site, "/docs/pub/", token=None).status == 401


def test_the_key_must_fit(site, box):
    room = 512 - 26 - len(key_of(box)) - 1
    got = create(site, box + "x" * room + "/")
    assert got.status == 201 and len(got.json()["key"]) == 512
    assert create(site, box + "x" * (room + 1) + "/").status == 400


def test_to_a_document(site, box):
    got = create(site, box + "k")
    assert got.status == 405 and "POST" not in got.header("Allow")
    assert got.header("Allow") in got.json()["detail"]
    assert "POST" in site.http("PUT", box, b"x").header("Allow")


def test_conditions_mean_nothing(site, box):
    assert create(site, box, b"x", {"If-Match": '"7"'}).status == 201
    assert create(site, box, b"x", {"If-None-Match": "*"}).status == 201


def test_large(site, box):
    assert create(site, box, b"x" * 310000).status == 413
    got = create(site, box, b"x" * 290000)
    assert got.status == 201 and len(site.get(got.header("Location")).body) == 290000


def test_the_answer_is_json(site, box):
    got = create(site, box + "q%22uote/")
    assert got.status == 201
    assert json.loads(got.body)["key"].startswith(key_of(box) + 'q"uote/')
