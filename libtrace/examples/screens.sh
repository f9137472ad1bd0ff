#!/bin/sh
# What tlparse says of the examples' kept traces (fixtures/logs/libtrace_*), one file per example in screens/.
# usage: libtrace/examples/screens.sh TLPARSE
set -eu
tlparse=${1:?usage: libtrace/examples/screens.sh TLPARSE}
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$here/screens"
for log in "$here"/../../fixtures/logs/libtrace_*; do
  name=$(basename "$log")
  "$tlparse" "$log" --run "${name#libtrace_}" --db "$folder/$name.db" --db-only --strict >/dev/null
  for answer in history cache collectives provenance; do
    echo "\$ tlparse $answer $name.db"
    (cd "$folder" && COLUMNS=160 "$tlparse" "$answer" "$name.db")
    echo
  done >"$here/screens/${name#libtrace_}.txt"
done
