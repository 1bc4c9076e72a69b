#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# usage: tests/packaging/container.sh ROOT [CONFIGURE]
#
# Follows packaging/Containerfile without a container engine: commands of its first stage in ROOT, copies of its last
# stage into a folder, and the image's entry point there. ROOT is a system of its own, made as root:
#
#   debootstrap --variant=minbase bookworm ROOT
#
# CONFIGURE stands for the argument of that name, for a machine that cannot download. The program takes minutes.
set -eu
[ $# -ge 1 ] || { sed -n '4,12s/^# \{0,1\}//p' "$0" >&2; exit 2; }
root=$1
source=$(cd "$(dirname "$0")/../.." && pwd)
file=$source/packaging/Containerfile
[ -x "$root/usr/bin/apt-get" ] || { echo "skipped: container.sh ($root is no Debian system)"; exit 0; }
fail() { echo "container.sh: $*"; exit 1; }
image=$root/image
rm -rf "$image" "$root/out"
mkdir "$image"
folder=/
stage=0
base=
environment=
quoted() { echo "$1" | sed 's/^\[//; s/\]$//; s/", *"/ /g; s/"//g'; } # of words without spaces

while read -r word rest; do
  case $word in
    '' | '#'*) ;;
    FROM)
      stage=$((stage + 1))
      base=${rest%% *}
      ;;
    ARG)
      CONFIGURE=$(echo "${rest#CONFIGURE=}" | tr -d '"')
      CONFIGURE=${2:-$CONFIGURE}
      export CONFIGURE
      ;;
    WORKDIR) folder=$rest ;;
    RUN)
      echo "container.sh: $rest"
      chroot "$root" sh -c "cd $folder && $rest" < /dev/null > "$root/log" 2>&1 ||
        { tail -n 40 "$root/log"; fail "in $root: $rest"; }
      ;;
    COPY)
      case $rest in
        '. /'*)
          rm -rf "${root:?}/${rest#. /}"
          mkdir "$root/${rest#. /}"
          (cd "$source" && git ls-files -z | tar -c --null -T -) | tar -x -C "$root/${rest#. /}"
          ;;
        '--from=build '*)
          from=${rest#--from=build } && to=${from#* } && from=${from% *}
          [ -e "$root$from" ] || fail "the first stage has no $from"
          mkdir -p "$image$(dirname "$to")"
          cp -RL "$root$from" "$image$to"
          ;;
        *) fail "not known: COPY $rest" ;;
      esac
      ;;
    ENV) environment="$environment $rest" ;;
    ENTRYPOINT) entry=$(quoted "$rest") ;;
    CMD) command=$(quoted "$rest") ;;
    *) fail "not known: $word" ;;
  esac
done < "$file"

[ $stage = 2 ] && [ "$base" = scratch ] || fail "the last of two stages was to be empty"
# shellcheck disable=SC2086  # words
said=$(chroot "$image" $entry $command -n 24 --temp 0 < /dev/null 2> "$root/log") || fail "$(cat "$root/log")"
case $said in "Once upon a time there"*) ;; *) fail "$entry $command said: $said" ;; esac
for variable in $environment; do
  [ -e "$image${variable#*=}" ] || fail "the image has no ${variable#*=}"
done
echo "container: $(find "$image" -type f | wc -l) files, $(du -sm "$image" | cut -f 1) MiB: $said"
