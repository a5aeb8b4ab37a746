-- Writes a document. :seq is the number of the change that the person saw, empty for a new one: when the document has
-- another by now, nothing is written and both texts are shown.
-- form: edit

SELECT 422 AS _status, 'A key is needed.' AS message WHERE coalesce(:key, '') = '';

SELECT 409 AS _status,
       CASE WHEN :seq = '' OR :seq IS NULL THEN 'There is a document with this key already. Nothing was written.'
            WHEN EXISTS (SELECT 1 FROM doc WHERE key = :key)
            THEN 'Somebody changed this document meanwhile. Nothing was written.'
            ELSE 'Somebody deleted this document meanwhile. Save again to write it anew.' END AS message
 WHERE (SELECT seq FROM doc WHERE key = :key) IS NOT CAST(nullif(:seq, '') AS INTEGER);

SELECT 422 AS _status, 'The type says JSON, and this is none.' AS message
 WHERE lower(:type) GLOB 'application/*json*' AND (:file IS NULL OR length(:file) = 0)
   AND NOT json_valid(coalesce(:body, ''));

-- A browser sends every line end as two characters; the document keeps those that it had. A file that was chosen
-- counts before the text.
SELECT CASE WHEN length(:file) > 0
            THEN put_doc(:key, :file, coalesce(nullif(:file_type, ''), 'application/octet-stream'))
            WHEN :eol = 'crlf' THEN put_doc(:key, coalesce(:body, ''), :type)
            ELSE put_doc(:key, replace(coalesce(:body, ''), char(13, 10), char(10)), :type) END AS written;

SELECT 'doc?key=' || url_encode(:key) AS _location;
