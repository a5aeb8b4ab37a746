-- Who lives here, and who you are.
-- set
SELECT (SELECT name FROM household_person WHERE here AND name = :_user) AS known,
       (SELECT name FROM household_person WHERE here AND id = :_cookie_person) AS chosen;
-- set
SELECT coalesce(:known, :chosen) AS me;

-- name: people
SELECT id, name, name IS :me AS you FROM household_person WHERE here ORDER BY name;
