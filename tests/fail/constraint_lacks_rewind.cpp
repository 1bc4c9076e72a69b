// SPDX-License-Identifier: Apache-2.0
//
// expect: constraint.rewind(n)

#include "mica/arch/llama.hpp"
#include "mica/model/transformer.hpp"
#include "mica/runtime/generate.hpp"
#include "mica/sample/standard.hpp"
#include "mica/text/spm.hpp"

struct Mine : mica::constraint::Unforced {
  bool allowed(mica::constraint::TokenMask& mask) noexcept { return mask.insert(1), true; }
  bool advance(mica::TokenId token) noexcept { return token == 1; }
#ifdef MICA_FAIL
  void go_back(std::size_t) noexcept {}
#else
  void rewind(std::size_t) noexcept {}
#endif
};

using Model = mica::Transformer<mica::arch::Llama>;

mica::GenerateResult answer(mica::Session<Model>& session, const mica::text::Spm& tokenizer,
                            mica::sample::Standard<>& sampler, Mine& mine) {
  return mica::generate(session, tokenizer, sampler, mine, {}, {}, [](std::string_view) { return true; });
}
