-- The first schema: documents, their change feed, tokens.
--
-- The file is made to be read by people, and may be written by them: the triggers keep sequence
-- numbers, sizes, times, the change feed and the document count right whoever writes. They use only
-- functions that every SQLite shell has.

-- Facts about this file. schema_version: the last migration applied. min_program: the oldest
-- program format that may open it. documents: rows in doc. pruned: change entries up to this one
-- have had their predecessors removed.
CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value ANY
) WITHOUT ROWID;
INSERT INTO meta (name, value) VALUES ('min_program', 1), ('documents', 0), ('pruned', 0);

-- One row for every change of a document, in order. seq is the global sequence number, strictly
-- increasing and never reused (AUTOINCREMENT); it is also the document's ETag. prev: the entry of
-- the same document that this one makes useless; it is removed in the background.
CREATE TABLE change (
    seq  INTEGER PRIMARY KEY AUTOINCREMENT,
    key  TEXT NOT NULL,
    op   TEXT NOT NULL CHECK (op IN ('put', 'delete')),
    prev INTEGER
);

-- The documents. key: 1-512 bytes of UTF-8, segments separated by '/'. type: the Content-Type.
-- modified: Unix seconds. size: bytes of body. body: TEXT where that is lossless and the type says
-- text or JSON, else BLOB.
CREATE TABLE doc (
    id       INTEGER PRIMARY KEY CHECK (id > 0),
    key      TEXT NOT NULL UNIQUE
             CHECK (typeof(key) = 'text' AND length(CAST(key AS BLOB)) BETWEEN 1 AND 512
                    AND instr('/' || key || '/', '//') = 0),
    seq      INTEGER,
    type     TEXT NOT NULL DEFAULT 'application/octet-stream'
             CHECK (typeof(type) = 'text' AND length(type) BETWEEN 1 AND 255
                    AND type NOT GLOB '*[^ -~]*'),
    modified INTEGER,
    size     INTEGER,
    body     NOT NULL DEFAULT '' CHECK (typeof(body) IN ('text', 'blob'))
);

-- Where the deletion of a key that is gone stands in the feed.
CREATE TABLE tombstone (
    key TEXT PRIMARY KEY,
    seq INTEGER NOT NULL
) WITHOUT ROWID;

-- Rows that the statement now running may take the place of. OR REPLACE removes them without a
-- word, or fires their delete trigger if recursive_triggers is on, which a trigger cannot ask. Left
-- over rows mean nothing; the next statement begins by clearing them.
CREATE TABLE replacing (
    key TEXT PRIMARY KEY,
    seq INTEGER
) WITHOUT ROWID;

-- The server gives a row the sequence number that comes next, with size and time beside it. A row
-- that comes with any other number, or none, was written by somebody else: it is completed here.
CREATE TRIGGER doc_before_insert BEFORE INSERT ON doc
WHEN EXISTS (SELECT 1 FROM replacing)
     OR EXISTS (SELECT 1 FROM doc WHERE key = new.key OR id = new.id)
BEGIN
    DELETE FROM replacing;
    INSERT INTO replacing SELECT key, seq FROM doc WHERE key = new.key OR id = new.id;
END;

CREATE TRIGGER doc_insert AFTER INSERT ON doc
BEGIN
    INSERT INTO change (key, op, prev)
    SELECT key, 'delete', seq FROM replacing WHERE key IS NOT new.key;
    INSERT OR REPLACE INTO tombstone (key, seq)
    SELECT key, (SELECT max(seq) FROM change) FROM replacing WHERE key IS NOT new.key;
    INSERT INTO change (key, op, prev)
    VALUES (new.key, 'put', coalesce((SELECT seq FROM tombstone WHERE key = new.key),
                                     (SELECT seq FROM replacing WHERE key = new.key)));
    DELETE FROM tombstone WHERE key = new.key;
    UPDATE doc
       SET seq = (SELECT max(seq) FROM change),
           size = length(CAST(new.body AS BLOB)),
           modified = CAST(strftime('%s', 'now') AS INTEGER)
     WHERE id = new.id AND new.seq IS NOT (SELECT max(seq) FROM change);
    UPDATE meta SET value = value + 1 - (SELECT count(*) FROM replacing) WHERE name = 'documents';
    DELETE FROM replacing;
END;

CREATE TRIGGER doc_update AFTER UPDATE OF id, key, type, body ON doc
WHEN new.key IS old.key AND new.id IS old.id
BEGIN
    INSERT INTO change (key, op, prev) VALUES (new.key, 'put', old.seq);
    UPDATE doc
       SET seq = (SELECT max(seq) FROM change),
           size = length(CAST(new.body AS BLOB)),
           modified = CAST(strftime('%s', 'now') AS INTEGER)
     WHERE id = new.id AND new.seq IS NOT (SELECT max(seq) FROM change);
END;

CREATE TRIGGER doc_before_rename BEFORE UPDATE OF id, key ON doc
WHEN new.key IS NOT old.key OR new.id IS NOT old.id
BEGIN
    DELETE FROM replacing;
    INSERT INTO replacing
    SELECT key, seq FROM doc WHERE (key = new.key OR id = new.id) AND id IS NOT old.id;
END;

CREATE TRIGGER doc_rename AFTER UPDATE OF id, key ON doc
WHEN new.key IS NOT old.key OR new.id IS NOT old.id
BEGIN
    INSERT INTO change (key, op, prev)
    SELECT key, 'delete', seq FROM replacing WHERE key IS NOT new.key;
    INSERT OR REPLACE INTO tombstone (key, seq)
    SELECT key, (SELECT max(seq) FROM change) FROM replacing WHERE key IS NOT new.key;
    INSERT INTO change (key, op, prev)
    SELECT old.key, 'delete', old.seq WHERE old.key IS NOT new.key;
    INSERT OR REPLACE INTO tombstone (key, seq)
    SELECT old.key, (SELECT max(seq) FROM change) WHERE old.key IS NOT new.key;
    INSERT INTO change (key, op, prev)
    VALUES (new.key, 'put', CASE WHEN old.key IS new.key THEN old.seq
                                 ELSE coalesce((SELECT seq FROM tombstone WHERE key = new.key),
                                               (SELECT seq FROM replacing WHERE key = new.key)) END);
    DELETE FROM tombstone WHERE key = new.key;
    UPDATE doc
       SET seq = (SELECT max(seq) FROM change),
           size = length(CAST(new.body AS BLOB)),
           modified = CAST(strftime('%s', 'now') AS INTEGER)
     WHERE id = new.id;
    UPDATE meta SET value = value - (SELECT count(*) FROM replacing) WHERE name = 'documents';
    DELETE FROM replacing;
END;

CREATE TRIGGER doc_delete AFTER DELETE ON doc
BEGIN
    INSERT INTO change (key, op, prev) VALUES (old.key, 'delete', old.seq);
    INSERT OR REPLACE INTO tombstone (key, seq)
    VALUES (old.key, (SELECT max(seq) FROM change));
    UPDATE meta SET value = value - 1 WHERE name = 'documents';
    DELETE FROM replacing WHERE key = old.key;
END;

-- API tokens. hash: BLAKE2b-256 of the token; the token itself is nowhere. read, write: prefixes of
-- URL paths below the mount, one a line ('/' covers everything). created, expires: Unix seconds;
-- expires NULL: never.
CREATE TABLE token (
    id      INTEGER PRIMARY KEY,
    name    TEXT NOT NULL UNIQUE,
    hash    BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
    read    TEXT NOT NULL DEFAULT '',
    write   TEXT NOT NULL DEFAULT '',
    created INTEGER NOT NULL,
    expires INTEGER
);
