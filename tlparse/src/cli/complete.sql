-- Values of an option, in the order in which they are offered.
-- query ValueOfOption(option TEXT)
SELECT value /*TEXT*/
FROM (SELECT name AS value, -id AS place FROM run WHERE :option = '--run'
  UNION ALL
  SELECT DISTINCT rank, rank FROM process WHERE :option = '--rank' AND rank IS NOT NULL
  UNION ALL
  SELECT DISTINCT ordinal, ordinal FROM launch WHERE :option = '--launch'
  UNION ALL
  SELECT * FROM (SELECT DISTINCT name, name FROM kernel WHERE :option = '--kernel'
    ORDER BY 1 LIMIT 1000))
ORDER BY place;
