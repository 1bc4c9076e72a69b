// SPDX-License-Identifier: Apache-2.0
#include "embed_options.hpp"

#include "console.hpp"
#include "input.hpp"
#include "load.hpp"
#include "mica/arch/any_of.hpp"
#include "mica/arch/lists.hpp"
#include "mica/base/assert.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace mica::program {

void EmbedVerb::add_to(Flags& flags, std::string what, std::string meaning) {
  add_model(flags);
  RunningOptions::add_to(flags, "tokens of the longest text; 0: what the model was trained for", "0");
  flags.group("Texts");
  flags.words(words, std::move(what), std::move(meaning));
  flags.text("-f,--file,--lines", lines, "FILE", "texts, one on each line; - is stdin");
  flags.toggle("--truncate", truncate, "cut texts that are too long, instead of refusing them");
  flags.number("--texts", texts, {1, 4096}, "maximum of texts in a step");
}

void EmbedVerb::add_pooling(Flags& flags) {
  flags.choice("--pooling", pooling, {"mean", "cls", "last"}, "NAME",
               "how the states of a text become one row: mean cls last; by default as the file says");
}

void EmbedVerb::add_rows(Flags& flags) {
  flags.group("Embeddings");
  add_pooling(flags);
  flags.number("--dims", dims, {0, 1 << 20}, "first numbers of each embedding; 0: all");
}

Model EmbedVerb::open() const { return open(open_document(*this), 0); }

Model EmbedVerb::open(gguf::Document document, std::size_t tokens) const {
  const arch::Config model = arch::AnyOf<arch::All>::config(document);
  OpenOptions how = open_options(*this);
  if (how.n_ctx == 0) how.n_ctx = std::min<std::size_t>(tokens, model.n_ctx_train);
  return open_model(*this, std::move(document), embedding_options(std::move(how), model, texts));
}

TextEmbedderOptions EmbedVerb::options() const {
  TextEmbedderOptions options;
  options.truncate = truncate;
  options.rows.dims = dims;
  options.rows.texts = texts;
  options.rows.pooling = arch::pooling_named(pooling);
  return options;
}

TextBlocks EmbedVerb::text_blocks() const {
  check_texts(!words.empty() || !lines.empty());
  return {words, lines};
}

std::vector<std::string> EmbedVerb::all_texts() const {
  TextBlocks blocks = text_blocks();
  std::vector<std::string> all;
  for (std::vector<std::string> block = blocks.next(); !block.empty(); block = blocks.next())
    std::move(block.begin(), block.end(), std::back_inserter(all));
  check_texts(!all.empty());
  return all;
}

void EmbedVerb::check_texts(bool any) const {
  MICA_CHECK(any, usage, about.name, ": no texts; give them as words, or with --lines FILE");
}

}  // namespace mica::program
