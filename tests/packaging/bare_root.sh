#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# usage: tests/packaging/bare_root.sh ROOT [PACKAGES]
#
# Installs the .deb of the target dist in ROOT and runs the program there, then the program of the tar.gz, and removes
# the package again. ROOT is a system of its own, made as root with nothing but the base:
#
#   debootstrap --variant=minbase bookworm ROOT
#
# PACKAGES is the folder that dist wrote, build/dist/packages by default. In a ROOT of arm64 (docs/release.md) on
# another machine, QEMU runs the program and the machine's own dpkg installs it; the program needs qemu-user-static.
set -eu
[ $# -ge 1 ] || { sed -n '4,13s/^# \{0,1\}//p' "$0" >&2; exit 2; }
root=$1
source=$(cd "$(dirname "$0")/../.." && pwd)
packages=${2:-$source/build/dist/packages}
version=$(sed -n 's/^project(mica VERSION \([0-9.]*\).*/\1/p' "$source/CMakeLists.txt")
[ -x "$root/usr/bin/dpkg" ] || { echo "skipped: bare_root.sh ($root is no Debian system)"; exit 0; }
fail() { echo "bare_root.sh: $*"; exit 1; }
deb=$(echo "$packages"/mica_"$version"_*.deb)
tar=$(echo "$packages"/mica-"$version"-linux-*.tar.gz)
[ -f "$deb" ] && [ -f "$tar" ] || fail "no packages of $version in $packages; cmake --build --preset dist"
[ ! -e "$root/usr/bin/mica" ] || fail "$root has mica already"

# The package: no dependency, a maintainer, a licence for each library inside, files of root.
[ -z "$(dpkg-deb -f "$deb" Depends)" ] || fail "the package depends on $(dpkg-deb -f "$deb" Depends)"
[ "$(dpkg-deb -f "$deb" Version)" = "$version" ] || fail "the package has another version"
[ -n "$(dpkg-deb -f "$deb" Maintainer)" ] || fail "the package has no maintainer"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
dpkg-deb -c "$deb" > "$scratch/deb"
tar tzf "$tar" > "$scratch/tar"
grep -v ' root/root ' "$scratch/deb" && fail "files that root does not own"
for file in bin/mica share/doc/mica/copyright share/doc/mica/licences/highway share/doc/mica/licences/pcre2 \
  share/doc/mica/licences/libc share/doc/mica/licences/libstdc++ share/doc/mica/licences/nlohmann-json; do
  grep -q " \./usr/$file\$" "$scratch/deb" || fail "the package has no $file"
  grep -q "^mica-[^/]*/$file\$" "$scratch/tar" || fail "the archive has no $file"
done

emulator=''
if ! chroot "$root" /bin/true 2> /dev/null; then
  qemu=$(command -v qemu-aarch64-static) || { echo "skipped: bare_root.sh (no qemu-aarch64-static)"; exit 0; }
  emulator=/tmp/qemu
  cp "$qemu" "$root$emulator"
fi
in_root() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root chroot "$root" $emulator "$@"; }
dpkg_in_root() {
  if [ -n "$emulator" ]; then
    dpkg --root="$root" --force-architecture "$@"
  else
    in_root dpkg "$@"
  fi
}
story() {
  said=$(in_root "$1" run -n 24 --temp 0 < /dev/null 2> "$root/tmp/said") || fail "$(cat "$root/tmp/said")"
  case $said in "Once upon a time there"*) ;; *) fail "$1 said: $said" ;; esac
}
cp "$deb" "$root/tmp/mica.deb"
package=/tmp/mica.deb
[ -z "$emulator" ] || package=$root$package
dpkg_in_root -i "$package" > /dev/null 2> "$scratch/dpkg" || fail "$(cat "$scratch/dpkg")"
in_root /usr/bin/mica --version | grep -q "$version" || fail "mica --version: $(in_root /usr/bin/mica --version)"
story /usr/bin/mica
dpkg_in_root -r mica > /dev/null 2> "$scratch/dpkg" || fail "$(cat "$scratch/dpkg")"
[ ! -e "$root/usr/bin/mica" ] || fail "the package cannot be removed"
mkdir "$root/tmp/archive"
tar xzf "$tar" -C "$root/tmp/archive" --strip-components 1
command -v readelf > /dev/null || fail "no readelf; apt install binutils"
LC_ALL=C readelf -d "$root/tmp/archive/bin/mica" | grep NEEDED && fail "the program needs shared libraries"
story /tmp/archive/bin/mica
rm -r "$root/tmp/archive" "$root/tmp/mica.deb" "$root/tmp/said" ${emulator:+"$root$emulator"}
echo "bare_root: $(basename "$deb"), $(basename "$tar"): $said"
