// SPDX-License-Identifier: Apache-2.0
//
// The few objects that can change while a template renders: namespaces, the variable `loop`, cycler and
// joiner. None of them may enter a namespace later on, so nothing can ever contain itself.
#pragma once

#include "mica_jinja/detail/callable.hpp"
#include "mica_jinja/detail/iteration.hpp"
#include "mica_jinja/detail/object.hpp"
#include "mica_jinja/detail/table.hpp"
#include "mica_jinja/template_error.hpp"
#include "mica_jinja/value.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace mica::jinja::detail {

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
    if (object != nullptr && object->has_state) {
      fail("'", name.text(), "': a namespace cannot take in another namespace, a loop, a cycler or a joiner");
    }
    attributes.set(name, value);
  }

  mutable Table attributes;
};

/// The variable `loop`.
struct Loop final : Object {
  explicit Loop(Items loop_items) : Object(Kind::loop), items(std::move(loop_items)) { has_state = true; }

  Items items;
  mutable std::size_t index0 = 0;
  mutable std::vector<Value> last_seen;  ///< by loop.changed()
  mutable bool seen = false;
};

/// cycler('a', 'b'): next() goes round, current is where it stands.
struct Cycler final : Object {
  explicit Cycler(std::vector<Value> values) : Object(Kind::cycler), items(std::move(values)) {
    has_state = true;
  }

  std::vector<Value> items;
  mutable std::size_t at = 0;
};

/// joiner(', '): prints nothing when first called, its separator from then on.
struct Joiner final : Callable {
  explicit Joiner(Value text) : separator(std::move(text)) { has_state = true; }

  Value call(Engine&, const Arguments& arguments) const override {
    arguments.expect_none("joiner");
    return std::exchange(used, true) ? separator : Value("");
  }
  [[nodiscard]] std::string description() const override { return "<Joiner>"; }

  Value separator;
  mutable bool used = false;
};

}  // namespace mica::jinja::detail
