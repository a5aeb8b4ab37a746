-- GET /apps/@NAME@/: the newest items, 20 to a page.
-- page: 20 by at desc, id
SELECT id, name, done, at FROM @NAME@_item;
