"""The bundled app `household` in two browsers, as a family uses it."""
import pathlib
import signal
import time

import pytest

import bundled
import harness
import pagecheck
from test_household import TABLES

PATHS = ["", "chores", "money", "people"]


@pytest.fixture(scope="module")
def site(base, certificate):
    site = bundled.start_site(base / "household-browser", certificate, "household")
    yield site
    site.stop()


@pytest.fixture(autouse=True)
def empty(site):
    link = site.hanji.sqlite(readonly=False)
    for table in TABLES:
        link.execute("DELETE FROM household_%s" % table)
    link.execute("INSERT INTO household_person (id, name) VALUES (1, 'Anna'), (2, 'Ben')")
    link.close()


def lay_in(site):
    """A week of a family."""
    link = site.hanji.sqlite(readonly=False)
    link.executescript("""
        INSERT INTO household_item (id, name, note, state, person, at) VALUES
            (1, 'Milk', '2 l', 'wanted', 1, 1), (2, 'Rye bread', NULL, 'wanted', 2, 2),
            (3, 'Something with a long name, from the shop at the corner', NULL, 'wanted', NULL, 3),
            (4, 'Eggs', NULL, 'basket', 2, 4), (5, 'Tea', NULL, 'past', 1, 5);
        INSERT INTO household_chore (id, name, days, due, turn, done, by, due_before) VALUES
            (1, 'Bins', 7, date('now', 'localtime', '-2 days'), 1, NULL, NULL, NULL),
            (2, 'Clean the bathroom', 14, date('now', 'localtime', '+14 days'), 2, strftime('%s'), 1, date('now', 'localtime')),
            (3, 'Water the plants', 3, date('now', 'localtime'), NULL, NULL, NULL, NULL);
        INSERT INTO household_expense (id, what, cents, payer, day, receipt, receipt_type) VALUES
            (1, 'Groceries', 4250, 1, '2026-11-28', NULL, NULL), (2, 'Heating', 12000, 2, '2026-11-29', NULL, NULL);
        INSERT INTO household_share (expense, person, cents) VALUES (1, 1, 2125), (1, 2, 2125), (2, 1, 6000), (2, 2, 6000);
    """)
    link.close()


def go(site, browser, path="", person=None):
    if person is not None:
        browser.cdp("Network.setCookie", url=site.url() + "/apps/household/", name="household_person", value=str(person),
                    path="/apps/household/", httpOnly=True, sameSite="Lax")
    browser.open(site.url() + "/apps/household/" + path)


def wanted(browser):
    return browser.js("return [...document.querySelectorAll('[aria-label=\"To buy\"] .name')].map(one => one.textContent)")


def live(browser):
    """Waits until the page hears of changes; what was changed before has been fetched."""
    browser.wait("the stream", "return document.body.dataset.live === 'yes'")


@pytest.mark.parametrize("path", PATHS + ["item/1", "chore/1", "expense/1"])
def test_a_page_is_for_everybody(site, browser, path):
    lay_in(site)
    go(site, browser, path, person=1)
    for details in browser.all("summary"):
        details.click()
    name = "household-" + (path.partition("/")[0] or "shopping")
    for scheme in ("light", "dark"):
        browser.scheme(scheme)
        browser.desktop()
        browser.shot("%s-%s" % (name, scheme))
        browser.phone()
        browser.shot("%s-phone-%s" % (name, scheme))
    browser.desktop()
    browser.scheme("light")
    pagecheck.check_page(browser, touch=44)


@pytest.mark.parametrize("path", PATHS)
def test_an_empty_page_is_as_well_built(site, browser, path):
    link = site.hanji.sqlite(readonly=False)
    link.execute("DELETE FROM household_person")
    link.close()
    go(site, browser, path)
    browser.shot("household-empty-" + (path or "shopping"))
    assert [fault for check in pagecheck.STRUCTURE for fault in check(browser)] == []


def test_adding_keeps_the_focus_in_the_field(site, browser):
    go(site, browser, person=1)
    browser.fill("What do we need?", "Milk")
    browser.keys("Enter")
    browser.see("Milk")
    browser.wait("an empty field with the focus", "return document.activeElement.id === 'item' && document.activeElement.value === ''")
    browser.keys("Bread", "Enter")
    browser.wait("both", lambda: wanted(browser) == ["Milk", "Bread"])


