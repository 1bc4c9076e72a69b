# SPDX-License-Identifier: Apache-2.0
#
# What `cmake --install` copies, and the files by which others find it.
