"""Files below static/ of an app: which there are, who may have them, and how they are sent."""
import os
import pathlib
import re

import pytest

import harness

CSS = "body { color: #123; }\n"
FILES = {"index.get.sql": "SELECT 1 AS one;\n", "static/app.css": CSS, "static/img/a b ü.svg": "<svg/>", "static/.secret": "no",
         "static/.git/config": "no", "static/nothing": b"", "static/data": bytes(range(256)) * 300}




@pytest.fixture
def files(site):
    site.app("files", FILES)
    return site


def get(site, path, headers=None, token=None, method="GET"):
    return site.http(method, "/apps/files/" + path, headers=headers or {}, token=token)


@pytest.mark.smoke
def test_a_file(files):
    answer = get(files, "static/app.css")
    assert answer.status == 200 and answer.body == CSS.encode()
    assert answer.header("Content-Type") == "text/css; charset=utf-8"
    assert answer.header("X-Content-Type-Options") == "nosniff"
    assert answer.header("Cache-Control") == "no-cache"
    assert "default-src 'self'" in answer.header("Content-Security-Policy")
    assert answer.header("X-Accel-Redirect") is None


def test_head(files):
    answer = get(files, "static/app.css", method="HEAD")
    assert answer.status == 200 and answer.body == b"" and answer.header("Content-Length") == str(len(CSS))


def test_a_name_with_all_sorts_of_letters(files):
    answer = get(files, "static/img/a%20b%20%C3%BC.svg")
    assert answer.status == 200 and answer.body == b"<svg/>" and answer.header("Content-Type") == "image/svg+xml"


def test_an_empty_one_and_a_large_one(files):
    assert get(files, "static/nothing").body == b""
    assert get(files, "static/data").body == FILES["static/data"]
    assert get(files, "static/data").header("Content-Type") == "application/octet-stream"


def test_a_range(files):
    answer = get(files, "static/data", {"Range": "bytes=300-399"})
    assert answer.status == 206 and answer.body == FILES["static/data"][300:400]


def test_it_is_asked_again_and_not_sent_again(files):
    answer = get(files, "static/app.css")
    again = get(files, "static/app.css", {"If-None-Match": answer.header("ETag")})
    assert again.status == 304 and again.body == b""
    assert get(files, "static/app.css", {"If-Modified-Since": answer.header("Last-Modified")}).status == 304
    assert get(files, "static/app.css", {"If-None-Match": '"other"'}).status == 200


def test_one_with_a_version_is_kept(files):
    assert get(files, "static/app.css?v=3").header("Cache-Control") == "public, max-age=31536000, immutable"
    assert get(files, "static/app.css?x=1&v=3").header("Cache-Control") == "public, max-age=31536000, immutable"
    assert get(files, "static/app.css?nov=3").header("Cache-Control") == "no-cache"


@pytest.mark.parametrize("path", ["static/none.css", "static/.secret", "static/.git/config", "static/img", "static/img/", "static/", "static",
                                  "app.ini", "index.get.sql", "schema/001-a.sql", "static/../app.ini", "static/%2e%2e/app.ini",
                                  "static/..%2fapp.ini", "static/x%00.css", "static/" + "x" * 300])
def test_what_is_not_there(files, path):
    answer = get(files, path)
    assert answer.status in (400, 404), answer
    assert b"read = public" not in answer.body and b"SELECT" not in answer.body


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_only_reading(files, method):
    answer = get(files, "static/app.css", method=method, token=True)
    assert answer.status == 405 and answer.header("Allow") == "GET, HEAD"


def test_not_from_outside(files):
    assert files.http("GET", "/_hanji/apps/files/static/app.css", token=None).status == 404


def test_links_stay_in_the_folder(files):
    folder = pathlib.Path(files.hanji.settings["apps"]) / "files" / "static"
    secret = files.hanji.base / "secret"
    secret.write_text("secret")
    for name, target in (("in.css", "app.css"), ("out.css", "../../../secret"), ("absolute.css", str(secret)), ("up", "..")):
        if not (folder / name).is_symlink():
            os.symlink(target, folder / name)
    assert get(files, "static/in.css").body == CSS.encode()
    for path in ("static/out.css", "static/absolute.css", "static/up/app.ini"):
        assert get(files, path).status == 404, path
    for name in ("in.css", "out.css", "absolute.css", "up"):
        (folder / name).unlink()


def test_no_pipe_is_waited_for(files):
    pipe = pathlib.Path(files.hanji.settings["apps"]) / "files" / "static" / "pipe"
    os.mkfifo(pipe)
    try:
        assert get(files, "static/pipe").status == 404
    finally:
        pipe.unlink()


def test_what_nginx_may_not_read_hanji_sends_itself(files):
    path = pathlib.Path(files.hanji.settings["apps"]) / "files" / "static" / "closed.css"
    path.write_text(CSS)
    path.chmod(0o600)
    answer = get(files, "static/closed.css")
    assert answer.status == 200 and answer.body == CSS.encode() and answer.header("Cache-Control") == "no-cache"
    again = get(files, "static/closed.css", {"If-None-Match": answer.header("ETag")})
    assert again.status == 304
    path.unlink()


def test_who_may_read_the_app_may_read_its_files(site):
    site.app("files", FILES)
    site.app("files", FILES, ini="read = rights\n")
    harness.wait_for("the app to close", lambda: get(site, "static/app.css").status == 401)
    reader = site.hanji.new_token("files-reader", read=["/apps/files/"])
    other = site.hanji.new_token("files-other", read=["/apps/other/"])
    answer = get(site, "static/app.css", token=reader)
    assert answer.status == 200 and answer.header("Cache-Control") == "private, no-cache"
    assert get(site, "static/app.css?v=1", token=reader).header("Cache-Control") == "private, max-age=31536000, immutable"
    assert get(site, "static/app.css", token=other).status == 403
    site.app("files", FILES)


def test_without_a_web_server_that_sends(make_hanji):
    hanji = make_hanji()
    hanji.app("files", FILES)
    answer = hanji.ask("GET", "/apps/files/static/app.css")
    assert answer.status == 200 and answer.body == CSS.encode()
    assert re.fullmatch(r'"[0-9a-f]+-[0-9a-f]+"', answer.header("ETag"))
    again = hanji.ask("GET", "/apps/files/static/app.css", extra=(("HTTP_IF_NONE_MATCH", "W/" + answer.header("ETag")),))
    assert again.status == 304 and again.body == b""
    assert hanji.ask("GET", "/apps/files/static/data").body == FILES["static/data"]
    assert hanji.ask("GET", "/apps/files/static/nothing").body == b""
    assert hanji.ask("HEAD", "/apps/files/static/data").body == b""
