"""The pages that hanji makes itself, and a document, in a browser: for everybody, and one can log in and out."""
import pytest

import pagecheck

PASSWORD = "correct horse"          # of alice, see conftest.py


def login(browser, password=PASSWORD):
    browser.fill("Name", "alice")
    browser.fill("Password", password)
    browser.press("Log in")


def shots(browser, name):
    """Pictures for people to look at: as on a desktop, on a phone, and in the dark."""
    browser.shot(name)
    browser.phone()
    browser.scheme("dark")
    browser.shot(name + "-phone-dark")
    browser.scheme("light")
    browser.desktop()


def log_in_page(site, browser):
    browser.open(site.url() + "/auth/login")


def refused_page(site, browser):
    browser.expect("status of 401")
    log_in_page(site, browser)
    login(browser, "wrong wrong")
    browser.see("do not belong together")


def logged_in_page(site, browser):
    browser.log_in(site, "alice", PASSWORD)
    log_in_page(site, browser)
    browser.see("You are logged in as alice.")


def error_page(site, browser):
    browser.expect("status of 404")
    browser.open(site.url() + "/docs/pub/nothing-here")


def error_with_login_page(site, browser):
    browser.expect("status of 401")
    browser.open(site.url() + "/docs/private/x?a=b")


PAGES = [log_in_page, refused_page, logged_in_page, error_page, error_with_login_page]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.__name__)
def test_a_page_is_for_everybody(site, browser, page):
    page(site, browser)
    shots(browser, page.__name__.replace("_", "-"))
    pagecheck.check_page(browser, touch=44)


def test_log_in_and_out_by_keys(site, browser):
    log_in_page(site, browser)
    assert browser.focused().accessible_name == "Name", "one can type at once"
    browser.keys("alice", "Tab", PASSWORD, "Enter")
    browser.see("You are logged in as alice.")
    browser.tab_to("Log out")
    browser.keys("Enter")
    assert browser.named("input", "Name").get_attribute("value") == ""


def test_after_a_refusal_one_types_the_password_again(site, browser):
    refused_page(site, browser)
    assert browser.named("input", "Name").get_attribute("value") == "alice"
    assert browser.focused().accessible_name == "Password" and browser.focused().get_attribute("value") == ""
    browser.keys(PASSWORD, "Enter")
    browser.see("You are logged in as alice.")


def test_an_error_leads_to_the_login_and_back(site, browser):
    site.put("/docs/private/paper", b"hello, paper", {"Content-Type": "text/plain"})
    browser.expect("status of 401")
    browser.open(site.url() + "/docs/private/paper?a=b")
    browser.press("Log in")
    login(browser)
    browser.see("hello, paper")
    browser.at("/docs/private/paper?a=b")


def test_a_document_as_a_page(site, browser):
    """What the README stores, and a page that somebody wrote; neither may run a script."""
    site.put("/docs/pub/hello", b"hello, paper", {"Content-Type": "text/plain"})
    assert browser.open(site.url() + "/docs/pub/hello").text() == "hello, paper"
    site.put("/docs/pub/page", b"<!doctype html><title>x</title><p>hello<script>document.body.innerHTML = 'bad'</script>",
             {"Content-Type": "text/html"})
    browser.expect("sandboxed")
    assert browser.open(site.url() + "/docs/pub/page").text() == "hello"


def test_a_cookie_is_for_one_browser(site, browser, other_browser):
    logged_in_page(site, browser)
    other_browser.open(site.url() + "/auth/login")
    assert "logged in" not in other_browser.text()
