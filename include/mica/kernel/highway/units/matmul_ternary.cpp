// SPDX-License-Identifier: Apache-2.0
//
// Unit: products with ternary formats.

#include "mica/kernel/highway/dispatch.hpp"

MICA_INSTANTIATE_MATMUL(mica::format::TQ1_0)
MICA_INSTANTIATE_PACKED(mica::format::TQ2_0)
