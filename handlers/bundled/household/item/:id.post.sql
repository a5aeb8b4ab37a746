-- Changes the name and the note.
-- form: item/:id

-- set
SELECT trim(:name) AS called, nullif(trim(:note), '') AS remark;

SELECT 404 AS _status, 'Somebody has taken this off the list.' AS message
 WHERE NOT EXISTS (SELECT 1 FROM household_item WHERE id = :id AND state <> 'past');

SELECT 422 AS _status, 'The name has 1 to 60 characters, the note at most 200.' AS message
 WHERE coalesce(length(:called), 0) NOT BETWEEN 1 AND 60 OR instr(:called, char(0)) > 0
    OR length(:remark) > 200;

SELECT 409 AS _status, name || ' is on the list already.' AS message
  FROM household_item WHERE name = :called AND id <> :id AND state <> 'past';

-- The same name among what was bought before makes room.
DELETE FROM household_item WHERE name = :called AND id <> :id;

SELECT changed('shopping'), '' AS _location;

-- name: rows
UPDATE household_item SET name = :called, note = :remark WHERE id = :id RETURNING id, name, note;
