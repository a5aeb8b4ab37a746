-- Changes a chore.
-- form: chore/:id

-- set
SELECT trim(:name) AS called, CAST(:days AS INTEGER) AS every, :due AS next;

SELECT 404 AS _status, 'This chore is gone.' AS message
 WHERE NOT EXISTS (SELECT 1 FROM household_chore WHERE id = :id);

SELECT 422 AS _status, 'A chore needs a name of 1 to 60 characters.' AS message
 WHERE coalesce(length(:called), 0) NOT BETWEEN 1 AND 60 OR instr(:called, char(0)) > 0;

SELECT 422 AS _status, 'Every how many days? A whole number from 1 to 1000.' AS message
 WHERE CAST(:every AS TEXT) IS NOT coalesce(trim(:days), '') OR :every NOT BETWEEN 1 AND 1000;

SELECT 422 AS _status, 'A day is written like 2026-11-30.' AS message
 WHERE :next IS NULL OR date(:next, '+0 days') IS NOT :next;

SELECT 409 AS _status, name || ' is there already.' AS message
  FROM household_chore WHERE name = :called AND id <> :id;

SELECT changed('chores'), 'chores' AS _location;

-- name: rows
UPDATE household_chore
   SET name = :called, days = :every, due = :next,
       turn = (SELECT id FROM household_person WHERE id = :turn AND here)
 WHERE id = :id
RETURNING id, name, days, due;
