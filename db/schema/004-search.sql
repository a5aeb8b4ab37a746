-- Full-text search: which collections are searchable, and the index.
--
-- No trigger is here: the change feed names every key that was written or removed, whoever did it.
-- The server brings the index in line with the feed, in steps, and a search that finds it behind
-- waits for such a step. So a write costs nothing for the index, a program without FTS5 can still
-- write documents, and a damaged index stops searches only. All of it can be made again from doc.

-- search_seq: the index is in line with the change feed up to this number. search_damaged: 1 when
-- SQLite found the index to contradict itself; `hanji search rebuild` makes it anew.
INSERT INTO meta (name, value) VALUES ('search_seq', 0), ('search_damaged', 0);

-- Collections that people asked to be searchable; none lies within another. prefix: "" or ending in
-- '/'. state: ready; indexing: documents with keys up to upto are in the index; removing,
-- renewing: its entries are being taken out, to be forgotten or to be made again.
CREATE TABLE search_collection (
    id     INTEGER PRIMARY KEY AUTOINCREMENT,
    prefix TEXT NOT NULL UNIQUE
           CHECK (typeof(prefix) = 'text' AND length(CAST(prefix AS BLOB)) <= 512
                  AND (prefix = '' OR prefix GLOB '?*/')),
    state  TEXT NOT NULL DEFAULT 'indexing'
           CHECK (state IN ('ready', 'indexing', 'removing', 'renewing')),
    upto   TEXT NOT NULL DEFAULT ''
);

-- The documents that are in the index, as of seq.
CREATE TABLE search_item (
    id  INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    seq INTEGER NOT NULL
);

-- The words; rowid is search_item.id. place: the collection, as a word "c7", so that a search steps
-- over what lies in others. text: a text document whole; of JSON the strings and numbers, one a
-- line, without member names.
CREATE VIRTUAL TABLE doc_text USING fts5 (
    place, text, tokenize = 'unicode61 remove_diacritics 2'
);
