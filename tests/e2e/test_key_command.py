"""hanji key: made, listed, exported, shown, rotated, retired, destroyed; and the server that has them."""
import base64
import hashlib
import json
import os
import re
import subprocess
import time

import pytest

import harness

KINDS = ["identity", "transport", "sealing", "local"]
DAY = 86400


class Own:
    """A configuration of its own, without a server."""

    def __init__(self, base):
        self.base, self.keys, self.conf = base, base / "keys", base / "hanji.conf"
        self.conf.write_text("database = %s/hanji.db\n" % base)

    def run(self, *args, stdin="", code=0):
        done = subprocess.run([str(harness.BINARY), "-c", str(self.conf), "key", *map(str, args)], input=stdin, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=harness.clean_env(), timeout=20)
        assert done.returncode == code, (args, done)
        return done

    def list(self):
        lines = [line.split("\t") for line in self.run("list").stdout.splitlines()]
        assert lines[0] == ["kind", "id", "created", "until", "state"]
        return [dict(zip(lines[0], line)) for line in lines[1:]]

    def states(self, kind):
        return [key["state"] for key in self.list() if key["kind"] == kind]

    def card(self):
        return json.loads(self.run("export").stdout)

    def in_use(self, kind):
        return [key["id"] for key in self.list() if key["kind"] == kind and key["state"] == "in use"][0]

    def change(self, kind, number, name, value):
        """Gives a key's file another time: what an id says is the key, not its times."""
        key = [key for key in self.list() if key["kind"] == kind][number]
        path = self.keys / ("%s-%s.key" % (kind, key["id"]))
        path.write_text(re.sub("(?m)^%s .*" % name, "%s %d" % (name, value), path.read_text()))
        return path


@pytest.fixture
def own(tmp_path):
    return Own(tmp_path)


@pytest.fixture
def made(own):
    own.run("new")
    return own


@pytest.mark.smoke
def test_new_makes_one_of_each_kind(own):
    lines = own.run("new").stdout.splitlines()
    assert [line.split("\t")[0] for line in lines] == KINDS
    assert sorted(path.name for path in own.keys.iterdir()) == sorted("%s-%s.key" % tuple(line.split("\t")[:2]) for line in lines)
    assert own.keys.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in own.keys.iterdir()} == {0o600}


def test_new_again_makes_nothing(made):
    done = made.run("new")
    assert done.stdout == "" and "none is missing" in done.stderr and len(made.list()) == 4


def test_new_makes_what_is_missing(made):
    next(made.keys.glob("transport-*")).unlink()
    assert made.run("new").stdout.startswith("transport\t")
    assert len(made.list()) == 4


def test_a_second_one_of_a_kind_is_refused(made):
    assert "rotate" in made.run("new", "identity", code=1).stderr


def test_only_a_sealing_key_ends_by_itself(made):
    ends = {key["kind"]: key["until"] for key in made.list()}
    assert [ends[kind] for kind in ("identity", "transport", "local")] == ["never"] * 3
    until = made.card()["sealing"][0]["until"]
    assert abs(until - time.time() - 30 * DAY) < 60


def test_its_days_can_be_chosen(own):
    own.run("new", "transport", "--valid", "3")
    until = time.mktime(time.strptime(own.list()[0]["until"], "%Y-%m-%dT%H:%M:%SZ")) - time.timezone
    assert abs(until - time.time() - 3 * DAY) < 60


def test_list_says_what_is_missing(own):
    assert re.findall(r"no (\w+) key", own.run("list").stderr) == KINDS


def test_list_says_what_ends_soon(made):
    made.change("sealing", 0, "until", time.time() + DAY)
    assert "the sealing key ends soon; `hanji key rotate sealing`" in made.run("list").stderr


# cards

def test_export_is_one_line_and_the_fingerprint_beside_it(made):
    done = made.run("export")
    assert done.stdout.count("\n") == 1 and json.loads(done.stdout)["hanji"] == "card/1"
    assert re.match(r"fingerprint (\w{4} ){7}\w{4}\nidentity    %s\n$" % made.in_use("identity"), done.stderr)


def test_the_fingerprint_is_made_as_it_is_written(made):
    done = made.run("export")
    key = base64.b64decode(json.loads(done.stdout)["identity"]["key"])
    number = int.from_bytes(hashlib.blake2b(b"hanji/fingerprint/1\0" + key, digest_size=32).digest()[:20], "big")
    digits = "".join("0123456789abcdefghjkmnpqrstvwxyz"[number >> 155 - 5 * i & 31] for i in range(32))
    assert re.search(r"fingerprint (.*)", done.stderr).group(1).replace(" ", "") == digits


def test_ids_are_made_as_they_are_written(made):
    card, ids = made.card(), {key["kind"]: key["id"] for key in made.list()}
    for kind in ("identity", "transport", "sealing"):
        key = card[kind] if kind == "identity" else card[kind][0]
        text = b"hanji/key/1/" + kind.encode() + b"\0" + base64.b64decode(key["key"])
        assert hashlib.blake2b(text, digest_size=32).hexdigest()[:32] == ids[kind]


