"""A server with a courier, for tests of deliveries: lines, sends, and what became of them."""
import base64
import json
import os
import signal

import fastcgi
import harness

# Pauses of a second instead of days; what the schedule is, the unit tests look at.
QUICK = {"retry_first": "20ms", "retry_most": "40ms", "send_timeout": "600ms", "courier_idle": "20s"}


class Outbox:
    def __init__(self, hanji):
        self.hanji = hanji
        self.hanji.command("key", "new")
        self.hanji.start()
        self.hanji.token = self.hanji.new_token("sender", read=["/"], write=["/"])

    def line(self, name, url, *flags, private=True):
        """A line; it may deliver to loopback."""
        self.hanji.command("line", "add", name, url, "--allow-private", *flags)
        if not private:
            self.write("UPDATE line SET private = 0 WHERE name = ?", name)
        return name

    def write(self, sql, *values):
        link = self.hanji.sqlite(readonly=False)
        link.execute(sql, values)
        link.close()

    def send(self, line, body=b"{}", type="application/json"):
        """Its id."""
        answer = self.hanji.ask("POST", "/sends/" + line, body=body, extra=[("CONTENT_TYPE", type)])
        assert answer.status == 202, answer.body
        return json.loads(answer.body)["id"]

    def send_many(self, line, bodies):
        ops = [{"op": "send", "line": line, "text": body, "type": "text/plain"} for body in bodies]
        answer = self.hanji.ask("POST", "/batch", body=json.dumps(ops).encode(),
                                extra=[("CONTENT_TYPE", "application/json")])
        assert answer.status == 200, answer.body
        return [one["id"] for one in json.loads(answer.body)["results"]]

    def one(self, sql, *values):
        rows = self.hanji.rows(sql, *values)
        return rows[0] if rows else None

    def state(self, message):
        """(state, tries, reason)"""
        return self.one("SELECT state, tries, reason FROM outbox WHERE id = ?", message)

    def wait_state(self, message, state, timeout=10.0):
        harness.wait_for("%s to be %s" % (message, state), lambda: self.state(message)[0] == state, timeout)

    def wait_quiet(self, line, timeout=20.0):
        """Until nothing waits on a line."""
        harness.wait_for("the end of %s" % line, lambda: self.one("SELECT count(*) FROM outbox WHERE state = 'waiting' AND "
                         "line = (SELECT id FROM line WHERE name = ?)", line)[0] == 0, timeout, 0.02)

    def attempts(self, message):
        """[(status, outcome, detail)], in order."""
        return self.hanji.rows("SELECT a.status, a.outcome, a.detail FROM attempt AS a, outbox AS o "
                               "WHERE o.id = ? AND a.message = o.n ORDER BY a.number", message)

    def outcomes(self, message):
        return [outcome for _, outcome, _ in self.attempts(message)]

    def wait_attempts(self, message, count, timeout=10.0):
        harness.wait_for("%d tries of %s" % (count, message), lambda: len(self.attempts(message)) >= count, timeout)
        return self.outcomes(message)

    def line_state(self, line):
        return self.one("SELECT state, reason FROM line WHERE name = ?", line)

    def couriers(self):
        return [pid for pid in harness.children(self.hanji.pid)
                if harness.command_line(pid)[0].endswith(b"hanji-courier")]

    def courier(self):
        return harness.wait_for("a courier", self.couriers)[0]

    def kill_courier(self):
        for pid in self.couriers():
            os.kill(pid, signal.SIGKILL)


def secret_bytes(text):
    """The bytes of whsec_…"""
    return base64.b64decode(text.strip()[len("whsec_"):])
