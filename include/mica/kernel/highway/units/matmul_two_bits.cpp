// SPDX-License-Identifier: Apache-2.0
//
// Unit: products with formats of two bits.

#include "mica/kernel/highway/dispatch.hpp"

MICA_INSTANTIATE_PACKED(mica::format::Q2_K)
MICA_INSTANTIATE_MATMUL(mica::format::Q2_0)
