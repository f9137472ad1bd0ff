#!/bin/sh
# Checks Debian packages of tracekit (scripts/package.sh deb): lintian; then installed, used and purged in a folder made by debootstrap.
# usage: sudo scripts/try-packages.sh SUITE FOLDER PACKAGE.deb…     e.g. bookworm /var/tmp/bookworm dist/*.deb
# Needs root, debootstrap, lintian, 1 GB in FOLDER. A second run reuses the folder.
# shellcheck disable=SC2016  # formats of apt and dpkg, not of the shell
set -eu
suite=${1:?usage: scripts/try-packages.sh SUITE FOLDER PACKAGE.deb…}
folder=${2:?usage: scripts/try-packages.sh SUITE FOLDER PACKAGE.deb…}
shift 2
root=$(cd "$(dirname "$0")/.." && pwd)
mirror=${MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' | grep '/debian/$' | head -n 1)}
say() { echo "try-packages: $*"; }
inside() { chroot "$folder" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }

say "lintian"
lintian --fail-on error "$@"
if [ ! -e "$folder/etc/debian_version" ] || [ -e "$folder/debootstrap" ]; then  # not begun, or not ended
  say "debootstrap $suite"
  debootstrap --variant=minbase "$suite" "$folder" "$mirror" >"$folder.log" 2>&1 || { tail "$folder.log" >&2; exit 1; }
fi
# bash's <(…), which completion uses, needs /dev/fd.
ln -sfn /proc/self/fd "$folder/dev/fd"
mountpoint -q "$folder/proc" || { mount -t proc proc "$folder/proc" && trap 'umount "$folder/proc"' EXIT; }
rm -rf "$folder/srv/tracekit"
mkdir -p "$folder/srv/tracekit/logs"
cp "$@" "$folder/srv/tracekit/"
cp "$root"/fixtures/logs/diverge_config_2_6/* "$folder/srv/tracekit/logs/"
eval "$(apt-config shell valid Acquire::Check-Valid-Until)"
inside apt-get -qq -o Acquire::Check-Valid-Until="${valid:-true}" update
before=$(inside sh -c 'ls /usr/bin /usr/lib/*-linux-gnu /usr/include /usr/share/man/man1 2>/dev/null | grep -iE "tlparse|torchtrace" || true')
[ -z "$before" ] || { say "the folder has it already: $before" >&2; exit 1; }

say "install"
inside sh -c 'apt-get -y -qq --no-install-recommends install /srv/tracekit/*.deb' >"$folder.log" 2>&1 || { tail "$folder.log" >&2; exit 1; }
if inside dpkg-query -W tracekit-tlparse >/dev/null 2>&1; then
  say "use: $(inside tlparse --version)"
  inside sh -c 'cd /srv/tracekit && tlparse logs -o out && tlparse findings out --severity warning'
  # minbase leaves manual pages out.
  inside dpkg -L tracekit-tlparse | grep -q '/man1/tlparse.1.gz$'
  inside bash -c '. /usr/share/bash-completion/completions/tlparse; cd /srv/tracekit; COMP_WORDS=(tlparse cache out --rank ""); COMP_CWORD=4; _tlparse; [ "${COMPREPLY[*]}" = "0 1 2 3" ]'
fi
if inside dpkg-query -W libtorchtrace-dev >/dev/null 2>&1; then
  say "use: libtorchtrace-dev"
  inside apt-get -y -qq --no-install-recommends install gcc libc6-dev pkg-config >"$folder.log" 2>&1
  printf '#include <libtrace/libtrace.h>\n#include <stdio.h>\nint main(void) { puts(libtrace_version()); return 0; }\n' >"$folder/srv/tracekit/a.c"
  inside sh -c 'cd /srv/tracekit && cc a.c $(pkg-config --cflags --libs torchtrace) -o a && ./a'
fi

say "purge"
names=$(for package; do dpkg-deb -f "$package" Package; done)
# shellcheck disable=SC2086  # several names
inside apt-get -y -qq purge $names >"$folder.log" 2>&1 || { tail "$folder.log" >&2; exit 1; }
left=$(inside sh -c 'find /usr /etc /var/lib/dpkg/info | grep -iE "tlparse|torchtrace" || true')
[ -z "$left" ] || { say "left behind: $left" >&2; exit 1; }
say "done"
