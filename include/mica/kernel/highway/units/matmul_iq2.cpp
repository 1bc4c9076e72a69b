// SPDX-License-Identifier: Apache-2.0
//
// Unit: products with formats with codebooks of eight magnitudes and seven signs.

#include "mica/kernel/highway/dispatch.hpp"

MICA_INSTANTIATE_MATMUL(mica::format::IQ2_XXS)
MICA_INSTANTIATE_MATMUL(mica::format::IQ2_XS)
