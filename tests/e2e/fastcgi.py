"""A FastCGI client that builds its records byte by byte, so that tests can also send wrong ones.

`record()`, `begin()`, `params()`, `stdin()` give bytes; `request()` is a whole valid request; `Client` is one
connection to the server's unix socket.  Nothing here checks what it is told to send.
"""
import socket
import struct
import time

from contract import CONTRACT, below

BEGIN, ABORT, END, PARAMS, STDIN, STDOUT, STDERR, DATA = 1, 2, 3, 4, 5, 6, 7, 8
GET_VALUES, GET_VALUES_RESULT, UNKNOWN_TYPE = 9, 10, 11
RESPONDER, AUTHORIZER, FILTER = 1, 2, 3
KEEP_CONN = 1
REQUEST_COMPLETE, CANT_MPX_CONN, OVERLOADED, UNKNOWN_ROLE = 0, 1, 2, 3

LARGEST = 65535


def record(kind, content=b"", rid=1, padding=0, version=1, length=None):
    """One record; `length` lies about the content's length when given."""
    n = len(content) if length is None else length
    return struct.pack("!BBHHBB", version, kind, rid, n, padding, 0) + content + b"\0" * padding


def begin(rid=1, role=RESPONDER, flags=KEEP_CONN):
    return record(BEGIN, struct.pack("!HB5x", role, flags), rid)


def length(n):
    """A name or value length as the protocol spells it: one byte, or four with the top bit set."""
    return bytes([n]) if n < 128 else struct.pack("!I", n | 0x80000000)


def as_bytes(value):
    return value if isinstance(value, bytes) else str(value).encode()


def pairs(items):
    """Name-value pairs of a dict or a list of pairs."""
    out = []
    for name, value in items.items() if isinstance(items, dict) else items:
        name, value = as_bytes(name), as_bytes(value)
        out.append(length(len(name)) + length(len(value)) + name + value)
    return b"".join(out)


def stream(kind, content, rid=1, piece=LARGEST, padding=0, end=True):
    """`content` as records of at most `piece` bytes, with the empty one that ends the stream."""
    out = [record(kind, content[i:i + piece], rid, padding) for i in range(0, len(content), piece)]
    if end:
        out.append(record(kind, b"", rid))
    return b"".join(out)


def variables(method="GET", path="/health", token=None, query="", body=None, extra=()):
    """The parameters nginx would send, as a list of pairs; `extra` replaces or adds."""
    out = {"REQUEST_METHOD": method, "DOCUMENT_URI": path, "SCRIPT_NAME": "", "QUERY_STRING": query,
           "CONTENT_TYPE": "", "CONTENT_LENGTH": "" if body is None else len(body),
           "REQUEST_ID": "0123456789abcdef0123456789abcdef", "HTTPS": "", "REMOTE_ADDR": "127.0.0.1",
           "HTTP_HOST": "localhost"}
    if token:
        out["HTTP_AUTHORIZATION"] = "Bearer " + token
    out.update(dict(extra))
    return [(name, value) for name, value in out.items() if value is not None]


def request(method="GET", path="/health", token=None, query="", body=None, extra=(), rid=1, flags=KEEP_CONN):
    """A whole valid request."""
    return (begin(rid, RESPONDER, flags)
            + stream(PARAMS, pairs(variables(method, path, token, query, body, extra)), rid)
            + stream(STDIN, body or b"", rid))


def unpack(data):
    """The name-value pairs in a stream's content."""
    out, at = [], 0
    while at < len(data):
        sizes = []
        for _ in range(2):
            wide = data[at] & 0x80
            sizes.append(struct.unpack_from("!I", data, at)[0] & 0x7FFFFFFF if wide else data[at])
            at += 4 if wide else 1
        name, value = data[at:at + sizes[0]], data[at + sizes[0]:at + sum(sizes)]
        if len(name) + len(value) != sum(sizes):
            raise ValueError("cut")
        out.append((name, value))
        at += sum(sizes)
    return out


class Sent:
    """What went over a connection, to know which request an answer is for; gives up at the first oddity."""

    def __init__(self):
        self.bytes = bytearray()
        self.sane = True

    def add(self, data):
        if self.sane:
            self.bytes += data

    def next(self):
        """The parameters of the oldest request that was sent whole, which is forgotten; None if that is not clear."""
        at, params, end = 0, bytearray(), 0
        while self.sane and at + 8 <= len(self.bytes):
            version, kind, rid, n, padding = struct.unpack_from("!BBHHB", self.bytes, at)
            # an ABORT may be for a request that stands before it, which then has no answer
            self.sane = version == 1 and rid != 0 and kind in (BEGIN, PARAMS, STDIN)
            if kind == PARAMS and not end:
                params += self.bytes[at + 8:at + 8 + n]
            at += 8 + n + padding
            if kind == STDIN and n == 0 and not end:
                end = at
        self.sane = self.sane and end > 0
        if not self.sane:
            return None
        del self.bytes[:end]
        try:
            return unpack(bytes(params))
        except (ValueError, IndexError, struct.error):
            self.sane = False
            return None


def judge(items, answer):
    """Holds an answer against the contract; where a parameter is missing or repeated, only its being there."""
    found = dict(reversed(items or []))
    method, path = found.get(b"REQUEST_METHOD"), found.get(b"DOCUMENT_URI")
    path = path and below(path, found.get(b"SCRIPT_NAME", b"").decode("latin-1").rstrip("/"))
    if method and path and not path.startswith(b"/control/"):
        CONTRACT.judge(method.decode("latin-1"), path, answer.status, answer.headers, answer.body)


