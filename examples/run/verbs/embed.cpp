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

#include <bit>
#include <cmath>
#include <string>

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

void write_npy(const std::string& path, const Rows& rows) {
  io::AtomicFile file(path);
  const std::string header = npy_header(rows.tokens.size(), rows.width);
  file.write(header);
  file.write(bytes_of(rows.numbers.data(), rows.numbers.size()));
  file.commit();
}

std::string json_of(const Model& model, const Rows& rows) {
  std::string out = join("{\"model\":", json_string(model.config().name), ",\"dims\":", rows.width,
                         ",\"tokens\":", rows.all_tokens(), ",\"embeddings\":[");
  for (std::size_t i = 0; i < rows.tokens.size(); ++i) {
    if (i != 0) out += ',';
    append_row(out, rows[i]);
  }
  return out + "]}\n";
}

std::string jsonl_of(const Rows& rows) {
  std::string out;
  for (std::size_t i = 0; i < rows.tokens.size(); ++i) {
    out += join("{\"index\":", i, ",\"tokens\":", rows.tokens[i], ",\"embedding\":");
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

int Embed::run() {
  refuse_own_input(npy_, {lines});
  const std::vector<std::string> given = all_texts();
  Model model = open();
  TextEmbedderOptions how = options();
  how.rows.normalize = normalize_;
  TextEmbedder embedder(model, how);
  const Stopwatch watch;
  const Rows rows = embedder.embed(given, use_);
  for (std::size_t i = 0; i < rows.tokens.size(); ++i) {
    for (const float x : rows[i])
      MICA_CHECK(std::isfinite(x), failed, "text ", i + 1, ": the embedding has a number that is not finite");
  }
  if (!npy_.empty()) {
    write_npy(npy_, rows);
  } else {
    print(json ? json_of(model, rows) : jsonl ? jsonl_of(rows) : text_of(rows));
  }
  note(*this, join(given.size(), given.size() == 1 ? " text, " : " texts, ", rows.all_tokens(), " tokens, ",
                   fixed(static_cast<double>(rows.all_tokens()) / watch.seconds(), 0), " t/s"));
  return 0;
}

}  // namespace

AnyVerb make_embed() { return std::make_unique<Embed>(); }

}  // namespace mica::program
