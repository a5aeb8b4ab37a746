-- The balances, who should pay whom, and what was paid, newest first.
-- set
SELECT (SELECT id FROM household_person WHERE here AND name = :_user) AS known,
       (SELECT id FROM household_person WHERE here AND id = :_cookie_person) AS chosen;
-- set
SELECT coalesce(:known, :chosen) AS me_id;
-- set
SELECT (SELECT name FROM household_person WHERE id = :me_id) AS me;

-- name: balances
SELECT name, printf('%s%d.%02d', iif(cents < 0, '−', iif(cents > 0, '+', '')), abs(cents) / 100,
                    abs(cents) % 100) AS amount,
       cents < 0 AS owes, cents > 0 AS owed
  FROM household_person WHERE here OR cents <> 0 ORDER BY name;

-- Those who owe and those who are owed, each laid out along one line; where two of them lie side by
-- side, the one pays the other. It takes at most one payment less than there are people.
-- name: settling
WITH debt (id, name, a, b) AS (
         SELECT id, name, sum(-cents) OVER (ORDER BY id) + cents, sum(-cents) OVER (ORDER BY id)
           FROM household_person WHERE cents < 0),
     credit (id, name, a, b) AS (
         SELECT id, name, sum(cents) OVER (ORDER BY id) - cents, sum(cents) OVER (ORDER BY id)
           FROM household_person WHERE cents > 0),
     due (from_id, from_name, to_id, to_name, cents) AS (
         SELECT d.id, d.name, c.id, c.name, min(d.b, c.b) - max(d.a, c.a)
           FROM debt d JOIN credit c ON d.a < c.b AND c.a < d.b)
SELECT from_id, from_name, to_id, to_name, cents,
       printf('%d.%02d', cents / 100, cents % 100) AS amount
  FROM due ORDER BY cents DESC;

-- name: people
SELECT id, name, id = coalesce(:payer, :me_id) AS pays,
       :for IS NULL OR id IN (SELECT value FROM json_each(iif(json_valid(:for), :for, '[]'))) AS shares
  FROM household_person WHERE here ORDER BY name;

-- name: expenses
-- page: 20 by id desc
SELECT e.id, e.what, e.day, e.settles, p.name AS payer, e.receipt IS NOT NULL AS has_receipt,
       printf('%d.%02d', e.cents / 100, e.cents % 100) AS amount,
       (SELECT group_concat(name, ', ')
          FROM (SELECT q.name FROM household_share s JOIN household_person q ON q.id = s.person
                 WHERE s.expense = e.id ORDER BY q.name)) AS people
  FROM household_expense e JOIN household_person p ON p.id = e.payer;
