-- The documents and folders in a folder, in the order of their keys, a hundred at a time. A folder is one entry,
-- however much is in it: each step looks for the next key behind the last entry, so a page costs as many look-ups as it
-- has entries. :in is the folder ("notes/", "" for all), :from where the page begins.

-- set
SELECT CASE WHEN :in IS NULL OR :in = '' THEN '' WHEN :in GLOB '*/' THEN :in ELSE :in || '/' END AS prefix;

-- What lies behind every key of the folder: "notes0" for "notes/", since 0 follows /. A BLOB is behind every text.
-- set
SELECT length(:prefix) AS deep,
       CASE WHEN :from > :prefix THEN :from ELSE :prefix END AS start,
       CASE WHEN :prefix = '' THEN x'ff' ELSE substr(:prefix, 1, length(:prefix) - 1) || '0' END AS stop;

-- name: place
SELECT :prefix AS prefix, url_encode(:prefix) AS prefix_url,
       (SELECT key FROM doc WHERE key = rtrim(:prefix, '/')) AS same,
       url_encode(rtrim(:prefix, '/')) AS same_url;

-- The folders above.
-- name: crumbs
WITH RECURSIVE crumb(at) AS (
    SELECT instr(:prefix, '/')
    UNION ALL
    SELECT at + instr(substr(:prefix, at + 1), '/') FROM crumb WHERE instr(substr(:prefix, at + 1), '/') > 0
)
SELECT url_encode(substr(:prefix, 1, at)) AS url,
       replace(substr(:prefix, 1, at - 1), rtrim(substr(:prefix, 1, at - 1), replace(:prefix, '/', '')), '') AS name,
       at = length(:prefix) AS last
  FROM crumb
 WHERE at > 0;

-- name: items
WITH RECURSIVE entry(n, key) AS (
    SELECT 1, min(key) FROM doc WHERE key >= :start AND key < :stop
    UNION ALL
    SELECT n + 1, (SELECT min(d.key) FROM doc AS d
                    WHERE d.key >= CASE instr(substr(e.key, :deep + 1), '/') WHEN 0 THEN e.key || char(0)
                                   ELSE substr(e.key, 1, :deep + instr(substr(e.key, :deep + 1), '/') - 1) || '0' END
                      AND d.key < :stop)
      FROM entry AS e
     WHERE e.key IS NOT NULL AND n < 100
)
SELECT CASE WHEN cut > 0 THEN substr(e.key, :deep + 1, cut - 1) ELSE substr(e.key, :deep + 1) END AS name,
       cut > 0 AS folder,
       url_encode(CASE WHEN cut > 0 THEN substr(e.key, 1, :deep + cut) ELSE e.key END) AS url,
       d.type,
       CASE WHEN cut > 0 THEN NULL WHEN d.size < 10000 THEN d.size || ' B' WHEN d.size < 10240000 THEN printf('%.1f KiB', d.size / 1024.0)
            ELSE printf('%.1f MiB', d.size / 1048576.0) END AS size_text,
       strftime('%Y-%m-%dT%H:%M:%SZ', d.modified, 'unixepoch') AS at,
       strftime('%Y-%m-%d %H:%M', d.modified, 'unixepoch') AS at_text
  FROM (SELECT n, key, instr(substr(key, :deep + 1), '/') AS cut FROM entry WHERE key IS NOT NULL) AS e
  LEFT JOIN doc AS d ON cut = 0 AND d.key = e.key
 ORDER BY n;

-- Where the next page begins, and the one before: the same steps, a hundred to each side.
-- name: more
WITH RECURSIVE
entry(n, key) AS (
    SELECT 1, min(key) FROM doc WHERE key >= :start AND key < :stop
    UNION ALL
    SELECT n + 1, (SELECT min(d.key) FROM doc AS d
                    WHERE d.key >= CASE instr(substr(e.key, :deep + 1), '/') WHEN 0 THEN e.key || char(0)
                                   ELSE substr(e.key, 1, :deep + instr(substr(e.key, :deep + 1), '/') - 1) || '0' END
                      AND d.key < :stop)
      FROM entry AS e
     WHERE e.key IS NOT NULL AND n < 101
),
back(n, key) AS (
    SELECT 0, :start
    UNION ALL
    SELECT n + 1, (SELECT max(d.key) FROM doc AS d
                    WHERE d.key >= :prefix
                      AND d.key < CASE WHEN n = 0 OR instr(substr(b.key, :deep + 1), '/') = 0 THEN b.key
                                  ELSE substr(b.key, 1, :deep + instr(substr(b.key, :deep + 1), '/')) END)
      FROM back AS b
     WHERE b.key IS NOT NULL AND n < 100
)
SELECT (SELECT url_encode(CASE instr(substr(key, :deep + 1), '/') WHEN 0 THEN key
                          ELSE substr(key, 1, :deep + instr(substr(key, :deep + 1), '/')) END)
          FROM entry WHERE n = 101) AS next_url,
       (SELECT url_encode(CASE instr(substr(key, :deep + 1), '/') WHEN 0 THEN key
                          ELSE substr(key, 1, :deep + instr(substr(key, :deep + 1), '/')) END)
          FROM back WHERE n > 0 AND key IS NOT NULL ORDER BY n DESC LIMIT 1) AS prev_url;
