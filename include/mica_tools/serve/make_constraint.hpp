// SPDX-License-Identifier: Apache-2.0
//
// The constraint of an answer, before the answer begins. A language is compiled where its request is read, so
// that a large one costs time of its own connection; the scheduler makes the constraint when it admits the
// job, so that jobs in the queue have no memory for masks and keep no model in memory.
#pragma once

#include "mica/base/error.hpp"
#include "mica/constraint/any.hpp"
#include "mica/constraint/grammar.hpp"
#include "mica/constraint/rules.hpp"
#include "mica/constraint/token_trie.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace mica::serve {

/// Makes the constraint of an answer, for the vocabulary of its model and within limits. Called on the thread
/// of the scheduler; raises Error.
using MakeConstraint = std::function<constraint::Any(const std::shared_ptr<const constraint::TokenTrie>&,
                                                     const constraint::GrammarOptions&)>;

/// The constraint of a language. Answers whose jobs have a copy of the function share the states and masks
/// that are found, and the memory for them, which is released with the last copy.
[[nodiscard]] inline MakeConstraint constraint_of(constraint::Language language) {
  struct Shared {
    constraint::Language language;
    std::optional<constraint::Grammar> grammar;  // at the beginning of a text
  };
  const auto shared = std::make_shared<Shared>(Shared{std::move(language), std::nullopt});
  return [shared](const std::shared_ptr<const constraint::TokenTrie>& tokens,
                  const constraint::GrammarOptions& options) -> constraint::Any {
    if (!shared->grammar) shared->grammar.emplace(tokens, std::move(shared->language), options);
    MICA_CHECK(&shared->grammar->tokens() == tokens.get(), failed,
               "the model was loaded again between the answers of one request; send the request again");
    return *shared->grammar;
  };
}

}  // namespace mica::serve