def test_a_tick_puts_it_into_the_basket_and_back(site, browser):
    lay_in(site)
    go(site, browser, person=1)
    tick = browser.named("button", "Milk 2 l Anna")
    assert tick.get_attribute("aria-pressed") == "false"
    tick.click()
    browser.wait("Milk in the basket", lambda: "Milk" not in wanted(browser))
    assert site.hanji.rows("SELECT state FROM household_item WHERE id = 1") == [("basket",)]
    browser.press("Milk 2 l Anna")
    browser.wait("Milk on the list", lambda: "Milk" in wanted(browser))


def test_an_item_is_changed_and_deleted(site, browser):
    lay_in(site)
    go(site, browser)
    browser.press("Change Milk")
    browser.fill("Name", "Oat milk")
    browser.fill("Note: how much, which one", "3 l")
    browser.press("Save")
    browser.at("/apps/household/")
    assert "Oat milk" in wanted(browser)
    browser.press("Change Oat milk")
    browser.press("Delete")
    browser.at("/apps/household/")
    assert "Oat milk" not in wanted(browser)


def test_two_see_what_the_other_does(site, browser, other_browser):
    go(site, browser, person=1)
    go(site, other_browser, person=2)
    live(browser), live(other_browser)
    browser.fill("What do we need?", "Milk")
    began = time.monotonic()
    browser.keys("Enter")
    other_browser.see("Milk")
    assert time.monotonic() - began < 1.0 + 2 * harness.sanitized()
    other_browser.press("Milk Anna")
    browser.wait("the tick", "return !!document.querySelector('[aria-pressed=true]')")


def test_what_somebody_types_stays(site, browser):
    go(site, browser)
    live(browser)
    browser.fill("What do we need?", "half a wo")
    link = site.hanji.sqlite(readonly=False)
    link.execute("INSERT INTO household_item (name, state, at) VALUES ('Cheese', 'wanted', 1)")
    link.execute("INSERT INTO doc (key, type, body) VALUES ('apps/household/shopping', 'text/plain', 'x')"
                 " ON CONFLICT (key) DO UPDATE SET body = body || 'x'")
    link.close()
    browser.see("Cheese")
    browser.keys("rd")
    assert browser.js("return document.activeElement.value") == "half a word"
    assert "Cheese: to buy" in browser.js("return document.getElementById('news').textContent")


def test_an_error_keeps_what_was_typed(site, browser):
    lay_in(site)
    browser.expect("status of 409")
    go(site, browser)
    browser.fill("What do we need?", "milk")
    browser.keys("Enter")
    browser.see("Milk is on the list already.")
    assert browser.js("return document.getElementById('item').value") == "milk"
    assert browser.find("#error").get_attribute("role") == "alert"
    browser.fill("What do we need?", "Honey")
    browser.keys("Enter")
    browser.see("Honey")
    browser.gone("#error .error")


def test_a_lost_connection_shows_and_mends(base, certificate, browser):
    site = bundled.start_site(base / "household-lost", certificate, "household")
    try:
        go(site, browser)
        live(browser)
        browser.expect("Failed to load resource", "ERR_")
        port = site.nginx.port
        site.nginx.stop()
        browser.fill("What do we need?", "Milk")
        browser.keys("Enter")
        browser.see("Not saved: there is no connection. Try again.")
        browser.see("No connection. What you see may be old.")
        assert browser.js("return document.getElementById('item').value") == "Milk"
        site.nginx.start()
        assert port == site.nginx.port
        browser.wait("the connection", "return !document.getElementById('offline').textContent")
        browser.press("Add")
        browser.wait("Milk", lambda: wanted(browser) == ["Milk"])
    finally:
        go_away(browser)
        site.stop()


def go_away(browser):
    browser.open("about:blank")


def test_a_new_server_does_not_disturb(base, certificate, browser):
    site = bundled.start_site(base / "household-new", certificate, "household")
    try:
        go(site, browser)
        live(browser)
        browser.expect("Failed to load resource", "ERR_")
        old = site.hanji.worker()
        site.hanji.known_worker = None
        site.hanji.process.send_signal(signal.SIGUSR2)
        harness.wait_for("the old one to leave", lambda: not harness.alive(old), 20)
        site.http("POST", "/apps/household/add", b"item=Milk", {"Content-Type": "application/x-www-form-urlencoded"}, token=None)
        browser.see("Milk")
        assert browser.js("return document.getElementById('offline').textContent") == ""
    finally:
        go_away(browser)
        site.stop()


