-- POST /apps/@NAME@/done: ticks an item, or takes the tick away.
-- form: index
UPDATE @NAME@_item SET done = 1 - done WHERE id = :id RETURNING id, done;
SELECT 404 AS _status, 'There is no such item' AS message WHERE changes() = 0;
