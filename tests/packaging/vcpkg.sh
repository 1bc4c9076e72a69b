#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# usage: tests/packaging/vcpkg.sh VCPKG_ROOT [--system-libraries]
#
# Installs the port of packaging/vcpkg by vcpkg itself, whose own rules are errors, and builds the consumer with its
# toolchain. VCPKG_ROOT is a checkout of vcpkg with its program. --system-libraries, for a machine that cannot
# download: empty ports stand for the libraries that mica requires, and CMake finds those of the system. The features
# program and kernels take minutes.
set -eu
[ $# -ge 1 ] || { sed -n '4,10s/^# \{0,1\}//p' "$0" >&2; exit 2; }
root=$1
source=$(cd "$(dirname "$0")/../.." && pwd)
[ -x "$root/vcpkg" ] || { echo "skipped: vcpkg.sh (no program vcpkg in $root)"; exit 0; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() {
  newest=$(ls -t "$scratch"/buildtrees/mica/*-out.log 2> /dev/null | head -n 1)
  [ -z "$newest" ] || tail -n 30 "$newest"
  cat "$scratch/log"
  echo "vcpkg.sh: $*"
  exit 1
}

overlay="--overlay-ports=$source/packaging/vcpkg/ports"
if [ "${2:-}" = --system-libraries ]; then
  for port in highway pcre2 xxhash nlohmann-json openssl eigen3 xsimd cpp-httplib; do
    mkdir -p "$scratch/ports/$port"
    echo 'set(VCPKG_POLICY_EMPTY_PACKAGE enabled)' > "$scratch/ports/$port/portfile.cmake"
    features=
    [ $port != cpp-httplib ] || features=', "features": { "openssl": { "description": "TLS" } }'
    echo "{ \"name\": \"$port\", \"version\": \"0\"$features }" > "$scratch/ports/$port/vcpkg.json"
  done
  # Nor can it download what corrects the paths of shared libraries, of which a package of headers has none.
  mkdir "$scratch/triplets"
  for triplet in x64-linux arm64-linux; do
    [ -f "$root/triplets/$triplet.cmake" ] || continue
    (cat "$root/triplets/$triplet.cmake" && echo 'set(VCPKG_FIXUP_ELF_RPATH OFF)') > "$scratch/triplets/$triplet.cmake"
  done
  overlay="$overlay --overlay-ports=$scratch/ports --overlay-triplets=$scratch/triplets"
fi
vcpkg() {
  # shellcheck disable=SC2086  # options are words
  "$root/vcpkg" --vcpkg-root="$root" $overlay --x-install-root="$scratch/installed" \
    --x-buildtrees-root="$scratch/buildtrees" --x-packages-root="$scratch/packages" "$@" > "$scratch/log" 2>&1
}

# The form that vcpkg gives its manifests.
cp "$source/packaging/vcpkg/ports/mica/vcpkg.json" "$scratch/vcpkg.json"
vcpkg format-manifest "$scratch/vcpkg.json" || fail "the manifest is wrong"
diff "$source/packaging/vcpkg/ports/mica/vcpkg.json" "$scratch/vcpkg.json" > "$scratch/log" ||
  fail "the manifest is not as vcpkg format-manifest writes it"
for features in 'mica[core]' 'mica' 'mica[eigen,server,xsimd]'; do
  vcpkg install "$features" --enforce-port-checks --binarysource=clear --editable || fail "install $features"
  vcpkg remove mica > /dev/null 2>&1 || fail "remove $features"
done
vcpkg install mica --enforce-port-checks --binarysource=clear || fail "install mica"
cp "$scratch/log" "$scratch/installed.log"
grep -q 'find_package(mica CONFIG REQUIRED' "$scratch/log" || fail "vcpkg does not print the usage"

cmake -S "$source/tests/packaging/consumer" -B "$scratch/consumer" -G Ninja -DCMAKE_BUILD_TYPE=Debug \
  -DCMAKE_TOOLCHAIN_FILE="$root/scripts/buildsystems/vcpkg.cmake" -DVCPKG_MANIFEST_MODE=OFF \
  -DVCPKG_INSTALLED_DIR="$scratch/installed" -DMICA_COMPONENTS="text checksum" -DLINK="text checksum tools jinja" \
  > "$scratch/log" 2>&1 || fail "the consumer is not configured"
cmake --build "$scratch/consumer" --target consumer > "$scratch/log" 2>&1 || fail "the consumer is not built"
"$scratch/consumer/consumer" "$source/examples/models/fairy.gguf" > "$scratch/log" 2>&1 || fail "the consumer failed"
grep -q '^refused: activations: ' "$scratch/log" || fail "the consumer's own policy was not asked"

# What is compiled: the program, with its module for URLs beside it, and the kernels, which a project links.
vcpkg remove mica > /dev/null 2>&1 || fail "remove mica"
vcpkg install 'mica[program,kernels,server]' --enforce-port-checks --binarysource=clear || fail "install mica[program,kernels,server]"
tools=$(echo "$scratch"/installed/*/tools/mica)
[ -f "$tools/mica-urls.so" ] || fail "there is no module for URLs in $tools"
"$tools/mica" run -n 24 --temp 0 < /dev/null > "$scratch/log" 2>&1 || fail "the program does not run"
grep -q '^Once upon a time there' "$scratch/log" || fail "the program tells no story"
# Port 9 of this machine has no server: the module is found where it says so.
"$tools/mica" plan http://127.0.0.1:9/model.gguf > "$scratch/log" 2>&1 && fail "a plan without a server"
grep -q '127.0.0.1:9' "$scratch/log" || fail "the module for URLs is not loaded"
cmake -S "$source/tests/packaging/compiled" -B "$scratch/compiled" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_TOOLCHAIN_FILE="$root/scripts/buildsystems/vcpkg.cmake" -DVCPKG_MANIFEST_MODE=OFF \
  -DVCPKG_INSTALLED_DIR="$scratch/installed" > "$scratch/log" 2>&1 || fail "mica::kernels is not found"
cmake --build "$scratch/compiled" > "$scratch/log" 2>&1 || fail "mica::kernels does not link"
"$scratch/compiled/compiled" "$source/examples/models/fairy.gguf" > "$scratch/log" 2>&1 || fail "mica::kernels does not run"
grep -q '^Once upon a time there' "$scratch/log" || fail "mica::kernels tells no story"
echo "vcpkg: $("$root/vcpkg" version 2> /dev/null | sed -n 's/.*version \([^ ]*\).*/\1/p'): five feature sets installed, consumers and program run"
