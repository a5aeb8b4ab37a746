-- One chore, to change it.
SELECT 404 AS _status, 'This chore is gone.' AS message
 WHERE NOT EXISTS (SELECT 1 FROM household_chore WHERE id = :id);

-- name: chore
SELECT id, name, days, due FROM household_chore WHERE id = :id;

-- name: people
SELECT p.id, p.name, p.id IS c.turn AS chosen_turn
  FROM household_person p LEFT JOIN household_chore c ON c.id = :id
 WHERE p.here ORDER BY p.name;
