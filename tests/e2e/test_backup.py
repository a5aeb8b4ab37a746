"""Backups while the server is written to, and restoring them: whole, verified, and no number given twice."""
import os
import pathlib
import random
import re
import signal
import sqlite3
import stat
import subprocess
import time

import pytest

import harness
import http1
from test_durable import Writer


def command(hanji, *args, env=None):
    """A command of the operator that is still running."""
    return subprocess.Popen([str(harness.BINARY), "-c", str(hanji.conf), *map(str, args)], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=harness.clean_env(**(env or {})))


def fill(hanji, documents=20, size=100):
    for i in range(documents):
        assert hanji.ask("PUT", "/docs/k%d" % i, body=b"%d " % i + b"x" * size).status == 201


def contents(path):
    link = sqlite3.connect("file:%s?mode=ro" % path, uri=True)
    try:
        return dict(link.execute("SELECT key, CAST(body AS BLOB) FROM doc"))
    finally:
        link.close()


def files(folder):
    return sorted(entry.name for entry in folder.iterdir())


@pytest.fixture
def out(base, request):
    """A folder for backups that other tests do not use."""
    folder = base / re.sub(r"\W+", "-", request.node.name)
    folder.mkdir(mode=0o700)
    return folder


# backup

@pytest.mark.smoke
def test_with_the_server_up_and_down(make_hanji, out):
    hanji = make_hanji()
    fill(hanji)
    up = hanji.command("backup", out / "up.db")
    hanji.stop()
    hanji.command("backup", out / "down.db")
    assert re.search(r"up\.db: 20 documents, last change 20, \d+ bytes, verified", up.stdout), up
    for name in ("up.db", "down.db"):
        assert contents(out / name)["k7"] == b"7 " + b"x" * 100
        assert stat.S_IMODE((out / name).stat().st_mode) == 0o600
        assert "ok" in hanji.command("check", out / name).stdout
    assert files(out) == ["down.db", "up.db"]


def test_into_a_folder(make_hanji, out):
    hanji = make_hanji()
    fill(hanji, 1)
    name = hanji.command("backup", out).stdout.split(":")[0]
    assert re.fullmatch(r"%s/hanji-\d{8}-\d{6}\.db" % re.escape(str(out)), name)
    assert pathlib.Path(name).exists()


def test_what_is_there_stays_unless_forced(make_hanji, out):
    hanji = make_hanji()
    fill(hanji, 2)
    (out / "b.db").write_text("precious")
    done = hanji.command("backup", out / "b.db", ok=False)
    assert done.returncode == 1 and "--force" in done.stderr and (out / "b.db").read_text() == "precious"
    hanji.command("backup", "--force", out / "b.db")
    assert len(contents(out / "b.db")) == 2


def test_never_through_a_link(make_hanji, out):
    hanji = make_hanji()
    fill(hanji, 2)
    (out / "target").write_text("precious")
    (out / "link").symlink_to("target")
    done = hanji.command("backup", "--force", out / "link", ok=False)
    assert done.returncode == 1 and "link" in done.stderr and (out / "target").read_text() == "precious"
    (out / "store").symlink_to(hanji.database)
    assert hanji.command("backup", "--force", out / "store", ok=False).returncode == 1


def test_never_over_the_database(make_hanji):
    hanji = make_hanji()
    fill(hanji, 2)
    for suffix in ("", "-wal", "-shm", ".lock", ".control"):
        done = hanji.command("backup", "--force", str(hanji.database) + suffix, ok=False)
        assert done.returncode == 1 and "database" in done.stderr, suffix
    assert hanji.ask("GET", "/docs/k1").status == 200
    hanji.command("check")


@pytest.mark.parametrize("args", [[], ["--force"], ["a", "b"], ["--nonsense", "a"], [""], ["-"], ["a", "--force", "b"]],
                         ids=" ".join)
def test_wrong_usage_of_backup(make_hanji, args):
    done = make_hanji(start=False).command("backup", *args, ok=False)
    assert done.returncode == 2 and "usage" in done.stderr and done.stdout == ""


def test_no_store_no_backup(make_hanji, out):
    hanji = make_hanji(start=False)
    done = hanji.command("backup", out / "b.db", ok=False)
    assert done.returncode == 1 and "hanji.db" in done.stderr
    assert files(out) == [] and not hanji.database.exists()


