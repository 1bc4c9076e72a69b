// SPDX-License-Identifier: Apache-2.0
//
// Renders a parsed template: statements and macros.
#pragma once

#include "mica_jinja/detail/ast.hpp"
#include "mica_jinja/detail/callable.hpp"
#include "mica_jinja/detail/evaluator.hpp"
#include "mica_jinja/detail/iteration.hpp"
#include "mica_jinja/detail/printing.hpp"
#include "mica_jinja/detail/state.hpp"
#include "mica_jinja/value.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::jinja::detail {

/// One rendering of one template, which must outlive it.
class Interpreter final : public Evaluator {
 public:
  using Evaluator::Evaluator;

  [[nodiscard]] std::string run(const Block& block) {
    std::string out;
    out_ = &out;
    execute(block);
    return out;
  }

 private:
  /// What a statement asks of the loop around it.
  enum class Flow : std::uint8_t { on, leave_loop, next_turn };

  /// A macro remembers the block it was written in, but does not keep it alive.
  struct Macro final : Callable {
    Macro(const Procedure& macro_procedure, std::weak_ptr<Scope> macro_home)
        : procedure(&macro_procedure), home(std::move(macro_home)) {}

    Value call(Engine& engine, const Arguments& arguments) const override {
      return static_cast<Interpreter&>(engine).invoke(*this, arguments);
    }

    const Procedure* procedure;
    std::weak_ptr<Scope> home;
  };

  Flow execute(const Block& block) {
    const Depth depth(evaluations_, limits().evaluation_depth, "blocks and expressions");
    for (const auto& statement : block) {
      meter().step();
      line_ = statement->line;
      const Flow flow = execute(*statement);
      if (flow != Flow::on) return flow;
    }
    return Flow::on;
  }
  Flow execute(const Statement& statement) {
    switch (statement.kind) {
      case Statement::Kind::text:
        print_text(static_cast<const TextStatement&>(statement).text);
        break;
      case Statement::Kind::output:
        print(evaluate(*static_cast<const Output&>(statement).value));
        break;
      case Statement::Kind::choice:
        return choice(static_cast<const Choice&>(statement));
      case Statement::Kind::loop:
        return loop(static_cast<const ForLoop&>(statement));
      case Statement::Kind::assignment: {
        const auto& assignment = static_cast<const Assignment&>(statement);
        assign(assignment.target, evaluate(*assignment.value));
        break;
      }
      case Statement::Kind::block_assignment:
      case Statement::Kind::filter_block:
        return capture(static_cast<const Capture&>(statement));
      case Statement::Kind::macro:
        define(static_cast<const MacroStatement&>(statement).procedure);
        break;
      case Statement::Kind::call_block:
        call_block(static_cast<const CallBlock&>(statement));
        break;
      case Statement::Kind::scope:
        return scoped(static_cast<const ScopeBlock&>(statement));
      case Statement::Kind::leave_loop:
        return Flow::leave_loop;
      case Statement::Kind::next_turn:
        return Flow::next_turn;
    }
    return Flow::on;
  }

  Flow choice(const Choice& choice) {
    for (const Choice::Branch& branch : choice.branches) {
      if (branch.test == nullptr || truth(evaluate(*branch.test))) return execute(branch.body);
    }
    return Flow::on;
  }
  Flow loop(const ForLoop& loop) {
    Value row = items_of(evaluate(*loop.items), meter());
    if (loop.filter != nullptr) row = kept(loop, row);
    const std::vector<Value>& items = row.items();
    const InnerScope inner(*this);
    bool finished_a_turn = false;
    const auto state = std::make_shared<const Loop>(row);
    const Value name("loop"), value(state);
    for (std::size_t i = 0; i < items.size(); ++i) {
      meter().step();
      scope_->clear();  // what a turn sets is gone in the next one
      state->index0 = i;
      scope_->set(name, value);
      line_ = loop.line;
      assign(loop.target, items[i]);
      const Flow flow = execute(loop.body);
      finished_a_turn = finished_a_turn || flow == Flow::on;
      if (flow == Flow::leave_loop) break;
    }
    if (finished_a_turn) return Flow::on;
    scope_->clear();
    return execute(loop.otherwise);  // as in Jinja, also when every turn ended with break or continue
  }

  /// The items that pass the loop's `if`, all looked at before the first turn.
  Value kept(const ForLoop& loop, const Value& row) {
    const InnerScope inner(*this);
    std::vector<Value> out;
    for (const Value& item : row.items()) {
      meter().step();
      assign(loop.target, item);
      if (truth(evaluate(*loop.filter))) out.push_back(item);
    }
    return Value::list(std::move(out));
  }
  Flow capture(const Capture& capture) {
    Flow flow = Flow::on;
    Value text;
    {
      const InnerScope inner(*this);
      text = captured(capture.body, flow);
    }
    for (const Link& link : capture.filters) text = follow(text, link);
    if (capture.kind == Statement::Kind::filter_block) {
      print(text);
    } else {
      assign(capture.target, text);
    }
    return flow;
  }

