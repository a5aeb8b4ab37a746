"""See openapi.sh; tests/e2e/test_contract.py calls problems().  The form is checked by hand, because Debian has no validator of OpenAPI 3.1; schemas by jsonschema."""
import pathlib
import re
import sys

import jsonschema
import yaml

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))
try:
    import contract  # beside the tests, which use it too
except (yaml.YAMLError, KeyError, TypeError, AttributeError, ValueError) as fault:
    sys.exit("docs/openapi.yaml: leads nowhere or has another shape: %r" % fault)

ROOT = HERE.parents[1]
WRONG = []

# The members of each object of OpenAPI 3.1.0 (its chapter 4.8): those needed, and the others. `x-…` is always allowed.
OBJECTS = {
    "openapi": ("openapi info paths", "jsonSchemaDialect servers webhooks components security tags externalDocs"),
    "info": ("title version", "summary description termsOfService contact license"),
    "license": ("name", "identifier url"),
    "server": ("url", "description variables"),
    "variable": ("default", "enum description"),
    "tag": ("name", "description externalDocs"),
    "path": ("", "summary description servers parameters " + " ".join(contract.METHODS)),
    # a summary, a name and answers are not needed by the standard, but here
    "operation": ("operationId summary tags responses",
                  "description externalDocs parameters requestBody callbacks deprecated security servers"),
    "parameter": ("name in schema", "description required deprecated allowEmptyValue style explode allowReserved example "
                                    "examples"),
    "body": ("content", "description required"),
    "media": ("schema", "example examples encoding"),
    "example": ("", "summary description value externalValue"),
    "response": ("description", "headers content links"),
    "header": ("schema", "description required deprecated style explode example examples"),
    "components": ("", "schemas responses parameters examples requestBodies headers securitySchemes links callbacks "
                       "pathItems"),
    "security": ("type", "description name in scheme bearerFormat flows openIdConnectUrl"),
}


def say(where, text):
    WRONG.append("docs/openapi.yaml: %s: %s" % (where, text))


def members(kind, where, value):
    """Complains about members that are missing or that this kind of object does not have; {} if it is none."""
    if not isinstance(value, dict):
        say(where, "is no object")
        return {}
    needed, others = (set(words.split()) for words in OBJECTS[kind])
    for name in needed - set(value):
        say(where, "%s is missing" % name)
    for name in set(value) - needed - others:
        if not str(name).startswith("x-"):
            say(where, "%s has no place here" % name)
    return value


