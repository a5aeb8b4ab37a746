-- The photo of an entry. Nothing but photos is kept (expense/add), so it may be sent as what it is.
SELECT 404 AS _status, 'There is no receipt.' AS message
 WHERE NOT EXISTS (SELECT 1 FROM household_expense WHERE id = :id AND receipt IS NOT NULL);

SELECT doc(receipt) AS _body, receipt_type AS _type, 'private, no-cache' AS _cache
  FROM household_expense WHERE id = :id AND receipt IS NOT NULL;
