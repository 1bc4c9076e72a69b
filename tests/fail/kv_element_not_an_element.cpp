// SPDX-License-Identifier: Apache-2.0
//
// expect: mica::Transformer: WithKvElement<...> needs a mica::KvElement (format/concept.hpp)

#include "mica/arch/llama.hpp"
#include "mica/model/transformer.hpp"

#ifdef MICA_FAIL
using Element = int;
#else
using Element = mica::format::Q8_0;
#endif

static_assert(sizeof(mica::Transformer<mica::arch::Llama, mica::WithKvElement<Element>>) > 0);
