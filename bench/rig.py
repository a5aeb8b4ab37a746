"""What a measurement runs on: one nginx, some hanjis, in a folder of their own; all of it gone afterwards.

    rig.py run [--sync-us N] COMMAND...   starts an nginx and one hanji with 1,000 documents, runs COMMAND with BENCH_PORT,
                                          BENCH_SOCKET, BENCH_TOKEN, BENCH_WORKER (pid) and BENCH_NGINX (pid of its
                                          worker) in the environment, ends both

CPU placement, the same for every side of a comparison: nginx's one worker alone on CPU 0; hanji and the load generator
share CPU 1 (a machine with more CPUs: hanji on 1, the generator on 2). So a static file has the generator's CPU to
itself, while a hanji answer shares it: what the comparison may get wrong, it gets wrong against hanji.

nginx: one worker, access log off, sendfile on where a location does not say otherwise, no open_file_cache, keep-alive
without a limit of requests, hanji's locations from nginx-conf/ as they are. The database lies on the disk of build/, the sockets and static files below /tmp.
"""

import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(HERE)
BUILD = os.path.join(TOP, "build")
TOOLS = os.path.join(BUILD, "bench")

CPUS = sorted(os.sched_getaffinity(0))
NGINX_CPU = CPUS[0]
HANJI_CPU = CPUS[min(1, len(CPUS) - 1)]
LOAD_CPU = CPUS[min(2, len(CPUS) - 1)]

FILLER = "hanji-keeps-every-byte-of-a-document-just-as-it-was-written/"
NONCE = "00000000"
SIZE = 64

ROOT = os.geteuid() == 0
NGINX_USER = "www-data" if ROOT else None


class RigError(Exception):
    """Something did not start, answer or stop."""


