-- Who lives here. A person who logs in to hanji is the one of that name; others say who they are,
-- and a cookie remembers it. Who has left stays for the sake of old entries.
CREATE TABLE household_person (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE COLLATE NOCASE CHECK (length(name) BETWEEN 1 AND 30),
    here INTEGER NOT NULL DEFAULT 1 CHECK (here IN (0, 1)),
    -- What this person has paid for others, less what others have paid for them; in cents. Kept
    -- right by the triggers of 004-money.sql.
    cents INTEGER NOT NULL DEFAULT 0 CHECK (typeof(cents) = 'integer')
);