def test_by_keyboard_alone(site, browser):
    lay_in(site)
    go(site, browser, person=1)
    browser.tab_to("Milk 2 l Anna")
    browser.keys("Space")
    browser.wait("Milk in the basket", lambda: "Milk" not in wanted(browser))
    browser.wait("the focus on what was pressed", "return document.activeElement.dataset.key === 'tick-1'")
    browser.tab_to("Paid: clear the basket")
    browser.keys("Enter")
    browser.gone("[aria-pressed=true]")
    browser.tab_to("What do we need?")
    browser.keys("Soap", "Enter")
    browser.see("Soap")
    browser.tab_to("Chores")
    browser.keys("Enter")
    browser.at("/chores")
    browser.tab_to("Done: Bins")
    browser.keys("Enter")
    browser.see("in 7 days")


def test_a_chore_is_added_done_and_undone(site, browser):
    go(site, browser, "chores", person=2)
    browser.find("summary").click()
    browser.fill("What has to be done?", "Bins")
    browser.press("Add the chore")
    browser.see("today")
    browser.press("Done: Bins")
    browser.see("in 7 days")
    browser.press("Undo: Bins")
    browser.see("today")


def test_an_error_is_seen_beside_the_form(site, browser):
    browser.expect("status of 422")
    go(site, browser, "money", person=1)
    browser.phone()
    browser.find("summary").click()
    browser.fill("What for?", "Groceries")
    browser.fill("Amount, such as 12.50", "lots")
    browser.press("Add it")
    browser.see("The amount is a number like 12.50")
    top, bottom, height = browser.js("const r = document.querySelector('.said .error').getBoundingClientRect();"
                                     " return [r.top, r.bottom, document.querySelector('nav').getBoundingClientRect().top]")
    assert 0 <= top < bottom <= height
    assert browser.js("return document.getElementById('amount').value") == "lots"
    browser.shot("household-error-phone")
    browser.fill("Amount, such as 12.50", "3")
    browser.press("Add it")
    browser.see("Groceries")
    browser.gone(".said .error")


def choose_file(browser, css, path):
    root = browser.cdp("DOM.getDocument")["root"]["nodeId"]
    browser.cdp("DOM.setFileInputFiles", nodeId=browser.cdp("DOM.querySelector", nodeId=root, selector=css)["nodeId"], files=[str(path)])


def test_money_with_a_receipt(site, browser, tmp_path):
    photo = pathlib.Path(tmp_path) / "receipt.png"
    go(site, browser, "people")
    browser.cdp("Emulation.setDeviceMetricsOverride", width=300, height=300, deviceScaleFactor=1, mobile=False)
    browser.driver.save_screenshot(str(photo))
    browser.desktop()
    go(site, browser, "money", person=1)
    browser.find("summary").click()
    browser.fill("What for?", "Groceries")
    browser.fill("Amount, such as 12.50", "12,50")
    choose_file(browser, "#photo", photo)
    browser.press("Add it")
    browser.see("+6.25")
    browser.press("Groceries")
    browser.wait("the photo", "return document.querySelector('img.receipt').naturalWidth === 300")
    browser.press("Back to the money")
    browser.press("Paid: Ben pays Anna 6.25")
    browser.wait("even", "return [...document.querySelectorAll('[aria-label=Balances] .amount')].every(one => one.textContent === '0.00')")


def test_who_one_is(site, browser):
    go(site, browser)
    browser.press("Say who you are")
    browser.press("I am Ben")
    browser.see("You are Ben")
    browser.press("Shopping")
    browser.see("You are Ben")


def test_without_a_script(site, browser):
    browser.cdp("Emulation.setScriptExecutionDisabled", value=True)
    try:
        go(site, browser, person=1)
        browser.find("#item").send_keys("Milk\n")
        browser.find("[data-key^=tick]").click()
        browser.find("[aria-pressed=true]")
        browser.find("[data-key=clear]").click()
        browser.gone("[aria-pressed=true]")
    finally:
        browser.cdp("Emulation.setScriptExecutionDisabled", value=False)
    assert site.hanji.rows("SELECT name, state FROM household_item") == [("Milk", "past")]
