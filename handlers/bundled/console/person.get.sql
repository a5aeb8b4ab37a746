-- A person, and where he is logged in.
SELECT 404 AS _status, 'There is nobody of that name.' AS message
 WHERE NOT EXISTS (SELECT 1 FROM user WHERE name = :name);

-- name: person
SELECT id, name, replace(read, char(10), ', ') AS read, replace(write, char(10), ', ') AS write,
       strftime('%Y-%m-%dT%H:%M:%SZ', created, 'unixepoch') AS at,
       strftime('%Y-%m-%d', created, 'unixepoch') AS at_text
  FROM user WHERE name = :name;

-- There are 64 at most.
-- name: items
SELECT label,
       strftime('%Y-%m-%dT%H:%M:%SZ', created, 'unixepoch') AS at,
       strftime('%Y-%m-%d %H:%M', created, 'unixepoch') AS at_text,
       strftime('%Y-%m-%d %H:00', seen, 'unixepoch') AS seen,
       strftime('%Y-%m-%d', expires, 'unixepoch') AS until
  FROM session
 WHERE user = (SELECT id FROM user WHERE name = :name) AND expires > :_now
 ORDER BY session.seen DESC, session.created DESC
 LIMIT 100;
