# SPDX-License-Identifier: Apache-2.0
#
# The headers alone: nothing else is compiled before this program runs.

set(lesson_libraries mica)
