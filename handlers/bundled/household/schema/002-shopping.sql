-- The shopping list, and all that was on it: what is wanted, what is in the basket, and what was
-- bought earlier, which is suggested when somebody types.
CREATE TABLE household_item (
    id    INTEGER PRIMARY KEY,
    name  TEXT NOT NULL UNIQUE COLLATE NOCASE CHECK (length(name) BETWEEN 1 AND 60),
    note  TEXT CHECK (length(note) <= 200),
    state TEXT NOT NULL CHECK (state IN ('wanted', 'basket', 'past')),
    person INTEGER REFERENCES household_person (id), -- who put it on the list, or into the basket
    times INTEGER NOT NULL DEFAULT 1,                -- how often it was on the list
    at    INTEGER NOT NULL                           -- Unix time of the last step, seconds
);
CREATE INDEX household_item_by_state ON household_item (state, at);

-- What was bought long ago is forgotten: 500 names are enough to suggest from.
CREATE TRIGGER household_item_past AFTER UPDATE OF state ON household_item WHEN new.state = 'past'
BEGIN
    DELETE FROM household_item WHERE id IN (
        SELECT id FROM household_item WHERE state = 'past' ORDER BY at DESC LIMIT 10 OFFSET 500);
END;
