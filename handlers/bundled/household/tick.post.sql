-- Into the basket, or out of it again. Twice is as good as once.
-- form: index

-- set
SELECT coalesce((SELECT id FROM household_person WHERE here AND name = :_user),
                (SELECT id FROM household_person WHERE here AND id = :_cookie_person)) AS me;

SELECT 404 AS _status, 'Somebody has taken this off the list.' AS message
 WHERE NOT EXISTS (SELECT 1 FROM household_item WHERE id = :id AND state <> 'past');

SELECT changed('shopping');

-- name: rows
UPDATE household_item
   SET state = iif(coalesce(:basket, '0') IN ('1', 1), 'basket', 'wanted'), person = :me, at = :_now
 WHERE id = :id AND state <> 'past'
RETURNING id, name, state;
