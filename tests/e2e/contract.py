"""The contract: docs/openapi.yaml, and what the tests have seen of it.

Every answer that a test's client reads is judged at once (status, headers, JSON against the schema); what is wrong is
in `faults` and fails the test.  Every request in the access logs of the tests' nginx, and every one sent straight to the
socket, is counted; at the end of a whole run `verdict()` names what was answered and is not written down, and what is
written down and was never answered.  tests/lint/openapi.py uses the same reader.
"""
import ast
import collections
import json
import pathlib
import re
import threading
import urllib.parse

import jsonschema
import yaml

FILE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "openapi.yaml"
METHODS = ("get", "head", "put", "post", "patch", "delete", "options", "trace")

# What the web server or the framing adds to an answer.
CARRIED = {"server", "date", "connection", "content-length", "content-type", "content-encoding", "transfer-encoding",
           "vary", "status", "x-hanji-status", "keep-alive"}
# Made by nginx also when hanji was asked: the client left, hanji was not there, hanji was too slow.
CLIENT_LEFT = 499
OF_NGINX = (CLIENT_LEFT, 502, 504)
EVERY_SO_MANY = 50      # bodies of one kind that are judged after the first ones


class Unique(yaml.CSafeLoader):
    """A name that stands twice in a mapping is an error, not the last one."""

    def construct_mapping(self, node, deep=False):
        names = [self.construct_object(key, deep=True) for key, _ in node.value]
        for name in names:
            if names.count(name) > 1:
                raise yaml.YAMLError("%s: named twice%s" % (name, node.start_mark))
        return super().construct_mapping(node, deep)


def normal(target):
    """The path of a request target as nginx hands it on: decoded once, slashes merged, dots resolved; bytes."""
    raw = target if isinstance(target, bytes) else target.encode("utf-8", "surrogateescape")
    raw = re.split(rb"[?#]", re.sub(rb"^https?://[^/?#]*", b"", raw, flags=re.I))[0]
    parts, out = urllib.parse.unquote_to_bytes(raw).split(b"/"), []
    for part in parts:
        if part == b"..":
            out = out[:-1]
        elif part not in (b"", b"."):
            out.append(part)
    return b"/" + b"/".join(out) + (b"/" if out and parts[-1] in (b"", b".", b"..") else b"")


