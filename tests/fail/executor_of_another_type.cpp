// SPDX-License-Identifier: Apache-2.0
//
// expect: mica::Transformer: the executor is of another type than the policy; name its type: WithExecutor<...>

#include "mica/arch/llama.hpp"
#include "mica/exec/team.hpp"
#include "mica/model/transformer.hpp"

#ifdef MICA_FAIL
using Model = mica::Transformer<mica::arch::Llama>;
#else
using Model = mica::Transformer<mica::arch::Llama, mica::WithExecutor<mica::exec::Team>>;
#endif

std::size_t context(const mica::gguf::Document& document) {
  mica::exec::Team team(2);
  return Model(document, team).n_ctx();
}
