"""Starts and stops the real programs for the tests: hanji, nginx in front of it, the operator's commands.

Everything lives in a directory of its own and on free ports.  A process that is started here is stopped here, by its
pid; after a stop the exit code and the log are judged.
"""
import grp
import itertools
import os
import pathlib
import pwd
import random
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time

import fastcgi
import http1
from contract import CONTRACT

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
BINARY = pathlib.Path(os.environ.get("HANJI_BIN") or REPOSITORY / "build" / "hanji").resolve()

# Lines that no test may cause unless it says so.
ALARM = re.compile(r"AddressSanitizer|LeakSanitizer|ThreadSanitizer|UndefinedBehaviorSanitizer|runtime error:"
                   r"|Assertion|level=error|lvl=error|\berror:", re.I)


def sanitized():
    """True for a build with address or thread sanitizer; such builds get more time."""
    data = BINARY.read_bytes()
    return b"__asan_init" in data or b"__tsan_init" in data


def clean_env(**more):
    """The environment for programs under test: no HANJI_* from outside."""
    env = {key: value for key, value in os.environ.items()
           if not key.startswith("HANJI_") and key not in ("LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES",
                                                           "NOTIFY_SOCKET")}
    env.update({key: str(value) for key, value in more.items()})
    return env


PORTS = set()       # given before: nobody may listen there yet


def free_port():
    """A port of this process of the test run alone, and none that the kernel would give to a client meanwhile."""
    place, places = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]), int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    while True:
        port = random.randrange(10000, 32000) // places * places + place
        with socket.socket() as sock:
            try:
                sock.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in PORTS:
            PORTS.add(port)
            return port


def wait_for(what, condition, timeout=10.0, pause=0.005):
    """Waits until condition() is true and returns what it gave."""
    deadline = time.monotonic() + timeout
    while True:
        got = condition()
        if got:
            return got
        if time.monotonic() > deadline:
            raise AssertionError("waited %.1f s in vain for %s" % (timeout, what))
        time.sleep(pause)


def alive(pid):
    """True while the process runs (a zombie does not)."""
    try:
        return pathlib.Path("/proc/%d/stat" % pid).read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def processes():
    """All pids of this moment.  (A glob below /proc looks into each, and fails on one that has just ended.)"""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def children(pid):
    found = []
    for one in processes():
        try:
            state, parent = pathlib.Path("/proc/%d/stat" % one).read_text().rpartition(")")[2].split()[:2]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(parent) == pid and state not in "ZX":
            found.append(one)
    return sorted(found)


def command_line(pid):
    try:
        return pathlib.Path("/proc/%d/cmdline" % pid).read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return []


def descriptors(pid):
    return len(os.listdir("/proc/%d/fd" % pid))


def resident_bytes(pid):
    status = pathlib.Path("/proc/%d/status" % pid).read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1)) * 1024


def nginx_user():
    """(user, group) that nginx's workers run as: Debian's when we are root, else our own."""
    if os.geteuid() == 0:
        return "www-data", "www-data"
    return pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(os.getegid()).gr_name