def request_of(items, body=b"", rid=1, flags=KEEP_CONN):
    """A whole request of just these parameters."""
    return begin(rid, RESPONDER, flags) + stream(PARAMS, pairs(items), rid) + stream(STDIN, body, rid)


class Closed(Exception):
    """The server closed the connection."""


class Record:
    def __init__(self, version, kind, rid, content):
        self.version, self.kind, self.rid, self.content = version, kind, rid, content

    def __repr__(self):
        return "Record(version=%d, kind=%d, rid=%d, content=%r)" % (
            self.version, self.kind, self.rid, self.content[:200])


class Answer:
    """What came back for one request: status, headers (names in lower case), body, END_REQUEST's two fields."""

    def __init__(self, stdout, stderr, end):
        self.stdout, self.stderr = stdout, stderr
        self.app_status, self.protocol_status = struct.unpack("!IB3x", end)
        self.head, _, self.body = stdout.partition(b"\r\n\r\n")
        self.headers = [tuple(part.strip() for part in line.split(":", 1))
                        for line in self.head.decode("latin-1").split("\r\n") if ":" in line]
        self.status = int((self.header("status") or "0").split()[0])

    def header(self, name):
        found = [value for key, value in self.headers if key.lower() == name.lower()]
        return found[0] if found else None

    def __repr__(self):
        return "Answer(%d, %r)" % (self.status, self.stdout[:300])


class Client:
    """One connection.  Reads wait at most `timeout` seconds (TimeoutError); a closed connection raises Closed."""

    def __init__(self, path, timeout=5.0):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.timeout = timeout
        self.sock.settimeout(timeout)
        self.buffer = b""
        self.sent = Sent()
        self.connect(str(path))

    def connect(self, path):
        """Connects; while the backlog is full a unix socket says so at once, so it is tried again."""
        deadline = time.monotonic() + self.timeout
        while True:
            try:
                return self.sock.connect(path)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    self.sock.close()
                    raise
                time.sleep(0.01)
            except OSError:
                self.sock.close()
                raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.sock.close()

    def send(self, data):
        """Sends all; Closed when the server hung up meanwhile (what it said before can still be read)."""
        self.sent.add(data)
        try:
            self.sock.sendall(data)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise Closed() from error

    def send_slowly(self, data, pause=0.0):
        """One byte a write."""
        for i in range(len(data)):
            self.send(data[i:i + 1])
            if pause:
                time.sleep(pause)

    def read(self, n, deadline):
        while len(self.buffer) < n:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError("no answer, only %r" % self.buffer[:100])
            self.sock.settimeout(left)
            try:
                more = self.sock.recv(65536)
            except ConnectionResetError as error:
                raise Closed() from error
            except socket.timeout as error:
                raise TimeoutError("no answer, only %r" % self.buffer[:100]) from error
            finally:
                self.sock.settimeout(self.timeout)
            if not more:
                raise Closed()
            self.buffer += more
        out, self.buffer = self.buffer[:n], self.buffer[n:]
        return out

    def record(self, timeout=None):
        deadline = time.monotonic() + (timeout or self.timeout)
        version, kind, rid, n, padding = struct.unpack("!BBHHBx", self.read(8, deadline))
        content = self.read(n + padding, deadline)[:n]
        return Record(version, kind, rid, content)

    def answer(self, rid=1, timeout=None):
        """Reads to this request's END_REQUEST; management records in between are skipped, others are an error."""
        stdout, stderr = [], []
        deadline = time.monotonic() + (timeout or self.timeout)
        while True:
            got = self.record(max(0.001, deadline - time.monotonic()))
            assert got.version == 1, got
            if got.rid == 0:
                continue
            assert got.rid == rid, got
            if got.kind == STDOUT:
                stdout.append(got.content)
            elif got.kind == STDERR:
                stderr.append(got.content)
            elif got.kind == END:
                assert len(got.content) == 8, got
                answer = Answer(b"".join(stdout), b"".join(stderr), got.content)
                judge(self.sent.next(), answer)
                return answer
            else:
                raise AssertionError("unexpected %r" % got)

    def ask(self, *args, timeout=None, **kwargs):
        """One valid request (see request()) and its answer."""
        self.send(request(*args, **kwargs))
        return self.answer(kwargs.get("rid", 1), timeout)

    def closed(self, timeout=None):
        """True when the server closes the connection within the time; what it sends before can still be read."""
        deadline = time.monotonic() + (timeout or self.timeout)
        kept = b""
        try:
            while True:
                kept += self.read(len(self.buffer) + 1, deadline)
        except Closed:
            return True
        except TimeoutError:
            return False
        finally:
            self.buffer = kept + self.buffer

    def silent(self, seconds):
        """True when nothing at all comes for this long and the connection stays open."""
        if self.buffer:
            return False
        try:
            self.record(seconds)
        except TimeoutError:
            return not self.buffer
        except Closed:
            return False
        return False


def ask(path, *args, timeout=5.0, **kwargs):
    """One request over a connection of its own."""
    with Client(path, timeout) as client:
        return client.ask(*args, **kwargs)