def test_export_without_keys(own):
    assert "hanji key new" in own.run("export", code=1).stderr


@pytest.mark.parametrize("how", ["file", "stdin", "text", "indented"])
def test_show_verifies_a_card(made, tmp_path, how):
    done = made.run("export")
    text = json.dumps(json.loads(done.stdout), indent=2, sort_keys=True) if how == "indented" else done.stdout
    (tmp_path / "card").write_text(text)
    argument = {"file": tmp_path / "card", "stdin": "-"}.get(how, text)
    shown = made.run("show", argument, stdin=text if how == "stdin" else "")
    assert shown.stdout.startswith(done.stderr) and shown.stderr == ""
    assert [line.split("\t")[0] for line in shown.stdout.splitlines()[6:]] == ["identity", "transport", "sealing"]


def test_show_needs_no_keys_of_its_own(made, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    assert Own(other).run("show", "-", stdin=made.run("export").stdout).stdout.startswith("fingerprint")
    assert not (other / "keys").exists()


@pytest.mark.parametrize("text,why", [("", "it is empty"), ("{}", "not a card"), ("x" * 20000, "too long"), ("\0", "not a card"),
                                      ('{"hanji":"card/2"}', "another version")])
def test_show_refuses_what_is_no_card(own, text, why):
    assert why in own.run("show", "-", stdin=text, code=1).stderr


def test_show_refuses_a_file_that_is_not_there(own):
    assert "nowhere: No such file" in own.run("show", "nowhere", code=1).stderr


def test_show_refuses_a_folder(own):
    assert "Is a directory" in own.run("show", own.base, code=1).stderr


@pytest.mark.parametrize("member", ["identity", "transport", "sealing", "horizon", "made", "sig"])
def test_show_refuses_a_changed_card(made, tmp_path, member):
    other = tmp_path / "other"
    other.mkdir()
    Own(other).run("new")
    card, another = made.card(), Own(other).card()
    card[member] = another[member] if member not in ("horizon", "made") else card[member] + 1
    assert "does not verify" in made.run("show", json.dumps(card), code=1).stderr


# rotation

@pytest.mark.parametrize("kind", KINDS)
def test_rotate_puts_another_in_its_place(made, kind):
    old = made.in_use(kind)
    new = made.run("rotate", kind).stdout.split("\t")[1]
    assert made.in_use(kind) == new != old
    assert sorted(made.states(kind)) == ["in use", "retired"]


@pytest.mark.parametrize("days", [0, 3])
def test_the_overlap_is_counted_from_the_rotation(made, days):
    made.change("transport", 0, "created", 1000)
    made.change("transport", 0, "from", 1000)
    made.run("rotate", "transport", "--overlap", days)
    (_, old) = made.card()["transport"] if days else (None, None)
    if days:
        assert abs(old["until"] - time.time() - days * DAY) < 60
    else:
        assert len(made.card()["transport"]) == 1


def test_what_senders_were_told_of_a_sealing_key_holds(made):
    told = made.card()["sealing"][0]["until"]
    made.run("rotate", "sealing")
    assert made.card()["sealing"][1]["until"] == told


def test_an_overlap_that_is_asked_for_shortens_it(made):
    made.run("rotate", "sealing", "--overlap", "1")
    assert abs(made.card()["sealing"][1]["until"] - time.time() - DAY) < 60


def test_an_identity_that_follows_is_signed_by_the_old_one(made):
    old = made.card()["identity"]["key"]
    made.run("rotate", "identity")
    card = made.card()
    assert [one["key"] for one in card["previous"]] == [old]
    shown = made.run("show", json.dumps(card)).stdout
    assert "\tprevious\n" in shown


def test_a_chain_that_was_cut_is_refused(made):
    made.run("rotate", "identity")
    card = made.card()
    card["previous"] = []
    assert "does not verify" in made.run("show", json.dumps(card), code=1).stderr


def test_rotate_without_a_key(own):
    assert "key new" in own.run("rotate", "identity", code=1).stderr


def test_retire_ends_it_now(made):
    done = made.run("retire", made.in_use("transport")[:8])
    assert "it was in use" in done.stderr and made.states("transport") == ["ended"]
    made.run("export", code=1)
    made.run("new")
    assert sorted(made.states("transport")) == ["ended", "in use"]


@pytest.mark.parametrize("id", ["", "0", "0000000", "00000000", "../../etc", "0" * 33, "é" * 8])
def test_retire_of_what_is_not_there(made, id):
    made.run("retire", id, code=1)
    assert [key["state"] for key in made.list()] == ["in use"] * 4


def test_prune_destroys_what_is_behind_its_horizon_alone(made):
    made.run("rotate", "sealing")
    now = time.time()
    path = made.change("sealing", 0, "until", now - 45 * DAY - 5)
    assert "1 key is over; `hanji key prune` destroys it" in made.run("list").stderr
    assert made.states("sealing") == ["over", "in use"]
    assert made.run("prune").stdout == "sealing\t%s\tdestroyed\n" % path.stem.split("-")[1]
    assert not path.exists() and made.states("sealing") == ["in use"]


def test_prune_keeps_what_may_still_be_opened(made):
    made.run("rotate", "sealing")
    made.change("sealing", 0, "until", time.time() - 45 * DAY + 60)
    assert made.run("prune").stdout == "" and made.states("sealing") == ["opens", "in use"]


def test_prune_keeps_local_keys(made):
    made.run("rotate", "local")
    made.change("local", 0, "until", 1000)
    assert made.run("prune").stdout == "" and len(made.states("local")) == 2


def test_more_keys_than_can_be_are_not_made(made):
    for _ in range(63):
        made.run("rotate", "local")
    assert "as many keys" in made.run("rotate", "local", code=1).stderr
    assert len(made.states("local")) == 64


# what is refused

@pytest.mark.parametrize("args", [[], ["x"], ["new", "x"], ["new", "identity", "local"], ["new", "--valid"], ["new", "--valid", "3"],
                                  ["new", "local", "--valid", "0"], ["new", "local", "--valid", "-1"], ["new", "local", "--valid", "1d"],
                                  ["new", "local", "--valid", "99999999999999999999"], ["new", "local", "--overlap", "1"], ["rotate"],
                                  ["rotate", "x"], ["rotate", "local", "--overlap", "x"], ["rotate", "local", "--overlap", ""], ["list", "x"],
                                  ["export", "x"], ["show"], ["show", "a", "b"], ["retire"], ["retire", "a", "b"], ["prune", "x"]], ids=" ".join)
def test_wrong_usage(own, args):
    assert "usage: hanji" in own.run(*args, code=2).stderr
    assert not own.keys.exists()


@pytest.mark.parametrize("command", ["list", "new", "export", "prune"])
def test_a_key_that_others_may_read_is_refused(made, command):
    next(made.keys.glob("local-*")).chmod(0o640)
    assert "chmod 600" in made.run(command, code=1).stderr


def test_without_a_folder_around_it(own):
    own.conf.write_text("database = %s/none/hanji.db\n" % own.base)
    assert "cannot be made" in own.run("new", code=1).stderr


def test_run_by_root_they_belong_to_whom_the_folder_around_belongs(own):
    if os.geteuid() != 0:
        return
    os.chown(own.base, 12345, 12345)
    own.run("new")
    assert {path.stat().st_uid for path in [own.keys, *own.keys.iterdir()]} == {12345}
    assert own.states("local") == ["in use"]


# the server

def test_the_server_shows_the_card_and_sees_changes(make_hanji):
    hanji = make_hanji()
    answer = hanji.ask("GET", "/keys", token=None)
    assert answer.status == 503 and b"hanji key new" in answer.body
    hanji.command("key", "new")
    harness.wait_for("the card", lambda: hanji.ask("GET", "/keys", token=None).status == 200)
    answer = hanji.ask("GET", "/keys", token=None)
    assert answer.header("Content-Type") == "application/json"
    first = json.loads(answer.body)
    assert hanji.command("key", "show", "-", stdin=answer.body.decode()).stdout.startswith("fingerprint")
    hanji.command("key", "rotate", "identity")
    harness.wait_for("the other identity", lambda: json.loads(hanji.ask("GET", "/keys").body)["identity"] != first["identity"])


def test_the_card_behind_nginx(site):
    answer = site.get("/keys", token=None)
    assert answer.status == 200 and site.hanji.command("key", "show", "-", stdin=answer.body.decode()).stdout.startswith("fingerprint")
    assert site.head("/keys", token=None).status == 200 and site.http("POST", "/keys", token=None).status == 405


def test_metrics_tell_when_the_sealing_key_ends(site):
    until = json.loads(site.get("/keys").body)["sealing"][0]["until"]
    assert "\nhanji_sealing_key_end_seconds %d\n" % until in site.get("/metrics").body.decode()


def test_a_process_with_keys_leaves_no_core(make_hanji):
    hanji = make_hanji(start=False)
    hanji.command("key", "new")
    hanji.start()
    limits = open("/proc/%d/limits" % hanji.worker(), encoding="ascii").read()
    assert re.search(r"Max core file size\s+0\s+0\s", limits)


def test_a_bad_key_is_logged_and_the_server_serves(make_hanji):
    hanji = make_hanji(start=False)
    hanji.command("key", "new")
    bad = next((hanji.base / "keys").glob("local-*"))
    bad.chmod(0o644)
    hanji.expected.append("the keys cannot be read")
    hanji.start()
    assert "chmod 600" in hanji.log.read_text()
    assert hanji.ask("GET", "/keys").status == 503 and hanji.ask("GET", "/health").status == 200
    bad.chmod(0o600)
    harness.wait_for("the card", lambda: hanji.ask("GET", "/keys").status == 200)
