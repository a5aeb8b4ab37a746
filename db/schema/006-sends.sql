-- Sends: lines and the messages that wait on them. Inboxes: who may post to them, and what came.

-- Where messages go. id: never given again. name: [a-z0-9][a-z0-9._-]{0,63}. state: open; paused, by
-- a person or because the receiver said 410; disabled, after it failed too long. reason: why it is
-- not open. ord: fifo, one after another, or any. version: raised when who may read it changes.
-- keys: rows of line_key. seq, hash: number and hash of the message that was given the last number.
-- due: Unix milliseconds, when the next may be tried, NULL: nothing is to be. waiting, parked:
-- messages that do, and are, unopenable ones, too. wait_until: Unix milliseconds before which
-- nothing is tried. failing: Unix seconds since when nothing got through. rate: deliveries a
-- second, 0 no limit. private: 1, it may deliver to private addresses. url: http or https. secret:
-- of the `v1` signature, hidden under the key `local`; NULL: only `v1a`. ca: PEM, instead of the
-- machine's authorities. created: Unix seconds.
CREATE TABLE line (
    id         INTEGER PRIMARY KEY AUTOINCREMENT CHECK (id BETWEEN 1 AND 4194303),
    name       TEXT NOT NULL UNIQUE,
    state      TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'paused', 'disabled')),
    reason     TEXT,
    ord        TEXT NOT NULL DEFAULT 'fifo' CHECK (ord IN ('fifo', 'any')),
    version    INTEGER NOT NULL DEFAULT 1,
    keys       INTEGER NOT NULL DEFAULT 0,
    seq        INTEGER NOT NULL DEFAULT 0,
    hash       BLOB,
    due        INTEGER,
    waiting    INTEGER NOT NULL DEFAULT 0,
    parked     INTEGER NOT NULL DEFAULT 0,
    wait_until INTEGER NOT NULL DEFAULT 0,
    failing    INTEGER,
    rate       REAL NOT NULL DEFAULT 0,
    private    INTEGER NOT NULL DEFAULT 0,
    created    INTEGER NOT NULL,
    url        TEXT NOT NULL,
    secret     BLOB,
    ca         TEXT
);
CREATE INDEX line_due ON line (due) WHERE due IS NOT NULL;

-- Who can read what is sent on a line: sealing keys (X25519). owner: the key id of the identity
-- that vouched for it. valid_from, valid_until: Unix seconds, 0 for no end. horizon: seconds behind
-- valid_until for which the secret is kept. A line without any sends what it is given.
CREATE TABLE line_key (
    line        INTEGER NOT NULL,
    id          BLOB NOT NULL CHECK (length(id) = 16),
    key         BLOB NOT NULL CHECK (length(key) = 32),
    owner       BLOB NOT NULL CHECK (length(owner) = 16),
    valid_from  INTEGER NOT NULL,
    valid_until INTEGER NOT NULL,
    horizon     INTEGER NOT NULL,
    PRIMARY KEY (line, id)
) WITHOUT ROWID;

-- Messages. n: line * 2^40 + seq, never given again, and in order of number for each line. id:
-- webhook-id, msg_ and 26 characters. seq: its number on the line, from 1 without gaps. state:
-- waiting, delivered, parked (a person decides), skipped, unopenable (sealed to a key whose secret
-- is gone). due: Unix milliseconds of the next try. tries: so far. skip: 1, a person skipped it,
-- and a signed tombstone goes in its place. sealed: body is an envelope. size: its bytes. body:
-- outbox_body.id. created, ended: Unix seconds; ended: delivered, parked, skipped or unopenable
-- since. expires: Unix seconds at which no recipient can open it any more, 0 never. reason: why it
-- is parked or waits, a word. prev, hash: BLAKE2b-256 of the message before it and of this one.
-- proof: the courier's signature over line, seq, prev and hash, since its first try.
CREATE TABLE outbox (
    n       INTEGER PRIMARY KEY CHECK (n = line * 1099511627776 + seq),
    id      TEXT NOT NULL UNIQUE,
    line    INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    state   TEXT NOT NULL DEFAULT 'waiting'
            CHECK (state IN ('waiting', 'delivered', 'parked', 'skipped', 'unopenable')),
    due     INTEGER NOT NULL,
    tries   INTEGER NOT NULL DEFAULT 0,
    skip    INTEGER NOT NULL DEFAULT 0,
    sealed  INTEGER NOT NULL,
    size    INTEGER NOT NULL,
    body    INTEGER NOT NULL,
    created INTEGER NOT NULL,
    ended   INTEGER,
    expires INTEGER NOT NULL DEFAULT 0,
    type    TEXT NOT NULL,
    reason  TEXT,
    prev    BLOB,
    hash    BLOB NOT NULL CHECK (length(hash) = 32),
    proof   BLOB
);
-- Each state of a line in order of number, and what waits in order of time.
CREATE INDEX outbox_state ON outbox (line, state);
CREATE INDEX outbox_due ON outbox (line, due) WHERE state = 'waiting';

