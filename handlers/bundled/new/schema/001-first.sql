-- The tables of this app; their names begin with its own. A file of schema/ is run once: to change something later, add 002-….sql.
CREATE TABLE @NAME@_item (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    done INTEGER NOT NULL DEFAULT 0, -- 0 or 1
    at   INTEGER NOT NULL            -- Unix seconds
);
CREATE INDEX @NAME@_item_at ON @NAME@_item (at DESC, id);