class Hanji:
    """One server (supervisor and worker) with its own file and sockets in `base`."""

    running = []

    def __init__(self, base, **settings):
        self.base = pathlib.Path(base)
        self.base.mkdir(mode=0o755, parents=True, exist_ok=True)
        self.database = self.base / "hanji.db"
        self.socket = self.base / "hanji.sock"
        self.log = self.base / "hanji.log"
        self.conf = self.base / "hanji.conf"
        self.settings = {"database": self.database, "socket": self.socket, "socket_group": nginx_user()[1],
                         "drain_timeout": "5s",
                         "apps": self.base / "apps",
                         # asked directly, it must send bodies itself; a Site has a web server that does
                         "sendfile_header": "none"}
        self.settings.update(settings)
        if self.settings["apps"]:
            pathlib.Path(self.settings["apps"]).mkdir(exist_ok=True)
        self.env = {}
        self.binary = BINARY
        self.expected = []          # patterns of log lines that the running test expects
        self.process = None
        self.known_worker = None    # the worker that must still be there after the test
        self.judged = 0             # the log is judged up to here
        self.token = None
        self.loads = 0
        self.write_conf()
        self.log.touch()

    def write_conf(self):
        self.conf.write_text("".join("%s = %s\n" % item for item in self.settings.items() if item[1] is not None))

    # operator's commands

    def command(self, *args, ok=True, stdin="", **env):
        """Runs `hanji -c CONF args…` and returns the finished process; `ok` demands exit code 0."""
        done = subprocess.run([str(BINARY), "-c", str(self.conf), *map(str, args)], input=stdin, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_env(**env), timeout=30)
        if ok:
            assert done.returncode == 0, (args, done)
        return done

    def new_token(self, name, read=(), write=(), expires=None):
        args = ["token", "new", "--name", name]
        for prefix in read:
            args += ["--read", prefix]
        for prefix in write:
            args += ["--write", prefix]
        if expires:
            args += ["--expires", expires]
        return self.command(*args).stdout.strip()

    # apps

    def app(self, name, files, ini="read = public\nwrite = public\n", token=None):
        """Writes an app's folder ({path: text or bytes}) and waits until it serves in this form."""
        self.loads += 1
        since = self.mark()
        mark, folder = "load %d" % self.loads, pathlib.Path(self.settings["apps"]) / name
        for path, text in {"app.ini": ini, "loaded.html": mark, **files}.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(text, str):
                text = text.encode()
            if not target.exists() or target.read_bytes() != text:
                target.write_bytes(text)
        try:
            wait_for("the app %s" % name, lambda: self.ask("GET", "/apps/%s/loaded" % name).body == mark.encode())
        except AssertionError as fault:
            told = [line for line in self.log_since(since).splitlines() if "/loaded" not in line]
            raise AssertionError("%s:\n%s" % (fault, "\n".join(told[-20:]))) from None

    # life

    def start(self, *flags, listener=None, wait=True):
        """Starts `hanji serve`; `listener` is a listening socket to pass as LISTEN_FDS does."""
        assert self.process is None
        command = [str(self.binary), "-c", str(self.conf), "serve", *flags]
        keep = ()
        if listener is not None:
            command = [sys.executable, str(HERE / "listenfds.py"), str(listener.fileno()), *command]
            keep = (listener.fileno(),)
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=keep,
                                            env=clean_env(**self.env), start_new_session=True)
        self.running.append(self)
        if wait:
            self.wait_healthy()
            self.known_worker = self.worker()
        return self

    def wait_healthy(self, timeout=15.0):
        def healthy():
            if self.process.poll() is not None:
                raise AssertionError("hanji left with %s:\n%s" % (self.process.returncode,
                        self.log.read_text()[-2000:]))
            try:
                return fastcgi.ask(self.socket, timeout=2).status == 200
            except (OSError, fastcgi.Closed, TimeoutError):
                return False
        wait_for("a healthy server", healthy, timeout)

    @property
    def pid(self):
        return self.process.pid

    def workers(self):
        """The supervisor's children that are workers; during a hand-over there are two, the newer last."""
        return [pid for pid in children(self.pid) if b"worker" in command_line(pid)]

    def worker(self, timeout=10.0):
        return wait_for("a worker", lambda: self.workers()[-1:], timeout)[0]

    def expect_new_worker(self, log="the worker ended"):
        """The test ends the worker: another one afterwards, and log lines like this, are no fault."""
        self.known_worker = None
        self.expected.append(log)

    def stop(self, timeout=40.0, expect=0):
        """SIGTERM, then the exit code is judged; whatever is left after the time is killed and is a failure."""
        if self.process is None:
            return
        process, self.process = self.process, None
        self.running.remove(self)
        left = children(process.pid) if process.poll() is None else []
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            code = "still running %d s after SIGTERM" % timeout
        stray = [pid for pid in left if alive(pid)]
        for pid in stray:
            os.kill(pid, signal.SIGKILL)
        if expect is not None:
            assert code == expect, "hanji ended with %s:\n%s" % (code, self.log.read_text()[-3000:])
            assert not stray, "left behind: %s" % stray
            self.judge_log()

    def judge(self):
        """Fails when the server does not answer, has another worker than before, or has logged an alarm."""
        try:
            self.judge_log()
            assert self.process.poll() is None, "the supervisor left with %s" % self.process.returncode
            self.wait_healthy(5)
            worker = self.worker()
            assert self.known_worker in (None, worker), "the worker was restarted:\n%s" % self.log.read_text()[-3000:]
        finally:
            self.expected = []
            self.known_worker = (self.workers() or [None])[-1]

    # the log

    def mark(self):
        return self.log.stat().st_size

    def log_since(self, mark):
        with open(self.log, "rb") as log:
            log.seek(mark)
            return log.read().decode("utf-8", "backslashreplace")

    def judge_log(self):
        """Fails on log lines since the last call that are alarms and that no test expected."""
        start, self.judged = self.judged, self.mark()
        alarms = [line for line in self.log_since(start).splitlines()
                  if ALARM.search(line) and not any(re.search(pattern, line) for pattern in self.expected)]
        assert not alarms, "in the log:\n" + "\n".join(alarms[:20])

    # raw access

    def client(self, timeout=5.0):
        return fastcgi.Client(self.socket, timeout)

    def ask(self, *args, **kwargs):
        kwargs.setdefault("token", self.token)
        return fastcgi.ask(self.socket, *args, **kwargs)

    def status(self):
        return http1.parse_json(self.ask("GET", "/status").body)

    def sqlite(self, readonly=True):
        """A plain connection of another program to the file; it never checkpoints."""
        link = sqlite3.connect("file:%s?mode=%s" % (self.database, "ro" if readonly else "rw"), uri=True, timeout=10,
                               isolation_level=None, check_same_thread=False)
        link.execute("PRAGMA wal_autocheckpoint=0")
        return link

    def rows(self, sql, *values):
        link = self.sqlite()
        try:
            return link.execute(sql, values).fetchall()
        finally:
            link.close()


