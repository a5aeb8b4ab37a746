"""Clients that watch the change feed: a stream of events over HTTP, or straight from the socket."""
import json
import re
import socket
import ssl
import threading
import time

import fastcgi


class Event:
    def __init__(self, number, data):
        self.id, self.data = number, json.loads(data)

    def __repr__(self):
        return "Event(%s, %r)" % (self.id, self.data)


class Parser:
    """Of text/event-stream (HTML Living Standard 9.2.6), strict about what hanji does not send."""

    def __init__(self):
        self.rest, self.events, self.comments, self.last, self.retry = b"", [], 0, None, None

    def feed(self, data):
        self.rest += data
        while b"\n\n" in self.rest:
            block, _, self.rest = self.rest.partition(b"\n\n")
            self.block(block)

    def block(self, block):
        data = []
        for line in block.split(b"\n"):
            name, _, value = line.partition(b":")
            if not name:
                self.comments += 1
            elif name == b"data":
                data.append(value[1:].decode("utf-8"))
            elif name == b"id":
                self.last = int(value)
            elif name == b"retry":
                self.retry = int(value)
            else:
                raise AssertionError("a strange line: %r" % line)
        if data:
            self.events.append(Event(self.last, "\n".join(data)))


class Watcher:
    """One stream through nginx over HTTP/1.1, read by a thread of its own until it ends or is closed."""

    def __init__(self, site, query="", last=None, token=True, tls=False, headers=None):
        headers = site.headers({"Host": "localhost", "Accept": "text/event-stream", **(headers or {})}, token)
        if last is not None:
            headers["Last-Event-ID"] = str(last)
        port = site.nginx.tls_port if tls else site.nginx.port
        self.sock = socket.create_connection(("127.0.0.1", port), 10)
        if tls:
            self.sock = ssl.create_default_context(cafile=str(site.nginx.certificate[0])).wrap_socket(
                self.sock, server_hostname="127.0.0.1")
        self.sock.sendall(("GET %s/changes%s HTTP/1.1\r\n%s\r\n" % (site.mount, query, "".join(
            "%s: %s\r\n" % item for item in headers.items()))).encode())
        self.parser, self.fault, self.ended, self.closing = Parser(), None, False, False
        self.head, self.rest = self.read_head()
        self.status = int(self.head.split(b" ", 2)[1])
        self.changed = threading.Condition()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def read_head(self):
        data = b""
        while b"\r\n\r\n" not in data:
            more = self.sock.recv(65536)
            assert more, data
            data += more
        head, _, rest = data.partition(b"\r\n\r\n")
        return head, rest

    def header(self, name):
        found = re.search(rb"^%s: *(.*?)\r?$" % name.encode(), self.head, re.M | re.I)
        return found and found.group(1).decode()

    def run(self):
        """Takes the chunks apart."""
        try:
            self.sock.settimeout(60)
            data = self.rest
            while True:
                while True:
                    size, found, rest = data.partition(b"\r\n")
                    if not found or len(rest) < int(size, 16) + 2:
                        break
                    n = int(size, 16)
                    with self.changed:
                        self.parser.feed(rest[:n])
                        self.ended = self.ended or n == 0
                        self.changed.notify_all()
                    data = rest[n + 2:]
                    if n == 0:
                        return
                more = self.sock.recv(65536)
                if not more:
                    return
                data += more
        except (OSError, ValueError, AssertionError) as fault:
            if not self.closing:
                self.fault = fault
        finally:
            with self.changed:
                self.done = True
                self.changed.notify_all()

    def wait(self, condition, timeout=10):
        """Waits until condition(self) is true; fails when the stream ends or the time is over before."""
        with self.changed:
            assert self.changed.wait_for(lambda: condition(self), timeout), (self.events, self.parser.rest, self.fault)

    def wait_for(self, count, timeout=10):
        self.wait(lambda watcher: len(watcher.events) >= count, timeout)
        return self.events

    def wait_end(self, timeout=10):
        self.thread.join(timeout)
        assert not self.thread.is_alive() and not self.fault, self.fault

    @property
    def events(self):
        return self.parser.events

    @property
    def seqs(self):
        return [event.data["seq"] for event in self.events]

    def close(self):
        self.closing = True
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.thread.join(10)
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def open_stream(hanji, query="", last=None, timeout=10.0):
    """A stream straight from the socket: (client, its head); more comes as STDOUT records."""
    client = hanji.client(timeout)
    extra = {"HTTP_ACCEPT": "text/event-stream"}
    if last is not None:
        extra["HTTP_LAST_EVENT_ID"] = last
    client.send(fastcgi.request("GET", "/changes", hanji.token, query=query, extra=extra))
    return client, client.record().content


def read_until(client, parser, condition, timeout=10):
    """Feeds what comes to the parser until condition(parser)."""
    deadline = time.monotonic() + timeout
    while not condition(parser):
        got = client.record(max(0.001, deadline - time.monotonic()))
        assert got.kind == fastcgi.STDOUT, got
        parser.feed(got.content)
