// SPDX-License-Identifier: Apache-2.0
//
// Unit: products with formats of 256 values in groups of 32.

#include "mica/kernel/highway/dispatch.hpp"

MICA_INSTANTIATE_PACKED(mica::format::Q4_K)
MICA_INSTANTIATE_PACKED(mica::format::Q5_K)