class Nginx:
    """An nginx of our own in front of one hanji, built from the repository's nginx-conf/."""

    def __init__(self, base, backend, certificate, mount=""):
        self.base = pathlib.Path(base)
        self.base.mkdir(mode=0o755, parents=True, exist_ok=True)
        self.backend, self.certificate, self.mount = backend, certificate, mount
        self.port, self.tls_port, self.h2_port = free_port(), free_port(), free_port()
        self.errors, self.access, self.seen = (self.base / name for name in ("error.log", "access.log", "seen.log"))
        self.process = None
        self.conf = self.base / "nginx.conf"
        self.write_conf()

    def write_conf(self):
        for name, text in repository_conf(self.backend, self.mount).items():
            (self.base / ("%s.conf" % name)).write_text(text)
        template = (HERE / "nginx.conf.in").read_text()
        values = {"base": self.base, "port": self.port, "tls_port": self.tls_port, "h2_port": self.h2_port,
                  "user": "user %s %s;" % nginx_user() if os.geteuid() == 0 else "",
                  "certificate": self.certificate[0], "key": self.certificate[1]}
        self.conf.write_text(re.sub(r"@(\w+)@", lambda found: str(values[found.group(1)]), template))

    def start(self):
        check = subprocess.run([self.binary(), "-t", "-p", str(self.base), "-c", str(self.conf)],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=20)
        assert check.returncode == 0, check.stdout
        self.process = subprocess.Popen([self.binary(), "-p", str(self.base), "-c", str(self.conf)],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, start_new_session=True)
        wait_for("nginx", self.listening)
        return self

    @staticmethod
    def binary():
        return shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")

    def listening(self):
        assert self.process.poll() is None, self.errors.read_text()
        try:
            for port in (self.port, self.tls_port, self.h2_port):
                socket.create_connection(("127.0.0.1", port), 1).close()
            return True
        except OSError:
            return False

    def stop(self):
        if self.process is None:
            return
        process, self.process = self.process, None
        left = children(process.pid)
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        wait_for("nginx's workers to leave", lambda: not [pid for pid in left if alive(pid)])
        CONTRACT.take_log(self.seen, self.mount)
        self.seen.unlink()


def repository_conf(hanji, mount):
    """The repository's nginx-conf/ for this server and mount prefix: {name: text}."""
    texts = {name: (REPOSITORY / "nginx-conf" / ("hanji-%s.conf" % name)).read_text()
             for name in ("upstream", "locations", "params")}

    def change(name, pattern, new):
        texts[name], count = re.subn(pattern, new, texts[name], flags=re.M)
        assert count, "nothing like %s in hanji-%s.conf" % (pattern, name)
    change("upstream", r"unix:/[^\s;]+", "unix:%s" % hanji.socket)
    change("locations", r"^    alias /var/cache/hanji/blobs/;$", "    alias %s.blobs/;" % hanji.database)
    change("locations", r"^    alias /srv/hanji/apps/;$", "    alias %s/;" % hanji.settings["apps"])
    change("locations", r"include snippets/hanji-params\.conf", "include params.conf")
    change("locations", r"^ *access_log off;\n", "")       # every request is counted
    if mount:
        change("locations", r"^location (= )?/", r"location \1%s/" % mount)
        for name in ("params", "locations"):
            change(name, r"^( *)fastcgi_param SCRIPT_NAME .*$", r"\1fastcgi_param SCRIPT_NAME %s;" % mount)
    return texts


