"""Pages of apps: what names a template has, and what it may not do."""
import re

import pytest

import harness

FILES = {
    "_layout.html": "<title>{{$title}}{{_title}}{{/title}}</title><main>{{$content}}{{/content}}</main>",
    "_row.html": "<li>{{name}}</li>",
    "schema/001-t.sql": "CREATE TABLE tpl_item (id INTEGER PRIMARY KEY, name TEXT, n INTEGER, r REAL, b BLOB);\n"
                        "INSERT INTO tpl_item VALUES (1, '<ink>', 0, 0.0, x'00ff'), (2, NULL, 7, 2.5, NULL), (3, '', -1, 1e300, x'');",
    "all.get.sql": "-- set\nSELECT 'set' AS given, NULL AS nil, 0 AS zero;\n-- name: items\nSELECT * FROM tpl_item ORDER BY id;\nSELECT count(*) AS count FROM tpl_item;",
    "all.html": "{{<_layout}}{{$title}}All{{/title}}{{$content}}{{#items}}{{>_row}}{{/items}}[{{items.name}}|{{items.id}}|{{rows.count}}|{{given}}|{{nil}}|{{zero}}"
                "{{^zero}}!{{/zero}}]{{/content}}{{/_layout}}",
    "cells.get.sql": "SELECT * FROM tpl_item ORDER BY id;",
    "cells.html": "{{#rows}}({{name}}{{^name}}-{{/name}} {{n}}{{^n}}-{{/n}} {{r}}{{^r}}-{{/r}} {{b}}{{^b}}-{{/b}}){{/rows}}",
    "own.get.sql": "SELECT 1 AS x;",
    "own.html": "{{_user}}|{{_title}}|{{_app}}|{{_mount}}|{{_path}}|{{_method}}|{{_error}}|{{_input.q}}|{{_now}}|{{_request_id}}",
    "plain.html": "{{_title}} {{_path}} {{_input.q}}",
    "twice.get.sql": "SELECT id FROM tpl_item ORDER BY id;",
    "twice.html": "{{#rows}}{{id}}{{/rows}}{{^rows}}none{{/rows}}-{{#rows}}{{id}}{{/rows}}",
    "inner.get.sql": "SELECT id FROM tpl_item ORDER BY id;",
    "inner.html": "{{#rows}}{{id}}:{{#rows}}{{id}}{{/rows}} {{/rows}}",
    "nest.get.sql": "-- name: a\nSELECT 1 AS one UNION ALL SELECT 2;\n-- name: b\nSELECT 'x' AS two UNION ALL SELECT 'y';",
    "nest.html": "{{#a}}{{#b}}{{one}}{{two}} {{/b}}{{/a}}",
    "empty.get.sql": "SELECT 1 AS x WHERE 0;",
    "empty.html": "{{#rows}}some{{/rows}}{{^rows}}none{{/rows}}{{rows.x}}",
    "paged.get.sql": "-- page: 2 by id\nSELECT id FROM tpl_item;",
    "paged.html": "{{#next}}N{{/next}}{{#rows}}{{id}}{{/rows}}{{#next}}N{{/next}}{{#rows}}{{id}}{{/rows}}{{rows.id}}{{^rows}}none{{/rows}}{{^prev}}first{{/prev}}",
    "many.get.sql": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1001) SELECT i FROM n;",
    "many.html": "{{#rows}}{{i}}{{/rows}}",
    "deep.get.sql": "SELECT 1 AS x;",
    "deep.html": "{{#rows}}" * 17 + "x" + "{{/rows}}" * 17,
    "cross.get.sql": "-- name: a\nWITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT i FROM n;",
    "cross.html": "{{#a}}{{#a}}{{#a}}{{i}}{{/a}}{{/a}}{{/a}}",
    "json.get.sql": """SELECT '{"a":1}' AS "doc:json";""",
    "json.html": "{{#rows}}{{doc}}{{/rows}}",
    "say.get.sql": "SELECT 418 AS _status, '<b>no</b>' AS message WHERE :x = '1'; SELECT 202 AS _status, 1 AS one;",
    "say.html": "page {{rows.one}}",
}


@pytest.fixture(scope="module")
def tpl(site):
    site.app("tpl", FILES, "title = Tea & more\nread = public\n")
    return site


def page(site, path, status=200):
    answer = site.get("/apps/tpl/" + path, {"Accept": "text/html"}, token=None)
    assert answer.status == status, answer
    return answer.body.decode()


def test_layout_partials_first_rows_and_sets(tpl):
    assert page(tpl, "all") == "<title>All</title><main><li>&lt;ink&gt;</li><li></li><li></li>[&lt;ink&gt;|1|3|set||0!]</main>"


def test_cells(tpl):
    assert page(tpl, "cells") == "(&lt;ink&gt; 0- 0.0- AP8=)(- 7 2.5 -)(- -1 1e+300 -)"


def test_own_names(tpl):
    got = page(tpl, "own?q=%3Ca%3E").split("|")
    assert got[:8] == ["", "Tea &amp; more", "/apps/tpl/", "", "/apps/tpl/own", "GET", "", "&lt;a&gt;"]
    assert re.fullmatch(r"\d{10}", got[8]) and re.fullmatch("[0-9a-f]{32}", got[9])


def test_without_sql(tpl):
    assert page(tpl, "plain?q=1") == "Tea &amp; more /apps/tpl/plain 1"


def test_a_result_as_often_as_one_likes(tpl):
    assert page(tpl, "twice") == "123-123"
    assert page(tpl, "inner") == "1:123 2:123 3:123 "
    assert page(tpl, "nest") == "1x 1y 2x 2y "


def test_nothing(tpl):
    assert page(tpl, "empty") == "none"


def test_a_page(tpl):
    assert page(tpl, "paged") == "N12N121first"


def test_json_is_text(tpl):
    assert page(tpl, "json") == "{&quot;a&quot;:1}"


def test_what_the_sql_says(tpl):
    assert page(tpl, "say", 202) == "page 1"
    text = page(tpl, "say?x=1", 418)
    assert "&lt;b&gt;no&lt;/b&gt;" in text and "<b>no" not in text


@pytest.mark.parametrize("path,file", [("many", "tpl/many.get.sql:1"), ("deep", "tpl/deep.html")])
def test_faults(tpl, path, file):
    mark = tpl.hanji.mark()
    page(tpl, path, 500)
    assert file in harness.wait_for("the log", lambda: tpl.hanji.log_since(mark))


def test_a_template_that_has_no_end(tpl):
    """A thousand million rounds: stopped, and nobody else waits for it."""
    mark = tpl.hanji.mark()
    answer = tpl.get("/apps/tpl/cross?format=html")
    assert answer.status in (500, 503)
    assert "tpl/cross" in harness.wait_for("the log", lambda: tpl.hanji.log_since(mark))
    assert tpl.get("/health").status == 200
