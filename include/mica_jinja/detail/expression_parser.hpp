// SPDX-License-Identifier: Apache-2.0
//
// Expressions, from the operator that binds least to the one that binds most:
// x if y else z, or, and, not, comparisons and `in`, + -, ~, * / // %, sign, then .name [index] (call)
// |filter is test.
#pragma once

#include "mica_jinja/detail/ast.hpp"
#include "mica_jinja/detail/lexer.hpp"
#include "mica_jinja/detail/printing.hpp"
#include "mica_jinja/detail/string_literal.hpp"
#include "mica_jinja/detail/token_stream.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::jinja::detail {

/// Reads expressions off a token stream.
class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& tokens) : tokens_(&tokens) {}

  [[nodiscard]] ExpressionPtr expression(bool with_condition = true) {
    const TokenStream::Level level(*tokens_);
    ExpressionPtr value = logic(false);
    if (!with_condition || !tokens_->at_name("if")) return value;
    auto choice = std::make_unique<Conditional>(tokens_->next().line);
    choice->then = std::move(value);
    choice->test = logic(false);
    if (tokens_->skip_name("else")) choice->otherwise = expression();
    return choice;
  }

  /// An expression, or several with commas between them, which make a tuple.
  [[nodiscard]] ExpressionPtr expression_or_tuple(bool with_condition = true) {
    ExpressionPtr first = expression(with_condition);
    if (!tokens_->at_sign(",")) return first;
    auto tuple = std::make_unique<RowDisplay>(first->line, true);
    tuple->items.push_back(std::move(first));
    while (tokens_->skip_sign(",") && starts_expression()) tuple->items.push_back(expression(with_condition));
    return tuple;
  }

  /// f|g(x), as a filter block begins.
  [[nodiscard]] std::vector<Link> filters() {
    std::vector<Link> links;
    do links.push_back(named(Link::Kind::filter));
    while (tokens_->skip_sign("|"));
    return links;
  }

 private:
  [[nodiscard]] bool starts_expression() const {
    switch (tokens_->current().kind) {
      case Token::Kind::output_end:
      case Token::Kind::block_end:
      case Token::Kind::end:
        return false;
      case Token::Kind::sign:
        return !tokens_->at_sign(")") && !tokens_->at_sign("=");
      default:
        return true;
    }
  }

  /// or, and below it and.
  [[nodiscard]] ExpressionPtr logic(bool wants_all) {
    const auto part = [&] { return wants_all ? negation() : logic(true); };
    const std::string_view word = wants_all ? "and" : "or";
    ExpressionPtr first = part();
    if (!tokens_->at_name(word)) return first;
    auto logic = std::make_unique<Logic>(first->line, wants_all);
    logic->operands.push_back(std::move(first));
    while (tokens_->skip_name(word)) logic->operands.push_back(part());
    return logic;
  }

  [[nodiscard]] ExpressionPtr negation() {
    if (!tokens_->at_name("not")) return comparison();
    const TokenStream::Level level(*tokens_);
    const std::uint32_t line = tokens_->next().line;
    return std::make_unique<Negation>(line, negation());
  }

  [[nodiscard]] std::optional<Relation> relation() {
    static constexpr std::pair<std::string_view, Relation> signs[] = {
        {"==", Relation::equal},      {"!=", Relation::unequal}, {"<", Relation::less},
        {"<=", Relation::less_equal}, {">", Relation::greater},  {">=", Relation::greater_equal}};
    for (const auto& [sign, relation] : signs) {
      if (tokens_->skip_sign(sign)) return relation;
    }
    if (tokens_->skip_name("in")) return Relation::in;
    if (!tokens_->at_name("not") || tokens_->following().kind != Token::Kind::name ||
        tokens_->following().text != "in") {
      return std::nullopt;
    }
    tokens_->next();
    tokens_->next();
    return Relation::not_in;
  }

  [[nodiscard]] ExpressionPtr comparison() {
    ExpressionPtr first = chain(0);
    auto found = relation();
    if (!found) return first;
    auto comparison = std::make_unique<Comparison>(first->line, std::move(first));
    for (; found; found = relation()) comparison->steps.push_back({*found, chain(0)});
    return comparison;
  }

  /// The operator of this rank that follows, taken.
  [[nodiscard]] std::optional<Operator> operator_of(int rank) {
    static constexpr struct {
      std::string_view sign;
      int rank;
      Operator op;
    } signs[] = {{"+", 0, Operator::add},         {"-", 0, Operator::subtract},
                 {"~", 1, Operator::concatenate}, {"*", 2, Operator::multiply},
                 {"/", 2, Operator::divide},      {"//", 2, Operator::floor_divide},
                 {"%", 2, Operator::modulo}};
    for (const auto& entry : signs) {
      if (entry.rank == rank && tokens_->skip_sign(entry.sign)) return entry.op;
    }
    return std::nullopt;
  }

  [[nodiscard]] ExpressionPtr chain(int rank) {
    const auto part = [&] { return rank == 2 ? path(true) : chain(rank + 1); };
    ExpressionPtr first = part();
    auto op = operator_of(rank);
    if (!op) return first;
    auto chain = std::make_unique<Chain>(first->line, std::move(first));
    for (; op; op = operator_of(rank)) chain->steps.push_back({*op, part()});
    return chain;
  }

  /// A value with its sign and everything that is tied to it. A sign reaches before filters and tests: -1|abs
  /// is 1.
  [[nodiscard]] ExpressionPtr path(bool with_filters) {
    const std::uint32_t line = tokens_->line();
    ExpressionPtr base;
    if (tokens_->at_sign("-") || tokens_->at_sign("+")) {
      const TokenStream::Level level(*tokens_);
      const bool negative = tokens_->next().text == "-";
      base = std::make_unique<Sign>(line, negative, path(false));
    } else {
      base = primary();
    }
    std::vector<Link> links;
    while (auto link = postfix()) links.push_back(std::move(*link));
    while (with_filters) {
      auto link = behind_filter();
      if (!link) break;
      links.push_back(std::move(*link));
    }
    if (links.empty()) return base;
    auto path = std::make_unique<Path>(line, std::move(base));
    path->links = std::move(links);
    return path;
  }

  [[nodiscard]] Link make_link(Link::Kind kind) const {
    Link link;
    link.kind = kind;
    link.line = tokens_->line();
    return link;
  }

  [[nodiscard]] std::optional<Link> postfix() {
    if (tokens_->at_sign("(")) return call();
    if (tokens_->skip_sign("[")) return subscript();
    if (!tokens_->skip_sign(".")) return std::nullopt;
    Link link = make_link(Link::Kind::attribute);
    if (tokens_->at(Token::Kind::integer)) {
      link.kind = Link::Kind::subscript;
      link.parts.push_back(number());
    } else {
      link.name = tokens_->expect_any_name();
    }
    return link;
  }

  [[nodiscard]] std::optional<Link> behind_filter() {
    if (tokens_->at_sign("(")) return call();
    if (tokens_->skip_sign("|")) return named(Link::Kind::filter);
    if (!tokens_->skip_name("is")) return std::nullopt;
    return named(tokens_->skip_name("not") ? Link::Kind::negated_test : Link::Kind::test);
  }

  [[nodiscard]] Link call() {
    Link link = make_link(Link::Kind::call);
    link.arguments = call_arguments();
    return link;
  }

  /// A filter or a test: a name, perhaps with arguments in brackets.
  [[nodiscard]] Link named(Link::Kind kind) {
    Link link = make_link(kind);
    link.name = tokens_->expect_any_name();
    if (tokens_->at_sign("(")) link.arguments = call_arguments();
    return link;
  }

  /// Behind an opening bracket: an index, or first:last:step.
  [[nodiscard]] Link subscript() {
    Link link = make_link(Link::Kind::subscript);
    const auto bound = [&] {
      return tokens_->at_sign(":") || tokens_->at_sign("]") ? ExpressionPtr() : expression();
    };
    if (tokens_->at_sign("]")) tokens_->unexpected("an index");
    link.parts.push_back(bound());
    while (link.parts.size() < 3 && tokens_->skip_sign(":")) {
      link.kind = Link::Kind::slice;
      link.parts.push_back(bound());
    }
    if (link.kind == Link::Kind::slice) link.parts.resize(3);
    tokens_->expect_sign("]");
    return link;
  }

  [[nodiscard]] CallArguments call_arguments() {
    CallArguments arguments;
    tokens_->expect_sign("(");
    tokens_->each_until(")", [&] { call_argument(arguments); });
    return arguments;
  }

  void call_argument(CallArguments& arguments) {
    const bool named = tokens_->at(Token::Kind::name) && tokens_->following().kind == Token::Kind::sign &&
                       tokens_->following().text == "=";
    if (tokens_->at_sign("*") && arguments.more == nullptr) {
      tokens_->next();
      arguments.more = expression();
    } else if (named) {
      Value name(tokens_->next().text);
      tokens_->next();
      arguments.keyword.push_back({std::move(name), expression()});
    } else {
      if (!arguments.keyword.empty() || arguments.more != nullptr) tokens_->unexpected("a named argument");
      arguments.positional.push_back(expression());
    }
  }

  [[nodiscard]] ExpressionPtr primary() {
    switch (tokens_->current().kind) {
      case Token::Kind::name:
        return name();
      case Token::Kind::string:
        return string();
      case Token::Kind::integer:
      case Token::Kind::real:
        return number();
      default:
        break;
    }
    const std::uint32_t line = tokens_->line();
    if (tokens_->skip_sign("(")) return brackets(line);
    if (tokens_->skip_sign("[")) return list(line);
    if (tokens_->skip_sign("{")) return mapping(line);
    tokens_->unexpected("an expression");
  }

  [[nodiscard]] ExpressionPtr name() {
    const Token token = tokens_->next();
    const std::string_view text = token.text;
    if (text == "true" || text == "True") return std::make_unique<Constant>(token.line, true);
    if (text == "false" || text == "False") return std::make_unique<Constant>(token.line, false);
    if (text == "none" || text == "None") return std::make_unique<Constant>(token.line, nullptr);
    return std::make_unique<Name>(token.line, text);
  }

  /// Literals beside one another are one string.
  [[nodiscard]] ExpressionPtr string() {
    const std::uint32_t line = tokens_->line();
    std::string text;
    while (tokens_->at(Token::Kind::string)) text += StringLiteral(tokens_->next()).read();
    return std::make_unique<Constant>(line, std::move(text));
  }

  [[nodiscard]] ExpressionPtr number() {
    const Token token = tokens_->next();
    if (token.kind == Token::Kind::integer) {
      if (const auto value = parse_integer(token.text)) return std::make_unique<Constant>(token.line, *value);
    } else if (const auto value = parse_real(token.text)) {
      return std::make_unique<Constant>(token.line, *value);
    }
    syntax_error(token.line, join("'", escaped(token.text), "' is no number that fits into 64 bits"));
  }

  [[nodiscard]] ExpressionPtr brackets(std::uint32_t line) {
    if (tokens_->skip_sign(")")) return std::make_unique<RowDisplay>(line, true);
    ExpressionPtr value = expression_or_tuple();
    tokens_->expect_sign(")");
    return value;
  }

  [[nodiscard]] ExpressionPtr list(std::uint32_t line) {
    auto list = std::make_unique<RowDisplay>(line, false);
    tokens_->each_until("]", [&] { list->items.push_back(expression()); });
    return list;
  }

  [[nodiscard]] ExpressionPtr mapping(std::uint32_t line) {
    auto mapping = std::make_unique<MappingDisplay>(line);
    tokens_->each_until("}", [&] {
      ExpressionPtr key = expression();
      tokens_->expect_sign(":");
      mapping->entries.emplace_back(std::move(key), expression());
    });
    return mapping;
  }

  TokenStream* tokens_;
};

}  // namespace mica::jinja::detail
