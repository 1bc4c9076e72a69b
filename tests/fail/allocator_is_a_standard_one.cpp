// SPDX-License-Identifier: Apache-2.0
//
// expect: mica::Transformer: WithAllocator<...> needs a mica::Allocator (alloc/concept.hpp)

#include "mica/alloc/aligned.hpp"
#include "mica/arch/llama.hpp"
#include "mica/model/transformer.hpp"

#include <memory>

#ifdef MICA_FAIL
using Mine = std::allocator<std::byte>;
#else
using Mine = mica::alloc::Aligned;
#endif

static_assert(sizeof(mica::Transformer<mica::arch::Llama, mica::WithAllocator<Mine>>) > 0);
