"""Apps are read again when their files rest; what does not compile never takes a place."""
import os
import pathlib
import shutil
import signal
import sqlite3
import threading
import time

import pytest

import harness

INI = "read = public\nwrite = public\n"
FAULT = r"an app does not compile|an app has a fault"


@pytest.fixture
def hanji(make_hanji):
    hanji = make_hanji()
    hanji.apps = pathlib.Path(hanji.settings["apps"])
    hanji.expected.append(FAULT)
    return hanji


def put(folder, files):
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


def get(hanji, path="/apps/shop/", **more):
    return hanji.ask("GET", path, **more)


def says(hanji, text, path="/apps/shop/"):
    return harness.wait_for("%s at %s" % (text, path), lambda: text.encode() in get(hanji, path).body)


def logged(hanji, text):
    return harness.wait_for("%r in the log" % text, lambda: text in hanji.log.read_text())


def sql(value):
    return "SELECT '%s' AS v;\n" % value


@pytest.mark.smoke
def test_a_folder_that_appears_is_an_app(hanji):
    assert get(hanji).status == 404
    put(hanji.apps / "shop", {"app.ini": INI, "index.get.sql": sql("one")})
    says(hanji, "one")


def test_a_folder_that_goes_takes_the_app_along(hanji):
    hanji.app("shop", {"index.get.sql": sql("one"), "schema/001-a.sql": "CREATE TABLE shop_a (x);"})
    shutil.rmtree(hanji.apps / "shop")
    harness.wait_for("the app to be gone", lambda: get(hanji).status == 404)
    with sqlite3.connect(hanji.database) as db:
        assert db.execute("SELECT count(*) FROM shop_a").fetchone() == (0,)
    put(hanji.apps / "shop", {"app.ini": INI, "schema/001-a.sql": "CREATE TABLE shop_a (x);", "index.get.sql": sql("again")})
    says(hanji, "again")


def test_renamed_over_written_in_place_and_moved_in(hanji):
    hanji.app("shop", {"index.get.sql": sql("one")})
    (hanji.apps / "shop" / ".index.new").write_text(sql("two"))
    os.rename(hanji.apps / "shop" / ".index.new", hanji.apps / "shop" / "index.get.sql")
    says(hanji, "two")
    with open(hanji.apps / "shop" / "index.get.sql", "r+") as file:
        file.write(sql("six"))
    says(hanji, "six")
    put(hanji.base / "next", {"app.ini": INI, "index.get.sql": sql("whole")})
    shutil.rmtree(hanji.apps / "shop")
    os.rename(hanji.base / "next", hanji.apps / "shop")
    says(hanji, "whole")


def test_a_new_folder_within_an_app(hanji):
    hanji.app("shop", {"index.get.sql": sql("one")})
    put(hanji.apps / "shop", {"a/b/deep.get.sql": sql("deep")})
    says(hanji, "deep", "/apps/shop/a/b/deep")
    put(hanji.apps / "shop", {"a/b/deep.get.sql": sql("deeper")})
    says(hanji, "deeper", "/apps/shop/a/b/deep")


def test_the_old_form_serves_while_the_new_one_is_broken(hanji):
    hanji.app("shop", {"index.get.sql": sql("one")})
    put(hanji.apps / "shop", {"index.get.sql": "SELEC 'two';\n"})
    logged(hanji, 'at="shop/index.get.sql:1"')
    assert b"one" in get(hanji).body
    put(hanji.apps / "shop", {"index.get.sql": sql("two")})
    says(hanji, "two")


def test_broken_at_the_first_look(hanji):
    put(hanji.apps / "shop", {"app.ini": INI, "index.get.sql": "SELEC 1;\n"})
    logged(hanji, 'at="shop/index.get.sql:1"')
    answer = get(hanji)
    assert answer.status == 500 and "does not compile" in answer.body.decode() and b"SELEC" not in answer.body
    put(hanji.apps / "shop", {"index.get.sql": sql("one")})
    says(hanji, "one")


def test_a_broken_app_does_not_keep_the_server_from_starting(make_hanji):
    hanji = make_hanji(start=False)
    hanji.expected.append(FAULT)
    put(pathlib.Path(hanji.settings["apps"]) / "bad", {"app.ini": INI, "index.get.sql": "SELEC 1;\n"})
    put(pathlib.Path(hanji.settings["apps"]) / "good", {"app.ini": INI, "index.get.sql": sql("one")})
    hanji.start()
    assert hanji.ask("GET", "/apps/bad/").status == 500
    assert b"one" in hanji.ask("GET", "/apps/good/").body


def write_slowly(target, parts):
    """Writes the parts one after the other, and returns the longest time (s) in which nothing happened to the file."""
    longest, last = 0, time.monotonic()
    with open(target, "w", buffering=1) as file:
        for part in parts:
            file.write(part)
            file.flush()
            for _ in range(3):
                time.sleep(0.025)
                os.utime(target)
                longest, last = max(longest, time.monotonic() - last), time.monotonic()
    return longest


