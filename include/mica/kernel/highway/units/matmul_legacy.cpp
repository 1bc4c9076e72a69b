// SPDX-License-Identifier: Apache-2.0
//
// Unit: products with formats of 32 values and one scale.

#include "mica/kernel/highway/dispatch.hpp"

MICA_INSTANTIATE_PACKED(mica::format::Q8_0)
MICA_INSTANTIATE_MATMUL(mica::tensor::Rounded<mica::format::Q8_0>)
MICA_INSTANTIATE_PACKED(mica::format::Q4_0)
