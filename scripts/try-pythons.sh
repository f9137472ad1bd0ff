#!/bin/sh
# Installs the wheel of tracekit beside official builds of PyTorch with several Pythons, tries both and the hook of `tlparse run` there, asks
# auditwheel about the wheel, and writes fixtures/pythons/PYTHON.json and the rows of docs/compatibility.md.
# usage: scripts/try-pythons.sh [--folder DIR] [--nvidia ENVIRONMENT] WHEEL [PYTHON=TORCH…]
#        e.g. scripts/try-pythons.sh dist/tracekit_tlparse-*.whl python3.9=2.8.0 python3.12=2.15.0
#   --folder DIR   where the environments are made, one at a time, and removed; default: a temporary folder
#   --nvidia ENVIRONMENT   takes NVIDIA's packages, which are the same for each Python and most of what is installed, from an environment that
#                  has the same PyTorch
# Needs PyPI, g++, Pythons with pip and their headers, 8 GB. scripts/package.sh makes the wheel.
set -eu
usage() { sed -n '2,10s/^# \{0,1\}//p' "$0"; }
root=$(cd "$(dirname "$0")/.." && pwd)
folder="" nvidia=""
while [ $# -gt 0 ]; do
  case $1 in
    --folder) folder=${2:?--folder DIR}; shift ;;
    --nvidia) nvidia=${2:?--nvidia ENVIRONMENT}; shift ;;
    -h | --help) usage; exit 0 ;;
    -*) usage >&2; exit 2 ;;
    *) break ;;
  esac
  shift
done
[ $# -gt 0 ] || { usage >&2; exit 2; }
wheel=$1
shift
scratch=""
if [ -z "$folder" ]; then
  folder=$(mktemp -d)
  scratch=$folder
fi
mkdir -p "$folder" "$root/fixtures/pythons"
trap '[ -z "$scratch" ] || rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
# install VENV TORCH
install() {
  if [ -z "$nvidia" ]; then
    "$1/bin/pip" install --no-cache-dir --only-binary :all: "torch==$2" numpy setuptools "$wheel"
    return
  fi
  "$1/bin/pip" install --no-cache-dir --only-binary :all: --no-deps "torch==$2" &&
    "$1/bin/python" -c 'import importlib.metadata as m
for one in m.requires("torch"):
    if "extra ==" not in one and not one.startswith(("nvidia-", "cuda-")):
        print(one)' >"$1/requirements.txt" &&
    "$1/bin/pip" install --no-cache-dir --only-binary :all: -r "$1/requirements.txt" numpy setuptools "$wheel" &&
    ls -d "$nvidia"/lib/python*/site-packages/torch-"$2".dist-info && ln -s "$(echo "$nvidia"/lib/python*/site-packages/nvidia)" "$(echo "$1"/lib/python*/site-packages)/nvidia"
}
failed=""
python3 -m venv --clear "$folder/auditwheel"
"$folder/auditwheel/bin/pip" install -q --no-cache-dir auditwheel
# "… is consistent with the following platform tag: "manylinux_2_5_x86_64"", with line breaks anywhere.
says=$("$folder/auditwheel/bin/auditwheel" show "$wheel" | tr -s '\n ' '  ' | sed -n 's/.* consistent with the following platform tag: "\([^"]*\)".*/consistent with \1/p')
[ -n "$says" ] || failed=" auditwheel"
python3 "$root/tests/tools/kept.py" wheel "$(basename "$wheel")" "says=$says" \
  "auditwheel=\"$("$folder/auditwheel/bin/python" -c 'import importlib.metadata as m; print(m.version("auditwheel"))')\""
rm -rf "$folder/auditwheel"
for pair in "$@"; do
  python=${pair%=*} torch=${pair##*=}
  name=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  venv=$folder/venv-python$name log=$folder/pip-python$name.txt
  echo "try-pythons: installing torch $torch with Python $name"
  "$python" -m venv --clear "$venv"
  if install "$venv" "$torch" >"$log" 2>&1; then
    "$venv/bin/python" "$root/tests/tools/pytorch/pythons.py" "$root/fixtures/pythons/$name.json" || failed="$failed $name"
  else
    echo "try-pythons: cannot be installed: $(grep -m 1 -iE 'constraint|error' "$log" || tail -n 1 "$log")" >&2
    failed="$failed $name"
  fi
  rm -rf "$venv"
done
python3 "$root/tests/tools/pytorch/compatibility.py" --write "$root/docs/compatibility.md"
[ -z "$failed" ] || { echo "try-pythons: not as planned:$failed" >&2; exit 1; }
