-- Logs a person out everywhere.
-- form: person
SELECT 404 AS _status, 'There is nobody of that name.' AS message
 WHERE NOT EXISTS (SELECT 1 FROM user WHERE name = :name);

SELECT user_end_sessions(:name) AS ended, 'person?name=' || url_encode(:name) AS _location;
