// SPDX-License-Identifier: Apache-2.0
//
// Unit: products with formats of 256 values in groups of 16, without mins.

#include "mica/kernel/highway/dispatch.hpp"

MICA_INSTANTIATE_PACKED(mica::format::Q6_K)
MICA_INSTANTIATE_PACKED(mica::format::Q3_K)
