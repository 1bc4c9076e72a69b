// SPDX-License-Identifier: Apache-2.0
//
// Text, outputs and tags: if, for, set, macro, call, filter, generation, break and continue.
#pragma once

#include "mica_jinja/detail/ast.hpp"
#include "mica_jinja/detail/expression_parser.hpp"
#include "mica_jinja/detail/lexer.hpp"
#include "mica_jinja/detail/token_stream.hpp"
#include "mica_jinja/template_error.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace mica::jinja::detail {

/// Reads one template.
class StatementParser {
 public:
  explicit StatementParser(TokenStream& tokens) : tokens_(&tokens), expressions_(tokens) {}

  [[nodiscard]] Block whole_template() {
    Block block = statements({});
    if (!tokens_->at(Token::Kind::end)) tokens_->unexpected("the end of the template");
    return block;
  }

 private:
  using Names = std::initializer_list<std::string_view>;

  /// Statements up to a tag with one of these names; that tag's name is the next token then.
  [[nodiscard]] Block statements(Names ends) {
    const TokenStream::Level level(*tokens_);
    Block block;
    for (;;) {
      const Token token = tokens_->current();
      switch (token.kind) {
        case Token::Kind::data:
          block.push_back(std::make_unique<TextStatement>(token.line, std::string(tokens_->next().text)));
          break;
        case Token::Kind::output_begin:
          block.push_back(output());
          break;
        case Token::Kind::block_begin:
          tokens_->next();
          for (const std::string_view end : ends) {
            if (tokens_->at_name(end)) return block;
          }
          block.push_back(tag(ends));
          break;
        default:
          if (ends.size() == 0) return block;
          tokens_->unexpected(join("'{% ", *(ends.end() - 1), " %}'"));
      }
    }
  }

  /// A body that ends with one tag, that tag included.
  [[nodiscard]] Block body_until(std::string_view end) {
    end_of_tag();
    Block block = statements({end});
    tokens_->expect_name(end);
    end_of_tag();
    return block;
  }

  void end_of_tag() { tokens_->expect(Token::Kind::block_end, "'%}'"); }

  [[nodiscard]] std::unique_ptr<Statement> output() {
    const std::uint32_t line = tokens_->next().line;
    auto output = std::make_unique<Output>(line, expressions_.expression_or_tuple());
    tokens_->expect(Token::Kind::output_end, "'}}'");
    return output;
  }

  [[nodiscard]] std::unique_ptr<Statement> tag(Names ends) {
    const std::uint32_t line = tokens_->line();
    const std::string_view name =
        tokens_->at(Token::Kind::name) ? tokens_->current().text : std::string_view();
    if (name == "if") return choice();
    if (name == "for") return loop();
    if (name == "set") return assignment();
    if (name == "macro") return macro();
    if (name == "call") return call_block();
    if (name == "filter") return filter_block();
    if (name == "generation") return generation();
    if (name == "break" || name == "continue") return jump();
    for (const std::string_view other :
         {"include", "import", "from", "extends", "block", "autoescape", "do", "trans", "with"}) {
      if (name != other) continue;
      throw TemplateError(TemplateError::Cause::unsupported, join("the tag '", name, "' is not supported"),
                          line);
    }
    tokens_->unexpected(ends.size() == 0 ? std::string("a tag") : join("a tag or '", *(ends.end() - 1), "'"));
  }

  [[nodiscard]] std::unique_ptr<Statement> choice() {
    auto choice = std::make_unique<Choice>(tokens_->next().line);
    ExpressionPtr test = expressions_.expression_or_tuple(false);
    for (;;) {
      end_of_tag();
      choice->branches.push_back({std::move(test), statements({"elif", "else", "endif"})});
      const std::string_view name = tokens_->next().text;
      if (name == "endif") break;
      if (name == "elif") {
        test = expressions_.expression_or_tuple(false);
        continue;
      }
      choice->branches.push_back({nullptr, body_until("endif")});
      return choice;
    }
    end_of_tag();
    return choice;
  }

  [[nodiscard]] std::unique_ptr<Statement> loop() {
    auto loop = std::make_unique<ForLoop>(tokens_->next().line);
    loop->target = target();
    tokens_->expect_name("in");
    loop->items = expressions_.expression_or_tuple(false);
    if (tokens_->skip_name("if")) loop->filter = expressions_.expression();
    if (tokens_->at_name("recursive"))
      throw TemplateError(TemplateError::Cause::unsupported, "recursive loops are not supported",
                          tokens_->line());
    end_of_tag();
    ++loops_;
    loop->body = statements({"else", "endfor"});
    --loops_;
    if (tokens_->next().text == "else") {
      loop->otherwise = body_until("endfor");
    } else {
      end_of_tag();
    }
    return loop;
  }

