// SPDX-License-Identifier: Apache-2.0
//
// Things that a template can call, their arguments, and the engine as it looks from inside of such a call.
#pragma once

#include "mica_jinja/civil_time.hpp"
#include "mica_jinja/detail/meter.hpp"
#include "mica_jinja/limits.hpp"
#include "mica_jinja/value.hpp"

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::jinja::detail {

/// Arguments of one call. find and bind point into them, so a temporary has neither.
struct Arguments {
  std::vector<Value> positional;
  Value::Entries keyword;  ///< by name

  [[nodiscard]] bool empty() const noexcept { return positional.empty() && keyword.empty(); }

  /// The last keyword argument of that name, or null.
  [[nodiscard]] const Value* find(std::string_view name) const& {
    for (std::size_t i = keyword.size(); i-- > 0;) {
      if (keyword[i].first.text() == name) return &keyword[i].second;
    }
    return nullptr;
  }
  void find(std::string_view name) const&& = delete;

  /// Arguments in the order of the callee's names; null for those that were not given.
  /// Throws TemplateError for too many, unknown and doubled arguments.
  template <std::size_t N>
  [[nodiscard]] std::array<const Value*, N> bind(std::string_view callee,
                                                 const std::string_view (&names)[N]) const& {
    if (positional.size() > N)
      fail("'", callee, "' takes at most ", N, " arguments, ", positional.size(), " were given");
    std::array<const Value*, N> bound{};
    for (std::size_t i = 0; i < positional.size(); ++i) bound[i] = &positional[i];
    for (const auto& [key, value] : keyword) {
      const std::string_view name = key.text();
      std::size_t at = 0;
      while (at < N && names[at] != name) ++at;
      if (at == N) fail("'", callee, "' knows no argument '", name, "'");
      if (bound[at] != nullptr) fail("'", callee, "' was given the argument '", name, "' twice");
      bound[at] = &value;
    }
    return bound;
  }
  template <std::size_t N>
  void bind(std::string_view callee, const std::string_view (&names)[N]) const&& = delete;
};

/// The running engine, for filters, tests and functions: they charge their work and may call back.
class Engine {
 public:
  Engine(const Limits& limits, const CivilTime& now) : limits_(limits), meter_(limits), now_(now) {}
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  virtual ~Engine() = default;

  virtual Value filter(std::string_view name, const Value& input, const Arguments& arguments) = 0;
  virtual bool test(std::string_view name, const Value& input, const Arguments& arguments) = 0;

  [[nodiscard]] Meter& meter() noexcept { return meter_; }
  [[nodiscard]] const Limits& limits() const noexcept { return limits_; }
  [[nodiscard]] const CivilTime& now() const noexcept { return now_; }

 private:
  Limits limits_;
  Meter meter_;
  CivilTime now_;
};

/// What methods, filters and tests have in common: they work on one value.
using Operation = Value (*)(Engine&, const Value& self, const Arguments&);

struct NamedOperation {
  Value operator()(Engine& engine, const Value& self, const Arguments& arguments) const {
    if (bare && !arguments.empty()) fail("'", name, "' takes no arguments");
    return body(engine, self, arguments);
  }

  std::string_view name;
  Operation body;
  bool bare = false;
};
inline constexpr bool no_arguments = true;  ///< for `bare`

/// A function, a method bound to its object, or a macro.
struct Callable : Object {
  Callable() : Object(Kind::callable) {}

  virtual Value call(Engine& engine, const Arguments& arguments) const = 0;
};

/// A function of the engine itself.
struct Function final : Callable {
  using Body = Value (*)(Engine&, const Arguments&);

  explicit Function(Body function_body) : body(function_body) {}

  Value call(Engine& engine, const Arguments& arguments) const override { return body(engine, arguments); }

  Body body;
};

/// text.upper, mapping.items ... with the value it belongs to.
struct Method final : Callable {
  Method(const NamedOperation& method, Value owner) : operation(method), self(std::move(owner)) {
    has_state = self.object() != nullptr && self.object()->has_state;
  }

  Value call(Engine& engine, const Arguments& arguments) const override {
    return operation(engine, self, arguments);
  }

  NamedOperation operation;
  Value self;
};

}  // namespace mica::jinja::detail
