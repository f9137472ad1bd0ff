#!/bin/sh
# Lists what a version of PyTorch (or of vLLM) can write that tlparse has no declaration of, with file and line: record keys, artifacts, timed
# events, metrics, components of cache keys, members of recorder dumps. Reads the sources in the wheel; installs and runs nothing of it.
# usage: scripts/new-names.sh VERSION|PACKAGE==VERSION|FOLDER [NAMES.json]
#        e.g. scripts/new-names.sh 2.15.0
#             scripts/new-names.sh vllm==0.33.0
#             scripts/new-names.sh venv/lib/python3.11/site-packages/torch
# NAMES.json gets all names that the sources can write (fixtures/versions/VERSION/names.json is made so).
# Exit code 1: there are such names. A wheel needs pip and PyPI, and 1 GB in TMPDIR.
set -eu
what=${1:?usage: scripts/new-names.sh VERSION|PACKAGE==VERSION|FOLDER [NAMES.json]}
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
name=${package%%==*}
# Only what is read: the whole wheel would take five times its size.
python3 -c '
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel:
    wheel.extractall(sys.argv[2], [one for one in wheel.namelist() if one.endswith(".py") or one.endswith("/FlightRecorder.hpp")])
' "$scratch"/*.whl "$scratch/sources"
list "$scratch/sources/$name"
