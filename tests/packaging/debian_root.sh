#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# usage: tests/packaging/debian_root.sh ROOT FOLDER
#
# Installs the packages that debian.sh left in FOLDER by apt in ROOT, and uses them there: the program tells a story,
# and a project of one unit is built with the compiled kernels, by pkg-config and by CMake. As root. ROOT is a new
# system of the Debian that built the packages:
#
#   debootstrap --variant=minbase trixie ROOT
#
# APT_OPTIONS: options of apt-get.
set -eu
[ $# = 2 ] || { sed -n '4,13s/^# \{0,1\}//p' "$0" >&2; exit 2; }
root=$1
source=$(cd "$(dirname "$0")/../.." && pwd)
[ -x "$root/usr/bin/dpkg" ] || { echo "skipped: debian_root.sh ($root is no Debian system)"; exit 0; }
fail() { echo "debian_root.sh: $*"; exit 1; }
[ ! -e "$root/usr/bin/mica" ] || fail "$root has mica already"
mkdir "$root/tmp/mica"
trap 'rm -rf "$root/tmp/mica"' EXIT
cp "$2"/*mica*.deb "$source/examples/models/fairy.gguf" "$root/tmp/mica"
rm -f "$root"/tmp/mica/*-dbgsym_*
cp -r "$source/tests/packaging/compiled" "$root/tmp/mica"
in_root() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive "$@"; }
# shellcheck disable=SC2086  # options are words
apt() { in_root apt-get ${APT_OPTIONS:-} -y --no-install-recommends "$@" > "$root/tmp/said" 2>&1 || fail "$(cat "$root/tmp/said")"; }
file_of() { echo "/tmp/mica/$(basename "$root/tmp/mica/$1"_*.deb)"; }
apt update
apt install "$(file_of mica)"
said=$(in_root mica run -n 24 --temp 0 < /dev/null 2> "$root/tmp/said") || fail "$(cat "$root/tmp/said")"
case $said in "Once upon a time there"*) ;; *) fail "mica said: $said" ;; esac
apt install "$(file_of libmica-dev)" "$(file_of libmica-kernels-dev)" g++ pkgconf cmake make
build='c++ -O1 /tmp/mica/compiled/main.cpp $(pkg-config --cflags --libs mica-kernels) -o /tmp/mica/by_pkg_config &&
  cmake -S /tmp/mica/compiled -B /tmp/mica/build && cmake --build /tmp/mica/build'
in_root sh -c "$build" > "$root/tmp/said" 2>&1 || fail "$(cat "$root/tmp/said")"
for program in by_pkg_config build/compiled; do
  told=$(in_root "/tmp/mica/$program" /tmp/mica/fairy.gguf) || fail "$program failed"
  case $told in "Once upon a time there"*) ;; *) fail "$program said: $told" ;; esac
done
apt purge mica libmica-dev libmica-kernels-dev
[ -z "$(find "$root/usr" -path '*mica*' ! -path '*/share/doc*')" ] || fail "left behind: $(find "$root/usr" -path '*mica*')"
rm "$root/tmp/said"
echo "debian_root: $(cd "$2" && echo *mica*.deb): $said"
