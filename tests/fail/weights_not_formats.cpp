// SPDX-License-Identifier: Apache-2.0
//
// expect: mica::Transformer: WithWeights<...> needs formats

#include "mica/arch/llama.hpp"
#include "mica/model/transformer.hpp"

#ifdef MICA_FAIL
using Formats = mica::TypeList<mica::format::Q8_0, float>;
#else
using Formats = mica::TypeList<mica::format::Q8_0, mica::format::F32>;
#endif

static_assert(sizeof(mica::Transformer<mica::arch::Llama, mica::WithWeights<Formats>>) > 0);
