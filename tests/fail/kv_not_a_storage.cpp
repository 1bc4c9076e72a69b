// SPDX-License-Identifier: Apache-2.0
//
// expect: mica::Transformer: WithKv<...> needs a mica::KvStorage (kv/concept.hpp)

#include "mica/arch/llama.hpp"
#include "mica/kv/contiguous.hpp"
#include "mica/model/transformer.hpp"

#ifdef MICA_FAIL
struct Drawer {};
using Model = mica::Transformer<mica::arch::Llama, mica::WithKv<Drawer>>;
#else
using Model = mica::Transformer<mica::arch::Llama, mica::WithKv<mica::kv::Contiguous<>>>;
#endif

static_assert(sizeof(Model) > 0);
