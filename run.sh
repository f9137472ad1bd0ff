#!/bin/sh
# Installs missing packages, builds build/bin/tlparse, and writes a report of the given logs
# (a file, a directory, - for standard input) to tl_out/. Without arguments: of a bundled real trace.
# TRACEKIT_OUT names another output directory.
set -eu
root=$(cd "$(dirname "$0")" && pwd)
case ${1:-} in -h | --help) sed -n '2,4s/^# //p' "$0"; exit 0 ;; esac

"$root/scripts/install-deps.sh" minimal
"$root/scripts/build.sh" release

[ $# -gt 0 ] || set -- "$root/fixtures/logs/tlparse_meta"
output=${TRACEKIT_OUT:-tl_out}
echo "run: $root/build/bin/tlparse $* -o $output --overwrite"
"$root/build/bin/tlparse" "$@" -o "$output" --overwrite
echo "run: the report is $output/index.html, the database $output/trace.db"
