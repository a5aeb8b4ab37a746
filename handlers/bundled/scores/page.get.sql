-- The players by score, 20 at a time; equal scores by name.
-- page: 20 by score desc, player
SELECT player, score FROM scores_player;
