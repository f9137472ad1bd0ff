#!/bin/sh
# Records a fixed set of small programs with official builds of PyTorch, ingests what they leave, tries the hook of `tlparse run`, and writes
# fixtures/versions/VERSION and the rows of docs/compatibility.md.
# usage: scripts/try-pytorch.sh [--keep] [--folder DIR] [--python PYTHON] [--only PROGRAM[,PROGRAM…]] VERSION…
#        e.g. scripts/try-pytorch.sh 2.9.1 2.15.0
#   --folder DIR   where the environments (venv-VERSION) and the recordings (recorded-VERSION) are made; default: a temporary folder
#   --keep         leaves the environments there; a next run takes them as they are
#   --python       which Python; where Debian's libtorch-dev is installed not that of /usr, whose folder of libraries comes first when
#                  AOTInductor links
#   --only         these programs alone (tests/tools/pytorch/record.py names them); writes no row
# Needs pip and PyPI, zstd, g++, Python with its headers, 10 GB a version, and tlparse (TLPARSE names it; default build/bin/tlparse).
# The wheels are CUDA builds; the programs run on the CPU. Recordings stay when --folder is given.
set -eu
usage() { sed -n '2,12s/^# \{0,1\}//p' "$0"; }
root=$(cd "$(dirname "$0")/.." && pwd)
tools=$root/tests/tools/pytorch
python=python3 keep="" folder="" only=""
while [ $# -gt 0 ]; do
  case $1 in
    --keep) keep=1 ;;
    --folder) folder=${2:?--folder DIR}; shift ;;
    --python) python=${2:?--python PYTHON}; shift ;;
    --only) only=$(echo "${2:?--only PROGRAM}" | tr , ' '); shift ;;
    -h | --help) usage; exit 0 ;;
    -*) usage >&2; exit 2 ;;
    *) break ;;
  esac
  shift
done
[ $# -gt 0 ] || { usage >&2; exit 2; }
TLPARSE=${TLPARSE:-$root/build/bin/tlparse}
export TLPARSE
[ -x "$TLPARSE" ] || { echo "try-pytorch: $TLPARSE: build it (./run.sh), or name it with TLPARSE" >&2; exit 2; }
scratch=""
if [ -z "$folder" ]; then
  folder=$(mktemp -d)
  scratch=$folder
fi
mkdir -p "$folder"
trap '[ -z "$scratch" ] || rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

now() { date +%s; }
failed=""
for version in "$@"; do
  venv=$folder/venv-$version recorded=$folder/recorded-$version log=$folder/pip-$version.txt
  if [ ! -x "$venv/bin/python" ] || ! "$venv/bin/python" -c "import torch" 2>/dev/null; then
    free_kb=$(df -Pk "$folder" | awk 'NR == 2 {print $4}')
    if [ "$free_kb" -lt 10000000 ]; then
      echo "try-pytorch: $version needs 10 GB in $folder, which has $((free_kb / 1000000)) GB" >&2
      exit 1
    fi
    echo "try-pytorch: installing torch $version"
    start=$(now)
    "$python" -m venv --clear "$venv"
    if ! "$venv/bin/pip" install --no-cache-dir --only-binary :all: "torch==$version" numpy setuptools >"$log" 2>&1; then
      echo "try-pytorch: torch $version cannot be installed here: $(grep -m 1 -iE 'constraint|error' "$log" || tail -n 1 "$log")" >&2
      failed="$failed $version"
      rm -rf "$venv"
      continue
    fi
    mkdir -p "$recorded"
    echo "{\"install_s\": $(($(now) - start)), \"disk_bytes\": $(du -sk "$venv" | awk '{print $1 * 1024}')}" >"$recorded/cost.json"
  fi
  echo "try-pytorch: recording with torch $version"
  # shellcheck disable=SC2086  # the words of $only are programs
  "$venv/bin/python" "$tools/record.py" "$recorded" $only || failed="$failed $version"
  if [ -z "$only" ]; then
    "$python" "$tools/measure.py" "$recorded" "$root/fixtures/versions/$version/row.json" || failed="$failed $version"
    "$python" "$tools/keep.py" "$recorded" "$root/fixtures/versions/$version/recorded.tar.zst"  # the tests read it as the row says
    "$python" "$tools/hook.py" "$venv/bin/python" "$root/fixtures/versions/$version/hook.json" || failed="$failed $version"
  fi
  [ -n "$keep" ] || rm -rf "$venv"
done
if [ -z "$only" ]; then
  "$python" "$tools/compatibility.py" --write "$root/docs/compatibility.md"
fi
if [ -n "$failed" ]; then
  echo "try-pytorch: not as planned:$failed" >&2
  exit 1
fi
