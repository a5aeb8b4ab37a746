-- Somebody has paid something for some of us: in equal shares; odd cents go to the first ones. The
-- photo of the receipt becomes a document in the same transaction.
-- form: money

-- set
SELECT trim(:what) AS called, replace(trim(:amount), ',', '.') AS number,
       iif(json_valid(:for), :for, '[]') AS whom,
       coalesce(nullif(:day, ''), date(:_now, 'unixepoch', 'localtime')) AS on_day;
-- set
SELECT CAST(round(CAST(:number AS REAL) * 100) AS INTEGER) AS cents,
       iif(length(:photo) > 0, 'apps/household/receipts/' || uuid7(), NULL) AS receipt;

SELECT 422 AS _status, 'What was it for? 1 to 60 characters.' AS message
 WHERE coalesce(length(:called), 0) NOT BETWEEN 1 AND 60 OR instr(:called, char(0)) > 0;

SELECT 422 AS _status, 'The amount is a number like 12.50, at most 1000000.' AS message
 WHERE :number IS NULL OR :number = '' OR :number GLOB '*[^0-9.]*' OR :number GLOB '*.*.*'
    OR :number GLOB '*.[0-9][0-9][0-9]*' OR :cents NOT BETWEEN 1 AND 100000000;

SELECT 422 AS _status, 'A day is written like 2026-11-30.' AS message
 WHERE date(:on_day, '+0 days') IS NOT :on_day;

SELECT 422 AS _status, 'Who has paid?' AS message
 WHERE NOT EXISTS (SELECT 1 FROM household_person WHERE id = :payer AND here);

SELECT 422 AS _status, 'For whom? Choose one of us at least.' AS message
 WHERE NOT EXISTS (SELECT 1 FROM household_person
                    WHERE here AND id IN (SELECT value FROM json_each(:whom)));

SELECT 422 AS _status, 'The receipt is not a photo (JPEG, PNG or WebP).' AS message
 WHERE :receipt IS NOT NULL AND coalesce(:photo_type, '') NOT IN ('image/jpeg', 'image/png', 'image/webp');

SELECT changed('money');

SELECT put_doc(:receipt, :photo, :photo_type) WHERE :receipt IS NOT NULL;

-- name: rows
INSERT INTO household_expense (what, cents, payer, day, receipt, receipt_type)
VALUES (:called, :cents, :payer, :on_day, :receipt, iif(:receipt IS NULL, NULL, :photo_type))
RETURNING id, what, cents;

INSERT INTO household_share (expense, person, cents)
SELECT (SELECT max(id) FROM household_expense), id,
       :cents / count(*) OVER () + (row_number() OVER (ORDER BY id) <= :cents % count(*) OVER ())
  FROM household_person WHERE here AND id IN (SELECT value FROM json_each(:whom));
