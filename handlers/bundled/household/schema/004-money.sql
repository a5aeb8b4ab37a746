-- Who paid what for whom. Amounts are whole cents. A payment from one person to another, to settle,
-- is an entry like the others: paid by the one, for the other.
CREATE TABLE household_expense (
    id      INTEGER PRIMARY KEY,
    what    TEXT NOT NULL CHECK (length(what) BETWEEN 1 AND 60),
    cents   INTEGER NOT NULL CHECK (typeof(cents) = 'integer' AND cents BETWEEN 1 AND 100000000),
    payer   INTEGER NOT NULL REFERENCES household_person (id),
    day     TEXT NOT NULL CHECK (day IS date(day, '+0 days')),
    settles INTEGER NOT NULL DEFAULT 0 CHECK (settles IN (0, 1)),
    receipt TEXT,     -- the document with its photo, or NULL
    receipt_type TEXT -- what kind of photo
);

-- For whom: the shares of an entry add up to its cents.
CREATE TABLE household_share (
    expense INTEGER NOT NULL REFERENCES household_expense (id) ON DELETE CASCADE,
    person  INTEGER NOT NULL REFERENCES household_person (id),
    cents   INTEGER NOT NULL CHECK (typeof(cents) = 'integer' AND cents >= 0),
    PRIMARY KEY (expense, person)
) WITHOUT ROWID;

-- What each one's balance is stands in household_person.cents: kept by these triggers, so that it
-- need never be added up. An entry is not edited: it is deleted and made again.
CREATE TRIGGER household_expense_insert AFTER INSERT ON household_expense
BEGIN
    UPDATE household_person SET cents = cents + new.cents WHERE id = new.payer;
END;
CREATE TRIGGER household_expense_delete AFTER DELETE ON household_expense
BEGIN
    UPDATE household_person SET cents = cents - old.cents WHERE id = old.payer;
    DELETE FROM household_share WHERE expense = old.id;
END;
CREATE TRIGGER household_share_insert AFTER INSERT ON household_share
BEGIN
    UPDATE household_person SET cents = cents - new.cents WHERE id = new.person;
END;
CREATE TRIGGER household_share_delete AFTER DELETE ON household_share
BEGIN
    UPDATE household_person SET cents = cents + old.cents WHERE id = old.person;
END;
CREATE TRIGGER household_expense_update BEFORE UPDATE OF cents, payer ON household_expense
BEGIN
    SELECT RAISE(ABORT, 'delete the entry and make another one');
END;
CREATE TRIGGER household_share_update BEFORE UPDATE ON household_share
BEGIN
    SELECT RAISE(ABORT, 'delete the entry and make another one');
END;
