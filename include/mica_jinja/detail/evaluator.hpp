// SPDX-License-Identifier: Apache-2.0
//
// Evaluates expressions: names, paths, operators, and calls of filters, tests and functions.
#pragma once

#include "mica_jinja/detail/ast.hpp"
#include "mica_jinja/detail/builtins.hpp"
#include "mica_jinja/detail/callable.hpp"
#include "mica_jinja/detail/iteration.hpp"
#include "mica_jinja/detail/row_filters.hpp"
#include "mica_jinja/detail/state.hpp"
#include "mica_jinja/detail/text_filters.hpp"
#include "mica_jinja/value.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::jinja::detail {

/// The half of one rendering that knows no statements: names in their scopes, and what is made of them.
class Evaluator : public Engine {
 public:
  /// `globals` is a mapping, or undefined for none.
  Evaluator(const Limits& limits, const CivilTime& now, const Value& globals)
      : Engine(limits, now), globals_(nullptr), scope_(std::make_shared<Scope>(&globals_)) {
    if (!globals.is(Kind::mapping)) return;
    for (const auto& [name, value] : globals.entries()) {
      if (name.is(Kind::string)) globals_.set(name, value);
    }
  }

  /// Line of the template that was reached last.
  [[nodiscard]] std::size_t line() const noexcept { return line_; }

  Value filter(std::string_view name, const Value& input, const Arguments& arguments) override {
    meter().step();
    for (const NamedOperation& operation : text_filters) {
      if (operation.name == name) return operation(*this, input, arguments);
    }
    for (const NamedOperation& operation : row_filters) {
      if (operation.name == name) return operation(*this, input, arguments);
    }
    fail("there is no filter '", escaped(name), "'");
  }

  bool test(std::string_view name, const Value& input, const Arguments& arguments) override {
    meter().step();
    for (const NamedOperation& operation : predicates) {
      if (operation.name == name) return truth(operation(*this, input, arguments));
    }
    fail("there is no test '", escaped(name), "'");
  }

 protected:
  /// Counts how deep something is inside of itself.
  class Depth {
   public:
    Depth(std::uint32_t& depth, std::uint32_t deepest, std::string_view what) : depth_(&depth) {
      if (depth >= deepest) exceed(what, " go deeper than ", deepest);
      ++depth;
    }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    ~Depth() { --*depth_; }

   private:
    std::uint32_t* depth_;
  };

  Value evaluate(const Expression& expression) {
    const Depth depth(evaluations_, limits().evaluation_depth, "blocks and expressions");
    meter().expression();
    line_ = expression.line;
    switch (expression.kind) {
      case Expression::Kind::constant:
        return static_cast<const Constant&>(expression).value;
      case Expression::Kind::name:
        return name(static_cast<const Name&>(expression));
      case Expression::Kind::path:
        return path(static_cast<const Path&>(expression));
      case Expression::Kind::sign: {
        const auto& sign = static_cast<const Sign&>(expression);
        return with_sign(evaluate(*sign.operand), sign.negative);
      }
      case Expression::Kind::negation:
        return !truth(evaluate(*static_cast<const Negation&>(expression).operand));
      case Expression::Kind::chain:
        return chain(static_cast<const Chain&>(expression));
      case Expression::Kind::logic:
        return logic(static_cast<const Logic&>(expression));
      case Expression::Kind::comparison:
        return comparison(static_cast<const Comparison&>(expression));
      case Expression::Kind::conditional:
        return conditional(static_cast<const Conditional&>(expression));
      case Expression::Kind::row:
        return row(static_cast<const RowDisplay&>(expression));
      case Expression::Kind::mapping:
        return mapping(static_cast<const MappingDisplay&>(expression));
    }
    return Value();
  }

  /// One step of a path.
  Value follow(const Value& value, const Link& link) {
    meter().expression();
    switch (link.kind) {
      case Link::Kind::attribute:
        line_ = link.line;
        return attribute_of(value, link.name, meter());
      case Link::Kind::slice:
        return slice(value, link);
      case Link::Kind::subscript: {
        const Value index = evaluate(*link.parts[0]);
        line_ = link.line;
        return subscript_of(value, index, meter());
      }
      default:
        break;
    }
    const Arguments given = arguments(link.arguments);
    line_ = link.line;
    if (link.kind == Link::Kind::call) return call(value, given);
    if (link.kind == Link::Kind::filter) return filter(link.name.text(), value, given);
    return test(link.name.text(), value, given) == (link.kind == Link::Kind::test);
  }

