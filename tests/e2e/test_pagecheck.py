"""The checks of pages find their faults: for each, pages with one fault, and one page without any.  And the browser's own help.
"""
import re

import pytest

import pagecheck

HEAD = ('<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        '<meta name="color-scheme" content="light dark"><title>A page</title>')
PAGE = HEAD + "<main><h1>A page</h1>%s</main>"

GOOD = HEAD + """
<style>
  :root { color-scheme: light dark } body { margin: 0; padding: 1rem; color: #222; background: #fff }
  button, input, select, textarea { min-height: 2.75rem; min-width: 2.75rem; font: inherit; border: 1px solid #767676 }
  .read { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap }
  .wide { overflow-x: auto } .wide table { width: 900px } a.skip { position: absolute; left: -999px } a.skip:focus { left: 0 }
  .card { background: linear-gradient(#fff, #eee); color: #333 } input[type=checkbox] { width: 2.75rem }
  .switch input { opacity: 0; position: absolute } .switch span { display: inline-block; padding: 1rem } :focus-visible + span { outline: 3px solid #00f }
  ::placeholder { color: #666 } nav a { display: inline-block; padding: 1rem } .faint { opacity: .9 } svg text { fill: #333 } summary { padding: 1rem }
  @media (prefers-color-scheme: dark) {
    body { color: #eee; background: #111 } .card { background: #222; color: #ddd } svg text { fill: #ddd } a { color: #9cf } ::placeholder { color: #ccc }
    :focus-visible + span { outline-color: #9cf }
  }
</style>
<a class="skip" href="#main">To the page</a>
<header><nav aria-label="Parts"><ul><li><a href="/">Home</a></ul></nav><nav aria-label="Pages"><a href="?2">Next</a></nav></header>
<main id="main"><h1>A page</h1><p class="card">Text, and a <a href="/x">link</a> in it.</p><h2>Part</h2>
<form><label for="a">Name</label> <input id="a" placeholder="such as Ann" aria-describedby="hint"> <span id="hint" class="faint">Any</span>
<label>Which <select><option>one</select></label> <label><input type="checkbox"> Yes</label>
<label class="switch"><input type="checkbox"><span>On</span></label>
<fieldset><legend>Size</legend><label><input type="radio" name="size"> S</label> <label><input type="radio" name="size"> L</label></fieldset>
<label>More <textarea></textarea></label> <input type="hidden" name="h"> <button>Send</button>
<button aria-label="Close"><svg width="10" height="10" aria-hidden="true"></svg></button> <button disabled style="color:#aaa">Off</button></form>
<svg role="img" aria-label="Rising" width="60" height="40"><text y="20">12</text></svg> <img alt="" src="data:image/gif;base64,R0lGODlhAQABAAAAACw=">
<h3>Deeper</h3><div class="wide" tabindex="0" role="region" aria-label="Numbers"><table><caption>Numbers</caption>
<thead><tr><th>A<th>B</thead><tr><th scope="row">1<td>2</table></div><p class="read">only read</p>
<details><summary>More</summary><a href="/y">y</a></details></main><footer><small>Small</small></footer>
"""

# (check, what is found, the page or the inside of its main)
FAULTS = [
    ("names", "no name: button", "<button></button>"),
    ("names", "no name: button", "<button><svg aria-hidden=true width=9 height=9></svg></button>"),
    ("names", "no name: link", '<a href="/"><img alt="" src="x"></a>'),
    ("names", "no name: textbox", "<input>"),
    ("names", "no name: combobox", "<select><option>a</select>"),
    ("names", "no name: textbox", "<textarea></textarea>"),
    ("names", "no name: checkbox", "<input type=checkbox>"),
    ("names", "no name: radio", "<input type=radio>"),
    ("names", "no name: slider", "<input type=range>"),
    ("names", "no name: dialog", "<dialog open>Well?</dialog>"),
    ("names", "no name: image", '<svg role="img" width="9" height="9"></svg>'),
    ("names", "no name: button", '<div role="button" tabindex="0"></div>'),
    ("names", "no name: progressbar", "<progress value=1 max=2></progress>"),
    ("names", r"no label: <input\[name=q", "<input name=q placeholder=Search>"),
    ("names", r"no label: <input\[type=file", "<input type=file>"),
    ("names", r"no label: <input\[type=date", "<input type=date>"),
    ("names", r"no label: <select", "<label></label><select><option>a</select>"),
    ("names", "no name: textbox", '<input aria-labelledby="nobody">'),
    ("images", "no alt: <img", "<img src=x>"),
    ("images", "alt is a file", '<img src=x alt="IMG_1.jpg">'),
    ("images", "neither role=img", "<svg width=9 height=9></svg>"),
    ("images", "no alt: <input", '<input type="image" src="x">'),
    ("headings", "0 h1", HEAD + "<main>x"),
    ("headings", "2 h1", "<h1>Another</h1>"),
    ("headings", "left out before <h3", "<h3>Deep</h3>"),
    ("headings", "left out before <h2", HEAD + "<main><h2>Early</h2><h1>Late</h1>"),
    ("headings", "empty: <h2", "<h2> </h2>"),
    ("language", 'lang=""', PAGE.replace(' lang="en"', "") % ""),
    ("language", 'lang="english!"', PAGE.replace('"en"', '"english!"') % ""),
    ("language", "no title", PAGE.replace("A page</title>", "</title>") % ""),
    ("language", "no <!doctype", PAGE.replace("<!doctype html>", "") % ""),
    ("language", "no <meta name=viewport", PAGE.replace("viewport", "port") % ""),
    ("language", "forbids to enlarge", PAGE.replace("width=device-width", "width=device-width,user-scalable=no") % ""),
    ("language", "forbids to enlarge", PAGE.replace("width=device-width", "maximum-scale=1.0") % ""),
    ("language", "reloads by itself", HEAD + '<meta http-equiv="Refresh" content="600">'),
    ("ids", "there already: <b#a", "<i id=a></i><b id=a></b>"),
    ("ids", "for=b names nothing", "<label for=b>B</label>"),
    ("ids", "aria-describedby=c names nothing", "<input aria-describedby='d c'><i id=d></i>"),
    ("ids", "leads nowhere", '<a href="#there">There</a>'),
    ("tables", "no th", "<table><caption>T</caption><tr><td>1</table>"),
    ("tables", "an empty th", "<table><caption>T</caption><thead><tr><th><th>a</thead></table>"),
    ("tables", "without scope", "<table><caption>T</caption><tr><th>a<td>1</table>"),
    ("tables", "no caption", "<table><thead><tr><th>a</thead></table>"),
    ("lists", "in no list", "<li>a"),
    ("lists", "not an li: <p", "<ul><p>a</p></ul>"),
    ("lists", "in no dl", "<dt>a</dt>"),
    ("landmarks", "0 main", HEAD + "<h1>A</h1>"),
    ("landmarks", "2 main", "</main><main>more"),
    ("landmarks", "outside of main.*<p> Lost", "</main><p>Lost</p>"),
    ("landmarks", "several nav", "<nav>a</nav><nav>b</nav>"),
    ("landmarks", "several nav", '<nav aria-label="x">a</nav><nav aria-label="x">b</nav>'),
    ("roles", "hidden, but the keyboard", '<p aria-hidden="true"><a href="/">x</a></p>'),
    ("roles", "does not get to it: <div", '<div role="button">Press</div>'),
    ("roles", "does not get to it: <span", '<span onclick="0">Press</span>'),
    ("roles", "inside of another control: <button", '<a href="/">x <button>y</button></a>'),
    ("roles", "no legend", "<fieldset><input></fieldset>"),
    ("contrast", r"text 4\.48:1 instead of 4\.5: <p> grey", '<p style="color:#777;background:#fff">grey'),
    ("contrast", r"text .*: <p> 50 %", '<p style="color:#0008">50 %'),
    ("contrast", r"text .*: <p> faint", '<div style="opacity:.5"><p style="color:#222">faint'),
    ("contrast", r"text .*: <b> on grey", '<div style="background:#666"><p><b>on grey</b>'),
    ("contrast", r"text .*: <b> through", '<div style="background:#000"><p style="background:#fff5;color:#000"><b>through</b>'),
    ("contrast", r"text .*: <p> gradient", '<p style="background:linear-gradient(#fff,#555);color:#222">gradient'),
    ("contrast", r"text is on a picture.*<p> picture", '<p style="background:url(data:image/gif;base64,R0lGODlhAQABAAAAACw=)">picture'),
    ("contrast", r"text 2\.\d*:1 instead of 3: <p> large", '<p style="font-size:24px;color:#999">large'),
    ("contrast", r"instead of 4\.5: <p> not large", '<p style="font-size:23px;color:#888">not large'),
    ("contrast", r"text .*: <p> other words", '<p style="color:oklch(80% .1 120)">other words'),
    ("contrast", r"text .*: <text> 12", '<svg role=img aria-label=x width=40 height=40><text y=20 fill="#aaa">12</text></svg>'),
    ("contrast", r"what is typed", '<input style="color:#999;background:#fff" value=x>'),
    ("contrast", r"placeholder", "<style>::placeholder{color:#bbb}</style><input placeholder=p>"),
    ("contrast", r"field's edge", '<input style="border:1px solid #ddd;background:#fff">'),
    ("contrast", r"field's edge", '<input style="border:0;background:#fff">'),
    ("contrast", r"text .*: <button> Press", '<button style="background:#9c9;color:#fff">Press</button>'),
    ("contrast", r"text .*: <a\[href=/\]> Go", '<a href="/" style="color:#88f">Go</a>'),
    ("targets", r"20×20 px instead of 24: <button", '<button style="width:20px;height:20px;padding:0;border:0">x</button>'),
    ("targets", r"instead of 24: <a", '<a href="/" style="font-size:12px;display:inline-block">x</a>'),
    ("targets", r"instead of 24: <a", '<nav><a href="/">alone in its line</a></nav>'),
    ("targets", r"13×13 px instead of 24: <input\[type=checkbox", '<input type=checkbox aria-label="x">'),
    ("targets", r"instead of 24: <summary", '<details><summary style="font-size:10px">x</summary></details>'),
    ("targets", r"instead of 24: <div\[role=button", '<div role="button" tabindex="0" style="font-size:9px">x</div>'),
    ("reflow", r"px wide where 320.*<p", '<p style="width:330px">wide'),
    ("reflow", r"px wide where 320.*<b>", "<b>%s</b>" % ("w" * 80)),
    ("reflow", r"px wide where 320.*<table", "<table><tr>%s</table>" % ("<td>cell</td>" * 30)),
    ("focus", "cannot be seen on <button", "<style>:focus{outline:none}</style><button>x</button>"),
    ("focus", "cannot be seen on <button", "<style>:focus{outline:2px solid #eee}</style><button style='background:#fff'>x</button>"),
    ("focus", "cannot be seen on <button", "<style>button{outline:2px solid #00f}</style><button>x</button>"),
    ("roles", "tabindex above 0: <button", "<button>x</button><button tabindex=1>y</button>"),
    ("focus", "another way than the page", "<button onkeydown='c.focus();return false'>x</button><button>y</button>"
     "<button id=c onkeydown='previousSibling.focus();return false'>z</button>"),
    ("focus", r"does not get to <button> y", '<button onkeydown="return false">x</button><button>y</button>'),
    ("focus", r"the focus is behind", "<button>x</button><p style='position:fixed;inset:0;background:#fff'>over"),
    ("focus", r"the focus is behind", '<button style="position:absolute;left:-500px">x</button>'),
    ("focus", r"the focus went to <div>", '<div></div><script>document.querySelector("div")'
     '.attachShadow({mode:"open"}).innerHTML="<button>s</button>"</script>'),
]


@pytest.fixture
def blank(the_browser):
    """For many small pages one after the other: not made fresh for each, and its console says nothing here."""
    if the_browser.url != "about:blank":
        the_browser.fresh()
    return the_browser


def test_nothing_is_found_on_a_good_page(browser):
    pagecheck.check_page(browser.show(GOOD), touch=44)


FADES = '<style>@keyframes fade { from { color: %s } } p { color: %s; background: #fff; animation: fade 60s linear both }</style><p>fades'


def test_what_fades_is_judged_by_its_end(blank):
    assert pagecheck.contrast(blank.show(PAGE.replace("%s", FADES % ("#fff", "#000")))) == []
    assert pagecheck.contrast(blank.show(PAGE.replace("%s", FADES % ("#000", "#ddd")))) != []


@pytest.mark.parametrize("check,found,html", FAULTS, ids=lambda value: re.sub(r"\W+", "-", value)[:40])
def test_each_fault_is_found(blank, check, found, html):
    faults = getattr(pagecheck, check)(blank.show(html if html.startswith(("<!", "<html")) else PAGE % html))
    assert [fault for fault in faults if re.search(found, fault)], faults
