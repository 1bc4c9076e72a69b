// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/embed/text_tokens.hpp"

#include "io/temporary_folder.hpp"
#include "mica/gguf/reader.hpp"
#include "mica_tools/write/gguf_writer.hpp"
#include "text/small_vocabulary.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

namespace mica::test::text_tokens_test {
namespace {

/// A token for each byte, one for the end of a template, and a template of pairs.
struct Pairs {
  static constexpr std::size_t max_tokens = 12;

  text::AnyTokenizer tokenizer;
  std::vector<std::byte> file;
  gguf::Document document;
  TextTokens tokens;

  Pairs()
      : tokenizer(vocabulary()),
        file(with_template()),
        document(gguf::parse(file, "pairs.gguf")),
        tokens(tokenizer, document.metadata(), max_tokens) {}

  static text::Vocabulary vocabulary() {
    SmallVocabulary small("llama");
    small.add("<unk>", text::TokenType::unknown);
    small.add("<end>", text::TokenType::control);
    small.add_bytes();
    small.source().unknown = 0;
    small.source().add_bos = false;
    small.source().add_space_prefix = false;
    return small.build();
  }
  static std::vector<std::byte> with_template() {
    gguf::Writer out;
    out.set(rerank_template_key, std::string_view("{query}|{document}!<end>"));
    return out.bytes();
  }
  [[nodiscard]] std::string pair(std::string_view query, std::string_view document_text) const {
    std::string out;
    for (const TokenId id : tokens.of_pair(query, document_text, true, "document 1"))
      out += id == 1 ? "<end>" : std::string(1, static_cast<char>(id - 2));
    return out;
  }
};

}  // namespace

TEST_CASE("a document that is too long for its template loses its last characters, the template none") {
  const Pairs pairs;
  CHECK(pairs.pair("cat", "a-dog") == "cat|a-dog!<end>");
  CHECK(pairs.pair("cat", "a-dog!") == "cat|a-dog!!<end>");
  CHECK(pairs.pair("cat", "a-dog-and-a-fish") == "cat|a-dog-!<end>");
  CHECK(pairs.pair("cat", "ab\xC3\xA4\xC3\xB6\xC3\xBC") == "cat|ab\xC3\xA4\xC3\xB6!<end>");
  CHECK(pairs.pair("cat", "abc\xC3\xA4\xC3\xB6\xC3\xBC") == "cat|abc\xC3\xA4!<end>");
  CHECK(pairs.pair("nine-long", "a-dog") == "nine-long|!<end>");
  CHECK(pairs.pair("cat<end>", "") == "cat<end>|!<end>");
  CHECK(mentions(refusal([&] { return pairs.pair("a-query-without-an-end", "a"); }),
                 "the query has too many tokens", "document 1", "at most 12"));
  const auto whole = [&] { return pairs.tokens.of_pair("cat", "a-dog-and-a-fish", false, "document 1"); };
  CHECK(mentions(refusal(whole), "document 1 is too large"));
}

}  // namespace mica::test::text_tokens_test
