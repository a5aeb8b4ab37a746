-- The chores, the most urgent first.
-- set
SELECT (SELECT name FROM household_person WHERE here AND name = :_user) AS known,
       (SELECT name FROM household_person WHERE here AND id = :_cookie_person) AS chosen;
-- set
SELECT coalesce(:known, :chosen) AS me, date(:_now, 'unixepoch', 'localtime') AS today;
-- name: chores
SELECT id, name, days, due, turn, yours, done_by, done_on, late, may_undo,
       CASE WHEN due_in < -1 THEN -due_in || ' days late'
            WHEN due_in = -1 THEN 'a day late'
            WHEN due_in = 0 THEN 'today'
            WHEN due_in = 1 THEN 'tomorrow'
            ELSE 'in ' || due_in || ' days' END AS due_words
  FROM (SELECT c.id, c.name, c.days, c.due, t.name AS turn, coalesce(t.name = :me, 0) AS yours,
               CAST(julianday(c.due) - julianday(:today) AS INTEGER) AS due_in,
               c.due < :today AS late, b.name AS done_by,
               date(c.done, 'unixepoch', 'localtime') AS done_on,
               c.due_before IS NOT NULL AND date(c.done, 'unixepoch', 'localtime') = :today AS may_undo
          FROM household_chore c
          LEFT JOIN household_person t ON t.id = c.turn
          LEFT JOIN household_person b ON b.id = c.by)
 ORDER BY due, name;

-- name: people
SELECT id, name, id IS CAST(:turn AS INTEGER) AS chosen_turn FROM household_person WHERE here ORDER BY name;
