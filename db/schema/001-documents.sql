-- The first schema: documents, their change feed, tokens.
--
-- The file is made to be read by people, and may be written by them: the triggers keep sequence
-- numbers, sizes, times, the change feed and the document count right whoever writes. They use only
-- functions that every SQLite shell has.

-- Facts about this file. schema_version: the last migration applied. min_program: the oldest
-- program format that may open it. documents: rows in doc. replaced: rows that the statement now
-- running takes the place of: OR REPLACE fires their delete trigger only with recursive_triggers=ON,
-- and which is the case a trigger cannot ask. pruned: change entries up to this one have had their
-- predecessors removed.
CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value ANY
) WITHOUT ROWID;
INSERT INTO meta (name, value) VALUES ('min_program', 1), ('documents', 0), ('replaced', 0),
                                       ('pruned', 0);

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
    id       INTEGER PRIMARY KEY,
    key      TEXT NOT NULL UNIQUE
             CHECK (typeof(key) = 'text' AND length(CAST(key AS BLOB)) BETWEEN 1 AND 512
                    AND instr('/' || key || '/', '//') = 0),
    seq      INTEGER,
    type     TEXT NOT NULL DEFAULT 'application/octet-stream'
             CHECK (typeof(type) = 'text' AND length(type) BETWEEN 1 AND 255),
    modified INTEGER,
    size     INTEGER,
    body     NOT NULL DEFAULT '' CHECK (typeof(body) IN ('text', 'blob'))
);

-- The server gives a row the sequence number that comes next, with size and time beside it. A row
-- that comes with any other number, or none, was written by somebody else: it is completed here.
CREATE TRIGGER doc_before_insert BEFORE INSERT ON doc
WHEN (SELECT value FROM meta WHERE name = 'replaced')
     IS NOT (SELECT count(*) FROM doc WHERE key = new.key OR id = new.id)
BEGIN
    UPDATE meta SET value = (SELECT count(*) FROM doc WHERE key = new.key OR id = new.id)
     WHERE name = 'replaced';
END;

CREATE TRIGGER doc_before_update BEFORE UPDATE OF id, key ON doc
WHEN new.key IS NOT old.key OR new.id IS NOT old.id
BEGIN
    UPDATE meta SET value = (SELECT count(*) FROM doc
                              WHERE (key = new.key OR id = new.id) AND id IS NOT old.id)
     WHERE name = 'replaced';
END;

CREATE TRIGGER doc_insert AFTER INSERT ON doc
BEGIN
    INSERT INTO change (key, op) VALUES (new.key, 'put');
    UPDATE doc
       SET seq = (SELECT max(seq) FROM change),
           size = length(CAST(new.body AS BLOB)),
           modified = CAST(strftime('%s', 'now') AS INTEGER)
     WHERE id = new.id AND new.seq IS NOT (SELECT max(seq) FROM change);
    UPDATE meta
       SET value = value + 1 - (SELECT value FROM meta WHERE name = 'replaced')
     WHERE name = 'documents';
END;

CREATE TRIGGER doc_update AFTER UPDATE OF id, key, type, body ON doc
BEGIN
    INSERT INTO change (key, op, prev)
    SELECT old.key, 'delete', old.seq WHERE old.key IS NOT new.key;
    INSERT INTO change (key, op, prev)
    VALUES (new.key, 'put', CASE WHEN old.key IS new.key THEN old.seq END);
    UPDATE doc
       SET seq = (SELECT max(seq) FROM change),
           size = length(CAST(new.body AS BLOB)),
           modified = CAST(strftime('%s', 'now') AS INTEGER)
     WHERE id = new.id AND new.seq IS NOT (SELECT max(seq) FROM change);
    UPDATE meta
       SET value = value - (SELECT value FROM meta WHERE name = 'replaced')
     WHERE name = 'documents' AND (new.key IS NOT old.key OR new.id IS NOT old.id);
END;

CREATE TRIGGER doc_delete AFTER DELETE ON doc
BEGIN
    INSERT INTO change (key, op, prev) VALUES (old.key, 'delete', old.seq);
    UPDATE meta SET value = value - 1 WHERE name = 'documents';
    UPDATE meta SET value = value - 1 WHERE name = 'replaced' AND value > 0;
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