def test_a_half_written_file_is_never_served(hanji):
    """On a machine so busy that the file did rest meanwhile (0.1 s), it is written once more."""
    hanji.app("shop", {"index.get.sql": sql("old")})
    seen, done = set(), threading.Event()

    def look():
        while not done.is_set():
            seen.add(get(hanji).body)
    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        for _ in range(50):
            seen.clear()
            rested = write_slowly(hanji.apps / "shop" / "index.get.sql",
                                  ("SELECT 'half' AS v", "\nUNION ALL SELECT 'most'", "\nUNION ALL SELECT 'new';\n")) >= 0.08
            says(hanji, "new")
            if not rested:
                break
            put(hanji.apps / "shop", {"index.get.sql": sql("old")})
            says(hanji, "old")
    finally:
        done.set()
        watcher.join()
    assert not rested, "never a quiet moment"
    assert not [body for body in seen if b"half" in body and b"new" not in body], seen


def test_tables_come_with_a_file(hanji):
    hanji.app("shop", {"schema/001-a.sql": "CREATE TABLE shop_a (x);", "index.get.sql": "SELECT count(*) AS n FROM shop_a;"})
    put(hanji.apps / "shop", {"schema/002-b.sql": "ALTER TABLE shop_a ADD COLUMN y DEFAULT 7; INSERT INTO shop_a (x) VALUES (1);",
                              "index.get.sql": "SELECT x, y FROM shop_a;"})
    says(hanji, '"y":7')
    with sqlite3.connect(hanji.database) as db:
        assert db.execute("SELECT app, number, file FROM app_schema").fetchall() == [("shop", 1, "001-a.sql"), ("shop", 2, "002-b.sql")]


def test_tables_are_not_made_for_what_does_not_compile(hanji):
    hanji.app("shop", {"index.get.sql": sql("one")})
    put(hanji.apps / "shop", {"schema/001-a.sql": "CREATE TABLE shop_a (x);", "index.get.sql": "SELECT y FROM shop_a;"})
    logged(hanji, "no such column: y")
    with sqlite3.connect(hanji.database) as db:
        assert db.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'shop_a'").fetchone() == (0,)
    assert b"one" in get(hanji).body


def test_a_file_of_the_schema_that_was_changed_is_told(hanji):
    hanji.app("shop", {"schema/001-a.sql": "CREATE TABLE shop_a (x);", "index.get.sql": "SELECT count(*) AS n FROM shop_a;"})
    put(hanji.apps / "shop", {"schema/001-a.sql": "CREATE TABLE shop_a (x, y);", "index.get.sql": "SELECT 'on' AS v FROM shop_a;"})
    logged(hanji, "it was changed after it was run")
    put(hanji.apps / "shop", {"index.get.sql": sql("goes on")})
    says(hanji, "goes on")


def test_one_app_does_not_reload_another(hanji):
    hanji.app("shop", {"index.get.sql": sql("one")})
    hanji.app("other", {"index.get.sql": sql("two")})
    before = hanji.log.read_text().count('detail="other,')
    put(hanji.apps / "shop", {"index.get.sql": sql("three")})
    says(hanji, "three")
    assert hanji.log.read_text().count('detail="other,') == before


def test_folders_that_are_no_apps(hanji):
    hanji.expected.append("a folder cannot be an app")
    for name in ("Shop", "docs", "a-b"):
        put(hanji.apps / name, {"app.ini": INI, "index.get.sql": sql("one")})
    put(hanji.apps / ".hidden", {"app.ini": INI, "index.get.sql": sql("one")})
    (hanji.apps / "file").write_text("x")
    hanji.app("last", {"index.get.sql": sql("one")})
    for name in ("Shop", "docs", "a-b", ".hidden", "file"):
        assert hanji.ask("GET", "/apps/%s/" % name).status == 404, name


def test_hup_reads_them_again(make_hanji):
    hanji = make_hanji(start=False, apps=str(harness.make_base() / "later"))
    shutil.rmtree(hanji.settings["apps"])
    hanji.expected.append("the folder of apps cannot be read")
    hanji.start()
    put(pathlib.Path(hanji.settings["apps"]) / "shop", {"app.ini": INI, "index.get.sql": sql("one")})
    hanji.process.send_signal(signal.SIGHUP)
    says(hanji, "one")
    put(pathlib.Path(hanji.settings["apps"]) / "shop", {"index.get.sql": sql("two")})
    says(hanji, "two")      # it is watched from then on
    shutil.rmtree(pathlib.Path(hanji.settings["apps"]).parent)


def test_changes_under_load(hanji):
    hanji.app("shop", {"index.get.sql": sql("v0")})
    wrong, done = [], threading.Event()

    def look():
        while not done.is_set():
            answer = get(hanji)
            if answer.status != 200:
                wrong.append(answer)
    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for i in range(1, 6):
            put(hanji.apps / "shop", {"index.get.sql": sql("v%d." % i)})
            says(hanji, "v%d." % i)
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert not wrong


def test_twenty_apps_take_little_memory(make_hanji):
    hanji = make_hanji(start=False)
    hanji.start()
    hanji.stop()
    sizes = []
    for count in (0, 20):
        for i in range(count):
            hanji.command("app", "new", "many%d" % i)
        hanji.start()
        sizes.append(harness.resident_bytes(hanji.worker()))
        hanji.stop()
    assert harness.sanitized() or sizes[1] - sizes[0] <= 2 << 20, sizes
