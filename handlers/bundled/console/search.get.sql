-- Documents whose keys begin with what is looked for, and those that have its words in their text, if the folder they
-- are in is searchable. The last word may be the beginning of one.

-- Runs of blanks become one: three steps, with two characters that no search has. A NUL ends the text.
-- set
SELECT trim(replace(replace(replace(replace(replace(replace(replace(
       substr(coalesce(:q, ''), 1, instr(coalesce(:q, '') || char(0), char(0)) - 1), char(1), ' '), char(2), ' '), char(9), ' '), '"', ' '),
       ' ', char(1, 2)), char(2, 1), ''), char(1, 2), ' ')) AS words;

-- set
SELECT 'text : ("' || replace(nullif(:words, ''), ' ', '" "') || '" *)' AS ask;

-- name: asked
SELECT :q AS q,
       (SELECT count(*) FROM search_collection) AS collections,
       (SELECT value FROM meta WHERE name = 'search_seq') < (SELECT max(seq) FROM change) AS behind;

-- name: keys
SELECT key, url_encode(key) AS url, type
  FROM doc
 WHERE trim(:q) <> '' AND key >= trim(:q) AND key < trim(:q) || char(1114111)
 ORDER BY key
 LIMIT 20;

-- name: items
SELECT i.key, url_encode(i.key) AS url,
       replace(replace(html(found.extract), char(1), '<mark>'), char(2), '</mark>') AS extract
  FROM (SELECT rowid AS id, rank AS r, snippet(doc_text, 1, char(1), char(2), '…', 24) AS extract
          FROM doc_text
         WHERE doc_text MATCH :ask AND :ask IS NOT NULL
         ORDER BY rank
         LIMIT 50) AS found
  JOIN search_item AS i ON i.id = found.id
 ORDER BY found.r;
