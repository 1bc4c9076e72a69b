// SPDX-License-Identifier: Apache-2.0
//
// expect: mica::Transformer: the first argument must be a family such as mica::arch::Llama (arch/concept.hpp)

#include "mica/arch/llama.hpp"
#include "mica/kv/contiguous.hpp"
#include "mica/model/transformer.hpp"

#ifdef MICA_FAIL
using Family = mica::WithKv<mica::kv::Contiguous<>>;
#else
using Family = mica::arch::Llama;
#endif

static_assert(sizeof(mica::Transformer<Family>) > 0);