  Flow scoped(const ScopeBlock& block) {
    const InnerScope inner(*this);
    return execute(block.body);
  }
  void define(const Procedure& procedure) {
    scope_->set(procedure.name, Value(std::make_shared<const Macro>(procedure, scope_)));
  }
  /// Calls a macro with the block's body as its `caller`.
  void call_block(const CallBlock& block) {
    const auto& path = static_cast<const Path&>(*block.call);
    Value callee = evaluate(*path.base);
    for (std::size_t i = 0; i + 1 < path.links.size(); ++i) callee = follow(callee, path.links[i]);
    Arguments given = arguments(path.links.back().arguments);
    given.keyword.emplace_back("caller", Value(std::make_shared<const Macro>(block.caller, scope_)));
    print(call(callee, given));
  }
  void assign(const Target& target, const Value& value) {
    if (target.attribute.is(Kind::string)) return assign_attribute(target, value);
    if (!target.is_tuple) return scope_->set(target.name, value);
    const Value row = items_of(value, meter());
    const std::vector<Value>& items = row.items();
    if (items.size() != target.parts.size())
      fail(items.size(), " values cannot be spread over ", target.parts.size(), " names");
    for (std::size_t i = 0; i < items.size(); ++i) {
      meter().expression();
      assign(target.parts[i], items[i]);
    }
  }

  void assign_attribute(const Target& target, const Value& value) {
    const Value* space = scope_->find(target.name);
    if (space == nullptr || !space->is(Kind::name_space))
      fail("'", target.name.text(), "' is no namespace, its attributes cannot be set");
    space->as<NameSpace>().set(target.attribute, value);
  }
  Value invoke(const Macro& macro, const Arguments& arguments) {
    const auto home = macro.home.lock();
    if (home == nullptr)
      fail("the block in which the macro '", macro.procedure->name.text(), "' was written is over");
    const Depth depth(calls_, limits().call_depth, "macros that call macros");
    const InnerScope inner(*this, home.get());
    bind(*macro.procedure, arguments);
    Flow flow = Flow::on;
    return captured(macro.procedure->body, flow);
  }
  /// Sets the parameters of a macro, and `caller` for one that a call block calls.
  void bind(const Procedure& procedure, const Arguments& arguments) {
    const auto& parameters = procedure.parameters;
    const std::size_t taken = arguments.positional.size();
    if (taken > parameters.size())
      fail("'", procedure.name.text(), "' takes at most ", parameters.size(), " arguments");
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const Value* named = arguments.find(parameters[i].name.text());
      if (named != nullptr && i < taken)
        fail("'", procedure.name.text(), "' was given the argument '", parameters[i].name.text(), "' twice");
      scope_->set(parameters[i].name, i < taken          ? arguments.positional[i]
                                      : named != nullptr ? *named
                                                         : fallback(parameters[i]));
    }
    for (const auto& given : arguments.keyword) {
      const auto same = [&given](const auto& parameter) {
        return parameter.name.text() == given.first.text();
      };
      if (std::any_of(parameters.begin(), parameters.end(), same)) continue;
      if (given.first.text() != "caller")
        fail("'", procedure.name.text(), "' knows no argument '", given.first.text(), "'");
      scope_->set(given.first, given.second);
    }
  }

  Value fallback(const Procedure::Parameter& parameter) {
    if (parameter.fallback != nullptr) return evaluate(*parameter.fallback);
    return Value::undefined(join("the parameter '", parameter.name.text(), "' was not given"));
  }
  /// What a block prints, as a string.
  std::string captured(const Block& block, Flow& flow) {
    std::string text;
    std::string* const outer = std::exchange(out_, &text);
    flow = execute(block);
    out_ = outer;
    return text;
  }
  void print(const Value& value) {
    if (value.is(Kind::string)) return print_text(value.text());
    print_text(text_of(value, meter()));
  }
  void print_text(std::string_view text) {
    meter().bytes(text.size());
    meter().check_length(out_->size() + text.size());
    out_->append(text);
  }

  /// A scope that lasts as long as this object does.
  class InnerScope {
   public:
    InnerScope(Interpreter& interpreter, const Scope* around)
        : interpreter_(&interpreter),
          outer_(std::exchange(interpreter.scope_, std::make_shared<Scope>(around))) {}
    explicit InnerScope(Interpreter& interpreter) : InnerScope(interpreter, interpreter.scope_.get()) {}
    InnerScope(const InnerScope&) = delete;
    InnerScope& operator=(const InnerScope&) = delete;
    ~InnerScope() { interpreter_->scope_ = std::move(outer_); }

   private:
    Interpreter* interpreter_;
    std::shared_ptr<Scope> outer_;
  };

  std::string* out_ = nullptr;
  std::uint32_t calls_ = 0;
};

}  // namespace mica::jinja::detail
