// SPDX-License-Identifier: Apache-2.0
//
// expect: sampler.accept(token)

#include "mica/arch/llama.hpp"
#include "mica/model/transformer.hpp"
#include "mica/runtime/generate.hpp"
#include "mica/text/spm.hpp"

struct Mine {
  std::optional<mica::TokenId> sample(std::span<const float>) { return 0; }
#ifdef MICA_FAIL
  void acept(mica::TokenId) {}
#else
  void accept(mica::TokenId) {}
#endif
};

using Model = mica::Transformer<mica::arch::Llama>;

mica::GenerateResult answer(mica::Session<Model>& session, const mica::text::Spm& tokenizer, Mine& sampler) {
  return mica::generate(session, tokenizer, sampler, {}, {}, [](std::string_view) { return true; });
}
