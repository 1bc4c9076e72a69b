// SPDX-License-Identifier: Apache-2.0
//
// Names and their values while a template renders: one scope for the template, one for each loop, macro call
// and block.
#pragma once

#include "mica_jinja/detail/table.hpp"
#include "mica_jinja/value.hpp"

#include <utility>

namespace mica::jinja::detail {

/// Names of one block; what it does not know it asks of the block around it, which must outlive it.
class Scope {
 public:
  explicit Scope(const Scope* around) : around_(around) {}

  [[nodiscard]] const Value* find(const Value& name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->around_) {
      if (const Value* value = scope->values_.find(name)) return value;
    }
    return nullptr;
  }

  void set(Value name, Value value) { values_.set(std::move(name), std::move(value)); }
  void clear() { values_.clear(); }

 private:
  const Scope* around_;
  Table values_;
};

}  // namespace mica::jinja::detail
