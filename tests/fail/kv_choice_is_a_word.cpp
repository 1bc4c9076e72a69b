// SPDX-License-Identifier: Apache-2.0
//
// expect: kv::Choice

#include "mica/runtime/open_options.hpp"

#ifdef MICA_FAIL
const mica::OpenOptions options{.choice = {.kv = "pagd"}};
#else
const mica::OpenOptions options{.choice = {.kv = mica::kv::Choice::paged}};
#endif

static_assert(sizeof(options) > 0);