  Arguments arguments(const CallArguments& list) {
    Arguments given;
    for (const auto& value : list.positional) given.positional.push_back(evaluate(*value));
    for (const auto& [name, value] : list.keyword) given.keyword.emplace_back(name, evaluate(*value));
    if (list.more != nullptr) {
      const Value more = items_of(evaluate(*list.more), meter());
      meter().items(more.items().size());
      given.positional.insert(given.positional.end(), more.items().begin(), more.items().end());
    }
    return given;
  }

  Value call(const Value& callee, const Arguments& arguments) {
    meter().step();
    if (callee.is(Kind::undefined)) refuse_undefined(callee);
    if (!callee.is(Kind::callable)) fail("'", type_name(callee), "' cannot be called");
    return callee.as<Callable>().call(*this, arguments);
  }

 private:
  Value name(const Name& name) const {
    if (const Value* value = scope_->find(name.name)) return *value;
    for (const NamedFunction& function : functions) {
      if (function.name == name.name.text()) return Value(std::make_shared<const Function>(function.body));
    }
    return Value::undefined(join("'", name.name.text(), "' is undefined"));
  }

  Value path(const Path& path) {
    Value value = evaluate(*path.base);
    for (const Link& link : path.links) value = follow(value, link);
    return value;
  }

  Value slice(const Value& value, const Link& link) {
    if (value.is(Kind::undefined)) refuse_undefined(value);
    Value bounds[3];
    for (std::size_t i = 0; i < 3; ++i) {
      if (link.parts[i] != nullptr) bounds[i] = evaluate(*link.parts[i]);
    }
    line_ = link.line;
    return slice_of(value, bounds[0], bounds[1], bounds[2], meter());
  }

  Value chain(const Chain& chain) {
    Value value = evaluate(*chain.first);
    for (const Chain::Step& step : chain.steps) {
      const Value other = evaluate(*step.operand);
      line_ = step.operand->line;
      if (step.op == Operator::concatenate) {
        value = calculate(Operator::add, printed(value, *this), printed(other, *this), meter());
      } else {
        value = calculate(step.op, value, other, meter());
      }
    }
    return value;
  }

  Value logic(const Logic& logic) {
    Value value;
    for (const auto& operand : logic.operands) {
      value = evaluate(*operand);
      if (truth(value) != logic.wants_all) break;
    }
    return value;
  }

  bool relate(Relation relation, const Value& a, const Value& b) {
    switch (relation) {
      case Relation::equal:
        return equal(a, b, meter());
      case Relation::unequal:
        return !equal(a, b, meter());
      case Relation::less:
        return less(a, b, meter());
      case Relation::less_equal:
        return !less(b, a, meter());
      case Relation::greater:
        return less(b, a, meter());
      case Relation::greater_equal:
        return !less(a, b, meter());
      case Relation::in:
        return contains(b, a, meter());
      case Relation::not_in:
        return !contains(b, a, meter());
    }
    return false;
  }

  Value comparison(const Comparison& comparison) {
    Value left = evaluate(*comparison.first);
    for (const Comparison::Step& step : comparison.steps) {
      Value right = evaluate(*step.operand);
      line_ = step.operand->line;
      if (!relate(step.relation, left, right)) return false;
      left = std::move(right);
    }
    return true;
  }

  Value conditional(const Conditional& conditional) {
    if (truth(evaluate(*conditional.test))) return evaluate(*conditional.then);
    if (conditional.otherwise != nullptr) return evaluate(*conditional.otherwise);
    return Value::undefined("the condition is false and there is no 'else'");
  }

  Value row(const RowDisplay& display) {
    meter().items(display.items.size());
    std::vector<Value> items;
    items.reserve(display.items.size());
    for (const auto& item : display.items) items.push_back(evaluate(*item));
    return display.tuple ? Value::tuple(std::move(items)) : Value::list(std::move(items));
  }

  Value mapping(const MappingDisplay& display) {
    meter().entries(display.entries.size());
    Value::Entries entries;
    entries.reserve(display.entries.size());
    for (const auto& [key, value] : display.entries) {
      Value evaluated = evaluate(*key);
      entries.emplace_back(std::move(evaluated), evaluate(*value));
    }
    return Value::mapping(std::move(entries));
  }

  Scope globals_;

 protected:
  std::shared_ptr<Scope> scope_;
  std::uint32_t line_ = 1;
  std::uint32_t evaluations_ = 0;
};

}  // namespace mica::jinja::detail
