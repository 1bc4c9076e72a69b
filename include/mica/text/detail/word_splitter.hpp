// SPDX-License-Identifier: Apache-2.0
//
// What a Pretokenizer calls: rules that a library of regular expressions has compiled. It is the same with
// and without PCRE2.
#pragma once

#include "mica/text/detail/pretokenizer_rules.hpp"

#include <functional>
#include <memory>
#include <string_view>

namespace mica::text::detail {

/// Compiled rules. Immutable.
class WordSplitter {
 public:
  using OnWord = std::function<void(std::string_view)>;

  virtual ~WordSplitter() = default;

  /// As Pretokenizer::split().
  virtual void split(std::string_view text, const OnWord& on_word) const = 0;
};

struct SplitterFunctions {
  /// As Pretokenizer's constructor.
  std::unique_ptr<const WordSplitter> (*compile)(const PretokenizerRules& rules);
};

}  // namespace mica::text::detail