class Site:
    """hanji behind nginx, with a token that may do everything."""

    def __init__(self, base, certificate, mount="", **settings):
        settings.setdefault("sendfile_header", "x-accel-redirect")
        self.hanji = Hanji(base / "hanji", **settings)
        self.nginx = Nginx(base / "nginx", self.hanji, certificate, mount)
        self.mount = mount
        self.links = {}
        self.token = None

    def start(self):
        self.hanji.start()
        try:
            self.nginx.start()
            self.token = self.hanji.token = self.hanji.new_token("full", read=["/"], write=["/"])
        except BaseException:
            self.stop(expect=None)
            raise
        return self

    def stop(self, expect=0):
        for link in self.links.values():
            link.close()
        try:
            self.nginx.stop()
        finally:
            self.hanji.stop(expect=expect)

    def link(self, tls=False):
        """A new keep-alive connection."""
        if tls:
            return http1.Link("127.0.0.1", self.nginx.tls_port, self.nginx.certificate[0], mount=self.mount)
        return http1.Link("127.0.0.1", self.nginx.port, mount=self.mount)

    def http(self, method, path, body=None, headers=None, token=True, tls=False):
        """One request over HTTP/1.1 on a kept connection; `token`: True the full one, None none, or a string."""
        if tls not in self.links:
            self.links[tls] = self.link(tls)
        return self.links[tls].request(method, self.mount + path, body, self.headers(headers, token))

    def app(self, name, files, ini="read = public\nwrite = public\n"):
        self.hanji.app(name, files, ini)

    def headers(self, headers, token):
        out = dict(headers or {})
        if token is True:
            token = self.token
        if token is not None:
            out.setdefault("Authorization", "Bearer " + token)
        return out

    def put(self, path, body=b"", headers=None, **more):
        return self.http("PUT", path, body, headers, **more)

    def get(self, path, headers=None, **more):
        return self.http("GET", path, None, headers, **more)

    def head(self, path, headers=None, **more):
        return self.http("HEAD", path, None, headers, **more)

    def delete(self, path, headers=None, **more):
        return self.http("DELETE", path, None, headers, **more)

    def url(self, scheme="http"):
        port = {"http": self.nginx.port, "https": self.nginx.tls_port, "h2c": self.nginx.h2_port}[scheme]
        return "%s://127.0.0.1:%d%s" % ("https" if scheme == "https" else "http", port, self.mount)

    def curl(self, *args, stdin=b"", timeout=30):
        """Runs curl; returns an http1.Answer of the last response."""
        command = ["curl", "-sS", "-i", "--path-as-is", "--cacert", str(self.nginx.certificate[0]),
                   "-H", "Authorization: Bearer " + self.token, *map(str, args)]
        done = subprocess.run(command, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout)
        assert done.returncode == 0, (command, done.stderr)
        return http1.parse(done.stdout)

    def bytes_over_tcp(self, data, timeout=5.0):
        """Sends exactly these bytes to the plain port and reads one answer."""
        with socket.create_connection(("127.0.0.1", self.nginx.port), timeout) as sock:
            sock.sendall(data)
            return http1.read(sock, head=data.startswith(b"HEAD"))


def make_certificate(base):
    """A self-signed certificate for 127.0.0.1; (certificate, key)."""
    certificate, key = base / "tls.pem", base / "tls.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost",
                    "-keyout", str(key), "-out", str(certificate)],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return certificate, key


def unused(path):
    """The path, or another like it where that is there already: a module's fixture is made again when its tests do not all run in a row."""
    numbered = (path.with_name("%s-%d" % (path.name, number)) for number in itertools.count(2))
    return next(one for one in itertools.chain([path], numbered) if not one.exists())


def make_base():
    """A directory that nginx's workers can pass through."""
    base = pathlib.Path(tempfile.mkdtemp(prefix="hanji-e2e."))
    base.chmod(0o755)
    return base
