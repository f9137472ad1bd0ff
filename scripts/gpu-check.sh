#!/bin/sh
# Runs the check of libtrace::cuda on a machine with an NVIDIA GPU and prints a page to keep (./test.sh gpu calls it).
#
#   scripts/gpu-check.sh                  builds the check with the installed packages (it installs nothing) and runs it
#   scripts/gpu-check.sh --carry FOLDER   builds it so that it needs nothing but the C library, into FOLDER: copy that to the
#                                         machine with the GPU and run FOLDER/gpu-check.sh there
#
# Building needs cmake, ninja or make, a C++20 compiler, pkg-config and OpenSSL's headers; no nvcc, no libtorch, no network. Running needs the
# driver (libcuda.so.1) and CUPTI (libcupti.so; LIBTRACE_CUPTI=<file> if it is in an unusual place).
# Exit code: 0 success, 1 a check failed, 2 the build failed, 77 there is no GPU on this machine.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=$here/libtrace_gpu_check
reader=$here/tlparse
carry=""
case ${1:-} in
  -h | --help) sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 0 ;;
  --carry) carry=${2:?gpu-check: --carry needs a folder} ;;
  "") ;;
  *) echo "gpu-check: unknown argument $1 (--help)" >&2; exit 2 ;;
esac

if [ ! -x "$program" ]; then
  root=$(dirname "$here")
  build=$root/build-gpu
  program=$build/bin/libtrace_gpu_check
  reader=$root/build/bin/tlparse
  for tool in cmake c++ pkg-config; do
    command -v "$tool" >/dev/null 2>&1 && continue
    if [ -e /dev/nvidiactl ]; then
      echo "gpu-check: $tool is missing; build with --carry on another machine and bring the folder here" >&2
      exit 2
    fi
    echo "skipped: no GPU, and no $tool to build the check with"
    exit 77
  done
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  set -- -DTRACEKIT_BUILD_TLPARSE=OFF -DTRACEKIT_WITH_TORCH=OFF -DTRACEKIT_BUILD_GPU_CHECK=ON
  if [ -n "$carry" ]; then
    build=$build-carry  # its libraries are others
    program=$build/bin/libtrace_gpu_check
    set -- "$@" -DOPENSSL_USE_STATIC_LIBS=ON "-DCMAKE_EXE_LINKER_FLAGS=-static-libgcc -static-libstdc++"
  fi
  if command -v ccache >/dev/null 2>&1; then set -- "$@" -DCMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
  { cmake -S "$root" -B "$build" "$@" && cmake --build "$build" --parallel "$(nproc)" --target libtrace_gpu_check; } >"$log" 2>&1 || {
    cat "$log" >&2
    exit 2
  }
fi
if [ -n "$carry" ]; then
  mkdir -p "$carry"
  cp "$program" "$here/gpu-check.sh" "$carry"
  [ ! -x "$reader" ] || cp "$reader" "$carry"
  echo "gpu-check: run $carry/gpu-check.sh on the machine with the GPU ($(du -sm "$carry" | cut -f 1) MiB)"
  exit 0
fi

trace=$(mktemp -d)
trap 'rm -rf "$trace" ${log:+"$log"}' EXIT
code=0
TORCH_TRACE=$trace/log "$program" || code=$?
# The second part, if tlparse is available: reads the trace back, with the kernels on the common clock.
if [ "$code" = 0 ] && "$reader" --version >/dev/null 2>&1; then
  printf '\n## Read back\n\n'
  "$reader" --strict "$trace/log" -o "$trace/out" >"$trace/said" 2>&1 || { cat "$trace/said"; exit 1; }
  "$reader" sql "$trace/out/trace.db" "SELECT kind, op, count(*) AS activities, count(start_us) AS on_the_common_clock FROM gpu_activity GROUP BY kind, op" || code=1
elif [ "$code" = 0 ]; then
  printf '\nNot tried: reading it back (no tlparse that runs here).\n'
fi
exit "$code"
