// SPDX-License-Identifier: Apache-2.0
//
// Unit: products with the formats that share the codebook of -1, 0 and 1.

#include "mica/kernel/highway/dispatch.hpp"

MICA_INSTANTIATE_MATMUL(mica::format::IQ1_S)
MICA_INSTANTIATE_MATMUL(mica::format::IQ1_M)
