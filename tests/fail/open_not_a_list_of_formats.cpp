// SPDX-License-Identifier: Apache-2.0
//
// expect: mica::open<Families, Formats>: the second list must be a mica::TypeList of formats

#include "mica/arch/llama.hpp"
#include "mica/runtime/open.hpp"

#ifdef MICA_FAIL
using Formats = mica::TypeList<mica::format::Q8_0, float>;
#else
using Formats = mica::TypeList<mica::format::Q8_0, mica::format::F32>;
#endif

auto open_it() { return mica::open<mica::TypeList<mica::arch::Llama>, Formats>("model.gguf"); }
