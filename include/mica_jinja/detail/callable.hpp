// SPDX-License-Identifier: Apache-2.0
//
// Things that a template can call, and the engine as it looks from inside of such a call.
#pragma once

#include "mica_jinja/civil_time.hpp"
#include "mica_jinja/detail/arguments.hpp"
#include "mica_jinja/detail/meter.hpp"
#include "mica_jinja/limits.hpp"
#include "mica_jinja/value.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace mica::jinja::detail {

/// The running engine, for filters, tests and functions: they charge their work and may call back.
class Engine {
 public:
  Engine(const Limits& limits, const CivilTime& now) : limits_(limits), meter_(limits), now_(now) {}
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  virtual ~Engine() = default;

  virtual Value call(const Value& callee, const Arguments& arguments) = 0;
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
  std::string_view name;
  Operation body;
};

/// A function, a method bound to its object, or a macro.
struct Callable : Object {
  Callable() : Object(Kind::callable) {}

  virtual Value call(Engine& engine, const Arguments& arguments) const = 0;
  [[nodiscard]] virtual std::string description() const = 0;  ///< as it prints
};

/// A function of the engine itself.
struct Function final : Callable {
  using Body = Value (*)(Engine&, const Arguments&);

  Function(std::string_view function_name, Body function_body) : name(function_name), body(function_body) {}

  Value call(Engine& engine, const Arguments& arguments) const override { return body(engine, arguments); }
  [[nodiscard]] std::string description() const override { return "<function " + std::string(name) + ">"; }

  std::string_view name;  ///< a literal
  Body body;
};

/// text.upper, mapping.items ... with the value it belongs to.
struct Method final : Callable {
  Method(const NamedOperation& operation, Value owner)
      : name(operation.name), body(operation.body), self(std::move(owner)) {
    has_state = self.object() != nullptr && self.object()->has_state;
  }

  Value call(Engine& engine, const Arguments& arguments) const override {
    return body(engine, self, arguments);
  }
  [[nodiscard]] std::string description() const override { return "<method " + std::string(name) + ">"; }

  std::string_view name;  ///< a literal
  Operation body;
  Value self;
};

}  // namespace mica::jinja::detail
