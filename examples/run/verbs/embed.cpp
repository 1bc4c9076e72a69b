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

/// Texts whose rows are in memory at one time.
constexpr std::size_t texts_of_block = 256;

/// The object of --json: what stands before the rows, and a block of them; `first`: texts before the block.
std::string json_head(const Model& model, std::size_t width, std::size_t tokens) {
  return join("{\"model\":", json_string(model.config().name), ",\"dims\":", width, ",\"tokens\":", tokens,
              ",\"embeddings\":[");
}
std::string json_of(const Rows& rows, std::size_t first) {
  std::string out;
  for (std::size_t i = 0; i < rows.tokens.size(); ++i) {
    if (first + i != 0) out += ',';
    append_row(out, rows[i]);
  }
  return out;
}

std::string jsonl_of(const Rows& rows, std::size_t first) {
  std::string out;
  for (std::size_t i = 0; i < rows.tokens.size(); ++i) {
    out += join("{\"index\":", first + i, ",\"tokens\":", rows.tokens[i], ",\"embedding\":");
    append_row(out, rows[i]);
    out += "}\n";
  }
  return out;
}

std::string text_of(const Rows& rows) {
  std::string out;
  for (std::size_t i = 0; i < rows.tokens.size(); ++i) {
    append_numbers(out, rows[i], ' ');
    out += '\n';
  }
  return out;
}

/// All texts are read before the first row is written, so that one that is too long costs nothing.
int Embed::run() {
  refuse_own_input(npy_, {lines});
  std::vector<std::string> given = all_texts();
  std::optional<io::AtomicFile> file;
  if (!npy_.empty()) file.emplace(npy_);
  Model model = open();
  TextEmbedderOptions how = options();
  how.rows.normalize = normalize_;
  how.rows.cancel = &interrupted();
  TextEmbedder embedder(model, how);
  const Stopwatch watch;
  const std::vector<std::vector<TokenId>> ids = embedder.tokens_of(given, use_);
  given = {};
  const std::size_t n = ids.size();
  std::size_t tokens = 0;
  for (const std::vector<TokenId>& text : ids) tokens += text.size();
  if (file) file->write(npy_header(n, embedder.width()));
  if (!file && json) print(json_head(model, embedder.width(), tokens));
  for (std::size_t first = 0; first < n; first += texts_of_block) {
    const Rows rows =
        embedder.embed_tokens(std::span(ids).subspan(first, std::min(texts_of_block, n - first)));
    if (interrupted()) throw Stop{130, {}};
    for (std::size_t i = 0; i < rows.tokens.size(); ++i) {
      for (const float x : rows[i])
        MICA_CHECK(std::isfinite(x), failed, "text ", first + i + 1,
                   ": the embedding has a number that is not finite");
    }
    if (file) {
      file->write(bytes_of(rows.numbers.data(), rows.numbers.size()));
    } else {
      print(json ? json_of(rows, first) : jsonl ? jsonl_of(rows, first) : text_of(rows));
    }
  }
  if (file) file->commit();
  if (!file && json) print("]}\n");
  note(*this, join(n, n == 1 ? " text, " : " texts, ", tokens, " tokens, ",
                   fixed(static_cast<double>(tokens) / watch.seconds(), 0), " t/s"));
  return 0;
}

}  // namespace

AnyVerb make_embed() { return std::make_unique<Embed>(); }

}  // namespace mica::program
