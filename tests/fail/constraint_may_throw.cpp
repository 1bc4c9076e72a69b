// SPDX-License-Identifier: Apache-2.0
//
// expect: constraint.allowed(mask)

#include "mica/arch/llama.hpp"
#include "mica/model/transformer.hpp"
#include "mica/runtime/batch.hpp"
#include "mica/text/spm.hpp"

struct Mine : mica::constraint::Unforced {
#ifdef MICA_FAIL
  bool allowed(mica::constraint::TokenMask& mask) { return mask.insert(1), true; }
#else
  bool allowed(mica::constraint::TokenMask& mask) noexcept { return mask.insert(1), true; }
#endif
  bool advance(mica::TokenId token) noexcept { return token == 1; }
  void rewind(std::size_t) noexcept {}
};

using Model = mica::Transformer<mica::arch::Llama>;
using Answers = mica::Batch<Model, mica::text::Spm, mica::sample::Standard<>, mica::NoDrafter, Mine>;

bool step(Answers& answers) { return answers.step(); }