class Contract:
    def __init__(self, path=FILE):
        self.document = yaml.load(path.read_text(encoding="utf-8"), Unique)
        paths = {**self.document["paths"], **self.document.get("x-internal", {})}
        self.patterns = [(self.pattern(template), template) for template in paths]
        self.patterns.sort(key=lambda pair: "{" in pair[1])      # those without parameters first
        self.operations = {(template, method.upper()): self.whole(item[method]["responses"])
                           for template, item in paths.items() for method in (*METHODS, "any") if method in item}
        self.unlisted = {kind: self.whole(found) for kind, found in self.document["x-unlisted"].items()}
        self.by_nginx = self.whole(self.document.get("x-by-nginx", {}))
        self.lock = threading.Lock()
        self.seen = collections.Counter()       # (template or "path" or "method", method, status)
        self.strange = {}                       # the same of what is not written down: an example
        self.faults = []
        self.judged = collections.Counter()
        self.judges = {}

    # reading

    @staticmethod
    def pattern(template):
        """Parameters may hold slashes, but what ends in one is a collection."""
        last = r".*[^/]" if template.endswith("}") else ""
        body = re.sub(r"\\{\w+\\}$", "", re.escape(template)) if last else re.escape(template)
        return re.compile(re.sub(r"\\{\w+\\}", ".+", body).encode() + last.encode(), re.S)

    def resolve(self, value):
        while isinstance(value, dict) and "$ref" in value:
            at = self.document
            for name in value["$ref"].removeprefix("#/").split("/"):
                at = at[name.replace("~1", "/").replace("~0", "~")]
            value = at
        return value

    def whole(self, responses):
        return {int(status) if str(status).isdigit() else status: self.resolve(response)
                for status, response in responses.items()}

    def is_listed(self, path):
        """True for an address that clients may ask."""
        return path is not None and self.template(path) in self.document["paths"]

    def template(self, path):
        return next((template for pattern, template in self.patterns if pattern.fullmatch(path)), None)

    # seeing

    def count(self, method, path, status):
        """Notes one answer; returns its description, or None where there is none."""
        if isinstance(method, bytes):
            method = method.decode("latin-1")
        template = self.template(path)
        listed = next((name for name in (method, "ANY") if (template, name) in self.operations), method)
        operation = self.operations.get((template, listed))
        key = (template, listed, status)
        if operation is None:
            kind = "path" if template is None else "method"
            key, operation = (kind, "", status), self.unlisted[kind]
        with self.lock:
            if status in operation or "default" in operation:
                self.seen[key] += 1
            else:
                self.strange.setdefault((template or "any other", method, status), "%s %r" % (method, path))
        return operation.get(status, operation.get("default"))

    def judge(self, method, path, status, headers, body):
        """One answer of hanji to a test's client: `path` is normal, `headers` pairs."""
        response = self.count(method, path, status)
        if response is None:
            return
        headers = [(name.lower(), value) for name, value in headers]
        kind = next((value for name, value in headers if name == "content-type"), "").split(";")[0].strip().lower()
        wrong = self.judge_headers(response, headers)
        encoded = any(name == "content-encoding" for name, _ in headers)
        if method != "HEAD" and not encoded and status not in (204, 304):
            wrong += self.judge_body(response, kind, body, (path, method, status))
        if wrong:
            with self.lock:
                self.faults.append("%s %r: %d: %s" % (method, path, status, "; ".join(wrong)))

    def judge_headers(self, response, headers):
        wrong, named = [], {name.lower(): self.resolve(header) for name, header in
                            {**self.document.get("x-common-headers", {}), **response.get("headers", {})}.items()}
        for name, header in named.items():
            values = [value for other, value in headers if other == name]
            if not values and header.get("required"):
                wrong.append("no %s" % name)
            for value in values:
                wrong += self.by_schema(header["schema"], value, name)
        return wrong + ["%s is not written down" % name for name, _ in headers if name not in named and
                        name not in CARRIED]

    def judge_body(self, response, kind, body, key):
        content = response.get("content")
        if not content:
            return ["a body where none is written down"] if body else []
        if kind not in content:
            return [] if "*/*" in content else ["the type %r is not written down" % kind]
        if kind != "application/json" and not kind.endswith("+json"):
            return []
        with self.lock:
            self.judged[kind, self.template(key[0]), *key[1:]] += 1
            number = self.judged[kind, self.template(key[0]), *key[1:]]
        if number > EVERY_SO_MANY and number % EVERY_SO_MANY:
            return []
        try:
            value = json.loads(body.decode("utf-8"))
        except ValueError as error:
            return ["not JSON: %s" % error]
        return self.by_schema(content[kind]["schema"], value, "body")

    def by_schema(self, schema, value, what):
        with self.lock:
            if id(schema) not in self.judges:
                self.judges[id(schema)] = self.validator(schema)
            judge = self.judges[id(schema)]
        return ["%s%s: %s" % (what, "".join("[%r]" % step for step in error.absolute_path), error.message[:200])
                for error in judge.iter_errors(value)]

    def validator(self, schema):
        """For a schema of this document, whose $refs mean this document."""
        return jsonschema.Draft202012Validator({"components": self.document["components"], **schema})

    def take_log(self, path, mount):
        """Counts every request of an nginx's log (see nginx.conf.in) that hanji was asked for, and the errors in its place."""
        for line in path.read_bytes().splitlines():
            method, target, status, by_hanji, uri = line.split(b"\t", 4)
            found = below(normal(target), mount)
            if (found is None or self.template(found) is None) and self.template(below(uri, mount) or b""):
                # nginx asked for something in its place: an error_page, which is a GET
                method, found = b"HEAD" if method == b"HEAD" else b"GET", below(uri, mount)
            status, of_nginx = int(status), int(status) in OF_NGINX or not by_hanji
            if found is not None and not of_nginx:
                self.count(method, found, status)
            elif 400 <= status != CLIENT_LEFT and (target in (b"", b"-") or self.is_listed(found)):
                key = ("by nginx", "", status)
                with self.lock:
                    if status in self.by_nginx:
                        self.seen[key] += 1
                    else:
                        self.strange.setdefault(key, "%s %s" % (method.decode("latin-1"), target.decode("latin-1")))

    # the end

    def report(self):
        """What was seen, for another process."""
        return repr((dict(self.seen), self.strange))

    def take_report(self, report):
        seen, strange = ast.literal_eval(report)
        self.seen.update(seen)
        self.strange.update(strange)

    def verdict(self):
        """What a whole run found wrong, as lines."""
        wrong = ["not in docs/openapi.yaml: %s: %d, for example %s" % ((method + " " + template).strip(), status, example)
                 for (template, method, status), example in sorted(self.strange.items(), key=str)]
        listed = [(template, method, status) for (template, method), operation in self.operations.items()
                  for status in operation if status != "default"]
        listed += [(kind, "", status) for kind, statuses in {**self.unlisted, "by nginx": self.by_nginx}.items()
                   for status in statuses]
        names = {"path": "any of no path", "method": "any of no method"}
        return wrong + ["never seen: %s: %d" % ("%s %s" % (method, template) if method else names.get(template, template),
                                                status)
                        for template, method, status in listed if not self.seen[template, method, status]]


def below(path, mount):
    """The path below the mount; None for one that is not."""
    mount = mount.encode("latin-1")
    if path != mount and not path.startswith(mount + b"/"):
        return None
    return path[len(mount):] or b"/"


CONTRACT = Contract()
