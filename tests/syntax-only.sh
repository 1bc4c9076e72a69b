#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Before a compiler's words that compile one unit: reads the unit and generates no code, which takes half of the
# time. The object file is empty.
set -eu
"$@" -fsyntax-only
while [ "$1" != -o ]; do shift; done
: > "$2"
