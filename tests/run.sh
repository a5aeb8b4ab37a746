#!/bin/bash
# run.sh: the README's test command. Installs what is missing (Debian; sudo when not root), then `make test`, which builds
# everything and runs every stage. Ends non-zero if anything failed.
set -eu
cd "$(dirname "$0")/.."
sh deploy/deps.sh run build test
exec make test
