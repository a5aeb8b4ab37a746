"""The folder of copies that nginx sends: who can read it, and what hanji says of that when it starts."""
import grp
import itertools
import os

import pytest

import harness

NUMBERS = itertools.count(1)
# A group that a folder can be given to and that is not hanji's own; one who is in no second group has none.
OTHERS = [33] if os.geteuid() == 0 else [group for group in os.getgroups() if group != os.getegid()][:1]


@pytest.fixture
def started(base):
    """start(folder, **settings) gives a server and what it said of the folder."""
    made = []

    def start(folder, **settings):
        hanji = harness.Hanji(base / ("b%d" % next(NUMBERS)), blobs=folder, **settings)
        made.append(hanji)
        hanji.start()
        return hanji, [line for line in hanji.log_since(0).splitlines() if "doubt=" in line or "no folder" in line]
    yield start
    for hanji in made:
        hanji.stop()


def folder_of(base, mode, group=None):
    folder = base / ("folder%d" % next(NUMBERS))
    folder.mkdir()
    if group is not None:
        os.chown(folder, -1, group)
    folder.chmod(mode)
    return folder


def test_a_folder_that_hanji_makes_is_in_order(base, started):
    folder = base / "new"
    _, said = started(folder)
    assert said == []
    assert folder.stat().st_mode & 0o7777 == 0o2750


@pytest.mark.parametrize("mode", [0o2751, 0o2754, 0o755, 0o777, 0o2752])
def test_a_folder_that_everybody_can_read_is_told(base, started, mode):
    _, said = started(folder_of(base, mode), socket_group=None)
    assert len(said) == 1 and "everybody" in said[0] and "chmod o=" in said[0] and "level=warn" in said[0]


@pytest.mark.parametrize("group", OTHERS)
@pytest.mark.parametrize("mode", [0o700, 0o750, 0o2700, 0o2740])
def test_a_folder_that_its_group_cannot_use_is_told(base, started, mode, group):
    _, said = started(folder_of(base, mode, group), socket_group=None)
    assert len(said) == 1 and "chmod 2750" in said[0]


@pytest.mark.parametrize("group", OTHERS)
def test_a_folder_of_another_group_than_the_web_servers_is_told(base, started, group):
    _, said = started(folder_of(base, 0o2750, os.getegid()), socket_group=grp.getgrgid(group).gr_name)
    assert len(said) == 1 and "socket_group" in said[0]


@pytest.mark.parametrize("group", OTHERS)
def test_a_folder_below_a_closed_one_is_told(base, started, group):
    above = folder_of(base, 0o700)
    (above / "blobs").mkdir()
    os.chown(above / "blobs", -1, group)
    (above / "blobs").chmod(0o2750)
    _, said = started(above / "blobs", socket_group=None)
    assert len(said) == 1 and "a folder above" in said[0]


@pytest.mark.parametrize("what", ["file", "nowhere", "link"])
def test_without_a_folder_large_documents_are_served_all_the_same(base, started, what):
    folder = base / ("none-" + what)
    if what == "file":
        folder.write_text("x")
    elif what == "link":
        folder.symlink_to(base / "dangling" / "link")
    else:
        folder = folder / "deep" / "down"
    hanji, said = started(folder)
    assert len(said) == 1 and "no folder for blobs" in said[0]
    token = hanji.new_token("t", read=["/"], write=["/"])
    body = os.urandom(1 << 20)
    assert hanji.ask("PUT", "/docs/a", body=body, token=token).status == 201
    got = hanji.ask("GET", "/docs/a", token=token)
    assert (got.status, got.body) == (200, body)
