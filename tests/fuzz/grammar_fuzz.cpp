// SPDX-License-Identifier: Apache-2.0
//
// Any text as a grammar (GBNF) or a regular expression: refused by an error, or a language whose texts can be
// gone through. The first byte chooses, eight more are the choices of the walk.

#include "fuzz/grammar_walk.hpp"
#include "fuzz/input.hpp"
#include "mica/constraint/gbnf.hpp"
#include "mica/constraint/regex.hpp"

#include <cstddef>
#include <cstdint>

namespace mica::fuzz::grammar_fuzz {

MICA_FUZZ_TARGET(grammar) {
  Input input(data, size);
  const bool regex = input.flag();
  const auto choices = input.text(8);
  constexpr std::size_t max_bytes = std::size_t{4} << 20;
  accepted([&] {
    if (regex) {
      constraint::Language language = constraint::regex_language(input.rest());
      if (language.expressions->accepts_some(language.start)) walk(std::move(language), choices);
    } else {
      walk(constraint::parse_gbnf(
               input.rest(), {.max_rules = 200, .max_repetitions = 1000, .max_expression_bytes = max_bytes}),
           choices);
    }
  });
  return 0;
}

}  // namespace mica::fuzz::grammar_fuzz
