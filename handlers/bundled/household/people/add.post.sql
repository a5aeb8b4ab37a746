-- Somebody who lives here; or lives here again.
-- form: people

-- set
SELECT trim(:name) AS called;

SELECT 422 AS _status, 'A name has 1 to 30 characters.' AS message
 WHERE coalesce(length(:called), 0) NOT BETWEEN 1 AND 30 OR instr(:called, char(0)) > 0;

SELECT 409 AS _status, name || ' lives here already.' AS message
  FROM household_person WHERE name = :called AND here;

SELECT 422 AS _status, 'Twenty people are the most.' AS message
 WHERE (SELECT count(*) FROM household_person WHERE here) >= 20
    OR (SELECT count(*) FROM household_person) >= 200;

SELECT changed('people');

-- name: rows
INSERT INTO household_person (name) VALUES (:called)
    ON CONFLICT (name) DO UPDATE SET here = 1, name = excluded.name
RETURNING id, name;
