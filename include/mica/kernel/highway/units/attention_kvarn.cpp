// SPDX-License-Identifier: Apache-2.0
//
// Unit: attention over keys with scales for each channel and each token, and rotated values.

#include "mica/kernel/highway/dispatch.hpp"

MICA_INSTANTIATE_ATTENTION(mica::format::KVARN4)
MICA_INSTANTIATE_ATTENTION(mica::format::KVARN3)
MICA_INSTANTIATE_ATTENTION(mica::format::KVARN2)
