-- What was written and deleted, the latest first. An entry says what became of the document then; the document may have
-- changed since, or be gone.

-- name: feed
SELECT coalesce(max(seq), 0) AS seq FROM change;

-- name: items
-- page: 50 by seq desc
SELECT seq, key, url_encode(key) AS url, op = 'delete' AS deleted,
       EXISTS (SELECT 1 FROM doc WHERE doc.key = change.key) AS there
  FROM change;