class Form:
    """One walk over the document."""

    def __init__(self, reader):
        self.reader, self.document = reader, reader.document
        self.used, self.ids, self.checked = set(), set(), set()

    def follow(self, where, value, kind):
        """The object behind a $ref, which must be of this kind of component."""
        if not isinstance(value, dict) or "$ref" not in value:
            return value
        ref = value["$ref"]
        if set(value) - {"$ref", "summary", "description"}:
            say(where, "members beside $ref are ignored")
        found = self.look_up(where, ref)
        if not ref.startswith("#/components/%s/" % kind):
            say(where, "%s is not in components/%s" % (ref, kind))
        return found

    def look_up(self, where, ref):
        self.used.add(ref)
        at = self.document
        for name in ref.removeprefix("#/").split("/"):
            if not isinstance(at, dict) or name not in at:
                say(where, "%s leads nowhere" % ref)
                return {}
            at = at[name]
        return at

    def schema(self, where, value):
        """A JSON Schema of draft 2020-12; every $ref in it leads somewhere, every name in `required` is a property."""
        if id(value) in self.checked:
            return
        self.checked.add(id(value))
        try:
            jsonschema.Draft202012Validator.check_schema(value)
        except jsonschema.SchemaError as error:
            say(where, error.message)
        self.refs(where, value)

    def refs(self, where, value):
        if isinstance(value, list):
            for one in value:
                self.refs(where, one)
        elif isinstance(value, dict):
            if isinstance(value.get("$ref"), str):
                self.look_up(where, value["$ref"])
            if isinstance(value.get("pattern"), str):
                self.pattern(where, value["pattern"])
            properties = value.get("properties")
            if isinstance(properties, dict) and isinstance(value.get("required"), list):
                for name in set(value["required"]) - set(properties):
                    say(where, "%s is required and no property" % name)
            for name, one in value.items():
                if name not in ("const", "enum", "default", "example", "examples"):
                    self.refs("%s.%s" % (where, name), one)
            for example in value.get("examples", []) if "type" in value else []:
                self.fits(where, value, example)

    @staticmethod
    def pattern(where, text):
        try:
            re.compile(text)
        except re.error as error:
            say(where, "the pattern %s: %s" % (text, error))

    def fits(self, where, schema, value):
        checker = self.reader.validator(schema)
        for error in checker.iter_errors(value):
            say(where, "the example does not fit: %s" % error.message)

    def examples(self, where, value):
        if "example" in value and "examples" in value:
            say(where, "example and examples exclude each other")
        if "example" in value:
            self.fits(where, value["schema"], value["example"])
        for name, example in value.get("examples", {}).items():
            example = members("example", where, self.follow(where, example, "examples"))
            if "value" in example:
                self.fits("%s.%s" % (where, name), value["schema"], example["value"])

    def parameter(self, where, value):
        value = members("parameter", where, self.follow(where, value, "parameters"))
        if value.get("in") not in ("path", "query", "header", "cookie"):
            say(where, "in is none of path, query, header, cookie")
        if value.get("in") == "path" and value.get("required") is not True:
            say(where, "a parameter of the path is required: true")
        if value.get("in") == "header" and str(value.get("name")).lower() in ("accept", "content-type", "authorization"):
            say(where, "OpenAPI ignores a parameter of this name")
        if not value.get("description"):
            say(where, "description is missing")
        self.schema(where, value.get("schema", {}))
        self.examples(where, value)
        return value.get("in"), value.get("name")

    def content(self, where, value):
        for kind, media in value.items():
            if not re.fullmatch(r"[\w!#$&^.+*-]+/[\w!#$&^.+*-]+", kind):
                say(where, "%s is no media type" % kind)
            media = members("media", "%s %s" % (where, kind), media)
            self.schema(where, media.get("schema", {}))
            self.examples("%s %s" % (where, kind), media)

    def header(self, where, name, value):
        value = members("header", where, self.follow(where, value, "headers"))
        if name.lower() == "content-type":
            say(where, "OpenAPI ignores a header of this name")
        self.schema(where, value.get("schema", {}))
        self.examples(where, value)

    def response(self, where, value):
        value = members("response", where, self.follow(where, value, "responses"))
        for name, header in value.get("headers", {}).items():
            self.header("%s.%s" % (where, name), name, header)
        self.content(where, value.get("content", {}))

    def requirements(self, where, value):
        for one in value:
            for name in one:
                if name not in self.document.get("components", {}).get("securitySchemes", {}):
                    say(where, "there is no security scheme %s" % name)
                self.used.add("#/components/securitySchemes/%s" % name)

    def operation(self, where, value, inherited, placeholders):
        value = members("operation", where, value)
        if value.get("operationId") in self.ids:
            say(where, "the operationId %s is not its own" % value["operationId"])
        self.ids.add(value.get("operationId"))
        for tag in value.get("tags", []):
            if tag not in [one["name"] for one in self.document.get("tags", [])]:
                say(where, "the tag %s is not described" % tag)
        own = [self.parameter("%s parameter %d" % (where, i), one) for i, one in enumerate(value.get("parameters", []))]
        if len(own) != len(set(own)):
            say(where, "a parameter stands twice")
        in_path = {name for place, name in own + inherited if place == "path"}
        if in_path != placeholders:
            say(where, "parameters of the path are %s, not %s" % (sorted(placeholders), sorted(in_path)))
        if "requestBody" in value:
            body = members("body", where, self.follow(where, value["requestBody"], "requestBodies"))
            self.content(where, body.get("content", {}))
        self.requirements(where, value.get("security", []))
        for status, response in value.get("responses", {}).items():
            if not isinstance(status, str) or not re.fullmatch(r"[1-5][0-9][0-9]|default", status):
                say(where, "%r is no status in quotes" % status)
            self.response("%s %s" % (where, status), response)

    def path(self, template, item):
        item = members("path", template, item)
        placeholders = re.findall(r"\{([^{}]*)\}", template)
        if not template.startswith("/") or re.sub(r"\{\w+\}", "", template).strip("/abcdefghijklmnopqrstuvwxyz-_."):
            say(template, "is no path")
        if len(placeholders) != len(set(placeholders)):
            say(template, "a parameter stands twice")
        shared = [self.parameter(template, one) for one in item.get("parameters", [])]
        for method in contract.METHODS:
            if method in item:
                self.operation("%s %s" % (method.upper(), template), item[method], shared, set(placeholders))

    def unlisted(self):
        """Our own part: answers to what is in no path, and headers that all have."""
        for name, header in self.document.get("x-common-headers", {}).items():
            self.header("x-common-headers.%s" % name, name, header)
        by_nginx = self.document.get("x-by-nginx", {})
        for kind, responses in {**self.document["x-unlisted"], "x-by-nginx": by_nginx}.items():
            for status, response in responses.items():
                self.response("x-unlisted.%s %s" % (kind, status), response)

    def internal(self):
        """Likewise: what only nginx asks."""
        for template, item in self.document.get("x-internal", {}).items():
            for method, operation in item.items():
                if method != "any":
                    say(template, "%s is not any" % method)
                self.operation("%s %s" % (method.upper(), template), operation, [], set())

    def head(self):
        document = members("openapi", "document", self.document)
        if not re.fullmatch(r"3\.1\.\d+", str(document.get("openapi"))):
            say("openapi", "is not 3.1")
        info = members("info", "info", document.get("info"))
        members("license", "license", info.get("license", {"name": ""}))
        for server in document.get("servers", []):
            server = members("server", "servers", server)
            for name, variable in server.get("variables", {}).items():
                members("variable", "servers.%s" % name, variable)
        for tag in document.get("tags", []):
            members("tag", "tags", tag)
        self.requirements("security", document.get("security", []))

    def components(self):
        parts = members("components", "components", self.document.get("components", {}))
        checks = {"schemas": self.schema, "responses": self.response, "parameters": self.parameter,
                  "headers": lambda where, value: self.header(where, "", value),
                  "securitySchemes": lambda where, value: members("security", where, value)}
        for part, items in parts.items():
            for name, value in items.items():
                if not re.fullmatch(r"[A-Za-z0-9._-]+", name):
                    say(part, "%s is no name" % name)
                if part in checks:
                    checks[part]("components.%s.%s" % (part, name), value)
        for part, items in parts.items():
            for name in items:
                if "#/components/%s/%s" % (part, name) not in self.used:
                    say("components.%s.%s" % (part, name), "is used nowhere")


