#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# usage: tests/packaging/debian.sh [--headers] [FOLDER]
#
# Builds the Debian packages from a copy of the tracked files, without the tests, holds them against their contents and
# lintian, and copies them to FOLDER. Program and kernels take minutes; --headers builds libmica-dev alone. Build
# dependencies are those of packaging/debian/control; on Debian 12 libhwy-dev is Debian 13's (./setup deps).
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
packages=-b
[ "${1:-}" != --headers ] || { packages=-A && shift; }
for tool in dpkg-buildpackage dh lintian; do
  command -v $tool > /dev/null || { echo "skipped: debian.sh (no $tool; apt install debhelper dpkg-dev lintian)"; exit 0; }
done
version=$(sed -n 's/^project(mica VERSION \([0-9.]*\).*/\1/p' "$source/CMakeLists.txt")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tree=$scratch/mica-$version
mkdir "$tree"
(cd "$source" && git ls-files -z --cached | tar -c --null -T -) | tar -x -C "$tree"
"$source/packaging/debian/prepare" "$tree"
(cd "$tree" && DEB_BUILD_OPTIONS="nocheck ${DEB_BUILD_OPTIONS:-}" dpkg-buildpackage -us -uc $packages) \
  > "$scratch/log" 2>&1 || { tail -n 60 "$scratch/log"; echo "debian.sh: the build failed"; exit 1; }

# The files of a package, and what it must and must not have.
fail() { echo "debian.sh: $*"; exit 1; }
headers=$scratch/libmica-dev_$version-1_all.deb
files=$(dpkg-deb -c "$headers" | awk '{ print $6 }')
for file in ./usr/include/mica/mica.hpp ./usr/include/mica/kernel/highway/units/elementwise.cpp \
  ./usr/share/cmake/mica/micaConfig.cmake ./usr/share/pkgconfig/mica.pc ./usr/share/doc/libmica-dev/copyright; do
  echo "$files" | grep -qx "$file" || fail "libmica-dev has no $file"
done
dpkg-deb -f "$headers" Depends | grep -q 'libhwy-dev (>= 1.2)' || fail "libmica-dev does not depend on libhwy-dev"
if [ $packages = -b ]; then
  program=$(echo "$scratch"/mica_"$version"-1_*.deb)
  files=$(dpkg-deb -c "$program" | awk '{ print $6 }')
  echo "$files" | grep -qx ./usr/bin/mica || fail "mica has no program"
  echo "$files" | grep -q '/mica/mica-urls.so$' || fail "mica has no module for URLs"
  for file in man/man1/mica.1.gz man/man1/mica-run.1.gz bash-completion/completions/mica zsh/vendor-completions/_mica \
    fish/vendor_completions.d/mica.fish; do
    echo "$files" | grep -qx "./usr/share/$file" || fail "mica has no $file"
  done
  dpkg-deb -f "$program" Depends | grep -q libpcre2-8 || fail "mica does not depend on PCRE2"
  kernels=$(echo "$scratch"/libmica-kernels-dev_"$version"-1_*.deb)
  files=$(dpkg-deb -c "$kernels" | awk '{ print $6 }')
  for file in libmica_kernels.a cmake/mica-kernels/mica-kernels-config.cmake pkgconfig/mica-kernels.pc; do
    echo "$files" | grep -q "^\./usr/lib/[^/]*/$file\$" || fail "libmica-kernels-dev has no $file"
  done
  dpkg-deb -f "$kernels" Depends | grep -q "libmica-dev (= $version-1), libhwy-dev (>= 1\.[0-9]" ||
    fail "libmica-kernels-dev depends on $(dpkg-deb -f "$kernels" Depends)"
fi
lintian --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs,bad-distribution-in-changes-file \
  "$scratch"/*.changes || fail "lintian has remarks"
[ -z "${1:-}" ] || cp "$scratch"/*.deb "$1"
echo "debian: $(cd "$scratch" && echo *.deb)"
