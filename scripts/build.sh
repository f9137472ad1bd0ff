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
trap 'rm -f "$log"' EXIT
echo "build: configuring preset $preset"
cmake --preset "$preset" "$@" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
echo "build: building preset $preset"
# shellcheck disable=SC2086  # the words of BUILD_TARGETS are targets
cmake --build --preset "$preset" ${BUILD_TARGETS:+--target $BUILD_TARGETS} >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
grep -E 'warning:' "$log" | sort -u || true
echo "build: preset $preset is up to date"
