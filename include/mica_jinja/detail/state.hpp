// SPDX-License-Identifier: Apache-2.0
//
// What changes while a template renders: names, in scopes of the template, of loops, macro calls and blocks;
// namespaces; the variable `loop`. The latter two may not enter a namespace, so nothing can contain itself.
#pragma once

#include "mica_jinja/detail/iteration.hpp"
#include "mica_jinja/detail/object.hpp"
#include "mica_jinja/template_error.hpp"
#include "mica_jinja/value.hpp"

#include <cstddef>
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

/// namespace(a=1): attributes that {% set ns.a = 2 %} changes from any scope.
struct NameSpace final : Object {
  NameSpace() : Object(Kind::name_space) {
    depth = 1;
    has_state = true;
  }

  /// For namespace(...) itself, where the namespace cannot be reached yet.
  void start_with(const Value& name, const Value& value) {
    include(*this, value);
    check_depth(*this);
    attributes.set(name, value);
  }

  void set(const Value& name, const Value& value) const {
    const Object* object = value.object();
    if (object != nullptr && object->has_state)
      fail("'", name.text(), "': a namespace cannot take in another namespace or a loop");
    attributes.set(name, value);
  }

  mutable Table attributes;
};

/// The variable `loop`.
struct Loop final : Object {
  explicit Loop(Value items) : Object(Kind::loop), row(std::move(items)) { has_state = true; }

  Value row;  ///< its items
  mutable std::size_t index0 = 0;
};

}  // namespace mica::jinja::detail
