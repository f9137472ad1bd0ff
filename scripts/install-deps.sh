#!/bin/sh
# Installs the Debian packages that building (minimal) or building and testing everything (full) needs.
# Installs only missing packages; a second run changes nothing. Debian 12 and newer.
set -eu

usage() {
  echo "usage: scripts/install-deps.sh minimal|package|bench|full [--list]"
  echo "  minimal   what the tlparse program and its report page need"
  echo "  package   also what scripts/package.sh needs"
  echo "  bench     also what the benchmarks need"
  echo "  full      also libtorch, sanitizers, fuzzer, test servers and browser, shells and lintian"
  echo "  --list    only print what is missing"
}

set_name=${1:-}
list_only=${2:-}
case $set_name in minimal | package | bench | full) ;; *) usage >&2; exit 2 ;; esac
case $list_only in '' | --list) ;; *) usage >&2; exit 2 ;; esac
command -v dpkg-query >/dev/null || {
  echo "install-deps: this is not Debian (no dpkg-query); install what CMakeLists.txt looks for by hand" >&2
  exit 1
}
root=$(cd "$(dirname "$0")/.." && pwd)
missing=""

# A library or other package that only the package manager can check.
need_package() {
  for package; do
    state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$state" = installed ] || missing="$missing $package"
  done
}
# A tool: it may be installed in any way; a version from elsewhere is never replaced.
need_command() {
  command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}

need_command g++ g++
need_command cmake cmake
need_command ninja ninja-build
need_command pkg-config pkg-config
need_package libcli11-dev libcpp-httplib-dev libexpected-dev libfmt-dev libsimdjson-dev \
  libre2-dev libspdlog-dev libsqlite3-dev libssl-dev libutf8proc-dev libxxhash-dev libzip-dev libzstd-dev zlib1g-dev
if [ -e "$root/viewer/package.json" ]; then
  need_command node nodejs
  need_command npm npm
  need_package ca-certificates
fi

# The compiler runtime (sanitizers, libFuzzer) is named after the version that "clang" refers to.
clang_runtime() {
  version=$(clang++ -dumpversion 2>/dev/null | cut -d. -f1)
  [ -n "$version" ] || version=$(apt-cache depends clang 2>/dev/null |
    sed -n 's/.*Depends: clang-\([0-9]*\)$/\1/p' | head -n 1)
  [ -n "$version" ] && echo "libclang-rt-$version-dev"
}
if [ "$set_name" != minimal ]; then
  need_command python3 python3
fi
if [ "$set_name" = package ]; then
  need_command tclsh tcl
  need_command perl perl
  need_command dpkg-source dpkg-dev
fi
if [ "$set_name" = bench ] || [ "$set_name" = full ]; then
  need_package libbenchmark-dev
fi
if [ "$set_name" = full ]; then
  need_command sqlite3 sqlite3
  need_command zstd zstd
  need_command clang++ clang
  need_command ld.lld lld
  need_command clang-format clang-format
  need_command redis-server redis-server
  need_command chromium-headless-shell chromium-headless-shell
  need_command zsh zsh
  need_command fish fish
  need_command lintian lintian
  need_command abidiff abigail-tools
  need_package catch2 libgloo-dev libtorch-dev python3-jsonschema
fi

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null 2>&1; then
    sudo "$@"
  else
    echo "install-deps: these packages are missing, and only root can install them:" >&2
    echo "  apt-get install --no-install-recommends$missing" >&2
    exit 1
  fi
}
install_missing() {
  [ -n "$missing" ] || return 0
  if [ "$list_only" ]; then
    for package in $missing; do echo "$package"; done
    return 0
  fi
  echo "install-deps: installing$missing"
  # DPkg::Lock::Timeout: another package manager may be at work.
  set -- env DEBIAN_FRONTEND=noninteractive apt-get -y -qq -o DPkg::Lock::Timeout=600 \
    -o Dpkg::Use-Pty=0 --no-install-recommends install
  # shellcheck disable=SC2086  # the words of $missing are packages
  if ! apt-get -s -qq --no-install-recommends install $missing >/dev/null 2>&1; then
    echo "install-deps: refreshing the package lists"
    as_root apt-get -qq update
  fi
  log=$(mktemp)
  # shellcheck disable=SC2086
  if ! as_root "$@" $missing >"$log" 2>&1; then
    tail -n 30 "$log" >&2
    rm -f "$log"
    echo "install-deps: apt-get could not install:$missing" >&2
    exit 1
  fi
  rm -f "$log"
}

install_missing
already=$missing
if [ "$set_name" = full ]; then # needs to know the clang that was just installed
  missing=""
  runtime=$(clang_runtime || true)
  [ -z "$runtime" ] || need_package "$runtime"
  install_missing
fi
# Not every release has a ClickHouse server; the tests that need one are skipped without it. It must not
# start as a service: the tests start their own.
install_clickhouse() {
  [ -x /usr/sbin/clickhouse-server ] || command -v clickhouse-server >/dev/null 2>&1 && return 0
  if ! apt-cache show clickhouse-server >/dev/null 2>&1; then
    echo "install-deps: this release has no clickhouse-server; tests of the fleet are skipped"
    return 0
  fi
  missing=" clickhouse-server"
  policy=/usr/sbin/policy-rc.d
  if [ -z "$list_only" ] && [ ! -e $policy ]; then
    as_root sh -c "printf '#!/bin/sh\nexit 101\n' >$policy && chmod 755 $policy"
    install_missing
    as_root rm -f $policy
  else
    install_missing
  fi
  missing=""
}
[ "$set_name" != full ] || install_clickhouse
if [ -z "$already$missing" ] && [ -z "$list_only" ]; then
  echo "install-deps: everything of the $set_name set is there"
fi
