-- The page with the form: totals, and the best.
-- name: total
SELECT players, writes, total FROM scores_total;

-- name: rows
SELECT player, score FROM scores_player ORDER BY score DESC, player LIMIT 20;