def test_a_full_disk(make_hanji, slow, out):
    """The shim refuses room to files with `hanji.db` in their path."""
    hanji = make_hanji()
    fill(hanji, 50, 1000)
    folder = out / "hanji.db.d"
    folder.mkdir()
    slow.set(full=True)
    try:
        done = command(hanji, "backup", folder / "b.db", env=slow.env())
        text = done.communicate(timeout=30)[1]
    finally:
        slow.set()
    assert done.returncode == 1 and "full" in text
    assert files(folder) == []
    hanji.command("backup", folder / "b.db")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted(make_hanji, slow, out, number):
    """The unfinished file goes with the process."""
    hanji = make_hanji()
    fill(hanji, 40, 100000)
    slow.set(sync_ms=300)
    try:
        process = command(hanji, "backup", out / "b.db", env=slow.env())
        harness.wait_for("the unfinished file", lambda: files(out))
        process.send_signal(number)
        process.communicate(timeout=30)
    finally:
        slow.set()
    assert process.returncode == -number
    assert files(out) == []
    hanji.command("backup", out / "b.db")


def test_killed(make_hanji, slow, out):
    """Nothing that looks like a backup is left, and the next one works."""
    hanji = make_hanji()
    fill(hanji, 40, 100000)
    slow.set(sync_ms=300)
    try:
        process = command(hanji, "backup", out / "b.db", env=slow.env())
        harness.wait_for("the unfinished file", lambda: files(out))
        process.kill()
        process.communicate(timeout=30)
    finally:
        slow.set()
    assert not (out / "b.db").exists()
    assert all(re.fullmatch(r"\.hanji-backup\.\d+\.part", name) for name in files(out))
    hanji.command("backup", out / "b.db")


def test_backups_under_load(make_hanji, out):
    """Eight writers without pause.  Each backup is verified, and has every write that was acknowledged before it began."""
    hanji = make_hanji()
    writers = [Writer(hanji, "w%d" % i, out / ("journal%d" % i)) for i in range(8)]
    for writer in writers:
        writer.start()
    harness.wait_for("some writes", lambda: hanji.status()["seq"] > 200)
    try:
        for n in range(6):
            before = acknowledged(out)
            hanji.command("backup", out / ("b%d.db" % n))
            link = sqlite3.connect(out / ("b%d.db" % n))
            seqs = dict(link.execute("SELECT key, max(seq) FROM change GROUP BY key"))
            link.close()
            late = {key: seq for key, seq in before.items() if seqs.get(key, 0) < seq}
            assert not late, "acknowledged before the backup began, and not in it: %s" % late
            assert len(before) > 20
    finally:
        for writer in writers:
            writer.stopped.set()
        for writer in writers:
            writer.join(20)
    assert [writer.fault for writer in writers] == [None] * 8
    hanji.command("check")


def acknowledged(folder):
    """The highest number that was told for each key."""
    told = {}
    for journal in folder.glob("journal*"):
        for line in journal.read_text().splitlines():
            parts = line.split(" ")
            if len(parts) == 3 and parts[2].isdigit():
                told[parts[0]] = int(parts[2])
    return told


def test_the_log_is_used_again_after_a_backup(make_hanji, out):
    hanji = make_hanji(checkpoint_size="64k")
    fill(hanji, 30, 5000)
    hanji.command("backup", out / "b.db")
    for i in range(60):
        assert hanji.ask("PUT", "/docs/more", body=b"y" * 20000).status in (201, 204)
    assert hanji.status()["pinned_by"] in (None, 0)
    assert pathlib.Path(str(hanji.database) + "-wal").stat().st_size < 1 << 20


# restore

def restored(hanji, source):
    """Stop, restore, start."""
    hanji.stop()
    done = hanji.command("restore", source)
    hanji.start()
    return done


@pytest.mark.smoke
def test_restore(make_hanji, out):
    hanji = make_hanji()
    fill(hanji, 5)
    hanji.command("backup", out / "b.db")
    old = hanji.ask("GET", "/docs/k1")
    hanji.ask("PUT", "/docs/k1", body=b"changed since")
    hanji.ask("PUT", "/docs/new", body=b"new since")
    hanji.ask("DELETE", "/docs/k2")
    done = restored(hanji, out / "b.db")
    assert "5 documents" in done.stdout and "before-restore" in done.stdout
    got = hanji.ask("GET", "/docs/k1")
    assert (got.body, got.header("etag")) == (old.body, old.header("etag"))
    assert hanji.ask("GET", "/docs/k2").status == 200 and hanji.ask("GET", "/docs/new").status == 404
    hanji.command("check")
    kept = [name for name in files(hanji.base) if "before-restore" in name]
    assert len(kept) == 1
    assert contents(hanji.base / kept[0])["k1"] == b"changed since"


