-- Asks again.
SELECT 404 AS _status, 'There is no document with this key.' AS message
 WHERE :seq IS NULL AND NOT EXISTS (SELECT 1 FROM doc WHERE key = :key);

-- name: doc
SELECT key, url_encode(key) AS url, seq, type, size FROM doc WHERE key = :key;
