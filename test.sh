#!/bin/sh
# Installs missing packages, builds everything and runs every test:
#   asan     the reader, its tests and the fuzz corpora under AddressSanitizer and UBSan (clang)
#   dev      the library, the reader, the page and all tests, warnings are errors (g++); after asan without the tests of label sanitized
#   threads  the tests with the label threads, of reader and library, under ThreadSanitizer (clang; only their targets are built)
#   tsan     all tests of reader and library under ThreadSanitizer
#   long     the full counts that a release must pass (label long; the other steps run short forms)
#   gpu      the check of libtrace::cuda on a machine with a GPU: installs nothing, exit code 77 without one (scripts/gpu-check.sh --help)
# usage: ./test.sh [asan|dev|threads|tsan|long …] | gpu      (default: asan, dev, threads)
# Failed tests are run again, one at a time, to show more about them. A test that passes then still fails the run, unless
# tests/may_pass_on_rerun.txt names it with a reason.
set -eu
root=$(cd "$(dirname "$0")" && pwd)
case ${1:-} in
  -h | --help) sed -n '2,11s/^# //p' "$0"; exit 0 ;;
  gpu) shift; exec "$root/scripts/gpu-check.sh" "$@" ;;
esac
[ $# -gt 0 ] || set -- asan dev threads

"$root/scripts/install-deps.sh" full
cd "$root"
failed=""
passed_on_rerun=0
passed=""
reruns=$(mktemp)
trap 'rm -f "$reruns"' EXIT
for step; do
  started=$(date +%s)
  preset=$step
  select=""
  if [ "$step" = dev ]; then
    preset=test
    "$root/scripts/build.sh" "$preset"
    # The same Python suites of the same sources: one build is enough, and the sanitized one sees more.
    case $passed in *" asan "*) select="-LE sanitized" ;; esac
  elif [ "$step" = threads ]; then
    preset=tsan
    select="-L threads"
    BUILD_TARGETS="import_test libtrace_core_test libtrace_cache_test libtrace_fork_test" "$root/scripts/build.sh" "$preset"
  elif [ "$step" = long ]; then
    preset=test
    select="-C long -L long"
    "$root/scripts/build.sh" "$preset"
  else
    "$root/scripts/build.sh" "$preset"
  fi
  echo "test: running the tests of $step"
  # shellcheck disable=SC2086  # the words of $select are arguments
  ctest --preset "$preset" $select -j $(($(nproc) + 2)) || {
    list=build-$preset/Testing/Temporary/LastTestsFailed.log
    first=$(mktemp)
    sed 's/^[0-9]*://' "$list" 2>/dev/null | sort >"$first"
    [ -s "$first" ] || failed="$failed $step"  # ctest itself failed
    while IFS= read -r name; do
      echo "test: what $name printed at first (its end)"
      awk -v name="$name" '/^[0-9]+\/[0-9]+ Testing: / { of = substr($0, index($0, ": ") + 2) } of == name' \
        "build-$preset/Testing/Temporary/LastTest.log" | tail -c 4000
    done <"$first" >"$first.printed"
    echo "test: once more, one at a time: what failed in $step"
    # shellcheck disable=SC2086
    ctest --preset "$preset" $select --rerun-failed 2>&1 | tee "$first.rerun" || true
    { echo "test: $step, the tests that failed: $(tr '\n' ' ' <"$first")"; cat "$first.printed"; tail -c 3000 "$first.rerun"; } >>"$reruns"
    second=$(mktemp)
    sed 's/^[0-9]*://' "$list" 2>/dev/null | sort >"$second"
    comm -12 "$first" "$second" | grep -q . && failed="$failed $step"
    comm -23 "$first" "$second" >"$first.green"
    while IFS= read -r name; do
      passed_on_rerun=$((passed_on_rerun + 1))
      if grep -v '^#' tests/may_pass_on_rerun.txt | cut -f 1 | grep -Fxq -- "$name"; then
        echo "test: passed only when run again (allowed): $name"
      else
        echo "test: passed only when run again, which is a failure: $name" >&2
        failed="$failed $step"
      fi
    done <"$first.green"
    rm -f "$first" "$first".* "$second"
  }
  case $failed in *" $step"*) ;; *) passed="$passed $step " ;; esac
  echo "test: $step took $(($(date +%s) - started)) s"
done
echo "test: $passed_on_rerun tests passed only when run again"
# The end of a long output is what a reader of CI sees first.
[ -z "$failed" ] || { cat "$reruns" >&2; echo "test: failed in:$failed" >&2; exit 1; }
