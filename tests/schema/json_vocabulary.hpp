// SPDX-License-Identifier: Apache-2.0
//
// A small vocabulary for JSON: all bytes, pieces that cross the borders of its tokens, halves of
// characters, and parts of given texts, cut anywhere.
#pragma once

#include "mica/base/rng.hpp"
#include "mica/constraint/token_trie.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::test {

/// The last token ends a text. parts: of the texts, with fewer than most + 2 bytes, every eighth with more.
inline std::shared_ptr<const constraint::TokenTrie> json_vocabulary(const std::vector<std::string>& texts,
                                                                    CounterRng& rng, int parts = 200,
                                                                    std::uint64_t most = 8) {
  constexpr std::string_view pieces =
      R"({" {} [] [[ [{ ": ":" ":[ ":{ "," "} "] }, ], }} ]] },{" ," "" \n \" \u \u00 \uD83D 00 10 123 -1 .5 )"
      R"(0. e1 E+ 1e5 true fal se, nul null null} the and a ab name value -01- T00: 00Z @x. :// é 日本 語" )"
      ".é 1, 12345678901234567890 \xC3 \xA9 \xA9. \xF0\x9F \x98\x80 ";
  std::set<std::string> all = {" ", "  ", " the", "and ", ", ", ": "};
  for (std::size_t at = 0, end; (end = pieces.find(' ', at)) != std::string_view::npos; at = end + 1)
    all.emplace(pieces.substr(at, end - at));
  for (int byte = 0; byte < 256; ++byte) all.emplace(1, static_cast<char>(byte));
  for (int i = 0; i < parts && !texts.empty(); ++i) {
    const std::string& text = texts[rng.next() % texts.size()];
    if (!text.empty())
      all.insert(text.substr(rng.next() % text.size(), 2 + rng.next() % (i % 8 == 0 ? 40 : most)));
  }
  std::vector<constraint::TokenBytes> tokens;
  for (const std::string& text : all) tokens.push_back({static_cast<TokenId>(tokens.size()), text});
  const auto end = static_cast<TokenId>(tokens.size());
  tokens.push_back({end, constraint::TokenTrie::special_text(end)});
  return std::make_shared<const constraint::TokenTrie>(std::move(tokens), end + 1, std::vector{end}, end);
}

}  // namespace mica::test
