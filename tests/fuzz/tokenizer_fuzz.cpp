// SPDX-License-Identifier: Apache-2.0
//
// Any vocabulary and any text, by every tokenizer: ids are those of the vocabulary, each has a text, and a
// complete vocabulary gives the text back.

#include "fuzz/input.hpp"
#include "fuzz/vocabulary_program.hpp"
#include "mica/text/detail/pcre2.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mica::fuzz::tokenizer_fuzz {
namespace {

void check_ids(const text::AnyTokenizer& tokenizer, std::string_view text,
               const text::EncodeOptions& options) {
  const auto ids = tokenizer.encode(text, options);
  for (const text::TokenId id : ids)
    require(id < tokenizer.vocabulary().size(), "ids are those of the vocabulary");
  static_cast<void>(tokenizer.decode(ids, {.show_special = true, .tidy_spaces = true}));
}

/// Whether decoding promises the text: each byte has a token, all others are ordinary, and nothing is
/// replaced.
bool promises_text(const VocabularyProgram& program, std::string_view text) {
  const text::VocabularySource& source = program.source;
  if (!program.complete || !text::is_utf8(text) || source.model == "bert") return false;
  const bool ordinary = std::all_of(program.types.begin() + 1, program.types.end(),
                                    [](std::int32_t type) { return type == 1 || type == 6; });
  const bool spaced = text.find("\xE2\x96\x81") != std::string_view::npos && source.model != "gpt2";
  const bool removes = source.model == "t5" && *source.remove_extra_spaces;
  const bool strips =
      source.model != "llama" && source.add_space_prefix.value_or(false) && text.starts_with(' ');
  return ordinary && !spaced && !removes && !strips && source.name.empty();
}

void run(Input input) {
  const VocabularyProgram program(input);
  std::optional<text::AnyTokenizer> tokenizer;
  if (!accepted([&] { tokenizer.emplace(text::Vocabulary(program.source)); })) return;
  const std::string_view text = input.rest();
  check_ids(*tokenizer, text, {});
  check_ids(*tokenizer, text, {.add_special = false, .parse_special = true});
  for (text::TokenId id = 0; id < tokenizer->vocabulary().size(); ++id)
    static_cast<void>(tokenizer->piece(id));
  if (!promises_text(program, text)) return;
  const auto ids = tokenizer->encode(text, {.add_special = false});
  require(tokenizer->decode(ids) == text, "a complete vocabulary gives the text back: '" + std::string(text) +
                                              "' became '" + tokenizer->decode(ids) + "'");
}

}  // namespace

MICA_FUZZ_TARGET(tokenizer) {
  run(Input(data, size));
  return 0;
}

}  // namespace mica::fuzz::tokenizer_fuzz
