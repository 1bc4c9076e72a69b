#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# usage: tests/packaging/conan.sh [CONAN]
#
# Makes the Conan package and proves it by its test_package, without a remote: recipes/system.py stands for the
# packages that mica requires. First with the default options, then with every part, then with compiled kernels, which
# takes minutes. Conan's own folder is a scratch one, so nothing is left behind.
set -eu
conan=${1:-conan}
command -v "$conan" > /dev/null || { echo "skipped: conan.sh (no $conan; pip install conan)"; exit 0; }
source=$(cd "$(dirname "$0")/../.." && pwd)
CONAN_HOME=$(mktemp -d)
export CONAN_HOME
trap 'rm -rf "$CONAN_HOME"' EXIT

# Everything below is built outside of the tree, which stays as it is.
mkdir "$CONAN_HOME/tree"
(cd "$source" && cp -r CMakeLists.txt LICENSE conanfile.py cmake include packaging "$CONAN_HOME/tree")
mkdir -p "$CONAN_HOME/tree/tests/packaging" "$CONAN_HOME/tree/examples"
cp -r "$source/tests/packaging/consumer" "$source/tests/packaging/compiled" "$CONAN_HOME/tree/tests/packaging"
cp -r "$source/examples/models" "$CONAN_HOME/tree/examples"
cd "$CONAN_HOME/tree"

"$conan" profile detect > /dev/null 2>&1
version_of() { pkg-config --modversion "$1"; }
system() { "$conan" export "$source/tests/packaging/recipes/system.py" --name "$1" --version "$2" > /dev/null 2>&1; }
system highway "$(version_of libhwy)"
system pcre2 "$(version_of libpcre2-8)"
system nlohmann_json "$(version_of nlohmann_json)"
system xxhash "$(version_of libxxhash)"
system cpp-httplib "$(version_of cpp-httplib)"
system openssl "$(version_of openssl)"
system eigen "$(version_of eigen3)"
system xsimd "$(version_of xsimd)"

create() {
  "$conan" create . --no-remote --build=missing --settings:all compiler.cppstd=20 --settings:all build_type=Debug "$@" \
    > "$CONAN_HOME/log" 2>&1 || { cat "$CONAN_HOME/log"; echo "conan.sh: failed: conan create $*"; exit 1; }
  said=$(grep -c 'refused: ' "$CONAN_HOME/log")
  [ "$said" -ge 2 ] || { cat "$CONAN_HOME/log"; echo "conan.sh: the consumer said nothing"; exit 1; }
}
create
create -o '&:server=True' -o '&:eigen=True' -o '&:xsimd=True'

# What cannot work is refused with one sentence.
refuse() {
  words=$1 && shift
  ! "$conan" create . --no-remote --test-folder= --build=missing "$@" > "$CONAN_HOME/log" 2>&1 &&
    grep -q "$words" "$CONAN_HOME/log" || { cat "$CONAN_HOME/log"; echo "conan.sh: not refused: $words"; exit 1; }
}
refuse 'mica needs gcc 12 or newer, not 11' -s compiler.version=11 -s compiler.cppstd=20
refuse 'Windows' -s os=Windows -s compiler.cppstd=20
refuse "C++ standard" -s compiler.cppstd=17

# With compiled kernels the consumer has one unit, and they are for these settings alone.
"$conan" create . --no-remote --build=missing --settings:all compiler.cppstd=20 --settings:all build_type=Release \
  -o '&:kernels=True' > "$CONAN_HOME/log" 2>&1 || { cat "$CONAN_HOME/log"; echo "conan.sh: failed: kernels"; exit 1; }
grep -q 'Once upon a time there' "$CONAN_HOME/log" ||
  { cat "$CONAN_HOME/log"; echo "conan.sh: the compiled kernels told no story"; exit 1; }
packages=$("$conan" list 'mica/*:*' --format=compact 2> /dev/null | sed -n 's|^ *\(mica/[^ ]*:[0-9a-f]*\).*|\1|p')
headers='' kernels=''
for each in $packages; do
  folder=$("$conan" cache path "$each")
  if [ -e "$folder/lib/libmica_kernels.a" ]; then kernels=$folder; else headers=$folder; fi
done
[ -n "$headers" ] && [ -n "$kernels" ] || { echo "conan.sh: two packages expected, with and without kernels"; exit 1; }

# Rules of the public index: licence in licenses/, nothing but include/, lib/ and licenses/.
for name in "$headers"/* "$kernels"/*; do
  case $(basename "$name") in
    include | lib | licenses | conaninfo.txt | conanmanifest.txt) ;;
    *) echo "conan.sh: the package has $name"; exit 1 ;;
  esac
done
for package in "$headers" "$kernels"; do
  [ -s "$package/licenses/LICENSE" ] || { echo "conan.sh: no licence in $package"; exit 1; }
done
[ "$(find "$headers/lib" -type f)" = "$headers/lib/cmake/mica-kernels.cmake" ] ||
  { find "$headers/lib" -type f; echo "conan.sh: lib/ was to have one file"; exit 1; }
echo "conan: $("$conan" --version 2>&1): mica $(sed -n 's/^project(mica VERSION \([0-9.]*\).*/\1/p' "$source/CMakeLists.txt") created three times, consumers run, three refusals"
