-- What has to be done again and again.
CREATE TABLE household_chore (
    id     INTEGER PRIMARY KEY,
    name   TEXT NOT NULL UNIQUE COLLATE NOCASE CHECK (length(name) BETWEEN 1 AND 60),
    days   INTEGER NOT NULL CHECK (typeof(days) = 'integer' AND days BETWEEN 1 AND 1000),
    due    TEXT NOT NULL CHECK (due IS date(due, '+0 days')),      -- the day, YYYY-MM-DD
    turn   INTEGER REFERENCES household_person (id),    -- whose turn it is; NULL: anybody's
    done   INTEGER,                                     -- Unix time when it was done last, seconds
    by     INTEGER REFERENCES household_person (id),    -- and by whom
    due_before TEXT, turn_before INTEGER                -- for who has tapped the wrong one
);
CREATE INDEX household_chore_by_due ON household_chore (due);
