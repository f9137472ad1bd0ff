-- query TextOfId(id INTEGER)
SELECT text FROM text_row WHERE id = :id;
