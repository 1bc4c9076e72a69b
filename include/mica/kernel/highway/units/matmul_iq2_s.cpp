// SPDX-License-Identifier: Apache-2.0
//
// Unit: products with the format with a codebook of eight magnitudes and eight signs.

#include "mica/kernel/highway/dispatch.hpp"

MICA_INSTANTIATE_MATMUL(mica::format::IQ2_S)
