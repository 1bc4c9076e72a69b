// SPDX-License-Identifier: Apache-2.0
//
// Unit: products with four-bit floats.

#include "mica/kernel/highway/dispatch.hpp"

MICA_INSTANTIATE_PACKED(mica::format::MXFP4)
MICA_INSTANTIATE_MATMUL(mica::format::NVFP4)
