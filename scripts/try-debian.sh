#!/bin/sh
# Builds libtrace and runs its tests with another Debian's compiler and libtorch, in a folder made by debootstrap.
# usage: scripts/try-debian.sh SUITE FOLDER [cmake cache options…]
#        e.g. sudo scripts/try-debian.sh trixie /var/tmp/trixie      (libtorch 2.6)
#             sudo scripts/try-debian.sh sid /var/tmp/sid            (2.14)
# Needs root, debootstrap, 7 GB in FOLDER. It builds the committed state. A second run reuses the folder. Packages come
# from the mirror of this machine's own apt (MIRROR=<address> for another). Writes FOLDER and FOLDER.log only.
# CMAKE_BUILD_PARALLEL_LEVEL=1 keeps the other cores free.
# shellcheck disable=SC2016  # formats of apt and dpkg, not of the shell
set -eu
suite=${1:?usage: scripts/try-debian.sh SUITE FOLDER [cmake cache options…]}
folder=${2:?usage: scripts/try-debian.sh SUITE FOLDER [cmake cache options…]}
shift 2
root=$(cd "$(dirname "$0")/.." && pwd)
mirror=${MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' | grep '/debian/$' | head -n 1)}
# tlparse is built too, as tests read back what libtrace emits (-DTRACEKIT_BUILD_TLPARSE=OFF: without them).
# python3-torch compiles the package of the AOTInductor example.
packages="g++ cmake ninja-build pkg-config catch2 libbenchmark-dev python3 python3-jsonschema python3-setuptools
  libfmt-dev libspdlog-dev libssl-dev redis-server libtorch-dev libgloo-dev python3-torch ccache
  libcli11-dev libcpp-httplib-dev libexpected-dev libre2-dev libsimdjson-dev libsqlite3-dev libutf8proc-dev libxxhash-dev libzip-dev
  libzstd-dev zlib1g-dev"

inside() { chroot "$folder" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 OMP_NUM_THREADS=1 \
  DEBIAN_FRONTEND=noninteractive ${CMAKE_BUILD_PARALLEL_LEVEL:+"CMAKE_BUILD_PARALLEL_LEVEL=$CMAKE_BUILD_PARALLEL_LEVEL"} "$@"; }
ours=""
mounted() { # what is mounted already stays so
  mountpoint -q "$folder/$1" && return
  mount -t "$2" "$2" "$folder/$1" && ours="$folder/$1 $ours"
}

if [ ! -e "$folder/etc/debian_version" ] || [ -e "$folder/debootstrap" ]; then  # not begun, or not ended
  echo "try-debian: debootstrap $suite"
  debootstrap --variant=minbase "$suite" "$folder" "$mirror" >"$folder.log" 2>&1 || { tail "$folder.log" >&2; exit 1; }
fi
mounted proc proc
mounted dev/shm tmpfs
# shellcheck disable=SC2086  # the words of $ours are folders
trap '[ -z "$ours" ] || umount $ours' EXIT
trap 'exit 1' HUP INT TERM
echo "try-debian: packages"
# A mirror that is a snapshot has an expired Release file; it is treated as by this machine's own apt.
eval "$(apt-config shell valid Acquire::Check-Valid-Until date Acquire::Check-Date)"
inside apt-get -qq -o Acquire::Check-Valid-Until="${valid:-true}" -o Acquire::Check-Date="${date:-true}" update
# shellcheck disable=SC2086  # the words of $packages are packages
inside apt-get -y -qq -o Dpkg::Use-Pty=0 --no-install-recommends install $packages >"$folder.log" 2>&1 ||
  { tail "$folder.log" >&2; exit 1; }
inside dpkg-query -W -f='${Package} ${Version}\n' libtorch-dev g++

work=/srv/tracekit  # traces of the examples name it
rm -rf "$folder$work/src"
mkdir -p "$folder$work/src"
git -C "$root" archive HEAD | tar -x -m -C "$folder$work/src"
# Programs that once showed a defect lie beside the repository, if at all.
if [ -d "$root/../shared/defects" ]; then
  mkdir -p "$folder$work/shared"
  cp -r "$root/../shared/defects" "$folder$work/shared"
fi
targets="libtrace/all tests/libtrace/all tests/libtrace_torch/all"
case "$*" in *TRACEKIT_BUILD_TLPARSE=OFF*) ;; *) targets="$targets tlparse" ;; esac
echo "try-debian: building"
inside nice cmake -S $work/src -B $work/b -G Ninja -DCMAKE_BUILD_TYPE=Release -DTRACEKIT_BUILD_TESTS=ON \
  -DTRACEKIT_BUILD_TLPARSE=ON -DTRACEKIT_WITH_TORCH=ON -DCMAKE_CXX_COMPILER_LAUNCHER=ccache "$@" >"$folder.log" 2>&1 ||
  { tail -n 30 "$folder.log" >&2; exit 1; }
# shellcheck disable=SC2086  # the words of $targets are targets
inside nice cmake --build $work/b --target $targets -- -k 0 >"$folder.log" 2>&1 ||
  { grep -B 2 -A 12 -m 3 'error' "$folder.log" >&2; exit 1; }
echo "try-debian: testing"
inside ctest --test-dir $work/b -R ^libtrace --output-on-failure
