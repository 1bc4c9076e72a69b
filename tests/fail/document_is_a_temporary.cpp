// SPDX-License-Identifier: Apache-2.0
//
// expect: DocumentRef
// expect: deleted

#include "mica/arch/llama.hpp"
#include "mica/exec/inline.hpp"
#include "mica/gguf/reader.hpp"
#include "mica/model/transformer.hpp"

#include <type_traits>

using Model = mica::Transformer<mica::arch::Llama>;

mica::exec::Inline executor;

#ifdef MICA_FAIL
using Made = decltype(Model(mica::gguf::open("model.gguf"), executor, {.n_ctx = 256}));
#else
extern const mica::gguf::Document document;
using Made = decltype(Model(document, executor, {.n_ctx = 256}));
#endif

static_assert(std::is_same_v<Made, Model>);
