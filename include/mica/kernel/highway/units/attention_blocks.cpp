// SPDX-License-Identifier: Apache-2.0
//
// Unit: attention over keys and values in blocks of four-bit codes.

#include "mica/kernel/highway/dispatch.hpp"

MICA_INSTANTIATE_ATTENTION(mica::format::Rotated<mica::format::Q4_1>)
MICA_INSTANTIATE_ATTENTION(mica::format::Rotated<mica::format::Q4_0>)
MICA_INSTANTIATE_ATTENTION(mica::format::Rotated<mica::format::Q4_S>)
MICA_INSTANTIATE_ATTENTION(mica::format::Rotated<mica::format::IQ4_NL>)
MICA_INSTANTIATE_ATTENTION(mica::format::Plain<mica::format::Q4_1>)
MICA_INSTANTIATE_ATTENTION(mica::format::Plain<mica::format::Q4_0>)
MICA_INSTANTIATE_ATTENTION(mica::format::Plain<mica::format::Q4_S>)
MICA_INSTANTIATE_ATTENTION(mica::format::Plain<mica::format::IQ4_NL>)
MICA_INSTANTIATE_STORE(mica::format::Rotated<mica::format::Q4_1>)
MICA_INSTANTIATE_STORE(mica::format::Rotated<mica::format::Q4_0>)
MICA_INSTANTIATE_STORE(mica::format::Plain<mica::format::Q4_1>)
MICA_INSTANTIATE_STORE(mica::format::Plain<mica::format::Q4_0>)
