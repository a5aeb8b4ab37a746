"""Headless Chromium for the tests of pages.

One browser is shared by all tests (fixture `browser`; `other_browser` is a second one, with cookies of its own).  It
starts in about a second, in a folder of the tests, reaches nothing but loopback, and is stopped by its pid.  Every wait
has a deadline.  What a page says on its console as a warning or an error (refusals of its Content-Security-Policy, scripts
that threw, things that could not be loaded) fails the test, unless it told `expect` so.
"""
import base64
import pathlib
import re
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chromium.remote_connection import ChromiumRemoteConnection
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import fastcgi
import harness

SCREENS = harness.REPOSITORY / "build" / "screens"
WAIT_S = 10.0

# --no-sandbox: the tests run as root, and in containers.  A proxy that is not there is asked for everything but loopback.
FLAGS = ("--headless=new --no-sandbox --disable-dev-shm-usage --disable-gpu --no-first-run --no-default-browser-check"
         " --no-zygote --disable-breakpad --disable-background-networking --disable-component-update"
         " --disable-default-apps --disable-sync --disable-extensions --disable-back-forward-cache --mute-audio --force-color-profile=srgb"
         " --disk-cache-size=16000000 --lang=en-US --proxy-server=http://127.0.0.1:9").split()

PRESSABLE = "a[href],button,summary,input[type=submit],input[type=button],[role=button],[role=tab],[role=menuitem]"
FIELDS = "input:not([type=hidden]),select,textarea,[contenteditable],[role=textbox]"

# Elements that may have the name: Chromium is asked for the names of these only.
CANDIDATES = """
const [css, name] = arguments, of = element => element ? element.textContent + ' ' : '';
return [...document.querySelectorAll(css)].filter(one => one.checkVisibility() && (of(one) + [...one.labels || []].map(of).join('')
  + (one.getAttribute('aria-labelledby') || '').split(/\\s+/).map(id => of(document.getElementById(id))).join('')
  + ['aria-label', 'title', 'value', 'placeholder'].map(what => one.getAttribute(what)).join(' ')
  + [...one.querySelectorAll('[alt],[aria-label]')].map(part => part.alt + ' ' + part.ariaLabel).join(' '))
  .replace(/\\s+/g, ' ').includes(name));"""


