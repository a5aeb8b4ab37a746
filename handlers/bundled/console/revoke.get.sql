-- Asks again.
SELECT 404 AS _status, 'There is no token of that name.' AS message
 WHERE NOT EXISTS (SELECT 1 FROM token WHERE name = :name);

-- name: token
SELECT name, replace(read, char(10), ', ') AS read, replace(write, char(10), ', ') AS write
  FROM token WHERE name = :name;
