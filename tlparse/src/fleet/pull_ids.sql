-- query KnownText
SELECT id, text FROM text_row;

-- query KnownContent
SELECT id, hash FROM content_row;
