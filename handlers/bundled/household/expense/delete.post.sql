-- Deletes an entry and its receipt; the balances follow.
-- form: money
SELECT delete_doc(receipt) FROM household_expense WHERE id = :id AND receipt IS NOT NULL;

SELECT changed('money');

-- name: rows
DELETE FROM household_expense WHERE id = :id RETURNING id, what;
