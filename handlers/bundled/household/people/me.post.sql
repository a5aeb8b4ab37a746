-- Remembers in this browser who you are, for a year.
-- form: people
SELECT 404 AS _status, 'Nobody of that name lives here.' AS message
 WHERE NOT EXISTS (SELECT 1 FROM household_person WHERE id = :id AND here);

-- name: rows
SELECT id, name, 'person=' || id || '; Max-Age=31536000' AS _cookie, '' AS _location
  FROM household_person WHERE id = :id;