-- What is sent, once for all lines it goes to. id: outbox.n of the first of them. refs: rows of
-- outbox that name it. Of an envelope TEXT; of what is sent as it is, TEXT where that is lossless,
-- else BLOB.
CREATE TABLE outbox_body (
    id   INTEGER PRIMARY KEY,
    refs INTEGER NOT NULL DEFAULT 1,
    body NOT NULL
);

-- Tries. message: outbox.n. at: Unix milliseconds. took: milliseconds. status: of HTTP, 0 none came.
-- outcome: a word. detail: the beginning of the answer, or what went wrong; printable.
CREATE TABLE attempt (
    message INTEGER NOT NULL,
    number  INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    took    INTEGER NOT NULL,
    status  INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    detail  TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (message, number)
) WITHOUT ROWID;

-- Lines that are gone, whose messages are still to be deleted.
CREATE TABLE outbox_gone (
    line INTEGER PRIMARY KEY
);

CREATE TRIGGER line_delete AFTER DELETE ON line
BEGIN
    DELETE FROM line_key WHERE line = old.id;
    INSERT OR IGNORE INTO outbox_gone (line) VALUES (old.id);
END;

CREATE TRIGGER line_key_insert AFTER INSERT ON line_key
BEGIN
    UPDATE line SET version = version + 1,
                    keys = (SELECT count(*) FROM line_key WHERE line = new.line)
     WHERE id = new.line;
END;

CREATE TRIGGER line_key_delete AFTER DELETE ON line_key
BEGIN
    UPDATE line SET version = version + 1,
                    keys = (SELECT count(*) FROM line_key WHERE line = old.line)
     WHERE id = old.line;
END;

CREATE TRIGGER line_key_update AFTER UPDATE ON line_key
BEGIN
    UPDATE line SET version = version + 1,
                    keys = (SELECT count(*) FROM line_key WHERE line_key.line = line.id)
     WHERE id IN (old.line, new.line);
END;

-- Whoever opens, pauses or holds a line, or gives it another order: its due time follows.
CREATE TRIGGER line_update AFTER UPDATE OF state, ord, wait_until ON line
WHEN new.state IS NOT old.state OR new.ord IS NOT old.ord OR new.wait_until IS NOT old.wait_until
BEGIN
    UPDATE line SET due = CASE
        WHEN state <> 'open' OR waiting = 0 THEN NULL
        WHEN ord = 'any' THEN max(wait_until, (SELECT o.due FROM outbox AS o
            WHERE o.line = line.id AND o.state = 'waiting' ORDER BY o.due LIMIT 1))
        ELSE (SELECT CASE WHEN line.parked = 0 OR o.n < min(
                coalesce((SELECT p.n FROM outbox AS p WHERE p.line = line.id
                    AND p.state = 'parked' ORDER BY p.n LIMIT 1), o.n + 1),
                coalesce((SELECT p.n FROM outbox AS p WHERE p.line = line.id
                    AND p.state = 'unopenable' ORDER BY p.n LIMIT 1), o.n + 1))
                THEN max(line.wait_until, o.due) END
            FROM outbox AS o WHERE o.line = line.id AND o.state = 'waiting'
            ORDER BY o.n LIMIT 1)
        END
     WHERE id = new.id;
END;

CREATE TRIGGER outbox_delete AFTER DELETE ON outbox
BEGIN
    UPDATE outbox_body SET refs = refs - 1 WHERE id = old.body;
    DELETE FROM outbox_body WHERE id = old.body AND refs <= 0;
    DELETE FROM attempt WHERE message = old.n;
    UPDATE line SET waiting = waiting - (old.state = 'waiting'),
                    parked = parked - (old.state IN ('parked', 'unopenable'))
     WHERE id = old.line AND old.state IN ('waiting', 'parked', 'unopenable');
    UPDATE line SET due = CASE
        WHEN state <> 'open' OR waiting = 0 THEN NULL
        WHEN ord = 'any' THEN max(wait_until, (SELECT o.due FROM outbox AS o
            WHERE o.line = line.id AND o.state = 'waiting' ORDER BY o.due LIMIT 1))
        ELSE (SELECT CASE WHEN line.parked = 0 OR o.n < min(
                coalesce((SELECT p.n FROM outbox AS p WHERE p.line = line.id
                    AND p.state = 'parked' ORDER BY p.n LIMIT 1), o.n + 1),
                coalesce((SELECT p.n FROM outbox AS p WHERE p.line = line.id
                    AND p.state = 'unopenable' ORDER BY p.n LIMIT 1), o.n + 1))
                THEN max(line.wait_until, o.due) END
            FROM outbox AS o WHERE o.line = line.id AND o.state = 'waiting'
            ORDER BY o.n LIMIT 1)
        END
     WHERE id = old.line AND old.state IN ('waiting', 'parked', 'unopenable');
