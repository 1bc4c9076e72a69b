// SPDX-License-Identifier: Apache-2.0
//
// Unit: attention over keys with a scale for each channel, and values with one for each token.

#include "mica/kernel/highway/dispatch.hpp"

MICA_INSTANTIATE_ATTENTION(mica::format::KIVI4)
MICA_INSTANTIATE_ATTENTION(mica::format::KIVI2)
