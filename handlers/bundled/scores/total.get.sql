-- All players, all additions, all points: one row.
SELECT players, writes, total FROM scores_total;
