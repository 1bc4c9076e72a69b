// SPDX-License-Identifier: Apache-2.0
//
// Unit: products with formats with sixteen uneven levels.

#include "mica/kernel/highway/dispatch.hpp"

MICA_INSTANTIATE_PACKED(mica::format::IQ4_NL)
MICA_INSTANTIATE_PACKED(mica::format::IQ4_XS)
