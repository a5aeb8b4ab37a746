"""A receiver of deliveries that does what a test tells it, however bad, and remembers what came.

It speaks HTTP/1.1 by hand, so that an answer may be anything: what a path is answered with is a list, of which the last
is used again and again.  An answer is a status, a tuple (status, headers, body), bytes as they are, or a function
(socket, request) that returns True when the connection goes on.
"""
import collections
import http
import socket
import ssl
import subprocess
import threading
import time

import harness

Request = collections.namedtuple("Request", "path headers body at")


def plain(status, headers=(), body=b""):
    lines = ["HTTP/1.1 %d %s" % (status, http.HTTPStatus(status).phrase if status in list(http.HTTPStatus) else "So"),
             "Content-Length: %d" % len(body)]
    lines += ["%s: %s" % item for item in dict(headers).items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class Receiver:
    """Listens on loopback, with TLS when it is given (certificate, key)."""

    def __init__(self, certificate=None, port=0):
        self.scripts = collections.defaultdict(lambda: [200])
        self.seen = collections.defaultdict(list)
        self.lock = threading.Lock()
        self.context = None
        if certificate:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(*certificate)
        self.listener = socket.create_server(("127.0.0.1", port or harness.free_port()), backlog=200)
        self.port = self.listener.getsockname()[1]
        self.open = set()
        self.connections = 0
        self.stopped = False
        threading.Thread(target=self.accept, daemon=True).start()

    def url(self, path="/", host="127.0.0.1"):
        return "%s://%s:%d%s" % ("https" if self.context else "http", host, self.port, path)

    def script(self, path, *answers):
        with self.lock:
            self.scripts[path] = list(answers)
        return self.url(path)

    def requests(self, path):
        with self.lock:
            return list(self.seen[path])

    def bodies(self, path):
        return [request.body for request in self.requests(path)]

    def wait(self, path, count, timeout=10.0):
        """The requests to a path, once there are so many."""
        harness.wait_for("%d deliveries to %s" % (count, path), lambda: len(self.requests(path)) >= count, timeout)
        return self.requests(path)

    def stop(self):
        self.stopped = True
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        with self.lock:
            for sock in self.open:
                try:
                    sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    # its own threads

    def accept(self):
        while not self.stopped:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock):
        with self.lock:
            self.open.add(sock)
        try:
            sock.settimeout(30)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            peer = self.context.wrap_socket(sock, server_side=True) if self.context else sock
            while not self.stopped and self.one(peer):
                pass
        except (OSError, ValueError):
            pass
        finally:
            with self.lock:
                self.open.discard(sock)
            sock.close()

    def one(self, sock):
        with sock.makefile("rb") as stream:
            first = stream.readline().split(b" ")
            if len(first) != 3:
                return False
            path = first[1].decode()
            headers = {}
            while True:
                line = stream.readline()
                if line in (b"\r\n", b""):
                    break
                name, _, value = line.decode("latin-1").partition(":")
                headers[name.lower()] = value.strip()
            body = stream.read(int(headers.get("content-length", 0)))
        request = Request(path, headers, body, time.monotonic())
        with self.lock:
            script = self.scripts[path]
            answer = script.pop(0) if len(script) > 1 else script[0]
            self.seen[path].append(request)
        if callable(answer):
            return answer(sock, request)
        if isinstance(answer, bytes):
            sock.sendall(answer)
            return False
        sock.sendall(plain(answer) if isinstance(answer, int) else plain(*answer))
        return True


def hang(seconds):
    """Answers 200, but late."""
    def answer(sock, _):
        time.sleep(seconds)
        sock.sendall(plain(200))
        return True
    return answer


def cut(sock, _):
    """Closes without a word."""
    return False


def flood(sock, _):
    """A body without an end."""
    sock.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    for _ in range(4000):
        sock.sendall(b"all work and no play makes jack a dull boy\n" * 100)
    return False


def openssl(*args):
    done = subprocess.run(["openssl", *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout


def make_authority(base, name):
    """An authority of one's own: (certificate, key)."""
    cert, key = base / (name + ".pem"), base / (name + ".key")
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=" + name,
            "-addext", "basicConstraints=critical,CA:TRUE", "-days", "30", "-out", cert, "-keyout", key)
    return cert, key


def make_certificate(base, name, authority, names="IP:127.0.0.1,DNS:localhost", expired=False):
    """A certificate that the authority signed: (certificate, key)."""
    cert, key, request = (base / (name + end) for end in (".pem", ".key", ".csr"))
    extensions, config = base / (name + ".ext"), base / (name + ".cnf")
    extensions.write_text("subjectAltName=%s\n" % names)
    (base / (name + ".txt")).write_text("")
    config.write_text("[ca]\ndefault_ca=c\n[c]\ndatabase=%s\nnew_certs_dir=%s\nrand_serial=yes\ndefault_md=sha256\n"
                      "policy=p\n[p]\ncommonName=supplied\n" % (base / (name + ".txt"), base))
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=" + name,
            "-out", request, "-keyout", key)
    times = ["-startdate", "200101000000Z", "-enddate", "210101000000Z"] if expired else ["-days", "30"]
    openssl("ca", "-batch", "-config", config, "-cert", authority[0], "-keyfile", authority[1], "-in", request,
            "-extfile", extensions, "-notext", "-out", cert, *times)
    return cert, key
