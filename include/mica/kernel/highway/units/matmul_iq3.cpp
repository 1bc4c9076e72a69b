// SPDX-License-Identifier: Apache-2.0
//
// Unit: products with formats with codebooks of four magnitudes.

#include "mica/kernel/highway/dispatch.hpp"

MICA_INSTANTIATE_MATMUL(mica::format::IQ3_XXS)
MICA_INSTANTIATE_MATMUL(mica::format::IQ3_S)
