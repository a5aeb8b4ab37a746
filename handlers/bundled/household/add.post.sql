-- Puts something on the list: new, or bought before, or just put into the basket by mistake.
-- form: index

-- set
SELECT trim(:item) AS name,
       coalesce((SELECT id FROM household_person WHERE here AND name = :_user),
                (SELECT id FROM household_person WHERE here AND id = :_cookie_person)) AS me;

SELECT 422 AS _status, 'Say what to buy, in 1 to 60 characters.' AS message
 WHERE coalesce(length(:name), 0) NOT BETWEEN 1 AND 60 OR instr(:name, char(0)) > 0;

SELECT 409 AS _status, name || ' is on the list already.' AS message
  FROM household_item WHERE name = :name AND state = 'wanted';

SELECT 422 AS _status, 'The list is full: 200 things.' AS message
 WHERE (SELECT count(*) FROM household_item WHERE state IN ('wanted', 'basket')) >= 200;

SELECT changed('shopping');

-- name: rows
INSERT INTO household_item (name, state, person, at) VALUES (:name, 'wanted', :me, :_now)
    ON CONFLICT (name) DO UPDATE
   SET state = 'wanted', person = excluded.person, times = times + 1, at = excluded.at
RETURNING id, name;
