#!/bin/sh
# Builds libtrace with the libtorch of official builds of PyTorch, runs the tests of libtrace::torch, prints a row of a table for each, and writes
# the rows of docs/measurements/libtrace-versions.md and docs/compatibility.md.
# usage: scripts/try-libtorch.sh [--keep] [--folder DIR] [--python PYTHON] VERSION…
#        e.g. scripts/try-libtorch.sh 2.6.0 2.15.0
#   --folder DIR   where the environments (venv-VERSION), builds and their output are made; default: a temporary folder
#   --keep         leaves the environments and builds there; a next run takes them as they are
#   --python       which Python makes the environments
# Needs pip and PyPI, the packages that scripts/install-deps.sh installs, 10 GB a version. The wheels are CUDA builds; no GPU, driver or CUDA
# toolkit is needed.
set -eu
usage() { sed -n '2,10s/^# \{0,1\}//p' "$0"; }
root=$(cd "$(dirname "$0")/.." && pwd)
python=python3 keep="" folder=""
while [ $# -gt 0 ]; do
  case $1 in
    --keep) keep=1 ;;
    --folder) folder=${2:?--folder DIR}; shift ;;
    --python) python=${2:?--python PYTHON}; shift ;;
    -h | --help) usage; exit 0 ;;
    -*) usage >&2; exit 2 ;;
    *) break ;;
  esac
  shift
done
[ $# -gt 0 ] || { usage >&2; exit 2; }
scratch=""
if [ -z "$folder" ]; then
  folder=$(mktemp -d)
  scratch=$folder
fi
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
trap '[ -z "$scratch" ] || rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

table=$folder/libtorch.md
launcher=$(command -v ccache || true)
failed=""
: >"$table"
row() { printf '| %s | %s | %s | %s |\n' "$@" | tee -a "$table"; }
for version in "$@"; do
  venv=$folder/venv-$version build=$folder/build-$version log=$folder/libtorch-$version.log
  if ! "$venv/bin/python" -c "import torch" 2>/dev/null; then
    echo "try-libtorch: installing $version" >&2
    "$python" -m venv "$venv"
    if ! "$venv/bin/pip" install -q --no-cache-dir "torch==$version" numpy jsonschema setuptools >"$log" 2>&1; then
      row "$version" "cannot be installed: $(grep -m 1 -i error "$log")" "" ""
      failed="$failed $version"
      continue
    fi
  fi
  exact=$("$venv/bin/python" -c 'import torch; print(torch.__version__)')
  echo "try-libtorch: building with $exact" >&2
  if ! { cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -DNDEBUG" \
         ${launcher:+"-DCMAKE_CXX_COMPILER_LAUNCHER=$launcher"} -DTRACEKIT_BUILD_TLPARSE=OFF -DTRACEKIT_WITH_TORCH=ON -DTRACEKIT_BUILD_TESTS=ON \
         -DPython3_EXECUTABLE="$venv/bin/python" \
         -DCMAKE_PREFIX_PATH="$("$venv/bin/python" -c 'import torch; print(torch.utils.cmake_prefix_path)')" &&
         cmake --build "$build" --target libtrace/all tests/libtrace_torch/all; } >"$log" 2>&1; then
    row "$exact" "not built: $(grep -m 1 'error' "$log" | cut -c 1-200)" "" ""
    failed="$failed $version"
    continue
  fi
  warnings=$(grep -c 'warning:' "$log" || true)
  echo "try-libtorch: testing with $exact" >&2
  PATH=$venv/bin:$PATH OMP_NUM_THREADS=1 ctest --test-dir "$build" -R '^libtrace_(torch|example|install: a program of libtorch)' \
    --output-on-failure >>"$log" 2>&1 || failed="$failed $version"
  passed=$(grep -c '^ *[0-9]*/[0-9]* Test .* Passed ' "$log" || true)
  skipped=$(sed -n 's/^ *[0-9]*\/[0-9]* Test *#[0-9]*: \(.*[^.]\) *\.*\**Skipped.*/\1/p' "$log" | paste -sd ';')
  broken=$(sed -n 's/^ *[0-9]*\/[0-9]* Test *#[0-9]*: \(.*[^. ]\) *\.*\*\*\*\(Failed\|Exception\|Timeout\).*/\1/p' "$log" | paste -sd ';')
  row "$exact" "$warnings" "$passed passed" "${broken:+failed: $broken}${skipped:+ skipped: $skipped}"
  tests=$(sed -n 's/^[0-9]*% tests passed, .* out of \([0-9]*\)$/\1/p' "$log")
  python3 "$root/tests/tools/kept.py" libtorch "$version" "build=\"$exact\"" "python=\"$("$venv/bin/python" -c 'import platform; print(platform.python_version())')\"" \
    "warnings=$warnings" "passed=$passed" "tests=${tests:-0}" "broken=$broken" "skipped=$skipped"
  [ -n "$keep" ] || rm -rf "$venv" "$build"
done
echo "try-libtorch: the rows are in $table" >&2
[ -z "$failed" ] || { echo "try-libtorch: not as it should be:$failed" >&2; exit 1; }
