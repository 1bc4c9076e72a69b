// SPDX-License-Identifier: Apache-2.0

#include "mica/text/pretokenize.hpp"

#include "mica/text/detail/expression_text.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace pretokenize_test {

using namespace mica::text;

TEST_CASE("an unknown name is refused with the known ones") {
  try {
    static_cast<void>(pretokenizer_rules("gpt-7\n"));
    FAIL("accepted");
  } catch (const mica::Error& error) {
    CHECK(error.code() == mica::ErrorCode::unsupported);
    const std::string& said = error.message();
    CHECK(said.find("'gpt-7\\x0a'") != std::string::npos);
    for (const char* name : {"llama-bpe", "qwen2", "gpt-2", "tekken", "default"}) {
      CHECK(said.find(name) != std::string::npos);
    }
  }
}

TEST_CASE("every name is listed once and a missing key means the default") {
  std::vector<std::string> seen;
  for (const PretokenizerRules& rules : all_pretokenizer_rules) {
    CHECK_FALSE(rules.expressions.empty());
    std::istringstream names{std::string(rules.names)};
    for (std::string name; names >> name;) {
      CHECK(std::find(seen.begin(), seen.end(), name) == seen.end());
      seen.push_back(name);
      CHECK(&pretokenizer_rules(name) == &rules);
    }
  }
  CHECK(seen.size() > 20);
  CHECK(&pretokenizer_rules("") == &pretokenizer_rules("default"));
  CHECK(find_pretokenizer_rules("gpt-2 phi-2") == nullptr);
  CHECK(find_pretokenizer_rules("gpt") == nullptr);
}

TEST_CASE("white space is written out inside and outside of classes") {
  const std::string space(detail::white_space);
  CHECK(detail::with_unicode_spaces(R"(\s+)") == "[" + space + "]+");
  CHECK(detail::with_unicode_spaces(R"((?!\S))") == "(?![^" + space + "])");
  CHECK(detail::with_unicode_spaces(R"([^\s\p{L}]|\s)") == "[^" + space + R"(\p{L}]|[)" + space + "]");
  CHECK(detail::with_unicode_spaces(R"([\]\s]\[\s)") == R"([\])" + space + R"(]\[[)" + space + "]");
}

TEST_CASE("surrogates become U+FFFD of the same length") {
  CHECK(detail::without_surrogates("a\xED\xA0\x80\xED\x9F\xBFz") == "a\xEF\xBF\xBD\xED\x9F\xBFz");
  CHECK(detail::without_surrogates("\xED\xBF\xBF") == replacement_character);
}

#if defined(MICA_HAS_TEXT)

namespace {

using Words = std::vector<std::string>;

Words words(std::string_view name, std::string_view text) {
  const Pretokenizer pretokenizer(pretokenizer_rules(name));
  Words out;
  pretokenizer.split(text, [&](std::string_view word) { out.emplace_back(word); });
  return out;
}

}  // namespace

TEST_CASE("all rules compile, and the words of a text are together the text") {
  const std::string text =
      "The year 2024's  end,\r\n\r\n\tI'LL say: naïve 漢字かな \u1F18\u03B5 \U0001F600\u200D\u2028x\u00A0y "
      "한국어 \u0645\u0631 1234567 __init__(self)\u0301 \x7F ... \n ";
  for (const PretokenizerRules& rules : all_pretokenizer_rules) {
    const Pretokenizer pretokenizer(rules);
    std::string joined;
    std::size_t count = 0;
    pretokenizer.split(text, [&](std::string_view word) {
      CHECK_FALSE(word.empty());
      joined += word;
      ++count;
    });
    CAPTURE(rules.names);
    CHECK(joined == text);
    CHECK(count > 10);
  }
}

TEST_CASE("GPT-2 keeps digits together and a space with its word") {
  CHECK(words("gpt-2", "it's 1234  x") == Words{"it", "'s", " 1234", " ", " x"});
  CHECK(words("gpt-2", "IT'S") == Words{"IT", "'", "S"});
  CHECK(words("gpt-2", "") == Words{});
}

TEST_CASE("Llama 3 cuts digits by three and Qwen 2 one by one") {
  CHECK(words("llama-bpe", "IT'S 12345") == Words{"IT", "'S", " ", "123", "45"});
  CHECK(words("qwen2", "IT'S 123") == Words{"IT", "'S", " ", "1", "2", "3"});
  CHECK(words("llama-bpe", "a\n\n  b!\n") == Words{"a", "\n\n", " ", " b", "!\n"});
}

TEST_CASE("Qwen 3.5 keeps combining marks with their letters") {
  CHECK(words("qwen35", "e\u0301a") == Words{"e\u0301a"});
  CHECK(words("qwen2", "e\u0301a") == Words{"e", "\u0301a"});
}

TEST_CASE("GPT-4o and Tekken cut where a capital follows a small letter") {
  CHECK(words("gpt-4o", "HelloWorld's FOObar") == Words{"Hello", "World's", " FOObar"});
  CHECK(words("tekken", "HelloWorld's 12") == Words{"Hello", "World", "'s", " ", "1", "2"});
}

TEST_CASE("several rules work one inside the other") {
  CHECK(words("starcoder", "ab12 c") == Words{"ab", "1", "2", " c"});
  CHECK(words("falcon", "x=12345") == Words{"x", "=", "123", "45"});
  CHECK(words("deepseek-coder", "a\nb 漢字9") == Words{"a", "\n", "b", " ", "漢字", "9"});
  CHECK(words("deepseek-llm", "one \n12") == Words{"one", " ", "\n", "12"});
  CHECK(words("deepseek-v3", "漢字kana12345") == Words{"漢字", "kana", "123", "45"});
}

TEST_CASE("white space of Unicode separates words, and U+180E does not") {
  CHECK(words("llama-bpe", "a\u0085\u0085b") == Words{"a", "\u0085", "\u0085b"});
  CHECK(words("gpt-2", "a\u3000\u3000b") == Words{"a", "\u3000", "\u3000", "b"});
  CHECK(words("gpt-2", "a\u180Eb") == Words{"a", "\u180E", "b"});
}

TEST_CASE("surrogates in the text come out as they went in") {
  CHECK(words("gpt-2", "\xED\xA0\x80 x") == Words{"\xED\xA0\x80", " x"});
}

TEST_CASE("long runs of one class take no stack, and no square of their length before something else") {
  const std::size_t n = 300'000;
  for (const PretokenizerRules& rules : all_pretokenizer_rules) {
    const Pretokenizer pretokenizer(rules);
    for (const char* run : {"a", "A", "7", " ", "\n", "<", "'", "\u00A0", "\u0301", "\u6F22"}) {
      std::string text;
      while (text.size() < n) text += run;
      for (const char* after : {"", "z", "\u6F22", " 1"}) {
        const std::string whole = text + after;
        std::size_t bytes = 0;
        pretokenizer.split(whole, [&](std::string_view word) { bytes += word.size(); });
        CHECK(bytes == whole.size());
      }
    }
  }
}

#endif

}  // namespace pretokenize_test
