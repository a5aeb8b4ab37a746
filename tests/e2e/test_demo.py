"""deploy/demo.sh: healthy or an error, several side by side, and nothing left behind."""
import grp
import itertools
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import urllib.error
import urllib.request

import pytest

import harness

SCRIPT = harness.REPOSITORY / "deploy" / "demo.sh"
NAMES = {"HANJI_URL", "HANJI_TLS_URL", "HANJI_TOKEN", "HANJI_DB", "HANJI_SOCKET", "HANJI_BIN", "HANJI_CONF", "HANJI_APPS", "HANJI_PID",
         "NGINX_PID"}


NUMBERS = itertools.count(1)


class Demo:
    def __init__(self, folder):
        self.folder = folder
        self.ports = harness.free_port(), harness.free_port()

    def run(self, verb, *more, expect=0, environ=None):
        command = [str(SCRIPT), verb, "--data", str(self.folder), *map(str, more)]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "HANJI_BIN": str(harness.BINARY), **(environ or {})}, timeout=120)
        assert done.returncode == expect, (command, done.stdout, done.stderr)
        return done.stdout if expect == 0 else done.stderr

    def start(self, **more):
        return self.run("start", "--port", self.ports[0], "--tls-port", self.ports[1], **more)

    def env(self):
        words = shlex.split((self.folder / "demo.env").read_text())
        return dict(word.split("=", 1) for word in words)

    def pid(self, name):
        return int(self.env()[name])

    def request(self, method, path, body=None, token=True):
        env = self.env()
        request = urllib.request.Request(env["HANJI_URL"] + path, body, method=method)
        if token:
            request.add_header("Authorization", "Bearer " + env["HANJI_TOKEN"])
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read()

    def processes(self):
        """Whatever was started in or for this folder."""
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                told = (path / "cmdline").read_bytes() + os.readlink(path / "cwd").encode()
            except OSError:
                continue
            if str(self.folder).encode() in told and harness.alive(int(path.name)):
                found.append(int(path.name))
        return found


@pytest.fixture
def demos(base):
    made = []

    def make():
        demo = Demo(base / ("demo%d" % next(NUMBERS)))
        made.append(demo)
        return demo
    yield make
    for demo in made:
        demo.run("stop")
        assert demo.processes() == []


@pytest.mark.smoke
def test_start_tells_how_to_use_it_and_stop_leaves_nothing(demos):
    demo = demos()
    said = demo.start()
    env = demo.env()
    assert NAMES <= set(env)
    assert env["HANJI_URL"] in said and env["HANJI_TOKEN"] in said
    assert said.count("\n  curl ") == 3
    ready = said.split("examples of the documents:\n")[1]
    done = subprocess.run(["bash", "-c", ready + "curl -sf -H \"$auth\" $HANJI_URL/status; hanji sql 'SELECT count(*) FROM token'"],
                          stdout=subprocess.PIPE, text=True, timeout=20)
    assert '"documents":0' in done.stdout and done.stdout.endswith("\n1\n")
    assert (demo.folder / "demo.env").stat().st_mode & 0o77 == 0, "the token is nobody else's"
    assert (demo.folder / "token").stat().st_mode & 0o77 == 0
    for line in re.findall(r"^  (curl .*)$", said, re.M):
        done = subprocess.run(["sh", "-c", line + " -fsS"], stdout=subprocess.PIPE, timeout=20)
        assert done.returncode == 0, line
    assert b"notes/hello" in done.stdout
    tls = subprocess.run(["curl", "-fsS", "--http2", "-w", "%{http_version}", "--cacert", env["HANJI_CERT"],
                          env["HANJI_TLS_URL"] + "/health"], stdout=subprocess.PIPE, timeout=20)
    assert tls.stdout == b'{"status":"ok"}\n2'
    assert demo.run("status").count("healthy") == 2
    demo.run("stop")
    assert demo.processes() == []
    assert demo.env()["HANJI_PID"] == ""
    demo.run("status", expect=1)
    assert demo.run("stop") == ""


def test_start_again_keeps_data_token_ports_and_processes(demos):
    demo = demos()
    demo.start()
    first = demo.env()
    demo.request("PUT", "/docs/kept", b"x")
    demo.run("start")
    assert demo.env() == first
    demo.run("stop")
    demo.run("start")
    again = demo.env()
    assert {name for name in again if again[name] != first[name]} == {"HANJI_PID", "NGINX_PID"}
    assert demo.request("GET", "/docs/kept") == (200, b"x")


@pytest.mark.parametrize("name, sign", [("HANJI_PID", signal.SIGKILL), ("NGINX_PID", signal.SIGKILL),
                                        ("HANJI_PID", signal.SIGTERM), ("NGINX_PID", signal.SIGTERM)])
def test_start_brings_up_what_is_down(demos, name, sign):
    demo = demos()
    demo.start()
    before = demo.env()
    os.kill(int(before[name]), sign)
    harness.wait_for("its end", lambda: not harness.alive(int(before[name])))
    demo.run("status", expect=1)
    demo.run("start")
    after = demo.env()
    assert {key for key in after if after[key] != before[key]} == {name}
    assert demo.request("PUT", "/docs/a", b"x")[0] == 201


