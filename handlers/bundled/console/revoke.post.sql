-- Revokes a token: what uses it is refused at its next request.
SELECT 404 AS _status, 'There is no token of that name.' AS message
 WHERE NOT EXISTS (SELECT 1 FROM token WHERE name = :name);

SELECT token_revoke(:name) AS revoked, 'tokens' AS _location;
