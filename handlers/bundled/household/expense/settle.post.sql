-- One pays another what is owed.
-- form: money
SELECT 422 AS _status, 'Who pays whom?' AS message
 WHERE NOT EXISTS (SELECT 1 FROM household_person WHERE id = :from)
    OR NOT EXISTS (SELECT 1 FROM household_person WHERE id = :to) OR :from = :to;

-- Whoever taps a moment later does not pay twice.
SELECT 409 AS _status, 'The balances have changed meanwhile.' AS message
 WHERE CAST(:cents AS INTEGER) < 1
    OR (SELECT cents FROM household_person WHERE id = :from) > -CAST(:cents AS INTEGER)
    OR (SELECT cents FROM household_person WHERE id = :to) < CAST(:cents AS INTEGER);

SELECT changed('money');

-- name: rows
INSERT INTO household_expense (what, cents, payer, day, settles)
VALUES ('Settled', CAST(:cents AS INTEGER), :from, date(:_now, 'unixepoch', 'localtime'), 1)
RETURNING id, cents;

INSERT INTO household_share (expense, person, cents)
VALUES ((SELECT max(id) FROM household_expense), :to, CAST(:cents AS INTEGER));
