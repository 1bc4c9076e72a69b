// SPDX-License-Identifier: Apache-2.0
//
// Names and their values while a template renders: one scope for the template, one for each loop, macro call and block.
#pragma once

#include <string>
#include <unordered_map>
#include <utility>

#include "mica/text/jinja/value.hpp"

namespace mica::text::jinja::detail {

/// Names of one block; what it does not know it asks of the block around it, which must outlive it.
class Scope {
 public:
  explicit Scope(const Scope* around) : around_(around) {}

  [[nodiscard]] const Value* find(const std::string& name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->around_) {
      const auto found = scope->values_.find(name);
      if (found != scope->values_.end()) return &found->second;
    }
    return nullptr;
  }

  void set(const std::string& name, Value value) { values_.insert_or_assign(name, std::move(value)); }
  void clear() { values_.clear(); }

 private:
  const Scope* around_;
  std::unordered_map<std::string, Value> values_;
};

}  // namespace mica::text::jinja::detail
