-- Idempotency keys: what a request with one was answered, so that the same request again changes
-- nothing and is answered the same.
--
-- id: in order of creation. scope: BLAKE2b-256 of credential, method, path and key. request:
-- BLAKE2b-256 of the body and its type. status, seq, key, parts: what the answer is made of; key is
-- that of a document whose name was made, parts is JSON: for each operation of a batch its number
-- and whether it made the document. created: Unix seconds. boot, uptime: which start of the machine
-- it was, and seconds since; they tell the age of a row while the machine runs, whatever becomes of
-- the wall clock. Rows go after 24 hours, and the oldest beyond 100,000. Deleting one forgets it.
CREATE TABLE idempotency (
    id      INTEGER PRIMARY KEY,
    scope   BLOB NOT NULL UNIQUE CHECK (length(scope) = 32),
    request BLOB NOT NULL CHECK (length(request) = 32),
    status  INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    key     TEXT,
    parts   TEXT,
    created INTEGER NOT NULL,
    boot    BLOB NOT NULL,
    uptime  INTEGER NOT NULL
);
