// SPDX-License-Identifier: Apache-2.0
//
// Unit: attention over int8 keys and values.

#include "mica/kernel/highway/dispatch.hpp"

MICA_INSTANTIATE_ATTENTION(mica::format::Q8_0)
MICA_INSTANTIATE_STORE(mica::format::Q8_0)