def version():
    """The program's, which the document must name."""
    return re.search(r"^VERSION := (\S+)$", (ROOT / "Makefile").read_text(), re.M).group(1)


# What handlers tell apart below an address of the table.
DEEPER = {"/inbox/": {("{}/{}", method) for method in ("GET", "HEAD", "POST")}}


def routes():
    """{(template with {} for parameters, METHOD)} of handlers/routes.c."""
    text = (ROOT / "handlers" / "routes.c").read_text()
    names = {name: value for name, value in re.findall(r"#define (\w+) \(([^()]*)\)", text)}
    table = re.search(r"routes\[\] = \{(.*?)^\};", text, re.S | re.M)
    rows = re.findall(r'\{\s*"([^"]*)",\s*(\w+),\s*([\w\s|]+?),\s*(\w+),\s*(\w+)\s*\}', table.group(1)) if table else []
    if len(rows) != (table.group(1).count('{"') if table else -1):
        sys.exit("openapi.py: cannot read the table of handlers/routes.c any more")
    out = set()
    for path, match, methods, _, _ in rows:
        shapes = {"ROUTE_EXACT": [path], "ROUTE_ITEM": [path + "{}"],
                  "ROUTE_COLLECTION": [path, path + "{}/"], "ROUTE_SHAPE": [path.replace("*", "{}")],
                  "ROUTE_BELOW": [path + "{}/", path + "{}/{}"]}.get(match)
        if shapes is None:
            sys.exit("openapi.py: teach me %s of handlers/routes.c" % match)
        for name, value in names.items():
            methods = re.sub(r"\b%s\b" % name, value, methods)
        found = re.findall(r"METHOD_(\w+)", methods) or re.findall(r"^(ANY)_METHOD$", methods)
        if not found:
            sys.exit("openapi.py: teach me the methods %s of handlers/routes.c" % methods)
        out |= {(shape, method) for shape in shapes for method in found}
        if match == "ROUTE_ITEM":
            out |= {(path + shape, method) for shape, method in DEEPER.get(path, ())}
        if match == "ROUTE_BELOW":      # what every app has
            out |= {(path + one, method) for one in ("{}", "{}/_changes") for method in ("GET", "HEAD")}
    return {(path, method) for path, method in out if not path.startswith("/control/")}


def problems(path):
    """What is wrong with this document, as lines."""
    WRONG.clear()
    try:
        reader = contract.Contract(path)
    except yaml.YAMLError as fault:
        return ["docs/openapi.yaml: %s" % fault]
    except (KeyError, TypeError, AttributeError, ValueError) as fault:
        return ["docs/openapi.yaml: leads nowhere or has another shape: %r" % fault]
    form = Form(reader)
    form.head()
    for template, item in reader.document.get("paths", {}).items():
        form.path(template, item)
    form.unlisted()
    form.internal()
    form.components()
    if reader.document["info"]["version"] != version():
        say("info.version", "is not that of the Makefile, %s" % version())
    told = {(re.sub(r"\{\w+\}", "{}", template), method) for template, method in reader.operations}
    for path, method in sorted(routes() - told):
        say("%s %s" % (method, path), "is in handlers/routes.c and missing here")
    for path, method in sorted(told - routes()):
        say("%s %s" % (method, path), "is not in handlers/routes.c")
    return list(WRONG)


if __name__ == "__main__":
    lines = problems(contract.FILE)
    print("".join(line + "\n" for line in lines), end="", file=sys.stderr)
    sys.exit(1 if lines else 0)