def body(key, size=SIZE, nonce=NONCE):
    """The document of a key number, as bench/work.c makes it."""
    tail = (nonce + FILLER[len(nonce):] + FILLER * (size // len(FILLER) + 1))[:size - 8]
    return f"{key:08d}{tail}"


def free_ports(count):
    """Different ones: all are held until the last is known."""
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()


def pinned(cpu, *command):
    """A command on one CPU that ends when we do."""
    return ["setpriv", "--pdeathsig", "TERM", "taskset", "-c", str(cpu), *command]


def clean_environment(**more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("HANJI_")}
    env.update(more)
    return env


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except FileNotFoundError:
        return []


def cpu_seconds(pid):
    """CPU time of all threads that live, to the nanosecond where the kernel tells it."""
    total = 0.0
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as file:
                total += int(file.read().split()[0]) / 1e9
        except FileNotFoundError:
            with open(f"/proc/{pid}/task/{task}/stat", encoding="ascii") as file:
                fields = file.read().rsplit(")", 1)[1].split()
            total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def machine_seconds():
    """CPU time of the whole machine since it started: used by processes, and taken by the hypervisor ("steal")."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(word) for word in file.readline().split()[1:]]
    hertz = os.sysconf("SC_CLK_TCK")
    return (sum(ticks[:3]) + ticks[5] + ticks[6]) / hertz, ticks[7] / hertz


def memory_kib(pid):
    """Rss, Pss and Private_Dirty of a process in KiB."""
    wanted = {"Rss": "rss", "Pss": "pss", "Private_Dirty": "private_dirty"}
    found = {}
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        for line in file:
            name = line.split(":")[0]
            if name in wanted:
                found[wanted[name]] = int(line.split()[1])
    return found


def read_libraries(binary):
    """Reads a program and its libraries, so that the page cache holds them whole: a start then maps as much as it ever does."""
    listed = subprocess.run(["ldd", binary], stdout=subprocess.PIPE, text=True, check=True).stdout
    for path in [binary, *re.findall(r"/\S+", listed)]:
        with open(path, "rb") as file:
            while file.read(1 << 20):
                pass


def stop(process, patience_s=10):
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(patience_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Hanji:
    """One server on a file of its own. `sync_us` puts it under slowsync; `options` are its flags."""

    def __init__(self, rig, name, documents=1000, sync_us=0, options=()):
        self.rig = rig
        self.name = name
        self.port = rig.ports[name]
        self.socket = rig.socket_of(name)
        self.folder = os.path.join(rig.data, name)
        self.database = os.path.join(self.folder, "hanji.db")
        self.conf = os.path.join(self.folder, "hanji.conf")
        self.log = os.path.join(self.folder, "hanji.log")
        self.stats = os.path.join(self.folder, "sync.stats")
        self.options = [str(option) for option in options]
        self.sync_us = sync_us
        self.process = None
        self.alone = None  # the supervisor's end, when we are it
        os.makedirs(self.folder)
        with open(self.conf, "w", encoding="ascii") as file:
            file.write(f"database = {self.database}\nsocket = {self.socket}\nsocket_mode = 0660\n")
            if NGINX_USER:
                file.write(f"socket_group = {NGINX_USER}\n")
        self.token = self.command("token", "new", "--name", "bench", "--read", "/", "--write", "/").strip()
        if documents:
            fill(self.database, "bench", documents)

    def command(self, *words):
        done = subprocess.run([self.rig.binary, "-c", self.conf, *words], env=clean_environment(), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if done.returncode != 0:
            raise RigError(f"hanji {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def start(self):
        env = clean_environment()
        if self.sync_us:
            env.update(LD_PRELOAD=os.path.join(TOOLS, "slowsync.so"), HANJI_SYNC_US=str(self.sync_us),
                       HANJI_SYNC_STATS=self.stats)
        self.spawn(["serve", *self.options], env)
        self.wait_ready()
        return self

    def spawn(self, words, env, wrapper=(), **more):
        command = pinned(HANJI_CPU, *wrapper, self.rig.binary, "-c", self.conf, *words)
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **more)
        self.rig.started.append(self.process)

    def start_worker(self, wrapper, patience_s=60):
        """The worker alone, below `wrapper`, with this program in the supervisor's place: two listening sockets and one
        to report on, as fcgi/supervise.c hands them over. For tools that cannot follow the supervisor's exec."""
        ours, theirs = socket.socketpair()
        with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as control, theirs:
            for one, path in ((listener, self.socket), (control, self.database + ".control")):
                if os.path.exists(path):
                    os.unlink(path)
                one.bind(path)
                os.chmod(path, 0o777)  # nginx may be another user
                one.listen(4096)
                one.setblocking(False)
            fds = [listener.fileno(), control.fileno(), theirs.fileno()]
            self.spawn(["worker", *self.options], clean_environment(HANJI_WORKER_FDS=",".join(map(str, fds))), wrapper,
                       pass_fds=fds)
        self.alone = ours
        ours.settimeout(patience_s)
        if not ours.recv(1):
            raise RigError(f"the worker of {self.name} did not start")
        return self

    def wait_ready(self, patience_s=10):
        """Until the socket takes a connection; sends nothing."""
        end = time.monotonic() + patience_s
        while time.monotonic() < end:
            if self.process.poll() is not None:
                break
            with socket.socket(socket.AF_UNIX) as probe:
                try:
                    probe.connect(self.socket)
                    if self.worker():
                        return
                except OSError:
                    pass
            time.sleep(0.02)
        with open(self.log, encoding="utf-8", errors="replace") as file:
            raise RigError(f"hanji {self.name} did not start:\n{file.read()[-2000:]}")

    def worker(self):
        """The worker's pid: the supervisor's child. 0 when there is none."""
        if self.alone:
            return self.process.pid
        mine = children(self.process.pid)
        return mine[0] if mine else 0

    def stop(self):
        if self.process:
            stop(self.process)
            self.process = None
        if self.alone:
            self.alone.close()
            self.alone = None

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    def get(self, path):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}",
                                         headers={"Authorization": f"Bearer {self.token}"})
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.read()

    def status(self):
        return json.loads(self.get("/status"))

    def syncs(self):
        """What slowsync counted so far: calls, ns in real syncs, ns in all."""
        with open(self.stats, "rb") as file:
            data = file.read(24)
        return [int.from_bytes(data[i:i + 8], sys.byteorder) for i in (0, 8, 16)]


class NoWork:
    """bench/fcginull: a backend that answers with the headers of `like` (a running Hanji) and looks nothing up. `size` is that of
    its documents; with `files`, a folder of Rig.static_files, it lets nginx send those instead."""

    OF_NGINX = {"server", "date", "connection", "content-length"}

    def __init__(self, rig, name, like, size=SIZE, files=None):
        self.port = rig.ports[name]
        self.token = like.token
        request = urllib.request.Request(f"http://127.0.0.1:{like.port}/docs/bench/{0:08d}",
                                         headers={"Authorization": f"Bearer {like.token}"})
        with urllib.request.urlopen(request, timeout=10) as response:
            headers = [f"{k}: {v}" for k, v in response.getheaders() if k.lower() not in self.OF_NGINX]
        options = ["-s", str(size)]
        if files:
            options = ["-x"]
            headers.append(f"X-Accel-Redirect: /bench-files/{files}/{{}}")
        path = rig.socket_of(name)
        if os.path.exists(path):
            os.unlink(path)
        self.process = start_backend(rig, path, "fcginull", *options, path, *headers)

    def worker(self):
        return self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        stop(self.process)


