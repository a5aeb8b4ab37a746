"""HTTP/1.1 as the tests need it: paths are sent as given, headers are kept in order, answers are plain values."""
import http.client
import json
import socket
import ssl

from contract import CONTRACT, OF_NGINX, below, normal


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def header(self, name, default=None):
        found = self.all(name)
        return found[0] if found else default

    def all(self, name):
        return [value for key, value in self.headers if key.lower() == name.lower()]

    def json(self):
        return parse_json(self.body)

    def __repr__(self):
        return "Answer(%d, %r, %r)" % (self.status, self.headers, self.body[:300])


def parse_json(data):
    """Strict: an object that names a member twice is refused."""
    def unique(items):
        names = [name for name, _ in items]
        assert len(names) == len(set(names)), "named twice: %s" % names
        return dict(items)
    return json.loads(data.decode("utf-8"), object_pairs_hook=unique)


class Link:
    """A keep-alive connection that is opened again when the other side closed it between requests."""

    def __init__(self, host, port, authority=None, timeout=30, mount="", source=None):
        """`source`: the address to come from."""
        source = (source, 0) if source else None
        self.mount = mount
        if authority:
            context = ssl.create_default_context(cafile=str(authority))
            self.conn = http.client.HTTPSConnection(host, port, timeout=timeout, context=context,
                                                     source_address=source)
        else:
            self.conn = http.client.HTTPConnection(host, port, timeout=timeout, source_address=source)

    def request(self, method, path, body=None, headers=None):
        try:
            return self.once(method, path, body, headers)
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError, ssl.SSLEOFError, ssl.SSLZeroReturnError):
            self.conn.close()
            return self.once(method, path, body, headers)

    def once(self, method, path, body=None, headers=None):
        """One request, never sent twice.  `headers`: a dict or a list of pairs; a generator as body is chunked."""
        items = list(headers.items() if isinstance(headers, dict) else headers or [])
        chunked = body is not None and not isinstance(body, (bytes, bytearray, str))
        if isinstance(body, str):
            body = body.encode()
        try:
            self.conn.putrequest(method, path, skip_accept_encoding=True)
            for name, value in items:
                self.conn.putheader(name, value)
            names = [name.lower() for name, _ in items]
            if chunked:
                self.conn.putheader("Transfer-Encoding", "chunked")
            elif body is not None and "content-length" not in names:
                self.conn.putheader("Content-Length", str(len(body)))
            self.conn.endheaders(body, encode_chunked=chunked)
            got = self.conn.getresponse()
            answer = Answer(got.status, got.getheaders(), got.read())
        except BaseException:
            self.conn.close()
            raise
        judge(method, path, answer, self.mount)
        return answer

    def close(self):
        self.conn.close()


def judge(method, target, answer, mount=""):
    """Holds an answer of hanji against the contract.  What is not hanji's has no X-Hanji-Status; nor have files that nginx
    sends for it."""
    path = below(normal(target), mount)
    listed = path is not None and CONTRACT.template(path)
    by_hanji = answer.header("X-Hanji-Status") and (listed or answer.status == 404) or listed and answer.status < 400
    if path is not None and by_hanji and answer.status not in OF_NGINX:
        CONTRACT.judge(method, path, answer.status, answer.headers, answer.body)


def parse(data):
    """The last response in the output of `curl -i` (interim ones and their bodies are none)."""
    while True:
        head, _, body = data.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        status = int(lines[0].split()[1])
        if status >= 200:
            break
        data = body
    headers = [tuple(part.strip() for part in line.split(":", 1)) for line in lines[1:]]
    return Answer(status, headers, body)


def read(sock, head=False):
    """One response from a plain socket."""
    got = http.client.HTTPResponse(sock, method="HEAD" if head else "GET")
    got.begin()
    return Answer(got.status, got.getheaders(), got.read())


def exchange(host, port, data, timeout=5.0):
    """Sends bytes and returns everything until the other side closes or the time is over."""
    out = b""
    with socket.create_connection((host, port), timeout) as sock:
        sock.sendall(data)
        try:
            while True:
                more = sock.recv(65536)
                if not more:
                    return out
                out += more
        except socket.timeout:
            return out
