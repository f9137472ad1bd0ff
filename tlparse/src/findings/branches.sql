-- Guards of a compile that name the line of the user they come from.
-- query GuardOfLine(compile_id INTEGER)
SELECT normalized_expression /*TEXT*/, user_code, user_file, user_line FROM guard
WHERE compile_id = :compile_id AND user_code IS NOT NULL AND normalized_expression <> ''
ORDER BY ordinal;

-- query GuardOfValue(compile_id INTEGER)
SELECT normalized_expression /*TEXT*/ FROM guard
WHERE compile_id = :compile_id AND normalized_expression GLOB '* == *' ORDER BY ordinal;
