// SPDX-License-Identifier: Apache-2.0
//
// Chat templates: the Jinja language as Hugging Face configures it (trim_blocks, lstrip_blocks, loop
// controls, the immutable sandbox), with every rendering bounded by Limits. No include, import, inheritance
// or HTML escaping.
#pragma once

#include "mica_jinja/civil_time.hpp"
#include "mica_jinja/detail/interpreter.hpp"
#include "mica_jinja/detail/lexer.hpp"
#include "mica_jinja/detail/statement_parser.hpp"
#include "mica_jinja/detail/token_stream.hpp"
#include "mica_jinja/detail/unicode.hpp"
#include "mica_jinja/limits.hpp"
#include "mica_jinja/template_error.hpp"
#include "mica_jinja/value.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace mica::jinja {

/// A parsed template. Rendering does not change it, so several threads may render the same one.
class Template {
 public:
  /// Throws TemplateError when the text is too long, not UTF-8, or no template; nothing is evaluated yet.
  static Template parse(std::string_view source, const Limits& limits = {}) {
    if (source.size() > limits.source_bytes)
      detail::exceed("the template has ", source.size(), " bytes; at most ", limits.source_bytes,
                     " are allowed");
    const std::string text = detail::normalized(source);
    if (const auto bad = detail::find_invalid(text)) {
      const auto lines = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(*bad), '\n');
      detail::syntax_error(static_cast<std::size_t>(lines) + 1, detail::join("byte ", *bad, " is not UTF-8"));
    }
    detail::TokenStream tokens(detail::Lexer(text).run(), limits);
    return Template(detail::StatementParser(tokens).whole_template(), limits);
  }

  /// Renders with the entries of a mapping as variables. `now` is the moment that strftime_now() sees; without
  /// it, the local time. Throws TemplateError; a message that the template raised itself has the cause
  /// `raised`.
  [[nodiscard]] std::string render(const Value& globals, std::optional<CivilTime> now = std::nullopt) const {
    detail::Interpreter interpreter(limits_, now ? *now : CivilTime::now(), globals);
    try {
      return interpreter.run(*block_);
    } catch (const TemplateError& error) {
      if (error.line() != 0) throw;
      throw TemplateError(error.cause(), error.detail(), interpreter.line());
    }
  }

 private:
  Template(detail::Block block, const Limits& limits)
      : block_(std::make_shared<const detail::Block>(std::move(block))), limits_(limits) {}

  std::shared_ptr<const detail::Block> block_;
  Limits limits_;
};

}  // namespace mica::jinja
