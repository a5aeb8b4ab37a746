-- Takes something off the list and forgets it.
-- form: index
SELECT changed('shopping');

-- name: rows
DELETE FROM household_item WHERE id = :id RETURNING id, name;
