-- The form in which a document is written. :key names it, :in a folder for a new one. Nothing here refuses: the form
-- must come again, with what a person wrote in it, whatever became of the document meanwhile.

-- name: doc
SELECT key, url_encode(key) AS url, seq, type, editable, image, conflict,
       CASE WHEN editable THEN doc_head(key, 262144) END AS body,
       CASE WHEN editable AND instr(doc_head(key, 262144), char(13, 10)) > 0 THEN 'crlf' ELSE 'lf' END AS eol
  FROM (SELECT key, seq, type, typeof(body) = 'text' AND size <= 262144 AS editable,
               lower(type) GLOB 'image/*' AS image,
               :seq IS NOT NULL AND CAST(:seq AS INTEGER) IS NOT seq AS conflict
          FROM doc WHERE key = :key);

-- name: new
SELECT coalesce(:key, :in, '') AS key, coalesce(:type, 'text/plain; charset=utf-8') AS type,
       coalesce(:seq, '') <> '' AS gone
 WHERE NOT EXISTS (SELECT 1 FROM doc WHERE key = :key);
