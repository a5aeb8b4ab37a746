"""The operator's side: help, configuration and its errors, commands with the server up and down, starts that fail."""
import os
import re
import socket
import sqlite3
import subprocess
import time

import pytest

import fastcgi
import harness

# Every key with its default, from the table in fcgi/conf.c.
KEYS = dict(re.findall(r'^    \{"(\w+)", KIND_\w+, AT\(\w+\), "([^"]*)",',
                       (harness.REPOSITORY / "fcgi" / "conf.c").read_text(), re.M))
UNITS = {"k": 1024, "m": 1024 ** 2, "g": 1024 ** 3, "s": 1000, "h": 3600000, "d": 86400000}


def run(*args, **env):
    """The bare program, without -c."""
    return subprocess.run([str(harness.BINARY), *map(str, args)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=20, env=harness.clean_env(**env))


@pytest.fixture
def conf(tmp_path):
    """Writes a configuration file and runs a command with it: conf(text, *args, **env)."""
    def run_with(text, *args, **env):
        path = tmp_path / "hanji.conf"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return run("-c", path, *args, **env)
    return run_with


def effective(done):
    """`hanji conf` as a dict."""
    assert done.returncode == 0, done
    return dict(re.split(r"\s*=\s*", line, 1) for line in done.stdout.splitlines() if re.match(r"\w+\s*=", line))


# help and usage

@pytest.mark.smoke
def test_help_names_every_key_and_command():
    done = run("--help")
    assert done.returncode == 0 and done.stderr == ""
    for key, default in KEYS.items():
        line = [line for line in done.stdout.splitlines() if re.search(r"(?<![\w-])(--)?%s(?![\w-])" % key.replace("_",
                "[_-]"), line)]
        assert line, key
    for command in ("serve", "token", "search", "sql", "check", "backup", "restore", "export", "import", "app", "key", "conf", "version"):
        assert re.search(r"\b%s\b" % command, done.stdout), command


@pytest.mark.parametrize("command", ["serve", "token", "search", "sql", "check", "backup", "restore", "export", "import", "app", "key", "conf", "version"])
def test_each_command_has_help(command):
    done = run(command, "--help")
    assert done.returncode == 0 and command in done.stdout and done.stderr == ""


def test_version():
    done = run("version")
    assert done.returncode == 0 and re.search(r"\d+\.\d+\.\d+", done.stdout)


WRONG_USAGE = [[], ["nonsense"], ["--nonsense"], ["-c"], ["-c", "/dev/null"], ["serve", "extra"],
               ["serve", "--nonsense", "1"], ["serve", "--threads"], ["token"], ["token", "nonsense"], ["token", "new"],
               ["token", "revoke"], ["token", "revoke", "a", "b"], ["token", "list", "x"], ["check", "x", "y"], ["check", "-x"], ["search"],
               ["conf", "x"], ["version", "x"], ["-x", "serve"], [""], ["serve", "-"], ["SERVE"]]


@pytest.mark.parametrize("args", WRONG_USAGE, ids=" ".join)
def test_wrong_usage(conf, args):
    done = run(*args) if "-c" in args else conf("", *args)
    assert done.returncode == 2, done
    assert done.stdout == "" and done.stderr


# configuration

def test_defaults(conf):
    got = effective(conf("", "conf"))
    assert len(KEYS) > 20 and set(got) == set(KEYS)
    for key, default in KEYS.items():
        number, unit = re.fullmatch(r"(\d*)(\w?)", default).groups() if default[:1].isdigit() else ("", "")
        if unit in UNITS:
            default = str(int(number) * UNITS[unit]) + ("ms" if unit in "shd" else "")
        beside = {"control": ".control", "blobs": ".blobs", "courier_socket": ".courier"}
        follows = {"keys": os.path.dirname(KEYS["database"]) + "/keys",
                   **{name: KEYS["database"] + ending for name, ending in beside.items()}}
        assert got[key] == (default or follows.get(key, "")), key


def test_file_environment_flags(conf):
    """A flag goes before the environment, that before the file, that before the default."""
    text = "threads = 2\nbacklog = 100\nqueue_operations=7\n"
    got = effective(conf(text, "conf"))
    assert (got["threads"], got["backlog"], got["queue_operations"]) == ("2", "100", "7")
    got = effective(conf(text, "conf", HANJI_THREADS="3"))
    assert (got["threads"], got["backlog"]) == ("3", "100")


@pytest.mark.parametrize("flag", ["--queue-operations", "--queue_operations"])
def test_a_flag_goes_first(make_hanji, flag):
    hanji = make_hanji(start=False, queue_operations=11)
    hanji.env = {"HANJI_THREADS": "2"}
    hanji.start(flag, "5", "--threads", "3")
    hanji.token = hanji.new_token("full", read=["/"])
    assert hanji.status()["threads"] == 3


def test_comments_blanks_and_spaces(conf):
    got = effective(conf("# c\n; c\n\n  \nthreads=4\nbacklog   =   9\nlog_level = warn   ; why\n", "conf"))
    assert (got["threads"], got["backlog"], got["log_level"]) == ("4", "9", "warn")


def test_units(conf):
    same = [effective(conf("max_body = %s\nrequest_timeout = %s\n" % pair, "conf"))
            for pair in (("65536", "90000ms"), ("64k", "90s"), ("64K", "90S"))]
    assert same[0]["max_body"] == same[1]["max_body"] == same[2]["max_body"]
    assert same[0]["request_timeout"] == same[1]["request_timeout"] == same[2]["request_timeout"]


WRONG_CONF = {
    "unknown key": "nonsense = 1", "typing error": "thread = 1", "no value": "threads =", "no number": "threads = many",
    "negative": "threads = -1", "nought": "threads = 0", "too many": "threads = 1000000", "fraction": "threads = 1.5",
    "number and more": "threads = 2x", "bad size": "max_body = 1q", "bad size 2": "max_body = m",
    "huge": "max_body = 99999999999999999999g", "wrapping": "max_body = 18014398509481985k",
    "bad time": "request_timeout = 5", "bad time 2": "request_timeout = 5 days", "bad mode": "socket_mode = 999",
    "bad level": "log_level = loud", "no equals": "threads", "section": "[server]\nthreads = 2",
    "binary": "\x01\x02\x03", "hex": "threads = 0x2", "plus": "threads = +2", "bad public": "public = a/../b",
}


@pytest.mark.parametrize("name", WRONG_CONF)
@pytest.mark.parametrize("command", ["conf", "serve", "check"])
def test_wrong_configuration_names_file_line_and_key(conf, tmp_path, name, command):
    done = conf("# first\nbacklog = 100\n" + WRONG_CONF[name] + "\n", command)
    assert done.returncode == 78, done
    assert done.stdout == ""
    assert re.search(r"hanji\.conf:[34]\b", done.stderr), done.stderr
    if "=" in WRONG_CONF[name] and "[" not in WRONG_CONF[name]:
        assert WRONG_CONF[name].split("=")[0].strip() in done.stderr


@pytest.mark.parametrize("env", [{"HANJI_THREADS": "x"}, {"HANJI_MAX_BODY": "-1"}, {"HANJI_LOG_LEVEL": ""}])
def test_wrong_environment_names_the_key(conf, env):
    done = conf("", "conf", **env)
    assert done.returncode == 78 and list(env)[0] in done.stderr, done


@pytest.mark.parametrize("args",
                         [["--threads", "x"], ["--threads", "0"], ["--max-body", "1q"], ["--log-level", "loud"]])
def test_wrong_flags(conf, args):
    done = conf("", "serve", *args)
    assert done.returncode in (2, 78) and args[0].strip("-").replace("-", "_")[:7] in done.stderr.replace("-",
            "_"), done


def test_a_configuration_that_is_not_there(tmp_path):
    done = run("-c", tmp_path / "missing.conf", "conf")
    assert done.returncode == 78 and "missing.conf" in done.stderr


def test_a_configuration_that_is_a_folder(tmp_path):
    done = run("-c", tmp_path, "conf")
    assert done.returncode == 78 and str(tmp_path) in done.stderr


def test_a_very_long_line(conf):
    done = conf("threads = 1\npublic = " + "x" * 100000 + "\n", "conf")
    assert done.returncode == 78 and "hanji.conf:2" in done.stderr, done.stderr[:500]


def test_public_prefixes(conf):
    assert effective(conf("public = a/, b/c/\n", "conf"))["public"].replace(" ", "") == "a/,b/c/"


# the store from the shell

@pytest.mark.smoke
def test_sql(site, box):
    site.put(box + "k", b"abc", {"Content-Type": "text/plain"})
    done = site.hanji.command("sql", "SELECT key, size FROM doc WHERE key = '%sk'" % box[6:])
    assert done.stdout.strip() == "%sk|3" % box[6:]


def test_sql_from_standard_input(site):
    done = site.hanji.command("sql", stdin="SELECT 6 * 7;\n")
    assert "42" in done.stdout.split()


def test_sql_has_the_right_settings(site):
    """No checkpoints of its own, a busy time, whole durability."""
    assert site.hanji.command("sql", "PRAGMA wal_autocheckpoint").stdout.split()[-1] == "0"
    assert int(site.hanji.command("sql", "PRAGMA busy_timeout").stdout.split()[-1]) >= 1000
    assert site.hanji.command("sql", "PRAGMA synchronous").stdout.split()[-1] == "2"


def test_sql_that_is_wrong(site):
    done = site.hanji.command("sql", "SELECT nonsense", ok=False)
    assert done.returncode != 0 and "nonsense" in done.stderr


def test_sql_writes_and_the_server_serves_it(site, box):
    site.hanji.command("sql", "INSERT INTO doc (key, type, body) VALUES ('%sk', 'text/plain', 'hello')" % box[6:])
    assert site.get(box + "k").body == b"hello"


def test_sql_without_a_store(make_hanji):
    hanji = make_hanji(start=False)
    done = hanji.command("sql", "SELECT 1 FROM doc", ok=False)
    assert done.returncode != 0 and done.stderr


def test_check_with_the_server_up_and_down(make_hanji):
    hanji = make_hanji()
    for i in range(5):
        hanji.ask("PUT", "/docs/k%d" % i, body=b"x")
    up = hanji.command("check")
    hanji.stop()
    down = hanji.command("check")
    for done in (up, down):
        assert re.search(r"\b3\.\d+\.\d+", done.stdout), "names the SQLite version"
        assert "checkpoint" in done.stdout.lower()


def spoil(hanji, sql):
    """Changes the file behind the triggers' back."""
    link = hanji.sqlite(readonly=False)
    for name, in link.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        link.execute("DROP TRIGGER %s" % name)
    link.execute(sql)
    link.close()


SPOILED = ["UPDATE meta SET value = 99 WHERE name = 'documents'", "UPDATE doc SET size = 99", "UPDATE doc SET seq = 1",
           "DELETE FROM change", "UPDATE doc SET seq = 1000", "SELECT 1"]


@pytest.mark.parametrize("sql", SPOILED)
def test_check_finds_what_is_wrong(make_hanji, sql):
    """The last: triggers that are missing."""
    hanji = make_hanji()
    for i in range(3):
        hanji.ask("PUT", "/docs/k%d" % i, body=b"x")
    hanji.stop()
    spoil(hanji, sql)
    done = hanji.command("check", ok=False)
    assert done.returncode == 1 and done.stdout + done.stderr, done


def test_check_finds_a_broken_file(make_hanji):
    hanji = make_hanji()
    for i in range(200):
        hanji.ask("PUT", "/docs/k%d" % i, body=b"x" * 500)
    hanji.stop()
    data = bytearray(hanji.database.read_bytes())
    for at in range(8192, len(data) - 100, 4096):
        data[at:at + 64] = b"\xaa" * 64
    hanji.database.write_bytes(bytes(data))
    done = hanji.command("check", ok=False)
    assert done.returncode == 1 and done.stdout + done.stderr


def test_check_of_nothing(make_hanji):
    hanji = make_hanji(start=False)
    done = hanji.command("check", ok=False)
    assert done.returncode == 1 and "hanji.db" in done.stderr
    assert not hanji.database.exists(), "asking makes no file"


def test_noise_on_the_control_socket(make_hanji):
    """Whoever may open it cannot bring the server down, nor keep others from it."""
    hanji = make_hanji()
    control = str(hanji.database) + ".control"
    crowd = []
    for data in (b"", b"\0", b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 100, b"x" * 100000, fastcgi.begin(),
                 fastcgi.request("GET", "/nowhere"), fastcgi.request("PUT", "/docs/k", body=b"x"),
                 fastcgi.request("POST", "/token", body=b"{}" * 50000)) * 5:
        client = fastcgi.Client(control)
        try:
            client.send(data)
        except fastcgi.Closed:
            pass
        crowd.append(client)
    assert hanji.command("token", "list").returncode == 0
    assert hanji.new_token("another", read=["/"])
    for client in crowd:
        client.close()
    assert hanji.command("token", "list").returncode == 0


# starts that must fail with a clear word

def fails_to_start(hanji, *words, codes=(69, 74, 78), timeout=5):
    """`serve` leaves by itself, says why, and the code is one of these."""
    done = subprocess.run([str(harness.BINARY), "-c", str(hanji.conf), "serve"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=timeout,
                          env=harness.clean_env())
    assert done.returncode in codes, done
    for word in words:
        assert word in done.stderr, (word, done.stderr)
    return done.stderr


def test_a_second_server_on_the_same_file(make_hanji):
    first = make_hanji()
    first.ask("PUT", "/docs/k", body=b"x")
    second = make_hanji(start=False, database=first.database, control=first.base / "other.control")
    fails_to_start(second, "hanji.db")
    assert first.ask("GET", "/docs/k").body == b"x"
    assert first.command("token", "list").returncode == 0, "its control socket still works"


def test_a_second_server_on_the_same_socket(make_hanji):
    first = make_hanji()
    second = make_hanji(start=False, socket=first.socket)
    fails_to_start(second, "hanji.sock")
    assert first.ask("GET", "/health").status == 200, "the first keeps its socket"


def test_the_same_configuration_twice(make_hanji):
    first = make_hanji()
    fails_to_start(first)
    assert first.ask("GET", "/health").status == 200
    assert first.command("token", "list").returncode == 0


@pytest.mark.parametrize("setting,word",
                         [("database", "/nonexistent/folder/x.db"), ("socket", "/nonexistent/folder/x.sock"),
                          ("socket_group", "no-such-group"), ("database", "/dev/null"),
                          ("socket", "/tmp/" + "x" * 120)])
def test_settings_that_cannot_work(make_hanji, setting, word):
    hanji = make_hanji(start=False, **{setting: word})
    fails_to_start(hanji, word[:60])


def test_a_socket_path_that_is_a_file(make_hanji):
    """Somebody's file is not removed."""
    hanji = make_hanji(start=False)
    hanji.socket.write_text("precious")
    fails_to_start(hanji, "hanji.sock")
    assert hanji.socket.read_text() == "precious"


def test_a_file_that_is_no_database(make_hanji):
    hanji = make_hanji(start=False)
    hanji.database.write_bytes(b"this is not a database, it is a letter " * 200)
    fails_to_start(hanji, "hanji.db")
    assert hanji.database.read_bytes().startswith(b"this is not")


def test_somebody_elses_database(make_hanji):
    hanji = make_hanji(start=False)
    link = sqlite3.connect(hanji.database)
    link.execute("CREATE TABLE doc (a, b)")
    link.execute("CREATE TABLE song (title)")
    link.commit()
    link.close()
    fails_to_start(hanji, "hanji.db")
    assert hanji.rows("SELECT name FROM sqlite_master") == [("doc",), ("song",)]


def test_a_file_from_the_future(make_hanji):
    hanji = make_hanji()
    hanji.stop()
    link = hanji.sqlite(readonly=False)
    link.execute("UPDATE meta SET value = 9999 WHERE name = 'min_program'")
    link.close()
    text = fails_to_start(hanji, "hanji.db")
    assert "newer" in text.lower() or "9999" in text


def test_a_crash_at_every_start_is_not_a_busy_loop(make_hanji):
    """The worker dies again and again: the supervisor waits longer between, and ends when told to."""
    hanji = make_hanji()
    hanji.expect_new_worker()
    kills, end = 0, time.monotonic() + 1.0
    while time.monotonic() < end:
        for pid in hanji.workers():
            os.kill(pid, 9)
            kills += 1
        time.sleep(0.001)
    assert kills < 300
    hanji.wait_healthy(20)
    assert hanji.ask("GET", "/health").status == 200


def test_no_descriptors_are_inherited(make_hanji):
    """Commands and workers get what they need and nothing that was left open."""
    hanji = make_hanji()
    names = {os.readlink("/proc/%d/fd/%s" % (hanji.worker(), fd)) for fd in os.listdir("/proc/%d/fd" % hanji.worker())}
    strangers = [name for name in names if name.startswith("/") and not name.startswith((str(hanji.base), "/dev/null"))]
    assert strangers == []


def test_log_lines_are_logfmt(make_hanji):
    hanji = make_hanji(log_level="debug")
    for path in ("/docs/x", "/docs/\"\\ \x1b[31m", "/docs/a\nlevel=error msg=forged", "/docs/\xff"):
        hanji.ask("GET", path, token=None)
    hanji.ask("PUT", "/docs/k", body=b"x", extra={"REQUEST_ID": "a\nb level=error", "REMOTE_ADDR": "\x1b\n\""})
    lines = hanji.log.read_text(errors="surrogateescape").splitlines()
    assert lines
    value = r'(?:"(?:[^"\\]|\\.)*"|[^\s"=]*)'
    for line in lines:
        found = re.fullmatch(r"ts=\S+ level=(error|warn|info|debug) msg=%s(?: [a-z_]+=%s)*" % (value, value), line)
        assert found and found.group(1) != "error", line


def test_the_listener_passed_goes_before_the_setting(make_hanji):
    """With LISTEN_FDS the path in the configuration is not touched."""
    hanji = make_hanji(start=False)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(hanji.base / "passed.sock"))
    listener.listen(64)
    hanji.start(listener=listener, wait=False)
    harness.wait_for("an answer", lambda: fastcgi.ask(hanji.base / "passed.sock", timeout=10).status == 200)
    assert not hanji.socket.exists()
    hanji.process.terminate()
    assert hanji.process.wait(5) == 0
    listener.close()
