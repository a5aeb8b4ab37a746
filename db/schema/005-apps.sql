-- Apps: what was made for them, and what the server keeps to itself.

-- The files of an app's folder schema/ that were run, in order of number. app: its name; its tables
-- begin with it and '_'. file: the file's name. sql: its text as it was run, so that a later change
-- of the file is noticed. applied: Unix seconds. An app that is taken away leaves its tables and
-- these rows; removing both by hand makes room for another of that name.
CREATE TABLE app_schema (
    app     TEXT NOT NULL,
    number  INTEGER NOT NULL,
    file    TEXT NOT NULL,
    sql     TEXT NOT NULL,
    applied INTEGER NOT NULL,
    PRIMARY KEY (app, number)
) WITHOUT ROWID;

-- Random bytes that must outlive the process. name: what they are for; `cursor` protects the places
-- in the links of pages. Whoever deletes one makes those links worthless; another is made.
CREATE TABLE secret (
    name  TEXT PRIMARY KEY,
    value BLOB NOT NULL CHECK (typeof(value) = 'blob' AND length(value) = 32)
) WITHOUT ROWID;

-- What an app's write had returned, as the server keeps it; NULL for other requests.
ALTER TABLE idempotency ADD COLUMN rows BLOB;