def test_no_etag_comes_twice(make_hanji, out):
    """Not those given since the backup, nor those of a restore before."""
    hanji = make_hanji()
    fill(hanji, 2)
    hanji.command("backup", out / "b.db")
    seen = {hanji.ask("GET", "/docs/k%d" % i).header("etag") for i in range(2)}
    for round_ in range(3):
        for i in range(5):
            etag = hanji.ask("PUT", "/docs/k%d" % (i % 2), body=b"%d %d" % (round_, i)).header("etag")
            assert etag not in seen
            seen.add(etag)
        restored(hanji, out / "b.db")
    # one that was taken before does not fit any more
    answer = hanji.ask("PUT", "/docs/k0", body=b"x", extra={"HTTP_IF_MATCH": sorted(seen)[-1]})
    assert answer.status == 412


def test_whoever_followed_the_changes_begins_anew(make_hanji, out):
    """410 for every number from before; from what it names on, the feed goes on."""
    hanji = make_hanji()
    fill(hanji, 3)
    hanji.command("backup", out / "b.db")
    hanji.ask("PUT", "/docs/k1", body=b"changed since")
    restored(hanji, out / "b.db")
    for since in (1, 3, 4):
        assert hanji.ask("GET", "/changes", query="since=%d" % since).status == 410
    now = hanji.status()["seq"]
    assert now >= 1 << 40 and hanji.ask("GET", "/changes", query="since=%d" % now).status == 200
    etag = hanji.ask("PUT", "/docs/k1", body=b"again").header("etag").strip('"')
    changes = http1.parse_json(hanji.ask("GET", "/changes", query="since=%d" % now).body)["changes"]
    assert [(change["key"], str(change["seq"])) for change in changes] == [("k1", etag)]


def test_not_while_a_server_runs(make_hanji, out):
    hanji = make_hanji()
    fill(hanji, 2)
    hanji.command("backup", out / "b.db")
    hanji.ask("PUT", "/docs/new", body=b"x")
    done = hanji.command("restore", out / "b.db", ok=False)
    assert done.returncode == 1 and "stop it" in done.stderr
    assert hanji.ask("GET", "/docs/new").status == 200


def test_not_while_a_worker_is_left(make_hanji, out):
    """The supervisor was killed and took the lock with it; its worker still drains."""
    hanji = make_hanji(drain_timeout="10s")
    fill(hanji, 2)
    hanji.command("backup", out / "b.db")
    client = hanji.client(20)
    client.ask("GET", "/health")        # a kept connection, which it waits for
    worker = hanji.worker()
    os.kill(worker, signal.SIGSTOP)     # so that it is there for sure
    hanji.process.kill()
    hanji.process.wait()
    done = hanji.command("restore", out / "b.db", ok=False)
    os.kill(worker, signal.SIGCONT)
    client.close()
    harness.wait_for("the worker to leave", lambda: not harness.alive(worker), 20)
    harness.Hanji.running.remove(hanji)
    hanji.process = None
    assert done.returncode == 1 and "process %d" % worker in done.stderr, done
    hanji.command("restore", out / "b.db")