def start_backend(rig, path, program, *words):
    """A FastCGI backend of this folder that listens on `path`, where nginx may connect to it."""
    process = subprocess.Popen(pinned(HANJI_CPU, os.path.join(TOOLS, program), *words), stdin=subprocess.DEVNULL,
                               env=clean_environment())
    rig.started.append(process)
    for _ in range(100):
        if os.path.exists(path):
            break
        time.sleep(0.02)
    os.chmod(path, 0o777)
    return process


def fill(database, prefix, count, size=SIZE, folder=0):
    """Documents PREFIX/00000000 … by SQL, as a person would insert them; the triggers keep the file's invariants. With `folder`
    that many of them lie in each folder: PREFIX/00000000/00000000 …"""
    filler = body(0, size)[8:].replace("'", "''")
    name = f"printf('{prefix}/%08d/%08d', i / {folder}, i % {folder})" if folder else f"printf('{prefix}/%08d', i)"
    script = f"""
        PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0; PRAGMA synchronous=OFF; PRAGMA cache_size=-262144;
        BEGIN IMMEDIATE;
        WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {count})
        INSERT INTO doc(key, type, body) SELECT {name}, 'text/plain', printf('%08d', i) || '{filler}' FROM n;
        COMMIT;
        PRAGMA wal_checkpoint(TRUNCATE);
    """
    done = subprocess.run(["sqlite3", "-bail", database], input=script, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        raise RigError(f"sqlite3: {done.stdout.strip()}")


NGINX_CONF = """\
{user}
daemon off;
worker_processes 1;
worker_cpu_affinity {affinity};
worker_rlimit_nofile 16384;
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections {connections}; }}
http {{
    access_log off;
    server_tokens off;
    sendfile on;
    keepalive_requests 1000000000;
    keepalive_timeout 75s;
    client_body_temp_path {folder}/temp/client_body;
    fastcgi_temp_path {folder}/temp/fastcgi;
    proxy_temp_path {folder}/temp/proxy;
    scgi_temp_path {folder}/temp/scgi;
    uwsgi_temp_path {folder}/temp/uwsgi;
    server {{
        listen 127.0.0.1:{static_port};
        root {folder}/www;
        location /on/ {{ sendfile on; }}
        location /off/ {{ sendfile off; }}
    }}
{servers}
}}
"""

SERVER_CONF = """\
    include {folder}/{name}-upstream.conf;
    server {{
        listen 127.0.0.1:{port};
        listen 127.0.0.1:{http2_port} http2;
        include {folder}/{name}-locations.conf;
        location /bench-files/ {{ internal; alias {folder}/www/on/; sendfile on; etag off; }}
    }}
"""


class Rig:
    """The folder, the nginx, and room for hanjis with the given names. Use as a context manager."""

    def __init__(self, names, binary=None, connections=8192):
        self.binary = binary or os.path.join(BUILD, "hanji")
        self.names = names
        self.started = []
        self.connections = connections
        ports = free_ports(2 * len(names) + 1)
        self.ports = dict(zip(names, ports))
        self.http2_ports = dict(zip(names, ports[len(names):]))
        self.static_port = ports[-1]
        self.folder = tempfile.mkdtemp(prefix="hanji-bench-")
        os.chmod(self.folder, 0o755)
        self.data = tempfile.mkdtemp(prefix="data-", dir=TOOLS)
        os.chmod(self.data, 0o711)  # nginx sends files from below it
        self.nginx = None

    def socket_of(self, name):
        return os.path.join(self.folder, f"{name}.sock")

    def __enter__(self):
        try:
            self.write_files()
            self.start_nginx()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in reversed(self.started):
            stop(process)
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.rmtree(self.data, ignore_errors=True)

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def write_files(self):
        for name in ("www/on", "www/off", "temp"):
            os.makedirs(os.path.join(self.folder, name))
        for name in ("on", "off"):
            self.write(f"www/{name}/file", body(0))
        for name in self.names:
            self.write_site(name)
        servers = "".join(SERVER_CONF.format(folder=self.folder, name=name, port=self.ports[name],
                                             http2_port=self.http2_ports[name]) for name in self.names)
        self.write("nginx.conf", NGINX_CONF.format(
            user=f"user {NGINX_USER};" if NGINX_USER else "", folder=self.folder, static_port=self.static_port,
            affinity=bin(1 << NGINX_CPU)[2:], servers=servers, connections=self.connections))

    def static_files(self, name, size, count):
        """/on/NAME/00000000 … with the bytes of the documents of that size."""
        os.makedirs(os.path.join(self.folder, "www/on", name))
        for key in range(count):
            self.write(f"www/on/{name}/{key:08d}", body(key, size))

    def write_site(self, name):
        """The files of nginx-conf/ as they are, but for the socket and the names. What is for the whole of nginx (maps, zones)
        stands once, with the first name."""
        def source(part):
            with open(os.path.join(TOP, "nginx-conf", f"hanji-{part}.conf"), encoding="utf-8") as file:
                return file.read()
        upstream = source("upstream").replace("unix:/run/hanji/hanji.sock", f"unix:{self.socket_of(name)}")
        if name != self.names[0]:
            upstream = re.search(r"(?ms)^upstream hanji \{.*?^\}", upstream).group()
        self.write(f"{name}-upstream.conf", re.sub(r"(?m)^upstream hanji ", f"upstream {name} ", upstream))
        self.write(f"{name}-params.conf", re.sub(r"(?m)^fastcgi_pass hanji;", f"fastcgi_pass {name};", source("params")))
        locations = re.sub(r"(?m)^(\s+)include snippets/hanji-params\.conf;", rf"\1include {self.folder}/{name}-params.conf;",
                           re.sub(r"(?m)^    fastcgi_pass hanji;", f"    fastcgi_pass {name};", source("locations")))
        blobs = os.path.join(self.data, name, "hanji.db.blobs/")
        locations = re.sub(r"(?m)^(\s+)alias /var/cache/hanji/blobs/;$", rf"\1alias {blobs};", locations)
        apps = os.path.join(self.data, name, "apps/")
        self.write(f"{name}-locations.conf", re.sub(r"(?m)^(\s+)alias /srv/hanji/apps/;$", rf"\1alias {apps};", locations))

    def start_nginx(self):
        conf = os.path.join(self.folder, "nginx.conf")
        log = os.path.join(self.folder, "error.log")
        self.nginx = subprocess.Popen(pinned(NGINX_CPU, "nginx", "-e", log, "-p", self.folder, "-c", conf),
                                      env=clean_environment(PATH=os.environ["PATH"] + ":/usr/sbin"),
                                      stdin=subprocess.DEVNULL)
        self.started.append(self.nginx)
        for _ in range(250):
            if self.nginx_worker():
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", self.static_port)) == 0:
                        return
            if self.nginx.poll() is not None:
                break
            time.sleep(0.02)
        with open(log, encoding="utf-8", errors="replace") as file:
            raise RigError(f"nginx did not start:\n{file.read()[-2000:]}")

    def nginx_worker(self):
        mine = children(self.nginx.pid)
        return mine[0] if mine else 0

    def nginx_errors(self):
        """Lines of nginx's error log so far: there should be none, but that large bodies take the way over a file."""
        with open(os.path.join(self.folder, "error.log"), encoding="utf-8", errors="replace") as file:
            return [line for line in file.read().splitlines() if "is buffered to a temporary file" not in line]


def load_command(tool, target, requests, *, token=None, **options):
    """`load` or `fcgiload load` as a list of words. Options by their letters: c=64, d=3, n=1000, k=1000, D=True, …"""
    command = [os.path.join(TOOLS, tool)] + (["load"] if tool == "fcgiload" else [])
    for request in requests:
        command += ["-r", request]
    if token:
        command += ["-H", f"Authorization: Bearer {token}"]
    for letter, value in options.items():
        command += [f"-{letter}"] if value is True else [f"-{letter}", str(value)]
    return command + [str(word) for word in target]


def start_load(tool, target, requests, **options):
    """A load beside us. With -E (E=True) it lasts until finish_load is called."""
    return subprocess.Popen(pinned(LOAD_CPU, *load_command(tool, target, requests, **options)),
                            stdin=subprocess.PIPE if options.get("E") else subprocess.DEVNULL, stdout=subprocess.PIPE,
                            text=True, env=clean_environment())


def finish_load(process, patience_s=180):
    try:
        out, _ = process.communicate("", timeout=patience_s)
    except subprocess.TimeoutExpired as late:
        stop(process)
        raise RigError(f"a load did not end within {patience_s} s") from late
    if not out.strip():
        raise RigError(f"the load generator failed with status {process.returncode}")
    return json.loads(out)


def run_load(tool, target, requests, **options):
    return finish_load(start_load(tool, target, requests, **options))


def on_signal(number, _):
    raise SystemExit(128 + number)


def catch_signals():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, on_signal)


def raise_files(wanted=16384):
    """Room for both ends of 10,000 connections."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))


def main(words):
    sync_us = 0
    if words[:1] == ["run"]:
        words = words[1:]
        if words[:1] == ["--sync-us"]:
            sync_us, words = int(words[1]), words[2:]
        if words:
            catch_signals()
            raise_files()
            with Rig(["main"]) as rig, Hanji(rig, "main", sync_us=sync_us) as hanji:
                env = clean_environment(BENCH_PORT=str(hanji.port), BENCH_SOCKET=hanji.socket, BENCH_TOKEN=hanji.token,
                                        BENCH_WORKER=str(hanji.worker()), BENCH_NGINX=str(rig.nginx_worker()),
                                        BENCH_CPU=str(LOAD_CPU))
                return subprocess.run(words, env=env, check=False).returncode
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
