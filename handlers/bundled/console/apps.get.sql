-- The apps of this server, and what went wrong with them.

-- set
SELECT console('apps') AS apps;

-- name: items
SELECT json_extract(value, '$.name') AS name, json_extract(value, '$.title') AS title,
       json_extract(value, '$.read') AS read, json_extract(value, '$.write') AS write,
       json_extract(value, '$.routes') AS routes, json_extract(value, '$.broken') AS broken,
       json_extract(value, '$.loaded') AS at, replace(substr(json_extract(value, '$.loaded'), 1, 16), 'T', ' ') AS at_text,
       json_array_length(value, '$.faults') AS faults
  FROM json_each(:apps, '$.apps')
 WHERE json_extract(value, '$.name') <> 'console'
 ORDER BY name;

-- The latest first.
-- name: faults
SELECT json_extract(app.value, '$.name') AS name,
       json_extract(fault.value, '$.file') AS file, nullif(json_extract(fault.value, '$.line'), 0) AS line,
       json_extract(fault.value, '$.text') AS text, nullif(json_extract(fault.value, '$.times'), 1) AS times,
       json_extract(fault.value, '$.at') AS at,
       replace(substr(json_extract(fault.value, '$.at'), 1, 19), 'T', ' ') AS at_text
  FROM json_each(:apps, '$.apps') AS app, json_each(app.value, '$.faults') AS fault
 ORDER BY json_extract(fault.value, '$.at') DESC, name
 LIMIT 200;
