#!/bin/sh
# Configures and builds one CMake preset (release, dev, test, asan, tsan, fuzz), with ccache if it is installed.
# usage: scripts/build.sh PRESET [cmake cache options…]
# BUILD_TARGETS names the targets to build; without it everything is built.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
preset=${1:?usage: scripts/build.sh PRESET [-DNAME=VALUE…]}
shift
cd "$root"
if command -v ccache >/dev/null 2>&1; then
  set -- "$@" -DCMAKE_CXX_COMPILER_LAUNCHER=ccache
fi
log=$(mktemp)
trap 'rm -f "$log" "$log.failed"' EXIT
started=$(date +%s)
echo "build: configuring preset $preset"
cmake --preset "$preset" "$@" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
grep -A 6 'CMake Warning' "$log" || true

# Says how far the build is, each tenth of its steps: ninja's lines begin with [done/all].
progress() {
  said=0
  while IFS= read -r line; do
    printf '%s\n' "$line" >>"$log"
    done_steps=${line#\[}
    all_steps=${done_steps#*/}
    done_steps=${done_steps%%/*}
    all_steps=${all_steps%%\]*}
    case $line$done_steps$all_steps in "["*) ;; *) continue ;; esac
    case $done_steps$all_steps in *[!0-9]* | "") continue ;; esac
    tenth=$((done_steps * 10 / all_steps))
    [ "$tenth" -gt "$said" ] && [ "$all_steps" -gt 10 ] || continue
    said=$tenth
    echo "build: $done_steps of $all_steps steps, $(($(date +%s) - started)) s"
  done
}
echo "build: compiling preset $preset, $(nproc) at a time; from nothing it takes minutes"
: >"$log"
# shellcheck disable=SC2086  # the words of BUILD_TARGETS are targets
{ NINJA_STATUS='[%f/%t] ' cmake --build --preset "$preset" ${BUILD_TARGETS:+--target $BUILD_TARGETS} 2>&1 ||
  : >"$log.failed"; } | progress
[ ! -e "$log.failed" ] || { cat "$log" >&2; exit 1; }
grep -E 'warning:' "$log" | sort -u || true
echo "build: preset $preset is up to date"
