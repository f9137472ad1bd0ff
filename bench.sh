#!/bin/sh
# Builds the release and runs the benchmarks (tests/bench/bench_*.py), which print their tables.
# usage: ./bench.sh [NAME] [options of the benchmark]     e.g. ./bench.sh ingest --quick
# Without NAME it runs all of them; --quick: small inputs. Needs about 6 GB in /dev/shm, with --quick 1 GB.
set -eu
root=$(cd "$(dirname "$0")" && pwd)
case ${1:-} in -h | --help) sed -n '2,4s/^# //p' "$0"; exit 0 ;; esac

"$root/scripts/install-deps.sh" bench
"$root/scripts/build.sh" release -DTRACEKIT_BUILD_BENCH=ON -DTRACEKIT_BUILD_LIBTRACE=ON -DTRACEKIT_WITH_TORCH=AUTO

case ${1:-} in
  '' | -*) ;;
  *)
    name=$1
    shift
    exec python3 "$root/tests/bench/bench_$name.py" "$@"
    ;;
esac
for benchmark in "$root"/tests/bench/bench_*.py; do
  echo "bench: $(basename "$benchmark" .py)"
  python3 "$benchmark" "$@"
done
