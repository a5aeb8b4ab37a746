-- One row for each player. The table is its own index of the names: looking a player up, and
-- adding to the score, touches one page of it.
CREATE TABLE scores_player (
    player TEXT PRIMARY KEY CHECK (length(player) BETWEEN 1 AND 40),
    score  INTEGER NOT NULL CHECK (typeof(score) = 'integer'),
    at     INTEGER NOT NULL -- Unix time of the last points, seconds
) WITHOUT ROWID;

-- The order of the pages. It has all that they show, so that they are read from it alone.
CREATE INDEX scores_by_score ON scores_player (score DESC, player);

-- The totals, in one row that triggers keep right. So they cost the same however many players there
-- are, and are right whoever changes the table.
CREATE TABLE scores_total (
    id      INTEGER PRIMARY KEY CHECK (id = 1),
    players INTEGER NOT NULL, -- how many there are
    writes  INTEGER NOT NULL, -- how often points were given
    total   INTEGER NOT NULL CHECK (typeof(total) = 'integer') -- all points together
);
INSERT INTO scores_total (id, players, writes, total) VALUES (1, 0, 0, 0);

CREATE TRIGGER scores_player_insert AFTER INSERT ON scores_player
BEGIN
    UPDATE scores_total
       SET players = players + 1, writes = writes + 1, total = total + new.score;
END;

CREATE TRIGGER scores_player_update AFTER UPDATE OF score ON scores_player
BEGIN
    UPDATE scores_total SET writes = writes + 1, total = total - old.score + new.score;
END;

CREATE TRIGGER scores_player_delete AFTER DELETE ON scores_player
BEGIN
    UPDATE scores_total SET players = players - 1, total = total - old.score;
END;
