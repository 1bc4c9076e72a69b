// SPDX-License-Identifier: Apache-2.0
//
// Unit: products with formats of 32 values, one scale and one offset.

#include "mica/kernel/highway/dispatch.hpp"

MICA_INSTANTIATE_PACKED(mica::format::Q4_1)
MICA_INSTANTIATE_PACKED(mica::format::Q5_1)
