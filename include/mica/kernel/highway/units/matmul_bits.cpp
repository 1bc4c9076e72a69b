// SPDX-License-Identifier: Apache-2.0
//
// Unit: products with formats that keep one bit of every code apart, or have no more.

#include "mica/kernel/highway/dispatch.hpp"

MICA_INSTANTIATE_PACKED(mica::format::Q5_0)
MICA_INSTANTIATE_MATMUL(mica::format::Q1_0)
