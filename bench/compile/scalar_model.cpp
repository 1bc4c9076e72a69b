// SPDX-License-Identifier: Apache-2.0
//
// What a small model costs: one format, one storage, plain loops, a step and logits.
#include "mica/arch/llama.hpp"
#include "mica/kernel/scalar.hpp"
#include "mica/model/transformer.hpp"

using Small =
    mica::Transformer<mica::arch::Llama, mica::WithWeights<mica::format::F32>,
                      mica::WithKvElement<mica::format::F32>, mica::WithKernels<mica::kernel::Scalar>>;

float first_logit(const mica::gguf::Document& document, mica::text::TokenId token) {
  mica::exec::Inline executor;
  Small model(document, executor);
  auto cache = model.make_cache();
  const std::size_t row = 0;
  if (model.step(cache, {&token, 1}) != mica::model::StepStatus::ok) return 0;
  return model.logits({&row, 1})[0][0];
}
