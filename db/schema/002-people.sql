-- People: users with passwords, and the sessions of their browsers.
--
-- Whoever edits these rows by hand gets what he means: a user that is removed, renamed over or given
-- another password has no session left; a session row that is deleted is logged out.

-- name: ASCII letters, digits and '-_.@', stored as given, compared without case. hash: Argon2id as
-- libsodium writes it; anything else is a user who cannot log in. read, write: prefixes as in token.
-- created: Unix seconds. renewed: how often the hash was made anew from the same password, because
-- it should cost more now; then sessions stay. Numbers are never used twice.
CREATE TABLE user (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    name    TEXT NOT NULL UNIQUE COLLATE NOCASE
            CHECK (typeof(name) = 'text' AND length(name) BETWEEN 1 AND 64
                   AND length(CAST(name AS BLOB)) = length(name)
                   AND name NOT GLOB '*[^-a-zA-Z0-9_.@]*'),
    hash    TEXT NOT NULL CHECK (typeof(hash) = 'text'),
    read    TEXT NOT NULL DEFAULT '',
    write   TEXT NOT NULL DEFAULT '',
    created INTEGER NOT NULL DEFAULT (CAST(strftime('%s', 'now') AS INTEGER)),
    renewed INTEGER NOT NULL DEFAULT 0
);

-- hash: BLAKE2b-256 of the cookie; the cookie itself is nowhere. created, seen, expires: Unix
-- seconds; seen is the last use, to within an hour. label: the browser's User-Agent, cut.
CREATE TABLE session (
    hash    BLOB PRIMARY KEY CHECK (typeof(hash) = 'blob' AND length(hash) = 32),
    user    INTEGER NOT NULL,
    created INTEGER NOT NULL,
    seen    INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    label   TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;
CREATE INDEX session_user ON session (user);

-- OR REPLACE removes rows without firing delete triggers; what may be replaced is looked at before.
CREATE TRIGGER user_insert BEFORE INSERT ON user
WHEN EXISTS (SELECT 1 FROM user WHERE name = new.name OR id = new.id)
BEGIN
    DELETE FROM session WHERE user IN (SELECT id FROM user WHERE name = new.name OR id = new.id);
END;

CREATE TRIGGER user_replace BEFORE UPDATE OF id, name ON user
WHEN EXISTS (SELECT 1 FROM user WHERE (name = new.name OR id = new.id) AND id IS NOT old.id)
     OR new.id IS NOT old.id
BEGIN
    DELETE FROM session WHERE user IN (SELECT id FROM user WHERE name = new.name)
                           AND user IS NOT old.id;
    DELETE FROM session WHERE new.id IS NOT old.id AND user IN (old.id, new.id);
END;

CREATE TRIGGER user_password AFTER UPDATE OF hash ON user
WHEN new.hash IS NOT old.hash AND new.renewed IS old.renewed
BEGIN
    DELETE FROM session WHERE user = new.id;
END;

CREATE TRIGGER user_delete AFTER DELETE ON user
BEGIN
    DELETE FROM session WHERE user = old.id;
END;
