// SPDX-License-Identifier: Apache-2.0
//
// Prints the tokens of each line of the standard input, for hf_tokenizers.py: `encode_lines FOLDER ROWS
// [plain]` converts the tokenizer of a model folder, writes it as GGUF in memory and reads it back. In a line
// \n, \r and \\ are characters, and \p stands between the two texts of a pair. Special tokens in a text are
// found unless it is plain.

#include "mica/gguf/reader.hpp"
#include "mica/text/token_pair.hpp"
#include "mica/text/tokenizer.hpp"
#include "mica/text/vocabulary_gguf.hpp"
#include "mica_tools/convert/tokenizer/read_vocabulary.hpp"
#include "mica_tools/write/gguf_writer.hpp"

#include <cstdint>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

namespace {

using namespace mica;

text::AnyTokenizer tokenizer_of(const std::string& folder, std::uint64_t n_vocab) {
  const convert::Config config(convert::Json::object(), "config.json");
  gguf::Writer out;
  write_vocabulary(convert::read_vocabulary(folder, config, n_vocab, ""), out);
  const std::vector<std::byte> bytes = out.bytes();
  return text::make_tokenizer(text::vocabulary_from(gguf::parse(bytes, folder).metadata()));
}

/// The texts of a line.
std::vector<std::string> texts_of(const std::string& line) {
  std::vector<std::string> texts(1);
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c != '\\' || i + 1 == line.size()) {
      texts.back() += c;
      continue;
    }
    const char next = line[++i];
    if (next == 'p') {
      texts.emplace_back();
    } else {
      texts.back() += next == 'n' ? '\n' : next == 'r' ? '\r' : next;
    }
  }
  return texts;
}

int run(const std::string& folder, std::uint64_t n_vocab, bool plain) {
  const text::AnyTokenizer tokenizer = tokenizer_of(folder, n_vocab);
  std::ios::sync_with_stdio(false);
  for (std::string line; std::getline(std::cin, line);) {
    const std::vector<std::string> texts = texts_of(line);
    const std::vector<TokenId> ids = texts.size() == 2
                                         ? text::encode_pair(tokenizer, texts[0], texts[1]).ids
                                         : tokenizer.encode(texts[0], {.parse_special = !plain});
    for (const TokenId id : ids) std::cout << id << ' ';
    std::cout << '\n';
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) return 2;
  return run(argv[1], std::stoull(argv[2]), argc > 3);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
