"""What every page must be for those who use a keyboard, a screen reader, a phone, a dark room or a large print.

Each check takes a Browser with the page as it is now (also after something was opened or done on it) and returns its
faults, as lines.  `page_faults` makes all of them, in light and dark, on a desktop, a phone and 320 px.  Names and roles
are those that Chromium itself tells assistive programs.  What stands in no closed part (details, dialog) is seen only
when that is open.
"""
import pathlib

SCRIPT = pathlib.Path(__file__).with_suffix(".js").read_text(encoding="utf-8")

# Roles that a person has to know by a name.
NAMED = {"button", "link", "textbox", "searchbox", "checkbox", "radio", "combobox", "listbox", "slider", "spinbutton", "switch", "tab", "menuitem",
         "option", "dialog", "alertdialog", "image", "img", "meter", "progressbar", "DisclosureTriangle", "ColorWell", "Date", "DateTime", "InputTime"}


def ask(browser, function, *args):
    return browser.js("%s\nreturn %s(...arguments);" % (SCRIPT, function), *args)


def names(browser):
    """Every field, button, link, picture and dialog has a name; a field's is not only its placeholder."""
    nodes = browser.cdp("Accessibility.getFullAXTree")["nodes"]
    bare = [node for node in nodes if not node["ignored"] and node["role"]["value"] in NAMED and not node.get("name", {}).get("value", "").strip()]
    return ["no name: %s %s" % (node["role"]["value"], described(browser, node)) for node in bare] + ask(browser, "fields")


def described(browser, node):
    got = browser.cdp("DOM.describeNode", backendNodeId=node["backendDOMNodeId"])["node"]
    pairs = zip(got.get("attributes", [])[::2], got.get("attributes", [])[1::2])
    return "<%s%s>" % (got["nodeName"].lower(), "".join(' %s="%s"' % pair for pair in pairs))


def images(browser):
    """Pictures have an alt; drawings are hidden or said to be a picture."""
    return ask(browser, "images")


def headings(browser):
    """One h1, first, and no level left out."""
    return ask(browser, "headings")


def language(browser):
    """The language, a title, and nothing that keeps a person from enlarging the page."""
    return ask(browser, "language")


def ids(browser):
    """Ids are there once, and what is pointed at is there."""
    return ask(browser, "ids")


def tables(browser):
    """Tables have a caption, and heads that say of what."""
    return ask(browser, "tables")


def lists(browser):
    """Items are in lists, and nothing else is."""
    return ask(browser, "lists")


def landmarks(browser):
    """One main, and no text outside of all parts."""
    return ask(browser, "landmarks")


def roles(browser):
    """What acts as a control is reached by the keyboard, and stands in no other."""
    return ask(browser, "roles")


def contrast(browser):
    """Text has 4.5:1 to what is behind it (large 3:1), the edges of fields 3:1; behind: backgrounds of what it is in."""
    return ask(browser, "contrast")


def targets(browser, least=24, css=None):
    """What is pressed is that large (px); `css`: only these.  Not links within a sentence."""
    return ask(browser, "targets", least, css)


def reflow(browser, width=320):
    """At this width nothing sticks out.  The view is as before afterwards."""
    before = browser.size
    browser.view(width, 640)
    try:
        return ask(browser, "width")
    finally:
        browser.view(*before)


def focus(browser):
    """Tab goes through everything, in the order of the page, out at the end, and shows where it is."""
    expected = ask(browser, "walk_begin")
    faults, seen = [], []
    for _ in range(6 * len(expected) + 2):
        browser.keys("Tab")
        at, wrong, name = ask(browser, "walk_step")
        if seen and at == seen[-1] >= 0:
            continue # a date has several places
        if at == -1 or at in seen:
            break
        faults += wrong if at >= 0 else ["the focus went to %s" % name]
        seen.append(at)
    found = [at for at in seen if at >= 0]
    faults += ["Tab does not get to %s" % name for at, name in enumerate(expected) if at not in found]
    if found != sorted(found):
        faults.append("Tab goes another way than the page: %s" % [expected[at] for at in found])
    return faults


STRUCTURE = [names, images, headings, language, ids, tables, lists, landmarks, roles]


def is_dark(browser):
    """True where what is behind everything is nearly black."""
    return ask(browser, "ground") < 0.1


def page_faults(browser, touch=24):
    """All checks of the page that is open, as lines that say where; on a phone, what is pressed is to have `touch` px."""
    faults = ["%s: %s" % (check.__name__, fault) for check in STRUCTURE for fault in check(browser)]
    for view, least in ((browser.phone, touch), (browser.desktop, 24)):
        view()
        for scheme in ("dark", "light"):
            browser.scheme(scheme)
            where = "%s, %s: " % (view.__name__, scheme)
            faults += ["contrast, " + where + fault for fault in contrast(browser)]
            if is_dark(browser) != (scheme == "dark"):
                faults.append("scheme, %sthe page is not %s" % (where, scheme))
            if view == browser.desktop:
                faults += ["focus, " + where + fault for fault in focus(browser)]
        faults += ["targets, %s: %s" % (view.__name__, fault) for fault in targets(browser, least)]
    return faults + ["reflow: " + fault for width in (1280, 390, 320) for fault in reflow(browser, width)]


def check_page(browser, touch=24):
    """Fails with what `page_faults` finds."""
    faults = page_faults(browser, touch)
    assert not faults, "on %s:\n%s" % (browser.url, "\n".join(faults))
