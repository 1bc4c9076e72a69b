// SPDX-License-Identifier: Apache-2.0
//
// Unit: attention over float keys and values.

#include "mica/kernel/highway/dispatch.hpp"

MICA_INSTANTIATE_ATTENTION(mica::format::F16)
MICA_INSTANTIATE_ATTENTION(mica::format::F32)
MICA_INSTANTIATE_ATTENTION(mica::format::BF16)
