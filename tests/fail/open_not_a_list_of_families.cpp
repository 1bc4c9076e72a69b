// SPDX-License-Identifier: Apache-2.0
//
// expect: mica::open<Families, Formats>: the first list must be a mica::TypeList of families

#include "mica/arch/llama.hpp"
#include "mica/runtime/open.hpp"

#ifdef MICA_FAIL
using Families = mica::arch::Llama;
#else
using Families = mica::TypeList<mica::arch::Llama>;
#endif

auto open_it() { return mica::open<Families>("model.gguf"); }
