-- People by name, with the sessions that they have open.
-- name: items
-- page: 50 by name
SELECT name, url_encode(name) AS url,
       replace(read, char(10), ', ') AS read, replace(write, char(10), ', ') AS write,
       (SELECT count(*) FROM session WHERE user = user.id AND expires > :_now) AS sessions
  FROM user;
