#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
#   tests/syntax-only.sh COMPILER ... -o OBJECT ...
#
# A compiler launcher. The compiler reads the unit and generates no code, which takes half of the time for
# large headers; the object file is empty.
set -eu
"$@" -fsyntax-only
while [ "$1" != -o ]; do shift; done
: > "$2"
