// SPDX-License-Identifier: Apache-2.0
//
// The part mica::text: registers PCRE2 as the compiler of a Pretokenizer's expressions. The only header that
// includes PCRE2.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/detail/linked.hpp"
#include "mica/text/detail/expression_text.hpp"
#include "mica/text/detail/word_splitter.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#ifndef PCRE2_CODE_UNIT_WIDTH
#define PCRE2_CODE_UNIT_WIDTH 8
#endif
#include <pcre2.h>

namespace mica::text::detail {

/// Rules that PCRE2 has compiled.
class Pcre2Splitter final : public WordSplitter {
 public:
  explicit Pcre2Splitter(const PretokenizerRules& rules) {
    for (const std::string_view expression : rules.expressions) codes_.push_back(compile(expression));
  }

  void split(std::string_view text, const OnWord& on_word) const override {
    if (text.find('\xED') == std::string_view::npos) return split_subject(text, text, on_word);
    split_subject(text, without_surrogates(text), on_word);
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

  static Code compile(std::string_view expression) {
    const std::string pattern = with_unicode_spaces(expression);
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
  static Context limits(std::size_t text_bytes) {
    Context context(pcre2_match_context_create_8(nullptr));
    if (!context) return context;
    const std::size_t steps = std::min<std::size_t>(10'000'000 + 16 * text_bytes, 0xFFFF'FFFF);
    pcre2_set_match_limit_8(context.get(), static_cast<std::uint32_t>(steps));
    pcre2_set_heap_limit_8(context.get(), 64 * 1024);  // KiB, for the interpreter
    return context;
  }

  /// The expressions run on `subject`, the pieces are cut from `text`; their offsets are the same.
  void split_subject(std::string_view text, std::string_view subject, const OnWord& on_word) const {
    const Match match(pcre2_match_data_create_8(1, nullptr));
    const Context context = limits(text.size());
    MICA_CHECK(match && context, failed, "pre-tokenizer: PCRE2 got no memory");
    const auto hand_out = [&](std::string_view piece) {
      on_word(text.substr(static_cast<std::size_t>(piece.data() - subject.data()), piece.size()));
    };
    apply(0, subject, match.get(), context.get(), hand_out);
  }

  /// Cuts a piece by rule `depth`, and the results by the next rules.
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

namespace {

constexpr SplitterFunctions pcre2 = {
    [](const PretokenizerRules& rules) -> std::unique_ptr<const WordSplitter> {
      return std::make_unique<Pcre2Splitter>(rules);
    }};

[[maybe_unused]] const Linked<SplitterFunctions> linked_pcre2(pcre2);

}  // namespace
}  // namespace mica::text::detail