class Browser:
    """One Chromium and the driver that steers it, below `folder`.  Not for several threads."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.process = self.driver = None
        self.expected = []
        self.size = None

    # life

    def start(self):
        self.folder.mkdir(parents=True)
        port = harness.free_port()
        program = shutil.which("chromedriver")
        assert program, "chromedriver is missing: run `make deps`"
        with open(self.folder / "driver.log", "ab") as log:
            self.process = subprocess.Popen([program, "--port=%d" % port], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env=harness.clean_env(HOME=self.folder, XDG_CONFIG_HOME=self.folder, TMPDIR=self.folder,
                                                                  XDG_CACHE_HOME=self.folder), start_new_session=True)
        try:
            url = "http://127.0.0.1:%d" % port
            harness.wait_for("chromedriver", lambda: self.driver_answers(url))
            options = Options()
            for flag in (*FLAGS, "--user-data-dir=%s" % (self.folder / "profile")):
                options.add_argument(flag)
            options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
            self.driver = webdriver.Remote(ChromiumRemoteConnection(url, "goog", "chrome", ignore_proxy=True), options=options)
            self.driver.set_page_load_timeout(20)
            self.driver.set_script_timeout(WAIT_S)
        except BaseException:
            self.stop()
            raise
        return self

    def driver_answers(self, url):
        assert self.process.poll() is None, (self.folder / "driver.log").read_text()[-2000:]
        try:
            direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            return direct.open(url + "/status", timeout=2).status == 200
        except (urllib.error.URLError, OSError):
            return False

    def stop(self):
        if self.process is None:
            return
        process, self.process = self.process, None
        left = set(family(process.pid)) | self.mentioned()
        try:
            if self.driver is not None:
                self.driver.quit()
        finally:
            process.send_signal(signal.SIGTERM)
            deadline = time.monotonic() + WAIT_S
            while any(map(harness.alive, left)) and time.monotonic() < deadline:
                time.sleep(0.01)
            for pid in filter(harness.alive, left):
                harness.kill(pid)
            process.wait(WAIT_S)

    def mentioned(self):
        """Programs with this folder in their command line: also those that have left the family, such as crash handlers."""
        return {pid for pid in harness.processes() if any(bytes(self.folder) in word for word in harness.command_line(pid))}

    def fresh(self):
        """As a browser that was never used: no cookies, nothing stored, an empty page of a desktop's size, light."""
        driver, self.expected = self.driver, [r"/favicon\.ico "]
        here, *others = driver.window_handles
        for other in others:
            driver.switch_to.window(other)
            driver.close()
        driver.switch_to.window(here)
        driver.get("about:blank")
        self.cdp("Storage.clearDataForOrigin", origin="*", storageTypes="all")
        self.cdp("Network.clearBrowserCookies")
        self.cdp("Network.clearBrowserCache")
        self.desktop()
        self.scheme("light")
        driver.get_log("browser")
        return self

    def expect(self, *patterns):
        """What matches one of these may be on the console without failing the test."""
        self.expected += patterns

    def faults(self):
        """What was said on the console since the last call and was not expected, as lines."""
        return [line for line in ("%(level)s %(source)s: %(message)s" % entry for entry in self.driver.get_log("browser")
                                  if entry["level"] in ("SEVERE", "WARNING"))
                if not any(re.search(pattern, line) for pattern in self.expected)]

    # seeing

    def open(self, url):
        """Goes there and waits until it is loaded; a second time, too, where only what is behind the # differs."""
        self.driver.get(url)
        return self

    def show(self, html):
        """Puts another text in the place of the page that is open; faster than `open`, for what needs no server."""
        self.cdp("Page.setDocumentContent", frameId=self.cdp("Page.getFrameTree")["frameTree"]["frame"]["id"], html=html)
        return self

    def js(self, script, *args):
        """What the script `return`s; `args` are its `arguments`.  The page's policy does not concern it."""
        return self.driver.execute_script(script, *args)

    def cdp(self, command, **args):
        """One command of the Chrome DevTools Protocol, to the page."""
        return self.driver.execute("executeCdpCommand", {"cmd": command, "params": args})["value"]

    def wait(self, what, condition, timeout=WAIT_S):
        """Waits until condition() is true and returns what it gave; a string is a script that returns it."""
        def now():
            try:
                return self.js(condition) if isinstance(condition, str) else condition()
            except StaleElementReferenceException:
                return None
        return harness.wait_for(what, now, timeout, pause=0.02)

    def all(self, css):
        """The elements that are there now; perhaps none."""
        return self.driver.find_elements(By.CSS_SELECTOR, css)

    def find(self, css, timeout=WAIT_S):
        """The first such element, when there is one."""
        return self.wait(css, lambda: self.all(css), timeout)[0]

    def gone(self, css, timeout=WAIT_S):
        """Waits until there is no such element."""
        self.wait("no %s" % css, lambda: not self.all(css), timeout)

    def named(self, css, name, timeout=WAIT_S):
        """The first visible element of these that has exactly this accessible name, when there is one."""
        def found():
            return [one for one in self.js(CANDIDATES, css, name) if one.accessible_name == name]
        return self.wait("%s named %r" % (css, name), found, timeout)[0]

    def text(self, css="body"):
        """What a person reads there."""
        return self.find(css).text

    def see(self, text, timeout=WAIT_S):
        """Waits until the page shows this text."""
        self.wait("%r on the page" % text, lambda: text in self.js("return document.body.innerText"), timeout)

    def at(self, end, timeout=WAIT_S):
        """Waits until a page is there whose address ends so.  (After a click or a key it may come later.)"""
        self.wait("an address that ends in %s" % end, lambda: self.url.endswith(end) and self.js("return document.readyState === 'complete'"),
                  timeout)
        return self

    @property
    def url(self):
        return self.driver.current_url

    # doing

    def press(self, name):
        """Clicks the button or link of this name, brought to where nothing that stays in its place lies over it."""
        one = self.named(PRESSABLE, name)
        self.js("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", one)
        one.click()

    def fill(self, name, text):
        """Puts the text into the field of this name, in the place of what is there, as somebody who types."""
        field = self.named(FIELDS, name)
        field.clear()
        field.send_keys(text)

    def keys(self, *keys):
        """Presses keys where the focus is: "Tab", "Shift+Tab", "Enter", "ArrowDown", "Escape", or characters of a text."""
        for key in keys:
            held, last = re.fullmatch(r"((?:(?:Shift|Ctrl|Alt)\+)*)(.+)", key, re.S).groups()
            held = held.split("+")[:-1]
            chain = ActionChains(self.driver, duration=0)
            for one in held:
                chain.key_down(key_code(one))
            chain.send_keys(*key_code(last))
            for one in reversed(held):
                chain.key_up(key_code(one))
            chain.perform()

    def tab_to(self, name, most=60):
        """Presses Tab until the focus is on what has this name, and returns it."""
        for _ in range(most):
            self.keys("Tab")
            here = self.focused()
            if here is not None and here.accessible_name == name:
                return here
        raise AssertionError("%d times Tab, and never at %r" % (most, name))

    def focused(self):
        """The element that has the focus, or None."""
        return self.js("return document.activeElement === document.body ? null : document.activeElement")

    def log_in(self, site, user, password):
        """Gives the browser a session of this person.  Not by the form: of that, nginx lets a few through in a minute."""
        got = fastcgi.ask(site.hanji.socket, "POST", site.mount + "/auth/login",
                          body=urllib.parse.urlencode({"user": user, "password": password}).encode(),
                          extra={"CONTENT_TYPE": "application/x-www-form-urlencoded", "SCRIPT_NAME": site.mount})
        assert got.status == 200, got
        name, value = got.header("Set-Cookie").split(";")[0].split("=", 1)
        self.cdp("Network.setCookie", url=site.url(), name=name, value=value, path=(site.mount or "") + "/", httpOnly=True, sameSite="Lax")

    # what it is seen on

    def view(self, width, height, touch=False, scale=1):
        self.size = (width, height, touch, scale)
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=touch)
        self.cdp("Emulation.setTouchEmulationEnabled", enabled=touch, maxTouchPoints=5 if touch else 1)

    def desktop(self):
        self.view(1280, 800)

    def phone(self):
        self.view(390, 844, touch=True, scale=2)

    def scheme(self, scheme, motion="no-preference"):
        """"light" or "dark"; `motion` may be "reduce"."""
        self.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme},
                                                         {"name": "prefers-reduced-motion", "value": motion}])

    def shot(self, name):
        """Writes build/screens/NAME.png, the whole page, for people to look at."""
        SCREENS.mkdir(parents=True, exist_ok=True)
        page = self.cdp("Page.getLayoutMetrics")["cssContentSize"]
        width, height = max(page["width"], self.size[0]), min(max(page["height"], self.size[1]), 8000)
        got = self.cdp("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                       clip={"x": 0, "y": 0, "width": width, "height": height, "scale": 1})
        (SCREENS / ("%s.png" % name)).write_bytes(base64.b64decode(got["data"]))


def family(pid):
    """The process and all that came of it."""
    found = [pid]
    for one in found:
        found += harness.children(one)
    return found


def key_code(name):
    """What WebDriver calls the key of this name; a text is itself."""
    names = {"Ctrl": Keys.CONTROL, "Enter": Keys.ENTER, "Space": Keys.SPACE, "PageDown": Keys.PAGE_DOWN, "PageUp": Keys.PAGE_UP,
             "ArrowUp": Keys.ARROW_UP, "ArrowDown": Keys.ARROW_DOWN, "ArrowLeft": Keys.ARROW_LEFT, "ArrowRight": Keys.ARROW_RIGHT}
    return names.get(name) or getattr(Keys, name.upper(), name) if len(name) > 1 else name
