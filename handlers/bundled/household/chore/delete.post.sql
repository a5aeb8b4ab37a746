-- A chore that nobody has to do any more.
-- form: chores
SELECT changed('chores');

-- name: rows
DELETE FROM household_chore WHERE id = :id RETURNING id, name;