@pytest.mark.parametrize("wrong", ["truncated", "letter", "foreign", "newer", "damaged", "missing", "folder"])
def test_what_is_no_backup_changes_nothing(make_hanji, out, wrong):
    hanji = make_hanji()
    fill(hanji, 200, 500)
    hanji.command("backup", out / "b.db")
    hanji.ask("PUT", "/docs/new", body=b"x")
    hanji.stop()
    data = (out / "b.db").read_bytes()
    if wrong == "truncated":
        (out / "b.db").write_bytes(data[:len(data) // 2])
    elif wrong == "letter":
        (out / "b.db").write_bytes(b"this is a letter " * 1000)
    elif wrong == "damaged":
        (out / "b.db").write_bytes(data[:8192] + bytes(200) + data[8392:])
    elif wrong == "foreign":
        (out / "b.db").unlink()
        sqlite3.connect(out / "b.db").execute("CREATE TABLE song (title)")
    elif wrong == "newer":
        link = sqlite3.connect(out / "b.db")
        link.execute("UPDATE meta SET value = 9999 WHERE name = 'min_program'")
        link.commit()
        link.close()
    elif wrong == "missing":
        (out / "b.db").unlink()
    else:
        (out / "b.db").unlink()
        (out / "b.db").mkdir()
    before = {name: (hanji.base / name).read_bytes() for name in files(hanji.base)
              if (hanji.base / name).is_file() and not name.endswith("-shm")}
    done = hanji.command("restore", out / "b.db", ok=False)
    assert done.returncode == 1 and "nothing was changed" in done.stderr, done
    after = {name: (hanji.base / name).read_bytes() for name in files(hanji.base)
             if (hanji.base / name).is_file() and not name.endswith("-shm")}
    assert before == after
    hanji.start()
    assert hanji.ask("GET", "/docs/new").status == 200


@pytest.mark.parametrize("args", [[], ["a", "b"], ["--force", "a"], [""], ["-"]], ids=" ".join)
def test_wrong_usage_of_restore(make_hanji, args):
    done = make_hanji(start=False).command("restore", *args, ok=False)
    assert done.returncode == 2 and "usage" in done.stderr and done.stdout == ""


def test_onto_a_new_machine(make_hanji, out):
    """No database is there yet: the owner of its folder gets it, and numbers go on far beyond the backup's."""
    first = make_hanji()
    fill(first, 3)
    first.command("backup", out / "b.db")
    second = make_hanji(start=False)
    second.command("restore", out / "b.db")
    assert stat.S_IMODE(second.database.stat().st_mode) == 0o640
    second.start()
    second.token = first.token
    assert second.ask("GET", "/docs/k2").status == 200
    assert int(second.ask("PUT", "/docs/k2", body=b"x").header("etag").strip('"')) > 1 << 40


def test_killed_while_it_restores(make_hanji, slow, out):
    """Whenever that is: the old store or the restored one, whole, and the next try works."""
    hanji = make_hanji()
    fill(hanji, 30, 50000)
    hanji.command("backup", out / "b.db")
    hanji.ask("PUT", "/docs/k1", body=b"changed since")
    hanji.stop()
    rng = random.Random(7)
    for _ in range(12):
        slow.set(sync_ms=20)
        try:
            process = command(hanji, "restore", out / "b.db", env=slow.env())
            time.sleep(rng.uniform(0, 0.4))
            process.kill()
            process.communicate(timeout=30)
        finally:
            slow.set()
        now = contents(hanji.database)["k1"]
        assert now in (b"changed since", b"1 " + b"x" * 50000)
        hanji.command("check")
    hanji.command("restore", out / "b.db")
    hanji.start()
    assert hanji.ask("GET", "/docs/k1").body == b"1 " + b"x" * 50000


# check

def test_check_of_a_backup_that_is_damaged(make_hanji, out):
    hanji = make_hanji()
    fill(hanji, 200, 500)
    hanji.command("backup", out / "b.db")
    data = (out / "b.db").read_bytes()
    (out / "b.db").write_bytes(data[:8192] + bytes(200) + data[8392:])
    done = hanji.command("check", out / "b.db", ok=False)
    assert done.returncode == 1
    assert hanji.command("check").returncode == 0, "the database itself is sound"


def test_check_notes_what_the_api_would_not_take(make_hanji):
    """A note is no fault."""
    hanji = make_hanji()
    fill(hanji, 2)
    hanji.command("sql", "INSERT INTO doc (key, type, body) VALUES ('j', 'application/json', '{')")
    done = hanji.command("check")
    assert "note: 1 documents of up to 1 MiB whose type says JSON" in done.stdout


def test_check_beside_writers(make_hanji, out):
    hanji = make_hanji()
    writers = [Writer(hanji, "w%d" % i, out / ("journal%d" % i)) for i in range(4)]
    for writer in writers:
        writer.start()
    try:
        harness.wait_for("some writes", lambda: hanji.status()["seq"] > 100)
        for _ in range(5):
            assert "fault" not in hanji.command("check").stdout
    finally:
        for writer in writers:
            writer.stopped.set()
        for writer in writers:
            writer.join(20)
    assert [writer.fault for writer in writers] == [None] * 4
