// SPDX-License-Identifier: Apache-2.0
//
// Any text as a grammar (GBNF) or a regular expression: refused by an error, or a language whose texts can be
// gone through. The first byte chooses, eight more are the choices of the walk.

#include "fuzz/grammar_walk.hpp"
#include "mica/constraint/gbnf.hpp"
#include "mica/constraint/regex.hpp"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mica;
  fuzz::Input input(data, size);
  const bool regex = input.flag();
  const auto choices = input.text(8);
  constexpr std::size_t max_bytes = std::size_t{4} << 20;
  fuzz::accepted([&] {
    if (regex) {
      constraint::Language language = constraint::regex_language(input.rest());
      if (language.expressions->accepts_some(language.start)) fuzz::walk(std::move(language), choices);
    } else {
      fuzz::walk(
          constraint::parse_gbnf(
              input.rest(), {.max_rules = 200, .max_repetitions = 1000, .max_expression_bytes = max_bytes}),
          choices);
    }
  });
  return 0;
}