END;

-- Which courier may report. fence: raised by each that begins; a report with another one is
-- refused. pid, since: of the one that has it, Unix seconds.
CREATE TABLE courier (
    one   INTEGER PRIMARY KEY CHECK (one = 1),
    fence INTEGER NOT NULL,
    pid   INTEGER NOT NULL,
    since INTEGER NOT NULL
);
INSERT INTO courier VALUES (1, 0, 0, 0);

-- Who may post. id: never given again. name: as that of a line; /ID: it was removed, and what came
-- to it is being deleted. secret: of `v1`, hidden under the key `local`; NULL none.
-- start_any: 1, the first message of a sender's line may have any number. app, event: an app's
-- EVENT.inbox.sql that runs in the transaction of each message; NULL none. state: open or closed.
CREATE TABLE inbox_source (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    name      TEXT NOT NULL UNIQUE,
    secret    BLOB,
    start_any INTEGER NOT NULL DEFAULT 0,
    app       TEXT,
    event     TEXT,
    state     TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'closed')),
    created   INTEGER NOT NULL
);

-- Keys of those senders (Ed25519). kind: identity signs envelopes, transport each try. root: the key
-- id of the sender's first identity here, which stays when it takes another.
CREATE TABLE inbox_key (
    source      INTEGER NOT NULL,
    kind        TEXT NOT NULL CHECK (kind IN ('identity', 'transport')),
    id          BLOB NOT NULL CHECK (length(id) = 16),
    key         BLOB NOT NULL CHECK (length(key) = 32),
    root        BLOB NOT NULL CHECK (length(root) = 16),
    valid_from  INTEGER NOT NULL,
    valid_until INTEGER NOT NULL,
    PRIMARY KEY (source, kind, id)
) WITHOUT ROWID;

-- How far a sender's line has come. sender: inbox_key.root. seq: all up to it have come; hash: of that one, NULL when a
-- later one came first.
CREATE TABLE inbox_line (
    id     INTEGER PRIMARY KEY AUTOINCREMENT,
    source INTEGER NOT NULL,
    sender BLOB NOT NULL,
    line   TEXT NOT NULL,
    seq    INTEGER NOT NULL,
    hash   BLOB,
    UNIQUE (source, sender, line)
);

-- Numbers beyond it that have come already (lines of order any). line: inbox_line.id.
CREATE TABLE inbox_ahead (
    line INTEGER NOT NULL,
    seq  INTEGER NOT NULL,
    hash BLOB NOT NULL,
    PRIMARY KEY (line, seq)
) WITHOUT ROWID;

-- Messages. id: webhook-id. sender, line, seq: of an envelope, else NULL. type: Content-Type. sent:
-- Unix seconds, as the sender says; received: Unix seconds. hash: BLAKE2b-256 of what came. body:
-- as it was before it was sealed. A row may be deleted: that it came is then known by inbox_seen
-- and inbox_line.
CREATE TABLE inbox (
    n        INTEGER PRIMARY KEY AUTOINCREMENT,
    source   INTEGER NOT NULL,
    id       TEXT NOT NULL,
    sender   BLOB,
    line     TEXT,
    seq      INTEGER,
    type     TEXT NOT NULL,
    sent     INTEGER NOT NULL,
    received INTEGER NOT NULL,
    hash     BLOB NOT NULL,
    body     NOT NULL
);
CREATE INDEX inbox_of_source ON inbox (source, n);

-- Which ids have come from where, so that none is stored twice. hash: of the bytes. Rows go after 30
-- days; what came in an envelope is known by its number for ever.
CREATE TABLE inbox_seen (
    source   INTEGER NOT NULL,
    id       TEXT NOT NULL,
    hash     BLOB NOT NULL,
    received INTEGER NOT NULL,
    PRIMARY KEY (source, id)
) WITHOUT ROWID;
CREATE INDEX inbox_seen_received ON inbox_seen (received);
