// SPDX-License-Identifier: Apache-2.0
//
// Unit: attention over keys and values in blocks of five-bit and six-bit codes.

#include "mica/kernel/highway/dispatch.hpp"

MICA_INSTANTIATE_ATTENTION(mica::format::Rotated<mica::format::Q6_0>)
MICA_INSTANTIATE_ATTENTION(mica::format::Rotated<mica::format::Q5_1>)
MICA_INSTANTIATE_ATTENTION(mica::format::Rotated<mica::format::Q5_0>)
MICA_INSTANTIATE_ATTENTION(mica::format::Plain<mica::format::Q6_0>)
MICA_INSTANTIATE_ATTENTION(mica::format::Plain<mica::format::Q5_1>)
MICA_INSTANTIATE_ATTENTION(mica::format::Plain<mica::format::Q5_0>)
MICA_INSTANTIATE_STORE(mica::format::Rotated<mica::format::Q6_0>)
MICA_INSTANTIATE_STORE(mica::format::Rotated<mica::format::Q5_1>)
MICA_INSTANTIATE_STORE(mica::format::Rotated<mica::format::Q5_0>)
MICA_INSTANTIATE_STORE(mica::format::Plain<mica::format::Q6_0>)
MICA_INSTANTIATE_STORE(mica::format::Plain<mica::format::Q5_1>)
MICA_INSTANTIATE_STORE(mica::format::Plain<mica::format::Q5_0>)
