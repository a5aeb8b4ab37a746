-- Makes a token.
-- form: tokens

SELECT 422 AS _status, 'A token needs something to read or to write.' AS message
 WHERE trim(coalesce(:read, '') || coalesce(:write, ''), ' ,' || char(10, 13)) = '';

SELECT 409 AS _status, 'There is a token of that name; revoke it first.' AS message
  FROM token WHERE name = :name;

-- set
SELECT token_new(:name, coalesce(:read, ''), coalesce(:write, ''), CAST(coalesce(:days, 0) AS INTEGER)) AS token;

SELECT :token AS token, 'tokens' AS _location, 'token=' || :token || '; Max-Age=60' AS _cookie;
