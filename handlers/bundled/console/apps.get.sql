-- The apps of this server, and what went wrong with them.

-- set
SELECT console('apps') AS apps;

-- name: items
SELECT json_extract(value, '$.name') AS name, json_extract(value, '$.title') AS title,
       json_extract(value, '$.read') AS read, json_extract(value, '$.write') AS write,
       json_extract(value, '$.routes') AS routes, json_extract(value, '$.broken') AS broken,
       strftime('%Y-%m-%dT%H:%M:%SZ', json_extract(value, '$.loaded'), 'unixepoch') AS at,
       strftime('%Y-%m-%d %H:%M', json_extract(value, '$.loaded'), 'unixepoch') AS at_text,
       json_array_length(value, '$.faults') AS faults
  FROM json_each(:apps, '$.apps')
 WHERE json_extract(value, '$.name') <> 'console'
 ORDER BY name;

-- The latest first.
-- name: faults
SELECT json_extract(app.value, '$.name') AS name,
       json_extract(fault.value, '$.file') AS file, json_extract(fault.value, '$.line') AS line,
       json_extract(fault.value, '$.text') AS text, nullif(json_extract(fault.value, '$.times'), 1) AS times,
       strftime('%Y-%m-%dT%H:%M:%SZ', json_extract(fault.value, '$.at'), 'unixepoch') AS at,
       strftime('%Y-%m-%d %H:%M:%S', json_extract(fault.value, '$.at'), 'unixepoch') AS at_text
  FROM json_each(:apps, '$.apps') AS app, json_each(app.value, '$.faults') AS fault
 ORDER BY json_extract(fault.value, '$.at') DESC, name
 LIMIT 200;
