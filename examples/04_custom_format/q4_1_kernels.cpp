// SPDX-License-Identifier: Apache-2.0
//
// The unit that compiles the products of IntegerQ4_1 for every instruction set.

#define MICA_USER_CODECS_INL "q4_1_codec-inl.hpp"
#include "mica/kernel/highway/dispatch.hpp"
#include "q4_1.hpp"

MICA_INSTANTIATE_MATMUL(lesson::IntegerQ4_1)
