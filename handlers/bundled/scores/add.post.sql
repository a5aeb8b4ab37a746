-- Gives points to a player, who is new or not.
-- form: index

-- Text of a form, a number of JSON: made one thing.
-- set
SELECT trim(:player) AS name, CAST(:points AS INTEGER) AS more;

SELECT 422 AS _status, 'player: a name of 1 to 40 characters' AS message
 WHERE coalesce(length(:name), 0) NOT BETWEEN 1 AND 40 OR instr(:name, char(0)) > 0;

SELECT 422 AS _status, 'points: a whole number from -1000000000 to 1000000000' AS message
 WHERE CAST(:more AS TEXT) IS NOT coalesce(trim(:points), '')
    OR :more NOT BETWEEN -1000000000 AND 1000000000;

-- name: rows
INSERT INTO scores_player (player, score, at) VALUES (:name, :more, :_now)
    ON CONFLICT (player) DO UPDATE SET score = score + excluded.score, at = excluded.at
RETURNING player, score;
