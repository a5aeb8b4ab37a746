-- Tokens of programs, by name. The one that was just made is in a cookie for a minute, and shown once.

-- name: made
SELECT :_cookie_token AS token, 'token=; Max-Age=0' AS _cookie, 'no-store' AS _cache
 WHERE :_cookie_token <> '';

-- name: items
-- page: 50 by name
SELECT name, url_encode(name) AS url,
       replace(read, char(10), ', ') AS read, replace(write, char(10), ', ') AS write,
       strftime('%Y-%m-%dT%H:%M:%SZ', created, 'unixepoch') AS at,
       strftime('%Y-%m-%d', created, 'unixepoch') AS at_text,
       strftime('%Y-%m-%d', expires, 'unixepoch') AS until,
       expires IS NOT NULL AND expires <= :_now AS over
  FROM token;
