// SPDX-License-Identifier: Apache-2.0
//
// The flags and the input of verbs that embed texts.
#pragma once

#include "mica_tools/embed/text_embedder.hpp"
#include "running_options.hpp"
#include "text_blocks.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mica::program {

class EmbedVerb : public RunningVerb {
 public:
  using RunningVerb::RunningVerb;

  std::vector<std::string> words;
  std::string lines;     // a file with a text on each line; -: stdin
  std::string pooling;   // empty: as the file says
  std::size_t dims = 0;  // 0: all
  std::size_t texts = 64;
  bool truncate = false;

 protected:
  /// what: the words, "TEXT"; meaning: what help says of them.
  void add_to(Flags& flags, std::string what, std::string meaning);
  void add_pooling(Flags& flags);
  /// Pooling and dims.
  void add_rows(Flags& flags);

  /// The model, with steps that hold whole texts.
  [[nodiscard]] Model open() const;
  /// The same of a document. tokens: of the longest text without -c; 0: those that it was trained for.
  [[nodiscard]] Model open(gguf::Document document, std::size_t tokens) const;
  [[nodiscard]] TextEmbedderOptions options() const;
  /// The words and the lines, in this order. Raises ErrorCode::usage where neither was given, and what
  /// TextBlocks raises.
  [[nodiscard]] TextBlocks text_blocks() const;
  /// The same at once. Raises ErrorCode::usage where there are none.
  [[nodiscard]] std::vector<std::string> all_texts() const;
  /// Raises ErrorCode::usage unless there are any.
  void check_texts(bool any) const;
};

}  // namespace mica::program
