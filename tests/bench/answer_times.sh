#!/bin/sh
# Times the answers about several ranks: wall and processor seconds, peak memory.
# usage: tests/bench/answer_times.sh TLPARSE DATABASE…
set -eu
tlparse=${1:?usage: answer_times.sh TLPARSE DATABASE…}
shift
for database; do
  for answer in findings ranks cache collectives execution status; do
    /usr/bin/time -f "$database $answer: %e s wall, %U s user, %S s system, %M kB" "$tlparse" "$answer" "$database" --json >/dev/null
  done
done
