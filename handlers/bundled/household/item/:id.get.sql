-- One thing of the list, to change it.
SELECT 404 AS _status, 'It is not on the list.' AS message
 WHERE NOT EXISTS (SELECT 1 FROM household_item WHERE id = :id AND state <> 'past');

-- name: item
SELECT id, name, note FROM household_item WHERE id = :id;
