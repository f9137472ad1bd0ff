-- Whether anything of what compiled graphs gave was recorded (--numbers).
-- query NumbersOfRun()
SELECT EXISTS (SELECT 1 FROM run_digest) AS is_there /*BOOLEAN*/;
