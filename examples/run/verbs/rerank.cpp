// SPDX-License-Identifier: Apache-2.0
//
// Documents in the order of their relevance for a query.
#include "columns.hpp"
#include "console.hpp"
#include "embed_options.hpp"
#include "json_text.hpp"
#include "mica/base/assert.hpp"
#include "mica/runtime/stats.hpp"
#include "mica_tools/json/row_text.hpp"
#include "verbs.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

namespace mica::program {
namespace {

class Rerank final : public EmbedVerb {
 public:
  Rerank()
      : EmbedVerb({"rerank", "documents by their relevance for a query",
                   "mica rerank bge-reranker.gguf -p \"who eats fish\" --lines documents.txt --top 5"}) {}
  int run() override;

 private:
  void declare(Flags& flags) override {
    add_to(flags, "DOCUMENT", "documents");
    flags.text("-p,--query", query_, "TEXT", "the query");
    add_pooling(flags);
    flags.number("--top", top_, {0, 1 << 30}, "maximum of documents that are shown; 0: all");
  }

  std::string query_;
  std::size_t top_ = 0;
};

int Rerank::run() {
  MICA_CHECK(!query_.empty(), usage, "rerank: no query; give it with -p TEXT");
  const std::vector<std::string> documents = all_texts();
  Model model = open();
  TextEmbedderOptions how = options();
  how.rows.cancel = &interrupted();
  TextEmbedder embedder(model, how);
  const Stopwatch watch;
  const std::vector<float> scores = embedder.rank(query_, documents);
  if (interrupted()) throw Stop{130, {}};
  for (std::size_t i = 0; i < scores.size(); ++i)
    MICA_CHECK(std::isfinite(scores[i]), failed, "document ", i + 1, ": the score is not finite");
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  if (top_ != 0 && top_ < order.size()) order.resize(top_);
  std::string rows;
  for (const std::size_t i : order) {
    if (json || jsonl) {
      rows += join(rows.empty() || jsonl ? "" : ",", "{\"index\":", i, ",\"score\":");
      append_numbers(rows, {&scores[i], 1}, ',');
      rows += join(",\"text\":", json_string(documents[i]), jsonl ? "}\n" : "}");
    } else {
      rows += join(at_right(fixed(static_cast<double>(scores[i]), 4), 9), "  ", at_right(join(i + 1), 4),
                   "  ", documents[i], "\n");
    }
  }
  print(json ? join("{\"results\":[", rows, "],\"tokens\":", embedder.ranked_tokens(), "}\n") : rows);
  note(*this, join(documents.size(), " documents, ", embedder.ranked_tokens(), " tokens, ",
                   fixed(static_cast<double>(embedder.ranked_tokens()) / watch.seconds(), 0), " t/s"));
  return 0;
}

}  // namespace

AnyVerb make_rerank() { return std::make_unique<Rerank>(); }

}  // namespace mica::program
