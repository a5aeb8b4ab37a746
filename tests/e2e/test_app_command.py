"""hanji app: new, check, run, list, total, with the server up and down."""
import pathlib
import sqlite3

import pytest

import harness


@pytest.fixture
def idle(make_hanji):
    """A configuration with a folder of apps, and no server."""
    hanji = make_hanji(start=False)
    hanji.apps = pathlib.Path(hanji.settings["apps"])
    return hanji


def put(folder, files):
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


# new

def test_a_new_app_is_whole_and_compiles(idle):
    assert idle.command("app", "new", "shop").stdout == "%s/shop\n" % idle.apps
    files = {str(path.relative_to(idle.apps / "shop")) for path in (idle.apps / "shop").rglob("*") if path.is_file()}
    assert {"app.ini", "schema/001-first.sql", "index.get.sql", "index.html", "add.post.sql", "_layout.html", "static/style.css"} <= files
    assert not [path for path in (idle.apps / "shop").rglob("*") if path.is_file() and "@NAME@" in path.read_text()]
    assert idle.command("app", "check").stdout == "shop: ok\n"


def test_nothing_is_overwritten(idle):
    put(idle.apps / "shop", {"mine.html": "mine"})
    done = idle.command("app", "new", "shop", ok=False)
    assert done.returncode == 1 and "File exists" in done.stderr
    assert [path.name for path in idle.apps.rglob("*")] == ["shop", "mine.html"]


@pytest.mark.parametrize("name", ["Shop", "my-app", "1st", "a" * 31, "docs", "console", "../x", "", "a/b"])
def test_names_that_are_none(idle, name):
    done = idle.command("app", "new", name, ok=False)
    assert done.returncode == 2 and "a name has 1 to 30 small letters" in done.stderr
    assert list(idle.apps.iterdir()) == []


BUNDLED = [app for app in ("scores", "household") if (harness.REPOSITORY / "handlers" / "bundled" / app).is_dir()]


@pytest.mark.parametrize("app", BUNDLED)
def test_a_copy_of_a_bundled_app(idle, app):
    idle.command("app", "new", "--from", app)
    assert idle.command("app", "check", app).stdout == "%s: ok\n" % app


def test_a_copy_of_nothing(idle):
    done = idle.command("app", "new", "--from", "nonsense", ok=False)
    assert done.returncode == 1 and "there is no app nonsense" in done.stderr and list(idle.apps.iterdir()) == []


@pytest.mark.parametrize("app", BUNDLED)
def test_a_copy_of_another_name_has_tables_of_its_own(idle, app):
    idle.command("app", "new", "--from", app)
    idle.command("app", "new", "--from", app, "mine")
    assert idle.command("app", "check").stdout == "".join("%s: ok\n" % name for name in sorted((app, "mine")))
    text = "".join(path.read_text() for path in (idle.apps / "mine").rglob("*.sql"))
    assert "mine_" in text and app + "_" not in text and "apps/%s/" % app not in text


def test_without_a_folder_of_apps(make_hanji):
    hanji = make_hanji(start=False, apps=None)
    for words in (["new", "shop"], ["check"], ["check", "shop"], ["list"]):
        done = hanji.command("app", *words, ok=False)
        assert done.returncode == 1 and "names no folder of apps" in done.stderr, words


# check

GOOD = {"schema/001-a.sql": "CREATE TABLE shop_item (id INTEGER PRIMARY KEY, name TEXT);\n",
        "index.get.sql": "SELECT id, name FROM shop_item;\n",
        "index.html": "{{#rows}}{{name}}{{/rows}}\n"}


def test_faults_have_file_and_line(idle):
    put(idle.apps / "shop", {**GOOD, "index.get.sql": "SELECT 1;\nSELECT nme FROM shop_item;\n", "list.html": "\n{{#rows}}\n",
                             "app.ini": "title = x\nred = public\n", "add.post.sql": "-- form: nowhere\nSELECT 1;\n"})
    done = idle.command("app", "check", "shop", ok=False)
    assert done.returncode == 1
    for start in ("shop/app.ini:2: unknown key \"red\"", "shop/index.get.sql:2: no such column: nme", "shop/list.html:",
                  "shop/add.post.sql: -- form: nowhere"):
        assert [line for line in done.stdout.splitlines() if line.startswith(start)], (start, done.stdout)


@pytest.mark.parametrize("files, said", [
    ({"schema/001-a.sql": "CREATE TABLE shop_item (id;\n"}, "shop/schema/001-a.sql:1: "),
    ({"schema/001-a.sql": "CREATE TABLE other (id);\n"}, "shop/schema/001-a.sql:1: "),
    ({"schema/1-a.sql": ""}, "shop/schema/1-a.sql: a file of schema/ is called NNN-name.sql"),
    ({"x.html": "{{>_row}}"}, "shop/x.html:1: there is no _row.html"),
    ({"x.html": "{{>row}}", "row.html": ""}, "shop/x.html:1: there is no row.html: a partial's name begins with '_'"),
    ({"item/:id.html": "", "item/:name.get.sql": "SELECT 1"}, "it has the same addresses as item/:id.html"),
    ({"x.get.sql": "DELETE FROM shop_item"}, "shop/x.get.sql:1: "),
    ({"x.get.sql": "SELECT hash FROM token"}, "shop/x.get.sql:1: "),
    ({"x.get.sql": "ATTACH 'x' AS y"}, "shop/x.get.sql:1: "),
    ({"list.sql": "SELECT 1"}, "shop/list.sql: a script is called"),
    ({"x.css": ""}, "shop/x.css: files that are sent as they are stand in static/"),
])
def test_one_fault(idle, files, said):
    put(idle.apps / "shop", {**GOOD, **files})
    done = idle.command("app", "check", "shop", ok=False)
    assert done.returncode == 1 and said in done.stdout


