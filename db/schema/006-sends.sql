-- Sends: lines and the messages that wait on them. Inboxes: who may post to them, and what came.

-- Where messages go. id: never given again. name: [a-z0-9][a-z0-9._-]{0,63}. url: http or https.
-- ord: fifo, one after another, or any. rate: deliveries a second, 0 no limit. secret: of the `v1`
-- signature, hidden under the key `local`; NULL: only `v1a`. private: 1, it may deliver to private
-- addresses. ca: PEM, instead of the machine's authorities. state: open; paused, by a person or
-- because the receiver said 410; disabled, after it failed too long. reason: why it is not open.
-- version: raised when who may read it changes. seq, hash: number and hash of the message that
-- was given the last number. wait_until: Unix milliseconds before which nothing is tried.
-- failing: Unix seconds since when nothing got through. due: Unix milliseconds, when the next may
-- be tried, NULL: nothing waits. waiting: messages that do. created: Unix seconds.
CREATE TABLE line (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    name       TEXT NOT NULL UNIQUE,
    url        TEXT NOT NULL,
    ord        TEXT NOT NULL DEFAULT 'fifo' CHECK (ord IN ('fifo', 'any')),
    rate       REAL NOT NULL DEFAULT 0,
    secret     BLOB,
    private    INTEGER NOT NULL DEFAULT 0,
    ca         TEXT,
    state      TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'paused', 'disabled')),
    reason     TEXT,
    version    INTEGER NOT NULL DEFAULT 1,
    seq        INTEGER NOT NULL DEFAULT 0,
    hash       BLOB,
    wait_until INTEGER NOT NULL DEFAULT 0,
    failing    INTEGER,
    due        INTEGER,
    waiting    INTEGER NOT NULL DEFAULT 0,
    created    INTEGER NOT NULL
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

-- What is sent, once for all lines it goes to. refs: rows of outbox that name it.
CREATE TABLE outbox_body (
    id   INTEGER PRIMARY KEY AUTOINCREMENT,
    refs INTEGER NOT NULL,
    body NOT NULL
);

-- Messages. id: webhook-id, msg_ and 26 characters. seq: its number on the line, from 1 without
-- gaps. prev, hash: BLAKE2b-256 of the message before it and of this one. sealed: body is an
-- envelope. state: waiting, delivered, parked (a person decides), skipped, unopenable (sealed to a
-- key whose secret is gone). due: Unix milliseconds of the next try. tries: so far. reason: why it
-- is parked or waits, a word. skip: 1, a person skipped it, and a signed tombstone is on its way in
-- its place. proof: the courier's signature over line, seq, prev and hash, since
-- its first try. expires: Unix seconds at which no recipient can open it any more, 0 never.
-- created, ended: Unix seconds; ended: delivered, parked, skipped or unopenable since.
CREATE TABLE outbox (
    n       INTEGER PRIMARY KEY AUTOINCREMENT,
    id      TEXT NOT NULL UNIQUE,
    line    INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    type    TEXT NOT NULL,
    body    INTEGER NOT NULL,
    sealed  INTEGER NOT NULL,
    prev    BLOB,
    hash    BLOB NOT NULL CHECK (length(hash) = 32),
    state   TEXT NOT NULL DEFAULT 'waiting'
            CHECK (state IN ('waiting', 'delivered', 'parked', 'skipped', 'unopenable')),
    due     INTEGER NOT NULL,
    tries   INTEGER NOT NULL DEFAULT 0,
    reason  TEXT,
    skip    INTEGER NOT NULL DEFAULT 0,
    proof   BLOB,
    expires INTEGER NOT NULL DEFAULT 0,
    created INTEGER NOT NULL,
    ended   INTEGER,
    UNIQUE (line, seq)
);
-- The next of a fifo line, where one that is parked holds up what is behind it, and of the others;
-- what a person must look at; what can go.
CREATE INDEX outbox_next ON outbox (line, seq) WHERE state IN ('waiting', 'parked', 'unopenable');
CREATE INDEX outbox_due ON outbox (line, due, seq) WHERE state = 'waiting';
CREATE INDEX outbox_parked ON outbox (line, seq) WHERE state IN ('parked', 'unopenable');
CREATE INDEX outbox_ended ON outbox (ended) WHERE state IN ('delivered', 'skipped');

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

-- Which courier may report. fence: raised by each that begins; a report with an older one is
-- refused. pid, since: of the one that has it, Unix seconds.
CREATE TABLE courier (
    one   INTEGER PRIMARY KEY CHECK (one = 1),
    fence INTEGER NOT NULL,
    pid   INTEGER NOT NULL,
    since INTEGER NOT NULL
);
INSERT INTO courier VALUES (1, 0, 0, 0);

-- Who may post. id: never given again. secret: of `v1`, hidden under the key `local`; NULL none.
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
