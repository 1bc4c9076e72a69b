// SPDX-License-Identifier: Apache-2.0
//
// What the tests of this room share: a model as open() makes it of a document, run from ids to logits.
// Nothing here needs text.

#pragma once

#include "mica/exec/observed.hpp"
#include "mica/exec/team.hpp"
#include "mica/runtime/open.hpp"
#include "model/run_model.hpp"

#include <span>
#include <string>
#include <vector>

namespace mica::test {

/// The names of the pagers.
inline const std::vector<paging::Choice> pagers = {paging::Choice::resident, paging::Choice::mapped,
                                                   paging::Choice::streamed};

/// Logits after each of the ids, (ids, n_vocab). Keys and values are F32.
inline std::vector<float> logits_of(const gguf::Document& document, paging::Choice pager,
                                    std::span<const text::TokenId> ids, std::size_t n_ctx = 64) {
  OpenOptions options{.n_ctx = n_ctx, .logits_rows = ids.size()};
  options.choice.weights = pager;
  options.choice.cache_type_k = options.choice.cache_type_v = kv::Element::f32;
  exec::Team team(1);
  exec::Observed<exec::Team> observed(team);
  budget::Ledger ledger;
  const auto model = detail::make_any_model<arch::All, format::All>(document, observed, ledger, options);
  auto cache = model->make_cache();
  return feed(*model, cache, ids, model->chunk());
}

}  // namespace mica::test
