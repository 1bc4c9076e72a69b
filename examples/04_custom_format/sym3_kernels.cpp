// SPDX-License-Identifier: Apache-2.0
//
// The unit that compiles the products of SYM3 for every instruction set.

#define MICA_USER_CODECS_INL "sym3_codec-inl.hpp"
#include "mica/kernel/highway/dispatch.hpp"
#include "sym3.hpp"

MICA_INSTANTIATE_MATMUL(mine::Sym3)
