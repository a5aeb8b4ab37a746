-- The shopping list.
-- set
SELECT (SELECT name FROM household_person WHERE here AND name = :_user) AS known,
       (SELECT name FROM household_person WHERE here AND id = :_cookie_person) AS chosen;
-- set
SELECT coalesce(:known, :chosen) AS me;

-- name: wanted
SELECT i.id, i.name, i.note, p.name AS person
  FROM household_item i LEFT JOIN household_person p ON p.id = i.person
 WHERE i.state = 'wanted' ORDER BY i.at, i.id;

-- name: basket
SELECT i.id, i.name, i.note, p.name AS person
  FROM household_item i LEFT JOIN household_person p ON p.id = i.person
 WHERE i.state = 'basket' ORDER BY i.at DESC, i.id;

-- What was bought before, the usual things first.
-- name: earlier
SELECT name FROM (SELECT name, times FROM household_item WHERE state = 'past' ORDER BY at DESC)
 ORDER BY times DESC LIMIT 100;
