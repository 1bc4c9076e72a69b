// SPDX-License-Identifier: Apache-2.0
//
// Cuts text into the words that byte-level BPE merges inside of, by the expressions of
// detail/pretokenizer_rules.hpp. It needs one unit of the program that is built with the part mica::text (PCRE2); in
// a program without one a Pretokenizer is refused.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/detail/linked.hpp"
#include "mica/text/detail/pretokenizer_rules.hpp"
#include "mica/text/detail/word_splitter.hpp"

#include <memory>
#include <string_view>

#if defined(MICA_HAS_TEXT)
#include "mica/text/detail/pcre2.hpp"
#endif

namespace mica::text {

/// Compiled rules. Immutable: any number of threads may use one object.
class Pretokenizer {
 public:
  /// Compiles the expressions (a millisecond each). Raises `unsupported` where the program has no PCRE2, and
  /// `failed` when PCRE2 cannot.
  explicit Pretokenizer(const PretokenizerRules& rules) : splitter_(compile(rules)) {}

  /// Calls `on_word(view)` for each word, in order; together they are the text. Precondition:
  /// `is_utf8(text)`. Raises `limit` when an expression takes more steps than any of these should.
  template <class F>
  void split(std::string_view text, F&& on_word) const {
    splitter_->split(text, [&on_word](std::string_view word) { on_word(word); });
  }

 private:
  static std::unique_ptr<const detail::WordSplitter> compile(const PretokenizerRules& rules) {
    const auto* const functions = Linked<detail::SplitterFunctions>::functions();
    MICA_CHECK(functions != nullptr, unsupported, "tokenizer.ggml.pre: '", rules.names,
               "' needs PCRE2, and this program was built without it; link mica::text");
    return functions->compile(rules);
  }

  std::unique_ptr<const detail::WordSplitter> splitter_;
};

}  // namespace mica::text