def test_all_are_checked(idle):
    put(idle.apps / "good", {"index.html": "x"})
    put(idle.apps / "bad", {"index.html": "{{#x}}"})
    put(idle.apps / "Odd", {"index.html": "x"})
    done = idle.command("app", "check", ok=False)
    assert done.returncode == 1
    assert "good: ok" in done.stdout and "bad/index.html:1: " in done.stdout and "Odd: an app's name has" in done.stdout


def test_a_folder_anywhere(idle, tmp_path):
    put(tmp_path / "shop", GOOD)
    assert idle.command("app", "check", tmp_path / "shop").stdout == "shop: ok\n"
    assert idle.command("app", "check", tmp_path / "nothing", ok=False).returncode == 1


def test_checking_touches_nothing(make_hanji, tmp_path):
    hanji = make_hanji()
    put(tmp_path / "shop", GOOD)
    with sqlite3.connect(hanji.database) as db:
        before = list(db.iterdump())
        assert hanji.command("app", "check", tmp_path / "shop").stdout == "shop: ok\n"
        assert list(db.iterdump()) == before


# list, total, usage

def test_list(idle):
    put(idle.apps / "shop", {**GOOD, "app.ini": "title = My shop\nread = public\nwrite = users\n", "add.post.sql": "SELECT 1"})
    put(idle.apps / "bad", {"index.html": "{{#x}}"})
    assert idle.command("app", "list").stdout == ("name\ttitle\tread\twrite\troutes\tstate\n"
                                                  "bad\tbad\trights\trights\t1\t1 fault\n"
                                                  "shop\tMy shop\tpublic\tusers\t2\tok\n")


def test_totals_add_up(idle):
    text = idle.command("app", "total", "shop_item", "price", "n").stdout
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE shop_item (id INTEGER PRIMARY KEY, price INTEGER, n INTEGER)")
    db.execute("INSERT INTO shop_item VALUES (1, 5, NULL)")
    db.executescript(text)
    db.executescript("INSERT INTO shop_item VALUES (2, 7, 1), (3, NULL, 2); UPDATE shop_item SET price = price + 1;"
                     "DELETE FROM shop_item WHERE id = 1;")
    kept = db.execute("SELECT count, sum_price, sum_n FROM shop_item_total").fetchall()
    assert kept == db.execute("SELECT count(*), sum(price), sum(n) FROM shop_item").fetchall() == [(2, 8, 3)]


def test_totals_as_an_app_has_them(idle):
    text = idle.command("app", "total", "shop_item", "id").stdout
    put(idle.apps / "shop", {**GOOD, "schema/002-total.sql": text, "total.get.sql": "SELECT count, sum_id FROM shop_item_total"})
    assert idle.command("app", "check", "shop").stdout == "shop: ok\n"


@pytest.mark.parametrize("words", [[], ["nonsense"], ["new"], ["new", "a", "b"], ["check", "a", "b"], ["list", "x"], ["total"],
                                   ["total", "a b"], ["total", "t", "x;y"], ["run", "shop"], ["run", "--get", "shop", "x"],
                                   ["run", "shop", "x", "novalue"], ["run", "shop", "x", "=v"]])
def test_wrong_usage(idle, words):
    done = idle.command("app", *words, ok=False)
    assert done.returncode == 2 and "usage: hanji" in done.stderr and done.stdout == ""


# run

def test_run_through_the_server_and_without(make_hanji):
    hanji = make_hanji(start=False)
    hanji.command("app", "new", "shop")
    assert hanji.command("app", "run", "shop", "/").stdout.startswith('{"rows":[]')
    assert '"name":"Milk & tea=1"' in hanji.command("app", "run", "--post", "shop", "add", "name=Milk & tea=1").stdout
    hanji.start()
    assert '"name":"Brot"' in hanji.command("app", "run", "--post", "shop", "add", "name=Brot").stdout
    listed = hanji.command("app", "run", "shop", "").stdout
    assert '"name":"Milk & tea=1"' in listed and '"name":"Brot"' in listed
    refused = hanji.command("app", "run", "--post", "shop", "add", "name= ", ok=False)
    assert refused.returncode == 1 and "A name is needed" in refused.stdout and "status is 422" in refused.stderr
    assert hanji.command("app", "run", "shop", "nowhere", ok=False).returncode == 1
    long = "x" * 3000
    assert long in hanji.command("app", "run", "--post", "shop", "add", "name=" + long).stdout


def test_run_without_leaves_nothing(idle):
    idle.command("app", "new", "shop")
    before = set(pathlib.Path("/tmp").glob("hanji-run-*"))
    idle.command("app", "run", "shop", "/")
    assert set(pathlib.Path("/tmp").glob("hanji-run-*")) <= before
    assert not (idle.base / "hanji.db.control").exists()
