#!/bin/sh
# interop.sh: `make interop`. hanji and the official libraries of Standard Webhooks, Python's and JavaScript's, in both
# directions: they verify what hanji-courier sends, and an inbox of hanji takes what they sign. The libraries are installed
# from PyPI and npm into a temporary folder, which is why this is not part of `make test`; that has vectors and a verifier
# of its own (tests/e2e/test_webhook_libs.py). Needs python3 with venv, node and npm, and what deploy/demo.sh needs.
set -eu

cd "$(dirname "$0")/.."
for tool in python3 node npm; do
    command -v $tool >/dev/null || { echo "interop.sh: missing: $tool" >&2; exit 2; }
done
dir=$(mktemp -d /tmp/hanji-interop.XXXXXX)
trap 'deploy/demo.sh stop --data "$dir/demo" >/dev/null || true; rm -rf "$dir"' EXIT
chmod 755 "$dir"

python=/usr/bin/python3
[ -x "$python" ] || python=python3
"$python" -m venv "$dir/venv"
"$dir/venv/bin/pip" -q --disable-pip-version-check install standardwebhooks
(mkdir "$dir/node" && cd "$dir/node" && npm install --silent --no-fund --no-audit standardwebhooks >/dev/null)

ports() { # two free ones
    "$python" -c 'import socket
held = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
print(*[one.getsockname()[1] for one in held])'
}
# shellcheck disable=SC2046 # two words
set -- $(ports)
deploy/demo.sh start --data "$dir/demo" --port "$1" --tls-port "$2" >/dev/null
# shellcheck disable=SC1091 # made by demo.sh
. "$dir/demo/demo.env"
export HANJI_URL HANJI_TOKEN HANJI_BIN HANJI_CONF
NODE_PATH="$dir/node/node_modules" "$dir/venv/bin/python" tests/interop/interop.py
