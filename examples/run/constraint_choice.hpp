// SPDX-License-Identifier: Apache-2.0
//
// The texts that answers may be, as flags choose them: those of a grammar, a schema or a regular expression,
// or all.
#pragma once

#include "flags.hpp"
#include "mica/constraint/any.hpp"
#include "mica/runtime/open.hpp"

#include <string>
#include <string_view>

namespace mica::program {

struct ConstraintChoice {
  std::string grammar;       // in GBNF; empty: none
  std::string grammar_file;  // the same in a file, empty
  std::string json_schema;   // a JSON Schema, or a file with one, empty
  bool json_object = false;  // any JSON object
  std::string regex;         // a regular expression of whole texts, empty

  void add_to(Flags& flags);
  /// Reads the file, and finds mistakes before a model is loaded. Raises ErrorCode::usage, with line and
  /// column of a grammar, and unsupported.
  void prepare();
  [[nodiscard]] bool is_chosen() const noexcept {
    return !grammar.empty() || !json_schema.empty() || json_object || !regex.empty();
  }
  /// The constraint of an answer at its beginning, of which each answer gets a copy; empty: all texts are
  /// allowed. thoughts_end: the mark behind which it begins, where the prompt opens thoughts. The model
  /// outlives it. Raises ErrorCode::usage with line and column, and ErrorCode::budget.
  [[nodiscard]] constraint::Any constraint(Model& model, std::string_view thoughts_end = {}) const;
};

}  // namespace mica::program
