-- It was not done after all.
-- form: chores
SELECT changed('chores');

-- name: rows
UPDATE household_chore
   SET due = due_before, turn = turn_before, done = NULL, by = NULL,
       due_before = NULL, turn_before = NULL
 WHERE id = :id AND due_before IS NOT NULL
RETURNING id, name, due;
