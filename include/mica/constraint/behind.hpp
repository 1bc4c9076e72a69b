// SPDX-License-Identifier: Apache-2.0
//
// A language whose texts begin behind other text, such as the thoughts of a model.
#pragma once

#include "mica/constraint/code_points.hpp"
#include "mica/constraint/expressions.hpp"
#include "mica/constraint/rules.hpp"

#include <cstdint>
#include <string_view>

namespace mica::constraint {

/// Each text becomes: UTF-8 without the mark, the mark, at most 8 spaces, a text of the language. mark: its
/// characters; token: the bytes of the token that stands for it, where there is one (named_token()).
inline void put_behind(Language& language, std::string_view mark, std::string_view token = {}) {
  constexpr std::uint32_t max_spaces = 8;
  Expressions& x = *language.expressions;
  const ExprId end = token.empty() ? x.literal(mark) : x.alt(x.literal(token), x.literal(mark));
  const ExprId character = encode_utf8(x, CodePoints::all());
  const ExprId before =
      x.both(x.repeat(character, 0), x.complement(x.cat({ExprId::any, x.literal(mark), ExprId::any})));
  ByteSet spaces;
  for (const char c : std::string_view(" \t\r\n")) spaces.insert(static_cast<std::uint8_t>(c));
  language.start = x.cat({before, end, x.repeat(x.set(spaces), 0, max_spaces), language.start});
}

}  // namespace mica::constraint
