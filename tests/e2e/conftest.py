"""Fixtures: a shared site (nginx + hanji), servers of one's own, and after every test the question: does it still live?
"""
import fcntl
import itertools
import os
import pathlib
import re
import shutil
import signal

import pytest

import harness
import shim
from browser import Browser
from contract import CONTRACT

HERE = pathlib.Path(__file__).resolve().parent
NUMBERS = itertools.count(1)
FAILED = pytest.StashKey()


def terminated(*_):
    """Fixtures still stop what they started, also in the other processes of pytest-xdist."""
    for pid in harness.children(os.getpid()):
        if b"execnet" in b" ".join(harness.command_line(pid)):
            os.kill(pid, signal.SIGTERM)
    pytest.exit("terminated", 143)


def pytest_configure():
    signal.signal(signal.SIGTERM, terminated)
    if not harness.BINARY.exists():
        pytest.exit("%s is missing: run `make` first" % harness.BINARY, 2)


@pytest.fixture(scope="session")
def base():
    path = harness.make_base()
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="session")
def certificate(base):
    return harness.make_certificate(base)


@pytest.fixture(scope="session")
def site(base, certificate):
    """The shared site.  Its body limit is below nginx's, so that hanji's own is met."""
    site = harness.Site(base / "site", certificate, max_body="300k", public="pub/,open/", basic="feeds/", sites="web/")
    site.hanji.command("key", "new")
    site.start()
    site.hanji.command("user", "add", "alice", "--read", "/", "--write", "/", stdin="correct horse\n")
    yield site
    site.stop()


@pytest.fixture
def box():
    """The path of a collection that no other test uses."""
    return "/docs/t%d/" % next(NUMBERS)


def stop_all(made):
    """Stops each, whatever becomes of the others; then fails with the first fault."""
    faults = []
    for one in made:
        try:
            one.stop()
        except AssertionError as fault:
            faults.append(fault)
    if faults:
        raise faults[0]


@pytest.fixture
def make_hanji(base):
    """Makes servers of one's own; they are stopped after the test."""
    made = []

    def make(start=True, **settings):
        hanji = harness.Hanji(base / ("own%d" % next(NUMBERS)), **settings)
        made.append(hanji)
        if start:
            hanji.start()
            hanji.token = hanji.new_token("full", read=["/"], write=["/"])
        return hanji
    yield make
    stop_all(made)


@pytest.fixture
def make_site(base, certificate):
    """Makes sites of one's own; they are stopped after the test."""
    made = []

    def make(mount="", **settings):
        site = harness.Site(base / ("own%d" % next(NUMBERS)), certificate, mount, **settings)
        made.append(site)
        return site.start()
    yield make
    stop_all(made)


@pytest.fixture(scope="session")
def slow(base):
    """The library that makes syncs slow, or fail, or the disk full; see shim.py."""
    return shim.Shim(base)


def only_browser(base, name):
    one = Browser(base / name).start()
    yield one
    one.stop()


@pytest.fixture(scope="session")
def the_browser(base):
    yield from only_browser(base, "browser")


@pytest.fixture(scope="session")
def the_other_browser(base):
    yield from only_browser(base, "other-browser")


def used(one, request):
    """Fresh for this test; afterwards its console is judged, and a test that failed leaves a picture."""
    yield one.fresh()
    if request.node.stash.get(FAILED, False):
        one.shot("failed-%s" % re.sub(r"\W+", "-", request.node.name))
    faults = one.faults()
    assert not faults, "on the console:\n" + "\n".join(faults[:20])


@pytest.fixture
def browser(the_browser, request):
    """Headless Chromium (browser.py)."""
    yield from used(the_browser, request)


@pytest.fixture
def other_browser(the_other_browser, request):
    """A second one, of somebody else."""
    yield from used(the_other_browser, request)


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.get_closest_marker("alone") is not None)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    """One `alone` has the room for itself.  While it waits for the others to leave, it holds the door, so that none goes in."""
    if not hasattr(item.config, "workerinput"):
        yield
        return
    with open(HERE / "pytest.ini") as door, open(HERE / "nginx.conf.in") as room:     # two files that all processes have
        fcntl.flock(door, fcntl.LOCK_EX)
        fcntl.flock(room, fcntl.LOCK_EX if item.get_closest_marker("alone") else fcntl.LOCK_SH)
        fcntl.flock(door, fcntl.LOCK_UN)
        yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if call.when == "call":
        item.stash[FAILED] = report.failed


@pytest.fixture(autouse=True)
def as_documented():
    """Every answer that the test's clients got was as docs/openapi.yaml says."""
    yield
    faults, CONTRACT.faults = CONTRACT.faults, []
    assert not faults, "not as in docs/openapi.yaml:\n" + "\n".join(faults[:20])


def is_whole(session):
    """Every test ran, none was left out or cut short."""
    option = session.config.option
    return (not option.keyword and not option.markexpr and not option.collectonly and not session.shouldfail
            and not session.shouldstop and [pathlib.Path(word).resolve() for word in session.config.args] == [HERE])


def pytest_sessionfinish(session, exitstatus):
    if hasattr(session.config, "workeroutput"):     # one of several processes of pytest-xdist
        session.config.workeroutput["contract"] = CONTRACT.report()
    elif exitstatus in (0, 1) and is_whole(session):
        session.config.contract = CONTRACT.verdict()
        if session.config.contract:
            session.exitstatus = 1


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    """What another process has seen counts here."""
    if not error:
        CONTRACT.take_report(node.workeroutput["contract"])


def pytest_terminal_summary(terminalreporter, config):
    for line in getattr(config, "contract", []):
        terminalreporter.write_line("FAILED contract: " + line, red=True)


@pytest.fixture(autouse=True)
def still_alive():
    """After each test every running server has the worker it had before, answers, and has logged no error."""
    yield
    for hanji in list(harness.Hanji.running):
        hanji.judge()
