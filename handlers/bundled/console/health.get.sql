-- How the server is doing: what /status says, in words and pictures. Everything counts from the start of the worker.

-- set
SELECT console('status') AS facts;

-- name: server
SELECT json_extract(:facts, '$.version') AS version, json_extract(:facts, '$.sqlite') AS sqlite,
       json_extract(:facts, '$.uptime_s') AS uptime_s,
       json_extract(:facts, '$.uptime_s') / 86400 AS days,
       strftime('%H:%M:%S', json_extract(:facts, '$.uptime_s') % 86400, 'unixepoch') AS clock,
       json_extract(:facts, '$.threads') AS threads,
       json_extract(:facts, '$.requests') AS requests,
       json_extract(:facts, '$.connections') AS connections,
       json_extract(:facts, '$.watchers.polls') + json_extract(:facts, '$.watchers.streams') AS watchers,
       (SELECT value FROM meta WHERE name = 'documents') AS documents,
       (SELECT coalesce(max(seq), 0) FROM change) AS seq,
       json_extract(:facts, '$.burst.count') AS bursts,
       json_extract(:facts, '$.burst.operations') AS operations,
       json_extract(:facts, '$.queue.operations') AS waiting,
       json_extract(:facts, '$.commit_ms.p50') AS p50, json_extract(:facts, '$.commit_ms.p99') AS p99,
       json_extract(:facts, '$.wal_bytes') AS wal_bytes,
       printf('%.1f MiB', json_extract(:facts, '$.wal_bytes') / 1048576.0) AS wal_text,
       json_extract(:facts, '$.rss_bytes') AS rss_bytes,
       printf('%.1f MiB', json_extract(:facts, '$.rss_bytes') / 1048576.0) AS rss_text,
       json_extract(:facts, '$.checkpoints') AS checkpoints,
       json_extract(:facts, '$.pinned_by') AS pinned_by;

-- Commits by the number of writes in them: a bar for each class, as high as its share of the largest.
-- name: bars
SELECT upto, least, least < upto AS several, commits, x, 100 - height AS y, height, x + 20 AS middle
  FROM (SELECT CAST(key AS INTEGER) AS upto, CAST(key AS INTEGER) / 2 + 1 AS least, value AS commits,
               48 * (row_number() OVER (ORDER BY CAST(key AS INTEGER)) - 1) + 4 AS x,
               max(1, CAST(100.0 * value / max(value) OVER () AS INTEGER)) AS height
          FROM json_each(:facts, '$.burst.histogram'))
 ORDER BY upto;

-- The middle commit and the slow ones on one scale.
-- name: commits
SELECT max(1, CAST(400 * p50 / p99 AS INTEGER)) AS middle
  FROM (SELECT json_extract(:facts, '$.commit_ms.p50') AS p50, json_extract(:facts, '$.commit_ms.p99') AS p99)
 WHERE p99 > 0;
