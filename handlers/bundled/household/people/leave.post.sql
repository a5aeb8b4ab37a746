-- Somebody moves out. Old entries keep the name.
-- form: people
SELECT 409 AS _status,
       name || iif(cents < 0, ' still owes money.', ' is still owed money.') || ' Settle first.' AS message
  FROM household_person WHERE id = :id AND here AND cents <> 0;

UPDATE household_chore SET turn = NULL WHERE turn = :id;

SELECT changed('people'), changed('chores');

-- name: rows
UPDATE household_person SET here = 0 WHERE id = :id AND here RETURNING id, name;
