#!/bin/bash
# A C++ compiler that takes from a store what it compiled before, and does not optimise: CXX of the recorded jobs, since two cores compile few
# kernels a minute. The names of Inductor's sources are made from their content, so that arguments without their folders are the key.
out= previous= source=
arguments=()
for argument in "$@"; do
  [ "$previous" = -o ] && out=$argument
  case $argument in *header.hpp) source=$argument ;; esac
  [ "$argument" = -O3 ] && argument=-O0
  [ "$argument" = -g1 ] && argument=-g0
  arguments+=("$argument")
  previous=$argument
done
if [ -z "$out" ] || [ -z "$CXX_STORE" ]; then exec g++ "${arguments[@]}"; fi
mkdir -p "$CXX_STORE"
key=$({ printf '%s\n' "${arguments[@]}" | sed -E 's#^/(tmp|rec)/.*/##'; [ -n "$source" ] && cat "$source"; } | md5sum | cut -c1-32)
exec 9>"$CXX_STORE/$key.lock"
flock 9
if [ ! -f "$CXX_STORE/$key" ]; then
  g++ "${arguments[@]}" || exit
  cp "$out" "$CXX_STORE/$key.$$" && mv "$CXX_STORE/$key.$$" "$CXX_STORE/$key" && exit
fi
exec cp "$CXX_STORE/$key" "$out"
