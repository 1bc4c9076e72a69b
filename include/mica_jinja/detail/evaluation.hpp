// SPDX-License-Identifier: Apache-2.0
//
// The half of Interpreter that evaluates expressions. Included by interpreter.hpp.
#pragma once

#include "mica_jinja/detail/interpreter.hpp"

#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::jinja::detail {

inline Value Interpreter::evaluate(const Expression& expression) {
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

inline Value Interpreter::name(const Name& name) const {
  if (const Value* value = scope_->find(name.name)) return *value;
  for (const NamedFunction& function : functions) {
    if (function.name == name.name.text()) return Value(std::make_shared<const Function>(function.body));
  }
  return Value::undefined(join("'", name.name.text(), "' is undefined"));
}

inline Value Interpreter::path(const Path& path) {
  Value value = evaluate(*path.base);
  for (const Link& link : path.links) value = follow(value, link);
  return value;
}

inline Value Interpreter::follow(const Value& value, const Link& link) {
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

inline Value Interpreter::slice(const Value& value, const Link& link) {
  if (value.is(Kind::undefined)) refuse_undefined(value);
  Value bounds[3];
  for (std::size_t i = 0; i < 3; ++i) {
    if (link.parts[i] != nullptr) bounds[i] = evaluate(*link.parts[i]);
  }
  line_ = link.line;
  return slice_of(value, bounds[0], bounds[1], bounds[2], meter());
}

inline Value Interpreter::call(const Value& callee, const Arguments& arguments) {
  meter().step();
  if (callee.is(Kind::undefined)) refuse_undefined(callee);
  if (!callee.is(Kind::callable)) fail("'", type_name(callee), "' cannot be called");
  return callee.as<Callable>().call(*this, arguments);
}

inline Value Interpreter::filter(std::string_view name, const Value& input, const Arguments& arguments) {
  meter().step();
  for (const NamedOperation& operation : text_filters) {
    if (operation.name == name) return operation(*this, input, arguments);
  }
  for (const NamedOperation& operation : row_filters) {
    if (operation.name == name) return operation(*this, input, arguments);
  }
  fail("there is no filter '", escaped(name), "'");
}

inline bool Interpreter::test(std::string_view name, const Value& input, const Arguments& arguments) {
  meter().step();
  for (const NamedOperation& operation : predicates) {
    if (operation.name == name) return truth(operation(*this, input, arguments));
  }
  fail("there is no test '", escaped(name), "'");
}

inline Value Interpreter::chain(const Chain& chain) {
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

inline Value Interpreter::logic(const Logic& logic) {
  Value value;
  for (const auto& operand : logic.operands) {
    value = evaluate(*operand);
    if (truth(value) != logic.wants_all) break;
  }
  return value;
}

inline bool Interpreter::relate(Relation relation, const Value& a, const Value& b) {
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

inline Value Interpreter::comparison(const Comparison& comparison) {
  Value left = evaluate(*comparison.first);
  for (const Comparison::Step& step : comparison.steps) {
    Value right = evaluate(*step.operand);
    line_ = step.operand->line;
    if (!relate(step.relation, left, right)) return false;
    left = std::move(right);
  }
  return true;
}

inline Value Interpreter::conditional(const Conditional& conditional) {
  if (truth(evaluate(*conditional.test))) return evaluate(*conditional.then);
  if (conditional.otherwise != nullptr) return evaluate(*conditional.otherwise);
  return Value::undefined("the condition is false and there is no 'else'");
}

inline Value Interpreter::row(const RowDisplay& display) {
  meter().items(display.items.size());
  std::vector<Value> items;
  items.reserve(display.items.size());
  for (const auto& item : display.items) items.push_back(evaluate(*item));
  return display.tuple ? Value::tuple(std::move(items)) : Value::list(std::move(items));
}

inline Value Interpreter::mapping(const MappingDisplay& display) {
  meter().entries(display.entries.size());
  Value::Entries entries;
  entries.reserve(display.entries.size());
  for (const auto& [key, value] : display.entries) {
    Value evaluated = evaluate(*key);
    entries.emplace_back(std::move(evaluated), evaluate(*value));
  }
  return Value::mapping(std::move(entries));
}

inline Arguments Interpreter::arguments(const CallArguments& list) {
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

}  // namespace mica::jinja::detail
