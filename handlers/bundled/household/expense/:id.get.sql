-- One entry, with its shares and its receipt.
SELECT 404 AS _status, 'This entry is gone.' AS message
 WHERE NOT EXISTS (SELECT 1 FROM household_expense WHERE id = :id);

-- name: expense
SELECT e.id, e.what, e.day, e.settles, p.name AS payer, e.receipt IS NOT NULL AS has_receipt,
       printf('%d.%02d', e.cents / 100, e.cents % 100) AS amount
  FROM household_expense e JOIN household_person p ON p.id = e.payer WHERE e.id = :id;

-- name: shares
SELECT p.name, printf('%d.%02d', s.cents / 100, s.cents % 100) AS amount
  FROM household_share s JOIN household_person p ON p.id = s.person
 WHERE s.expense = :id ORDER BY p.name;
