// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as the replacements of SentencePiece (after their length, 16 bits), and a text to replace in: a
// Unigram with a token for each byte gives valid UTF-8 back, within the length that the replacements allow.

#include "fuzz/input.hpp"
#include "mica/text/detail/pcre2.hpp"
#include "mica/text/tokenizer.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace mica::fuzz::charsmap_fuzz {
namespace {

void check(std::string_view charsmap, std::string_view text) {
  const text::detail::Charsmap map(charsmap);
  std::size_t longest = 3;  // U+FFFD
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto match = map.longest(text.substr(at));
    require(match.bytes <= text.size() - at && match.text.size() <= text::detail::Charsmap::max_text_bytes,
            "a match is within its text");
    longest = std::max(longest, match.text.size());
  }
  std::vector<std::string> bytes;
  std::vector<std::int32_t> types(256, 6);
  for (unsigned byte = 0; byte < 256; ++byte) {
    char spelled[8];
    std::snprintf(spelled, sizeof spelled, "<0x%02X>", byte);
    bytes.emplace_back(spelled);
  }
  const std::vector<std::string_view> tokens(bytes.begin(), bytes.end());
  text::VocabularySource source;
  source.model = "t5";
  source.tokens = {tokens.data(), tokens.size()};
  source.types = {types.data(), types.size()};
  source.charsmap = charsmap;
  const text::AnyTokenizer tokenizer{text::Vocabulary(source)};
  const auto ids = tokenizer.encode(text, {.add_special = false});
  require(ids.size() <= 3 * longest * text.size(),
          "replacements have a length");  // a space takes three bytes
  require(text::is_utf8(tokenizer.decode(ids)), "replaced text is UTF-8");
}

}  // namespace

MICA_FUZZ_TARGET(charsmap) {
  Input input(data, size);
  const auto charsmap = input.text(input.number<std::uint16_t>());
  accepted([&] { check(charsmap, input.rest()); });
  return 0;
}

}  // namespace mica::fuzz::charsmap_fuzz