  /// A name, ns.attribute, or several with commas between them.
  [[nodiscard]] Target target() {
    const TokenStream::Level level(*tokens_);
    Target first = single_target();
    if (!tokens_->at_sign(",")) return first;
    Target tuple;
    tuple.is_tuple = true;
    tuple.parts.push_back(std::move(first));
    while (tokens_->skip_sign(",")) {
      if (tokens_->at_sign(")")) break;
      tuple.parts.push_back(single_target());
    }
    return tuple;
  }

  [[nodiscard]] Target single_target() {
    if (tokens_->skip_sign("(")) {
      Target inner = target();
      tokens_->expect_sign(")");
      return inner;
    }
    Target result;
    const std::uint32_t line = tokens_->line();
    result.name = tokens_->expect_any_name();
    for (const std::string_view constant : {"true", "false", "none", "True", "False", "None"}) {
      if (result.name.text() == constant)
        syntax_error(line, join("nothing can be assigned to '", constant, "'"));
    }
    if (tokens_->skip_sign(".")) result.attribute = tokens_->expect_any_name();
    return result;
  }

  [[nodiscard]] std::unique_ptr<Statement> assignment() {
    const std::uint32_t line = tokens_->next().line;
    Target written = target();
    if (tokens_->skip_sign("=")) {
      auto assignment = std::make_unique<Assignment>(line);
      assignment->target = std::move(written);
      assignment->value = expressions_.expression_or_tuple();
      end_of_tag();
      return assignment;
    }
    auto capture = std::make_unique<Capture>(Statement::Kind::block_assignment, line);
    capture->target = std::move(written);
    capture->body = body_until("endset");
    return capture;
  }

  [[nodiscard]] std::unique_ptr<Statement> filter_block() {
    auto capture = std::make_unique<Capture>(Statement::Kind::filter_block, tokens_->next().line);
    capture->filters = expressions_.filters();
    capture->body = body_until("endfilter");
    return capture;
  }

  void parameters(Procedure& procedure) {
    tokens_->expect_sign("(");
    tokens_->each_until(")", [&] {
      Procedure::Parameter parameter;
      const std::uint32_t line = tokens_->line();
      parameter.name = tokens_->expect_any_name();
      if (tokens_->skip_sign("=")) {
        parameter.fallback = expressions_.expression();
      } else if (!procedure.parameters.empty() && procedure.parameters.back().fallback != nullptr) {
        syntax_error(line, join("the parameter '", parameter.name.text(),
                                "' needs a default, as the one before it has"));
      }
      procedure.parameters.push_back(std::move(parameter));
    });
  }

  void procedure_body(Procedure& procedure, std::string_view end) {
    const std::size_t outer_loops = std::exchange(loops_, 0);
    procedure.body = body_until(end);
    loops_ = outer_loops;
  }

  [[nodiscard]] std::unique_ptr<Statement> macro() {
    auto macro = std::make_unique<MacroStatement>(tokens_->next().line);
    macro->procedure.name = tokens_->expect_any_name();
    parameters(macro->procedure);
    procedure_body(macro->procedure, "endmacro");
    return macro;
  }

  [[nodiscard]] std::unique_ptr<Statement> call_block() {
    auto block = std::make_unique<CallBlock>(tokens_->next().line);
    block->caller.name = "caller";
    if (tokens_->at_sign("(")) parameters(block->caller);
    block->call = expressions_.expression();
    const bool is_call = block->call->kind == Expression::Kind::path &&
                         static_cast<const Path&>(*block->call).links.back().kind == Link::Kind::call;
    if (!is_call) tokens_->unexpected("a call of a macro");
    procedure_body(block->caller, "endcall");
    return block;
  }

  /// Marks what the model writes, for training; it renders as its body.
  [[nodiscard]] std::unique_ptr<Statement> generation() {
    auto scope = std::make_unique<ScopeBlock>(tokens_->next().line);
    scope->body = body_until("endgeneration");
    return scope;
  }

  [[nodiscard]] std::unique_ptr<Statement> jump() {
    const Token token = tokens_->next();
    const bool leaves = token.text == "break";
    if (loops_ == 0) syntax_error(token.line, join("'", token.text, "' outside of a loop"));
    end_of_tag();
    return std::make_unique<Jump>(leaves ? Statement::Kind::leave_loop : Statement::Kind::next_turn,
                                  token.line);
  }

  TokenStream* tokens_;
  ExpressionParser expressions_;
  std::size_t loops_ = 0;
};

}  // namespace mica::jinja::detail
