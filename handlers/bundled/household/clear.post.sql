-- What is in the basket has been paid: off the list with it. It will be suggested from now on.
-- form: index
SELECT changed('shopping');

-- name: rows
UPDATE household_item SET state = 'past', at = :_now WHERE state = 'basket' RETURNING id, name;
