// SPDX-License-Identifier: Apache-2.0
//
// expect: mica::Transformer: an axis is named twice; keep one With... of each kind (model/policies.hpp)

#include "mica/arch/llama.hpp"
#include "mica/kv/contiguous.hpp"
#include "mica/model/transformer.hpp"

#ifdef MICA_FAIL
using Model = mica::Transformer<mica::arch::Llama, mica::WithKv<mica::kv::Segmented<>>,
                                mica::WithKv<mica::kv::Contiguous<>>>;
#else
using Model = mica::Transformer<mica::arch::Llama, mica::WithKv<mica::kv::Contiguous<>>>;
#endif

// What is made of a wrong list adds no second error.
Model make(const mica::gguf::Document& document, mica::exec::Inline& executor) {
  return Model(document, executor, {.n_ctx = 64});
}
