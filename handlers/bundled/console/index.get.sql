-- The beginning: what there is, and what happened last.

-- set
SELECT console('status') AS facts;

-- name: server
SELECT json_extract(:facts, '$.version') AS version,
       (SELECT value FROM meta WHERE name = 'documents') AS documents,
       (SELECT coalesce(max(seq), 0) FROM change) AS seq,
       json_extract(:facts, '$.requests') AS requests,
       json_extract(:facts, '$.uptime_s') AS uptime_s,
       json_extract(:facts, '$.uptime_s') / 86400 AS days,
       strftime('%H:%M:%S', json_extract(:facts, '$.uptime_s') % 86400, 'unixepoch') AS clock;

-- name: apps
SELECT count(*) AS apps,
       coalesce(sum(json_array_length(value, '$.faults')), 0) AS faults,
       coalesce(sum(json_extract(value, '$.broken')), 0) AS broken
  FROM json_each(console('apps'), '$.apps')
 WHERE json_extract(value, '$.name') <> 'console';

-- name: items
SELECT seq, key, url_encode(key) AS key_url, op = 'delete' AS deleted
  FROM change
 ORDER BY seq DESC
 LIMIT 10;
