"""The tests' own browser: what a page does wrong is noticed, and nothing of one test is left for the next."""
import re

import pytest

HTML = {"Content-Type": "text/html; charset=utf-8"}
PAGE = '<!doctype html><html lang="en"><meta charset="utf-8"><title>A page</title>%s'


@pytest.fixture
def show(site, box, browser):
    """Stores a page and opens it; below /docs/web/ it may act as one, in `pub` it is sandboxed."""
    def show(inside, where="web"):
        path = box.replace("/docs/", "/docs/%s/" % where) + "page"
        assert site.put(path, (PAGE % inside).encode(), HTML).status in (201, 204)
        return browser.open(site.url() + path)
    return show


WRONG = [
    ("web", r"SEVERE javascript: .*out of milk", "<script>throw Error('out of milk')</script>"),
    ("web", r"SEVERE javascript: .*out of milk", "<script>Promise.reject(Error('out of milk'))</script>"),
    ("web", r"SEVERE console-api: .*sour", "<script>console.error('sour')</script>"),
    ("web", r"WARNING console-api: .*sour", "<script>console.warn('sour')</script>"),
    ("web", r"SEVERE network: .*/nothing.* 404 ", "<img alt='' src='/nothing'>"),
    ("web", r"SEVERE network: http://192\.0\.2\.1/x .*PROXY", "<img alt='' src='http://192.0.2.1/x'>"),
    ("web", r"SEVERE network: .*example.*PROXY", "<script>fetch('http://example.org/').catch(() => 0)</script>"),
    ("pub", r"SEVERE security: .*Content Security Policy", "<img alt='' src='x.png'>"),
    ("pub", r"SEVERE security: .*sandboxed", "<script>1</script>"),
]


@pytest.mark.parametrize("where,found,inside", WRONG, ids=[row[1][:40] for row in WRONG])
def test_what_is_wrong_on_the_console_is_a_fault(show, browser, where, found, inside):
    show(inside, where)
    faults = []
    browser.wait(found, lambda: faults.extend(browser.faults()) or any(re.search(found, fault) for fault in faults))
    browser.expect("PROXY")


def test_what_is_expected_is_none(show, browser):
    browser.expect("sour")
    show("<script>console.error('sour'); console.error('bitter'); console.log('fine')</script>")
    assert [fault.split()[-1] for fault in browser.faults()] == ['"bitter"']


@pytest.mark.parametrize("time", ["first", "second"])
def test_nothing_is_left_from_the_test_before(show, browser, time):
    show("<p>hello")
    assert browser.js("return document.cookie + localStorage.length + innerWidth + matchMedia('(prefers-color-scheme: dark)').matches") == "01280false"
    browser.js("document.cookie = 'a=' + arguments[0]; localStorage.a = 1; window.open('about:blank')", time)
    browser.phone()
    browser.scheme("dark")


def test_two_browsers_are_two_people(show, browser, other_browser):
    url = show("<p>hello").url
    browser.js("document.cookie = 'who=ann'")
    assert other_browser.open(url).js("return document.cookie") == ""


def test_a_phone(show, browser):
    browser.phone()
    show('<meta name="viewport" content="width=device-width">')
    assert browser.js("return [innerWidth, innerHeight, devicePixelRatio, navigator.maxTouchPoints, matchMedia('(pointer: coarse)').matches]") == [
        390, 844, 2, 5, True]
    browser.desktop()
    assert browser.js("return [innerWidth, navigator.maxTouchPoints]") == [1280, 0]


def test_dark_and_still(show, browser):
    def seen():
        return browser.js("return [matchMedia('(prefers-color-scheme: dark)').matches, matchMedia('(prefers-reduced-motion)').matches]")
    show("<p>hello")
    browser.scheme("dark", motion="reduce")
    assert seen() == [True, True]
    browser.scheme("light")
    assert seen() == [False, False]


FORM = """<form action="?sent"><label for="n">Name</label><input id="n" name="n" value="old"><label>Tick <input type="checkbox" name="t"></label>
<button>Send</button><button name="x" value="1">Send twice</button></form><a href="?left"><img alt="Leave" src="data:,"></a>"""


def test_a_form_by_names(show, browser):
    browser.expect("data:")
    show(FORM)
    browser.fill("Name", "new")
    browser.named("input", "Tick").click()
    browser.press("Send")
    browser.at("?n=new&t=on")
    browser.press("Leave")
    browser.at("?left")


def test_a_form_by_keys(show, browser):
    show(FORM.replace("<img", "<b aria-label='Leave'></b><img alt='' hidden"))
    browser.tab_to("Name")
    browser.keys("Ctrl+a", "new+x", "Tab", "Space", "Tab", "Shift+Tab")
    assert browser.focused().accessible_name == "Tick"
    browser.tab_to("Send twice")
    browser.keys("Enter")
    browser.at("?n=new%2Bx&t=on&x=1")


def test_waiting_ends(show, browser):
    show("<p>hello<script>setTimeout(() => document.querySelector('p').remove(), 200)</script>")
    browser.see("hello")
    browser.gone("p")
    for vain in (lambda: browser.see("goodbye", timeout=0.2), lambda: browser.find("q", timeout=0.2), lambda: browser.named("a", "x", timeout=0.2),
                 lambda: browser.wait("never", "return false", timeout=0.2), lambda: browser.at('x', timeout=0.2),
                 lambda: browser.tab_to("nothing", most=3)):
        with pytest.raises(AssertionError):
            vain()
