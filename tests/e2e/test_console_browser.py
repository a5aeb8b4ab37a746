"""The console in a browser: with a mouse, with the keyboard alone, on a phone, by two people at once."""
import itertools

import pytest

import pagecheck
from test_console import PAGES, put, url

NUMBERS = itertools.count(1)
PASSWORD = "correct horse"


@pytest.fixture
def place(site):
    return "browsed%d/" % next(NUMBERS)


@pytest.fixture
def console(site, browser):
    browser.log_in(site, "alice", PASSWORD)
    return site.url() + "/console/"


@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_for_everybody(site, browser, console, place, path):
    put(site, place + "a", b"x")
    put(site, place + "folder/a", b"x")
    browser.open(console + (path or ""))
    pagecheck.check_page(browser)


def test_the_page_of_a_document_is_for_everybody(site, browser, console, place):
    put(site, place + "notes.json", b'{"tea":["green","black"],"grams":50}', "application/json")
    browser.open(console + "doc?key=" + url(place + "notes.json"))
    pagecheck.check_page(browser)
    browser.shot("console-doc")
    browser.phone()
    browser.scheme("dark")
    browser.shot("console-doc-phone-dark")


def test_pictures_of_the_pages(site, browser, console, place):
    """For people to look at: build/screens/console-*.png."""
    for key in ("tea/green", "tea/black", "notes/todo", "a quite long name of a document that somebody made", "שלום"):
        put(site, place + key, b"x" * 2000)
    for path, name in (("", "home"), ("docs?in=" + url(place), "docs"), ("health", "health"), ("tokens", "tokens"), ("people", "people"),
                       ("changes", "changes"), ("apps", "apps"), ("search?q=" + url(place), "search"), ("edit", "edit")):
        browser.open(console + path)
        browser.desktop()
        browser.scheme("light")
        browser.shot("console-%s" % name)
        browser.phone()
        browser.scheme("dark")
        browser.shot("console-%s-phone-dark" % name)


def test_one_logs_in_where_one_wanted_to_go(site, browser):
    browser.expect(r"401")
    browser.open(site.url() + "/console/health")
    browser.see("Log in")
    browser.fill("Name", "alice")
    browser.fill("Password", PASSWORD)
    browser.press("Log in")
    browser.see("Time of a commit")
    assert browser.url == site.url() + "/console/health"


def test_write_look_edit_and_delete(site, browser, console, place):
    browser.open(console)
    browser.press("Documents")
    browser.press("New document")
    browser.fill("Key", place + "list")
    browser.fill("Text", "milk\nbread")
    browser.press("Save")
    browser.see("milk")
    assert site.get("/docs/" + place + "list").body == b"milk\nbread"
    browser.press("Edit")
    browser.fill("Text", "milk")
    browser.press("Save")
    browser.wait("saved", lambda: site.get("/docs/" + place + "list").body == b"milk")
    browser.find(".facts")
    browser.press("Delete")
    browser.see("It cannot be taken back.")
    browser.press("Delete")
    browser.see("There is nothing in this folder.")
    assert site.get("/docs/" + place + "list").status == 404


def test_two_people_edit_the_same_document(site, browser, other_browser, console, place):
    put(site, place + "a", b"first")
    other_browser.log_in(site, "alice", PASSWORD)
    for one in (browser, other_browser):
        one.open(console + "edit?key=" + url(place + "a"))
    browser.fill("Text", "of one")
    other_browser.fill("Text", "of the other")
    browser.press("Save")
    browser.see("of one")
    other_browser.expect(r"409")
    other_browser.press("Save")
    other_browser.see("Somebody changed this document meanwhile.")
    assert other_browser.find("#body").get_attribute("value") == "of the other"
    assert "of one" in other_browser.text("pre")
    pagecheck.check_page(other_browser)
    other_browser.shot("console-conflict")
    assert site.get("/docs/" + place + "a").body == b"of one"
    other_browser.press("Write mine in its place")
    other_browser.find(".facts")
    assert site.get("/docs/" + place + "a").body == b"of the other"


def test_a_refused_form_is_for_everybody(site, browser, console, place):
    browser.open(console + "edit?in=" + url(place))
    browser.expect(r"422")
    browser.fill("Key", place + "a.json")
    browser.fill("Type", "application/json")
    browser.fill("Text", "{oops")
    browser.press("Save")
    browser.see("The type says JSON, and this is none.")
    assert browser.find("#body").get_attribute("value") == "{oops"
    pagecheck.check_page(browser)


def test_changes_appear_by_themselves(site, browser, console, place):
    browser.open(console + "changes")
    browser.see("What changes appears here by itself.")
    put(site, place + "<b>new</b>?&", b"x")
    browser.see(place + "<b>new</b>?&")
    site.delete("/docs/" + place + "%3Cb%3Enew%3C/b%3E%3F&")
    browser.see("deleted")
    browser.wait("two rows", "return document.querySelectorAll('tr.fresh').length === 2")
    assert browser.text("tr.fresh td:last-child") == "deleted"
    pagecheck.check_page(browser)


def test_with_the_keyboard_alone(site, browser, console, place):
    put(site, place + "folder/deep", b"at last")
    browser.open(console)
    browser.keys("Tab", "Enter")
    assert browser.js("return document.activeElement.id") == "main"
    browser.tab_to("Find documents")
    browser.keys(place + "folder", "Enter")
    browser.see("Keys that begin so")
    browser.tab_to(place + "folder/deep")
    browser.keys("Enter")
    browser.see("at last")
    browser.tab_to("Edit")
    browser.keys("Enter")
    browser.find("textarea")
    browser.tab_to("Text")
    browser.keys("Ctrl+a", "typed", "Ctrl+s")
    browser.find(".facts")
    assert site.get("/docs/" + place + "folder/deep").body == b"typed"


def test_health_is_looked_at_while_it_is_open(site, browser, console):
    browser.open(console + "health")
    browser.wait("a first look", "return [...document.querySelectorAll('#history svg')].length >= 4")
    browser.desktop()
    browser.shot("console-health-live")
    pagecheck.check_page(browser)


def test_without_scripts(site, browser, console, place):
    put(site, place + "a", b"first")
    browser.cdp("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(console + "edit?key=" + url(place + "a"))
        browser.find("#body").send_keys(" and more")
        browser.find("main button").click()
        browser.find(".facts")
    finally:
        browser.cdp("Emulation.setScriptExecutionDisabled", value=False)
    assert site.get("/docs/" + place + "a").body == b"first and more"


def test_a_stored_page_does_not_act_in_the_console(site, browser, console, place):
    put(site, place + "evil", b"<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">", "text/html")
    put(site, place + "evil.svg", b"<svg xmlns='http://www.w3.org/2000/svg' onload='parent.document.title=1'><script>parent.document.title=1</script>"
        b"<rect width='10' height='10'/></svg>", "image/svg+xml")
    for key in ("evil", "evil.svg"):
        browser.open(console + "doc?key=" + url(place + key))
        assert "taken" not in browser.js("return document.title") and key in browser.js("return document.title")
    browser.wait("the picture", "return document.querySelector('figure img').naturalWidth > 0")
