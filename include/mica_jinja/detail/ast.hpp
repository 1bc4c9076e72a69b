// SPDX-License-Identifier: Apache-2.0
//
// The parsed template. Chains (a + b + c, a.b[0].c()|d) are flat vectors, so the tree is only as deep as its
// brackets and blocks, which the parser counts; nothing that walks or frees the tree can run out of stack.
#pragma once

#include "mica_jinja/detail/arithmetic.hpp"
#include "mica_jinja/value.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace mica::jinja::detail {

struct Expression {
  // clang-format off
  enum class Kind : std::uint8_t {
    constant, name, path, sign, negation, chain, logic, comparison, conditional, row, mapping
  };
  // clang-format on

  Expression(Kind expression_kind, std::uint32_t source_line) : kind(expression_kind), line(source_line) {}
  Expression(const Expression&) = delete;
  Expression& operator=(const Expression&) = delete;
  virtual ~Expression() = default;

  Kind kind;
  std::uint32_t line;
};

using ExpressionPtr = std::unique_ptr<Expression>;

struct Constant final : Expression {
  Constant(std::uint32_t at, Value constant) : Expression(Kind::constant, at), value(std::move(constant)) {}
  Value value;
};

struct Name final : Expression {
  Name(std::uint32_t at, Value text) : Expression(Kind::name, at), name(std::move(text)) {}
  Value name;
};

/// What stands in the brackets of a call.
struct CallArguments {
  struct Keyword {
    Value name;
    ExpressionPtr value;
  };
  std::vector<ExpressionPtr> positional;
  std::vector<Keyword> keyword;
  ExpressionPtr more;  ///< *row
};

/// One step of a path.
struct Link {
  enum class Kind : std::uint8_t { attribute, subscript, slice, call, filter, test, negated_test };

  Kind kind = Kind::attribute;
  std::uint32_t line = 1;
  Value name;                        ///< of attribute, filter and test
  std::vector<ExpressionPtr> parts;  ///< index; or first, last and step, null where left out
  CallArguments arguments;
};

/// base.a[0](x)|f is test
struct Path final : Expression {
  Path(std::uint32_t at, ExpressionPtr start) : Expression(Kind::path, at), base(std::move(start)) {}
  ExpressionPtr base;
  std::vector<Link> links;
};

/// -x and +x
struct Sign final : Expression {
  Sign(std::uint32_t at, bool minus, ExpressionPtr value)
      : Expression(Kind::sign, at), negative(minus), operand(std::move(value)) {}
  bool negative;
  ExpressionPtr operand;
};

struct Negation final : Expression {
  Negation(std::uint32_t at, ExpressionPtr value)
      : Expression(Kind::negation, at), operand(std::move(value)) {}
  ExpressionPtr operand;
};

/// first op a op b ..., from left to right, all operators of the same rank.
struct Chain final : Expression {
  struct Step {
    Operator op;
    ExpressionPtr operand;
  };
  Chain(std::uint32_t at, ExpressionPtr start) : Expression(Kind::chain, at), first(std::move(start)) {}
  ExpressionPtr first;
  std::vector<Step> steps;
};

/// a and b and c, or a or b or c
struct Logic final : Expression {
  Logic(std::uint32_t at, bool all) : Expression(Kind::logic, at), wants_all(all) {}
  bool wants_all;
  std::vector<ExpressionPtr> operands;
};

enum class Relation : std::uint8_t { equal, unequal, less, less_equal, greater, greater_equal, in, not_in };

/// a < b <= c
struct Comparison final : Expression {
  struct Step {
    Relation relation;
    ExpressionPtr operand;
  };
  Comparison(std::uint32_t at, ExpressionPtr start)
      : Expression(Kind::comparison, at), first(std::move(start)) {}
  ExpressionPtr first;
  std::vector<Step> steps;
};

/// then if test else otherwise
struct Conditional final : Expression {
  explicit Conditional(std::uint32_t at) : Expression(Kind::conditional, at) {}
  ExpressionPtr test;
  ExpressionPtr then;
  ExpressionPtr otherwise;  ///< may be null
};

/// [a, b] and (a, b)
struct RowDisplay final : Expression {
  RowDisplay(std::uint32_t at, bool is_tuple) : Expression(Kind::row, at), tuple(is_tuple) {}
  bool tuple;
  std::vector<ExpressionPtr> items;
};

/// {a: b}
struct MappingDisplay final : Expression {
  explicit MappingDisplay(std::uint32_t at) : Expression(Kind::mapping, at) {}
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> entries;
};

struct Statement {
  // clang-format off
  enum class Kind : std::uint8_t {
    text, output, choice, loop, assignment, block_assignment, macro, call_block, filter_block, scope,
    leave_loop, next_turn
  };
  // clang-format on

  Statement(Kind statement_kind, std::uint32_t source_line) : kind(statement_kind), line(source_line) {}
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  virtual ~Statement() = default;

  Kind kind;
  std::uint32_t line;
};

using Block = std::vector<std::unique_ptr<Statement>>;

/// What `set` and `for` write to: a name, an attribute of a namespace, or several of them.
struct Target {
  Value name;
  Value attribute;            ///< undefined but for ns.attribute
  std::vector<Target> parts;  ///< empty but for a, b
  bool is_tuple = false;
};

struct TextStatement final : Statement {
  TextStatement(std::uint32_t at, std::string characters)
      : Statement(Kind::text, at), text(std::move(characters)) {}
  std::string text;
};

struct Output final : Statement {
  Output(std::uint32_t at, ExpressionPtr printed) : Statement(Kind::output, at), value(std::move(printed)) {}
  ExpressionPtr value;
};

/// if, elif and else, the last with a null test.
struct Choice final : Statement {
  struct Branch {
    ExpressionPtr test;
    Block body;
  };
  explicit Choice(std::uint32_t at) : Statement(Kind::choice, at) {}
  std::vector<Branch> branches;
};

struct ForLoop final : Statement {
  explicit ForLoop(std::uint32_t at) : Statement(Kind::loop, at) {}
  Target target;
  ExpressionPtr items;
  ExpressionPtr filter;  ///< may be null
  Block body;
  Block otherwise;
};

struct Assignment final : Statement {
  explicit Assignment(std::uint32_t at) : Statement(Kind::assignment, at) {}
  Target target;
  ExpressionPtr value;
};

/// {% set x %}...{% endset %} and {% filter f %}...{% endfilter %}
struct Capture final : Statement {
  using Statement::Statement;
  Target target;              ///< of a block assignment
  std::vector<Link> filters;  ///< of a filter block
  Block body;
};

/// What a macro and the body of a call block have in common.
struct Procedure {
  struct Parameter {
    Value name;
    ExpressionPtr fallback;  ///< may be null
  };
  Value name;
  std::vector<Parameter> parameters;
  Block body;
};

struct MacroStatement final : Statement {
  explicit MacroStatement(std::uint32_t at) : Statement(Kind::macro, at) {}
  Procedure procedure;
};

struct CallBlock final : Statement {
  explicit CallBlock(std::uint32_t at) : Statement(Kind::call_block, at) {}
  Procedure caller;
  ExpressionPtr call;  ///< a path that ends in a call
};

/// {% generation %}: a block with names of its own.
struct ScopeBlock final : Statement {
  explicit ScopeBlock(std::uint32_t at) : Statement(Kind::scope, at) {}
  Block body;
};

/// break and continue
struct Jump final : Statement {
  using Statement::Statement;
};

}  // namespace mica::jinja::detail
