// SPDX-License-Identifier: Apache-2.0
//
// expect: mica::Transformer: WithPager<...> needs a mica::Pager (paging/concept.hpp)

#include "mica/arch/llama.hpp"
#include "mica/model/transformer.hpp"
#include "mica/paging/resident.hpp"

#ifdef MICA_FAIL
using Mine = mica::kv::Segmented<>;
#else
using Mine = mica::paging::Resident<>;
#endif

static_assert(sizeof(mica::Transformer<mica::arch::Llama, mica::WithPager<Mine>>) > 0);
