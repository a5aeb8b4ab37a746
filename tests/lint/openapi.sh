#!/bin/sh
# openapi.sh: docs/openapi.yaml is well-formed OpenAPI 3.1 and has the addresses and methods of handlers/routes.c, no
# more and no less. That its statuses, headers and schemas are those of the server, a whole run of the end-to-end tests shows.
cd "$(dirname "$0")/../.." && exec "${PYTHON:-/usr/bin/python3}" -B tests/lint/openapi.py
