-- Deletes a document, if it is the one that the person saw.
-- form: delete

SELECT 409 AS _status,
       CASE WHEN EXISTS (SELECT 1 FROM doc WHERE key = :key)
            THEN 'Somebody changed this document meanwhile. Look at it before you delete it.'
            ELSE 'It is deleted already.' END AS message
 WHERE (SELECT seq FROM doc WHERE key = :key) IS NOT CAST(coalesce(:seq, 0) AS INTEGER);

SELECT delete_doc(:key) AS deleted;

-- To the folder that it was in.
SELECT 'docs?in=' || url_encode(rtrim(:key, replace(:key, '/', ''))) AS _location;
