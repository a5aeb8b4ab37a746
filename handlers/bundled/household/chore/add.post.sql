-- A new chore. It is due today, or on the day that is given.
-- form: chores

-- set
SELECT trim(:name) AS called, CAST(:days AS INTEGER) AS every,
       coalesce(nullif(:due, ''), date(:_now, 'unixepoch', 'localtime')) AS first;

SELECT 422 AS _status, 'A chore needs a name of 1 to 60 characters.' AS message
 WHERE coalesce(length(:called), 0) NOT BETWEEN 1 AND 60 OR instr(:called, char(0)) > 0;

SELECT 422 AS _status, 'Every how many days? A whole number from 1 to 1000.' AS message
 WHERE CAST(:every AS TEXT) IS NOT coalesce(trim(:days), '') OR :every NOT BETWEEN 1 AND 1000;

SELECT 422 AS _status, 'A day is written like 2026-11-30.' AS message
 WHERE date(:first, '+0 days') IS NOT :first;

SELECT 409 AS _status, name || ' is there already.' AS message
  FROM household_chore WHERE name = :called;

SELECT 422 AS _status, 'A hundred chores are the most.' AS message
 WHERE (SELECT count(*) FROM household_chore) >= 100;

SELECT changed('chores');

-- name: rows
INSERT INTO household_chore (name, days, due, turn)
VALUES (:called, :every, :first, (SELECT id FROM household_person WHERE id = :turn AND here))
RETURNING id, name, due;
