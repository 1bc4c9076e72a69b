// SPDX-License-Identifier: Apache-2.0
//
// expect: q8_1

#include "mica/runtime/open_options.hpp"

#ifdef MICA_FAIL
const mica::OpenOptions options{.choice = {.cache_type_k = mica::kv::Element::q8_1}};
#else
const mica::OpenOptions options{.choice = {.cache_type_k = mica::kv::Element::q8_0}};
#endif

static_assert(sizeof(options) > 0);
