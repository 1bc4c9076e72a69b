// SPDX-License-Identifier: Apache-2.0
//
// Unit: products with floats of 16 bits, as they lie in files and coded.

#include "mica/kernel/highway/dispatch.hpp"

MICA_INSTANTIATE_PACKED12(mica::format::F16)
MICA_INSTANTIATE_PACKED12(mica::format::BF16)
