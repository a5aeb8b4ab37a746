-- It is done: due again after its days, counted from today, and the next one's turn. The day that
-- the page showed comes with it: who taps a moment after somebody else does not do it twice.
-- form: chores

-- set
SELECT coalesce((SELECT id FROM household_person WHERE here AND name = :_user),
                (SELECT id FROM household_person WHERE here AND id = :_cookie_person)) AS me;

SELECT 404 AS _status, 'This chore is gone.' AS message
 WHERE NOT EXISTS (SELECT 1 FROM household_chore WHERE id = :id);

SELECT 409 AS _status, name || ' has just been done.' AS message
  FROM household_chore WHERE id = :id AND due <> coalesce(:was, due);

SELECT changed('chores');

-- name: rows
UPDATE household_chore
   SET due_before = due, turn_before = turn,
       due = date(:_now, 'unixepoch', 'localtime', '+' || days || ' days'),
       done = :_now, by = :me,
       turn = iif(turn IS NULL, NULL,
                  coalesce((SELECT min(id) FROM household_person WHERE here AND id > turn),
                           (SELECT min(id) FROM household_person WHERE here)))
 WHERE id = :id
RETURNING id, name, due;