def test_the_number_of_another_process_is_harmless(demos):
    demo = demos()
    demo.start()
    demo.run("stop")
    bystander = subprocess.Popen(["sleep", "60"])
    for file in (demo.folder / "demo.env", demo.folder / "nginx" / "nginx.pid"):
        text = file.read_text() if file.exists() else "%d\n"
        file.write_text(re.sub(r"PID='\d*'", "PID='%d'" % bystander.pid, text).replace("%d", str(bystander.pid)))
    demo.run("status", expect=1)
    demo.run("stop")
    demo.run("start")
    demo.run("stop")
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()


def test_stop_when_the_folder_is_gone(demos):
    demo = demos()
    demo.start()
    assert demo.processes() != []
    shutil.rmtree(demo.folder)
    assert demo.run("stop") == ""
    assert demo.processes() == []
    assert "no demo in" in demo.run("stop")


def test_side_by_side(demos):
    one, two = demos(), demos()
    one.start()
    # Somebody who has the first demo's environment exported starts a second one.
    two.start(environ={key: value for key, value in one.env().items() if key != "HANJI_BIN"})
    one.request("PUT", "/docs/only-in-one", b"1")
    with pytest.raises(urllib.error.HTTPError, match="404"):
        two.request("GET", "/docs/only-in-one")
    one.run("stop")
    two.run("status")


def test_two_starts_at_once(demos):
    demo = demos()
    command = [str(SCRIPT), "start", "--data", str(demo.folder), "--port", str(demo.ports[0]), "--tls-port",
               str(demo.ports[1])]
    both = [subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, "HANJI_BIN": str(harness.BINARY)})
            for _ in range(2)]
    assert [process.wait(60) for process in both] == [0, 0]
    assert len(demo.processes()) == 4, "supervisor, worker, nginx's master, nginx's worker"


def test_a_port_in_use_is_an_error_and_starts_nothing(demos):
    demo = demos()
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", demo.ports[1]))
        sock.listen()
        said = demo.run("start", "--port", demo.ports[0], "--tls-port", demo.ports[1], expect=1)
    assert "port %d is in use" % demo.ports[1] in said
    assert demo.processes() == []
    demo.start()
    other = harness.free_port()
    assert "runs on the ports" in demo.run("start", "--port", other, expect=1)
    demo.run("status")


def test_a_hanji_that_does_not_start_is_an_error_and_leaves_nothing(demos):
    demo = demos()
    demo.start()
    demo.run("stop")
    conf = demo.folder / "hanji.conf"
    conf.write_text(conf.read_text() + "threads = many\n")
    said = demo.run("start", expect=1)
    assert "threads" in said, "the reason is shown"
    assert demo.processes() == []


@pytest.mark.parametrize("words", [[], ["begin"], ["start", "--port"], ["start", "stop"], ["start", "--port", "x"],
                                   ["start", "--port", "0"], ["start", "--port", "70000"], ["start", "--prot", "8080"],
                                   ["status", "--data", "/nowhere/at/all"]])
def test_wrong_usage(words):
    done = subprocess.run([str(SCRIPT), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=20)
    assert done.returncode in (1, 2)


def blobs(demo):
    return [path for path in (demo.folder / "blobs").iterdir() if not path.name.startswith(".")]


def test_nginx_sends_large_documents_from_a_file_that_nobody_else_reads(demos):
    demo = demos()
    demo.start()
    body = os.urandom(2 << 20)
    demo.request("PUT", "/docs/large", body)
    for _ in range(2):
        assert demo.request("GET", "/docs/large") == (200, body)
    made, = blobs(demo)
    assert made.stat().st_mode & 0o7777 == 0o640 and (demo.folder / "blobs").stat().st_mode & 0o7777 == 0o2750
    assert made.stat().st_gid == grp.getgrnam(harness.nginx_user()[1]).gr_gid
    assert "doubt" not in (demo.folder / "log" / "hanji.log").read_text()
    assert "error" not in re.sub(r"\[notice\].*", "", (demo.folder / "nginx" / "logs" / "error.log").read_text())


def test_a_demo_from_before_there_were_blobs_gets_a_folder(demos):
    demo = demos()
    demo.start()
    demo.run("stop")
    conf = demo.folder / "hanji.conf"
    conf.write_text(re.sub(r"blobs = .*\n", "", conf.read_text()))
    demo.run("start")
    body = os.urandom(1 << 20)
    demo.request("PUT", "/docs/large", body)
    assert [demo.request("GET", "/docs/large") for _ in range(2)] == [(200, body)] * 2
    assert len(blobs(demo)) == 1


def test_a_folder_for_blobs_of_ones_own_is_where_nginx_looks(demos):
    demo = demos()
    demo.start()
    demo.run("stop")
    conf, own = demo.folder / "hanji.conf", demo.folder / "elsewhere"
    conf.write_text(re.sub(r"blobs = .*", "blobs = %s" % own, conf.read_text()))
    demo.run("start")
    body = os.urandom(1 << 20)
    demo.request("PUT", "/docs/large", body)
    assert [demo.request("GET", "/docs/large") for _ in range(2)] == [(200, body)] * 2
    assert len(list(own.iterdir())) == 1 and not blobs(demo)


def test_a_demo_has_keys_and_keeps_them(demos):
    demo = demos()
    demo.start()
    keys = demo.folder / "data" / "keys"
    names = sorted(path.name for path in keys.iterdir())
    assert len(names) == 4 and keys.stat().st_mode & 0o777 == 0o700
    assert demo.request("GET", "/keys", token=False)[0] == 200
    demo.run("stop")
    demo.start()
    assert sorted(path.name for path in keys.iterdir()) == names
