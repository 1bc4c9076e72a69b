// SPDX-License-Identifier: Apache-2.0
//
// Cuts text into the words that byte-level BPE merges inside of, by the expressions of
// pretokenizer_rules.hpp. The only header of this room that includes PCRE2; without it (MICA_HAS_TEXT
// undefined) building a Pretokenizer is refused.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/error.hpp"
#include "mica/text/pretokenizer_rules.hpp"
#include "mica/text/utf8.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#if defined(MICA_HAS_TEXT)
#ifndef PCRE2_CODE_UNIT_WIDTH
#define PCRE2_CODE_UNIT_WIDTH 8
#endif
#include <pcre2.h>
#endif

namespace mica::text {

namespace detail {

/// White_Space of Unicode as the inside of a character class.
inline constexpr std::string_view white_space =
    R"(\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";

/// The expression with `\s` and `\S` written out, because PCRE2's own have another white space: ASCII's, or
/// one with U+180E. `\S` stands outside of classes only, as it does in all rules.
inline std::string with_unicode_spaces(std::string_view expression) {
  std::string out;
  bool in_class = false;
  for (std::size_t i = 0; i < expression.size(); ++i) {
    const char c = expression[i];
    const char next = i + 1 < expression.size() ? expression[i + 1] : '\0';
    if (c == '\\' && (next == 's' || next == 'S')) {
      if (!in_class) out.append(next == 's' ? "[" : "[^");
      out.append(white_space);
      if (!in_class) out.push_back(']');
      ++i;
    } else if (c == '\\') {
      out.append({c, next});
      ++i;
    } else {
      in_class = c == '[' || (in_class && c != ']');
      out.push_back(c);
    }
  }
  return out;
}

/// The text with each surrogate replaced by U+FFFD, which has as many bytes; PCRE2 takes no surrogates.
inline std::string without_surrogates(std::string_view text) {
  std::string out(text);
  for (std::size_t at = out.find('\xED'); at != std::string::npos; at = out.find('\xED', at + 1)) {
    if (static_cast<unsigned char>(out[at + 1]) >= 0xA0) out.replace(at, 3, replacement_character);
  }
  return out;
}

}  // namespace detail

#if defined(MICA_HAS_TEXT)

/// Compiled rules. Immutable: any number of threads may use one object.
class Pretokenizer {
 public:
  /// Compiles the expressions (a millisecond each). Raises `failed` when PCRE2 cannot.
  explicit Pretokenizer(const PretokenizerRules& rules) {
    for (const std::string_view expression : rules.expressions) codes_.push_back(compile(expression));
  }

  /// Calls `on_word(view)` for each word, in order; together they are the text.
  /// Precondition: `is_utf8(text)`. Raises `limit` when an expression takes more steps than any of these
  /// should.
  template <class F>
  void split(std::string_view text, F&& on_word) const {
    if (text.find('\xED') == std::string_view::npos) return split_subject(text, text, on_word);
    split_subject(text, detail::without_surrogates(text), on_word);
  }

 private:
  template <auto Free>
  struct Deleter {
    template <class T>
    void operator()(T* p) const noexcept {
      Free(p);
    }
  };
  using Code = std::unique_ptr<pcre2_code_8, Deleter<pcre2_code_free_8>>;
  using Match = std::unique_ptr<pcre2_match_data_8, Deleter<pcre2_match_data_free_8>>;
  using Context = std::unique_ptr<pcre2_match_context_8, Deleter<pcre2_match_context_free_8>>;

  static Code compile(std::string_view expression);
  static Context limits(std::size_t text_bytes);

  /// `subject` is what the expressions see, `text` what is handed out; their offsets agree.
  template <class F>
  void split_subject(std::string_view text, std::string_view subject, F&& on_word) const {
    const Match match(pcre2_match_data_create_8(1, nullptr));
    const Context context = limits(text.size());
    MICA_CHECK(match && context, failed, "pre-tokenizer: PCRE2 got no memory");
    const auto hand_out = [&](std::string_view piece) {
      on_word(text.substr(static_cast<std::size_t>(piece.data() - subject.data()), piece.size()));
    };
    apply(0, subject, match.get(), context.get(), hand_out);
  }

  /// Cuts a piece by rule `depth` and what comes out by the next ones.
  template <class F>
  void apply(std::size_t depth, std::string_view piece, pcre2_match_data_8* match,
             pcre2_match_context_8* context, F& hand_out) const {
    if (piece.empty()) return;
    if (depth == codes_.size()) return hand_out(piece);
    const auto* const bytes = reinterpret_cast<PCRE2_SPTR8>(piece.data());
    std::size_t at = 0;
    while (at < piece.size()) {
      const int rc = pcre2_match_8(codes_[depth].get(), bytes, piece.size(), at,
                                   PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, match, context);
      if (rc == PCRE2_ERROR_NOMATCH) break;
      if (rc < 0) refuse(rc, piece.size());
      const std::size_t begin = pcre2_get_ovector_pointer_8(match)[0];
      const std::size_t end = pcre2_get_ovector_pointer_8(match)[1];
      apply(depth + 1, piece.substr(at, begin - at), match, context, hand_out);
      apply(depth + 1, piece.substr(begin, end - begin), match, context, hand_out);
      at = end;
    }
    apply(depth + 1, piece.substr(at), match, context, hand_out);
  }

  [[noreturn]] static void refuse(int rc, std::size_t bytes) {
    raise(ErrorCode::limit, "pre-tokenizer: PCRE2 gave up with error ", rc, " on a piece of ", bytes,
          " bytes");
  }

  std::vector<Code> codes_;
};

inline Pretokenizer::Code Pretokenizer::compile(std::string_view expression) {
  const std::string pattern = detail::with_unicode_spaces(expression);
  int error = 0;
  PCRE2_SIZE offset = 0;
  Code code(pcre2_compile_8(reinterpret_cast<PCRE2_SPTR8>(pattern.data()), pattern.size(),
                            PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C | PCRE2_DOLLAR_ENDONLY, &error, &offset,
                            nullptr));
  MICA_CHECK(code, failed, "pre-tokenizer: PCRE2 refuses an expression with error ", error, " at offset ",
             offset);
  // Where the system forbids compiled code, the interpreter does the same.
  pcre2_jit_compile_8(code.get(), PCRE2_JIT_COMPLETE);
  return code;
}

/// Steps in proportion to the text: a run of one class is walked to its end and back at most a few times.
inline Pretokenizer::Context Pretokenizer::limits(std::size_t text_bytes) {
  Context context(pcre2_match_context_create_8(nullptr));
  if (!context) return context;
  const std::size_t steps = std::min<std::size_t>(10'000'000 + 16 * text_bytes, 0xFFFF'FFFF);
  pcre2_set_match_limit_8(context.get(), static_cast<std::uint32_t>(steps));
  pcre2_set_heap_limit_8(context.get(), 64 * 1024);  // KiB, for the interpreter
  return context;
}

#else

/// Stands in where PCRE2 is missing.
class Pretokenizer {
 public:
  [[noreturn]] explicit Pretokenizer(const PretokenizerRules& rules) {
    raise(ErrorCode::unsupported, "tokenizer.ggml.pre: '", rules.names,
          "' needs PCRE2, and this program was built without it; link mica::text");
  }

  template <class F>
  void split(std::string_view, F&&) const {}
};

#endif

}  // namespace mica::text
