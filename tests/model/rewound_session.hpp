// SPDX-License-Identifier: Apache-2.0
//
// A session that went back further than its cache can, and one that never went there.

#pragma once

#include "mica/runtime/session.hpp"
#include "model/run_model.hpp"

#include <doctest/doctest.h>

#include <span>
#include <vector>

namespace mica::test {

/// Reads `ids`, goes back to `count` tokens and reads `next`: the logits are those of a session that read nothing else.
template <class Model>
void can_continue_after_rewind(Model& model, std::span<const TokenId> ids, std::size_t count,
                               std::span<const TokenId> next) {
  Session<Model> session(model), fresh(model);
  REQUIRE(session.feed(ids) == model::StepStatus::ok);
  session.rewind(count);
  REQUIRE(session.feed(next) == model::StepStatus::ok);
  const auto row = session.logits();
  const std::vector<float> logits(row.begin(), row.end());
  REQUIRE(fresh.feed(ids.first(count)) == model::StepStatus::ok);
  REQUIRE(fresh.feed(next) == model::StepStatus::ok);
  CHECK(same_bits(logits, fresh.logits()));
  CHECK(session.tokens().size() == count + next.size());
}

}  // namespace mica::test
