-- POST /apps/@NAME@/add: one more item. What a row says with a _status of 400 or more ends it, and nothing is kept.
-- form: index
SELECT 422 AS _status, 'A name is needed' AS message WHERE trim(coalesce(:name, '')) = '';
INSERT INTO @NAME@_item (name, at) VALUES (trim(:name), :_now) RETURNING id, name;
