-- A document. Its body is never read whole: doc_head has the first bytes of it, as text, or NULL where it is none.

SELECT 404 AS _status, 'There is no document with this key.' AS message
 WHERE NOT EXISTS (SELECT 1 FROM doc WHERE key = :key);

-- name: doc
SELECT key, url_encode(key) AS url, replace(url_encode(key), '%2F', '/') AS path, seq, type, size,
       CASE WHEN size < 10000 THEN size || ' bytes' WHEN size < 10240000 THEN printf('%.1f KiB', size / 1024.0)
            ELSE printf('%.1f MiB', size / 1048576.0) END AS size_text,
       strftime('%Y-%m-%dT%H:%M:%SZ', modified, 'unixepoch') AS at,
       strftime('%Y-%m-%d %H:%M:%S', modified, 'unixepoch') AS at_text,
       lower(type) GLOB 'image/*' AS image,
       typeof(body) = 'text' AND size <= 262144 AS editable
  FROM doc
 WHERE key = :key;

-- The folders above.
-- name: crumbs
WITH RECURSIVE crumb(at) AS (
    SELECT instr(:key, '/')
    UNION ALL
    SELECT at + instr(substr(:key, at + 1), '/') FROM crumb WHERE instr(substr(:key, at + 1), '/') > 0
)
SELECT url_encode(substr(:key, 1, at)) AS url,
       replace(substr(:key, 1, at - 1), rtrim(substr(:key, 1, at - 1), replace(:key, '/', '')), '') AS name
  FROM crumb
 WHERE at > 0;

-- What it says, if it is text. JSON is indented; nothing else of it is changed.
-- name: text
SELECT body, cut
  FROM (SELECT CASE WHEN lower(type) GLOB 'application/*json*' AND size <= 65536
                    THEN json_indent(doc_head(key, 65536)) ELSE doc_head(key, 65536) END AS body,
               size > 65536 AS cut
          FROM doc WHERE key = :key)
 WHERE body <> '';
