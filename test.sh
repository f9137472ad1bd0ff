#!/bin/sh
# Installs what is missing, builds everything and runs every test:
#   asan  the reader, its tests and the fuzz corpora under AddressSanitizer and UBSan (clang)
#   dev   the library, the reader, the page and all tests, warnings are errors (g++)
# usage: ./test.sh [asan|dev|tsan …]      (default: asan, then dev)
set -eu
root=$(cd "$(dirname "$0")" && pwd)
case ${1:-} in -h | --help) sed -n '2,5s/^# //p' "$0"; exit 0 ;; esac
[ $# -gt 0 ] || set -- asan dev

"$root/scripts/install-deps.sh" full
cd "$root"
failed=""
for preset; do
  started=$(date +%s)
  "$root/scripts/build.sh" "$preset"
  echo "test: running the tests of preset $preset"
  # A machine that does other work as well may starve one of two tests: whoever fails alone too has failed.
  ctest --preset "$preset" -j "$(nproc)" || {
    echo "test: once more, one at a time: what failed in preset $preset"
    ctest --preset "$preset" --rerun-failed || failed="$failed $preset"
  }
  echo "test: preset $preset took $(($(date +%s) - started)) s"
done
[ -z "$failed" ] || { echo "test: failed in:$failed" >&2; exit 1; }
