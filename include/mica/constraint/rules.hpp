// SPDX-License-Identifier: Apache-2.0
//
// The rules of a grammar, and a grammar as a whole: its expressions, its rules, and where it begins. Rules
// may be made when they are first called, so that a grammar with parameters (the names that an object has
// already) costs only what a text uses.
#pragma once

#include "mica/constraint/expressions.hpp"

#include <memory>
#include <utility>
#include <vector>

namespace mica::constraint {

/// The bodies of rules. body() is called once for each rule that a text reaches; each body accepts a text,
/// and no rule calls itself before a byte (left recursion). May raise, as the functions of Expressions do.
class Rules {
 public:
  virtual ~Rules() = default;
  /// The body of a rule that a call of this object's expressions names.
  [[nodiscard]] virtual ExprId body(RuleId rule, Expressions& expressions) = 0;
  /// Bytes that it holds.
  [[nodiscard]] virtual std::size_t bytes() const noexcept { return 0; }
};

/// Rules that are all known from the beginning.
class FixedRules final : public Rules {
 public:
  explicit FixedRules(std::vector<ExprId> bodies = {}) : bodies_(std::move(bodies)) {}

  [[nodiscard]] ExprId body(RuleId rule, Expressions& /*expressions*/) override {
    return bodies_[static_cast<std::size_t>(rule)];
  }
  [[nodiscard]] std::size_t bytes() const noexcept override { return bodies_.capacity() * sizeof(ExprId); }

 private:
  std::vector<ExprId> bodies_;
};

/// A language of texts: what a front end makes of GBNF, of a regular expression, of a JSON Schema.
struct Language {
  std::unique_ptr<Expressions> expressions;
  std::unique_ptr<Rules> rules;
  ExprId start = ExprId::none;  // the texts
};

}  // namespace mica::constraint
