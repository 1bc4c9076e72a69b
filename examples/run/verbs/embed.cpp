// SPDX-License-Identifier: Apache-2.0
//
// Embeddings of texts: a line of numbers for each, JSON, or a NumPy file.
#include "console.hpp"
#include "embed_options.hpp"
#include "json_text.hpp"
#include "mica/base/assert.hpp"
#include "mica/base/bytes.hpp"
#include "mica/io/atomic_file.hpp"
#include "mica/runtime/stats.hpp"
#include "mica_tools/json/row_text.hpp"
#include "verbs.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mica::program {
namespace {

using Ids = std::vector<std::vector<TokenId>>;  // of some texts

/// The number of texts and of their tokens.
struct Size {
  std::size_t texts = 0;
  std::size_t tokens = 0;
};

class Embed final : public EmbedVerb {
 public:
  Embed()
      : EmbedVerb({"embed", "texts to rows of numbers that can be compared",
                   "mica embed all-minilm.gguf --lines texts.txt --npy rows.npy"}) {}
  int run() override;

 private:
  void declare(Flags& flags) override {
    add_to(flags, "TEXT", "texts");
    add_rows(flags);
    flags.toggle("--normalize,!--no-normalize", normalize_, "bring embeddings to the length 1");
    flags.choice("--use", use_,
                 {{"any", TextUse::any}, {"query", TextUse::query}, {"document", TextUse::document}}, "any",
                 "NAME", "the prefix that the model was trained with: any (none) query document");
    flags.text("--npy", npy_, "FILE", "write a NumPy file, float32 (texts, numbers), instead of stdout");
  }

  [[nodiscard]] Size count(TextBlocks& blocks, const TextEmbedder& embedder) const;
  [[nodiscard]] Ids next_ids(TextBlocks& blocks, const TextEmbedder& embedder, std::size_t first) const;

  bool normalize_ = true;
  TextUse use_ = TextUse::any;
  std::string npy_;
};

/// The header of a file of the NumPy format, version 1.0, for float32 in rows: a multiple of 64 bytes.
std::string npy_header(std::size_t rows, std::size_t cols) {
  static_assert(std::endian::native == std::endian::little, "the header says little endian");
  std::string words = join("{'descr': '<f4', 'fortran_order': False, 'shape': (", rows, ", ", cols, "), }");
  words.append(64 - (10 + words.size() + 1) % 64, ' ').push_back('\n');
  const auto n = static_cast<unsigned>(words.size());
  std::string out("\x93NUMPY\x01\x00", 8);
  out.push_back(static_cast<char>(n & 0xFF));
  out.push_back(static_cast<char>(n >> 8));
  return out + words;
}

/// The object of --json before its rows.
std::string json_head(const Model& model, std::size_t width, std::size_t tokens) {
  return join("{\"model\":", json_string(model.config().name), ",\"dims\":", width, ",\"tokens\":", tokens,
              ",\"embeddings\":[");
}

/// A row as a line of --jsonl; index: of its text.
std::string jsonl_of(std::span<const float> row, std::size_t index, std::size_t tokens) {
  std::string out = join("{\"index\":", index, ",\"tokens\":", tokens, ",\"embedding\":");
  append_row(out, row);
  return out + "}\n";
}

/// The same as an element of the list of --json.
std::string json_of(std::span<const float> row, std::size_t index) {
  std::string out = index == 0 ? "" : ",";
  append_row(out, row);
  return out;
}

std::string line_of(std::span<const float> row) {
  std::string out;
  append_numbers(out, row, ' ');
  return out + '\n';
}

int Embed::run() {
  refuse_own_input(npy_, {lines});
  TextBlocks blocks = text_blocks();
  std::optional<io::AtomicFile> file;
  if (!npy_.empty()) file.emplace(npy_);
  Model model = open();
  TextEmbedderOptions how = options();
  how.rows.normalize = normalize_;
  how.rows.cancel = &interrupted();
  TextEmbedder embedder(model, how);
  const Stopwatch watch;
  const Size all = count(blocks, embedder);
  if (file) file->write(npy_header(all.texts, embedder.width()));
  if (!file && json) print(json_head(model, embedder.width(), all.tokens));
  std::size_t done = 0;
  for (Ids ids = next_ids(blocks, embedder, done); !ids.empty(); ids = next_ids(blocks, embedder, done)) {
    const Rows rows = embedder.embed_tokens(ids);
    if (interrupted()) throw Stop{130, {}};
    if (file) file->write(bytes_of(rows.numbers.data(), rows.numbers.size()));
    for (std::size_t i = 0; i < ids.size(); ++i, ++done) {
      for (const float x : rows[i])
        MICA_CHECK(std::isfinite(x), failed, "text ", done + 1,
                   ": the embedding has a number that is not finite");
      if (file) continue;
      print(json    ? json_of(rows[i], done)
            : jsonl ? jsonl_of(rows[i], done, rows.tokens[i])
                    : line_of(rows[i]));
    }
  }
  MICA_CHECK(done == all.texts, failed, lines, ": changed while it was read");
  if (file) file->commit();
  if (!file && json) print("]}\n");
  note(*this, join(done, done == 1 ? " text, " : " texts, ", all.tokens, " tokens, ",
                   fixed(static_cast<double>(all.tokens) / watch.seconds(), 0), " t/s"));
  return 0;
}

/// One pass over all texts before the first row is written, so that one that is too long costs nothing.
Size Embed::count(TextBlocks& blocks, const TextEmbedder& embedder) const {
  Size all;
  for (Ids ids = next_ids(blocks, embedder, 0); !ids.empty(); ids = next_ids(blocks, embedder, all.texts)) {
    all.texts += ids.size();
    for (const std::vector<TokenId>& text : ids) all.tokens += text.size();
  }
  check_texts(all.texts != 0);
  return all;
}

/// The tokens of the next block; first: texts before it.
Ids Embed::next_ids(TextBlocks& blocks, const TextEmbedder& embedder, std::size_t first) const {
  if (interrupted()) throw Stop{130, {}};
  return embedder.tokens_of(blocks.next(), use_, first);
}

}  // namespace

AnyVerb make_embed() { return std::make_unique<Embed>(); }

}  // namespace mica::program
