// SPDX-License-Identifier: Apache-2.0
//
// The passages of a folder's texts that are most similar to a query. Embeddings are stored in one file, so
// that the next search embeds the query and the files that have changed.
#include "columns.hpp"
#include "console.hpp"
#include "embed_options.hpp"
#include "input.hpp"
#include "json_text.hpp"
#include "mica/base/assert.hpp"
#include "mica/gguf/fingerprint.hpp"
#include "mica/io/file.hpp"
#include "mica/runtime/stats.hpp"
#include "mica_tools/search/nearest.hpp"
#include "mica_tools/search/update_index.hpp"
#include "progress.hpp"
#include "verbs.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mica::program {
namespace {

constexpr std::size_t usual_passage_tokens = 256;
constexpr std::size_t ranked_passages = 50;  // that a reranker scores

/// A passage that was found.
struct Found {
  float score = 0;
  std::string path;  // with the folder
  search::Passage passage;
  std::string text;
};

/// As --index-type spells it.
std::string type_of(const search::IndexInfo& info) {
  return info.format == format::Q8_0::id ? "q8_0" : "f32";
}

class Search final : public EmbedVerb {
 public:
  Search()
      : EmbedVerb({"search", "passages of a folder's texts that are similar to a query",
                   "mica search all-minilm.gguf notes \"how do I renew my passport\" --context"}) {}
  int run() override;

 private:
  void declare(Flags& flags) override;
  void settle_words();
  /// The index that is there; null: none.
  [[nodiscard]] std::unique_ptr<search::IndexReader> former_index() const;
  /// Takes what no flag says from the index that is there. Raises ErrorCode::usage where that is of another
  /// model.
  void take_from(const search::IndexInfo& former, std::uint64_t model);
  [[nodiscard]] search::IndexInfo info_of(const Model& model, const TextEmbedder& embedder,
                                          std::uint64_t fingerprint) const;
  void check_same(const search::IndexInfo& former, const search::IndexInfo& wanted) const;
  /// False after an interrupt.
  [[nodiscard]] bool update(const search::IndexReader* former, const search::IndexInfo& info,
                            TextEmbedder& embedder) const;
  [[nodiscard]] std::vector<search::Match> matches(const search::IndexReader& index,
                                                   TextEmbedder& embedder) const;
  [[nodiscard]] std::vector<Found> found(const search::IndexReader& index,
                                         std::span<const search::Match> best) const;
  void rank(std::vector<Found>& all) const;
  void show(const std::vector<Found>& all, const search::IndexReader& index) const;

  std::string folder_;
  std::string query_;
  std::string index_;
  std::string index_type_ = "f32";
  bool index_type_given_ = false;
  std::size_t passage_tokens_ = usual_passage_tokens;
  bool passage_tokens_given_ = false;
  std::size_t top_ = 5;
  bool context_ = false;
  bool rebuild_ = false;
  std::string rerank_;  // a file
};

void Search::declare(Flags& flags) {
  add_model(flags);
  RunningOptions::add_to(flags, "tokens of the longest text; 0: 512, or those of a passage if they are more",
                         "0");
  flags.group("Search");
  flags.words(words, "FOLDER QUERY",
              "the folder, then the query; without a query the index is brought up to date");
  flags.text("-p,--query", query_, "TEXT", "the query");
  flags.number("--top", top_, {1, 1 << 20}, "maximum of passages that are shown");
  flags.toggle("--context", context_, "show passages as a whole");
  flags.text("--rerank", rerank_, "FILE",
             join("a reranker, which orders the best ", ranked_passages, " passages"));
  flags.group("Index");
  flags.text("--index", index_, "FILE", "the index; by default .mica-index in the folder");
  flags
      .number("--passage-tokens,--chunk-tokens", passage_tokens_, {8, 1 << 20},
              "maximum of tokens of a passage, or what the model reads if that is less")
      .marks(passage_tokens_given_);
  flags
      .choice("--index-type", index_type_, {"f32", "q8_0"}, "TYPE",
              "numbers of the index: f32, or q8_0: a quarter of the bytes, scores are rounded")
      .marks(index_type_given_);
  flags.toggle("--rebuild", rebuild_, "embed all files, whatever the index has");
  flags.number("--texts", texts, {1, 4096}, "maximum of texts in a step");
  add_rows(flags);
}

void Search::settle_words() {
  MICA_CHECK(!words.empty(), usage, "search: needed: MODEL FOLDER QUERY");
  folder_ = words.front();
  for (std::size_t i = 1; i < words.size(); ++i) query_ += join(query_.empty() ? "" : " ", words[i]);
  if (index_.empty()) index_ = search::path_in(folder_, ".mica-index");
}

std::unique_ptr<search::IndexReader> Search::former_index() const {
  if (!io::exists(index_)) return nullptr;
  if (!rebuild_) return std::make_unique<search::IndexReader>(index_);
  MICA_CHECK(search::is_index(index_), file, index_,
             ": is no index of mica search, and is not replaced by one; name another file with --index");
  return nullptr;
}

void Search::take_from(const search::IndexInfo& former, std::uint64_t model) {
  MICA_CHECK(former.model == model, usage, index_, ": was made with another model, of the family ",
             escaped(former.arch), "; use that one, or --index FILE for a second index, or --rebuild");
  if (!passage_tokens_given_) passage_tokens_ = static_cast<std::size_t>(former.passage_tokens);
  if (!index_type_given_) index_type_ = type_of(former);
  if (pooling.empty()) pooling = former.pooling;
  if (dims == 0) dims = static_cast<std::size_t>(former.width);
}

search::IndexInfo Search::info_of(const Model& model, const TextEmbedder& embedder,
                                  std::uint64_t fingerprint) const {
  const arch::Pooling pooled = options().rows.pooling.value_or(model.config().pooling);
  const std::size_t tokens =
      passage_tokens_given_ ? passage_tokens_ : std::min(passage_tokens_, embedder.max_tokens());
  MICA_CHECK(tokens <= embedder.max_tokens(), usage, "search: passages of ", tokens,
             " tokens; the model reads ", embedder.max_tokens(), " at most");
  return {.model = fingerprint,
          .arch = model.config().arch,
          .pooling = std::string(arch::name(pooled)),
          .prefix = embedder.prefix(TextUse::document),
          .passage_tokens = tokens,
          .width = embedder.width(),
          .format = index_type_ == "q8_0" ? format::Q8_0::id : format::F32::id};
}

void Search::check_same(const search::IndexInfo& former, const search::IndexInfo& wanted) const {
  const auto same = [&](std::string_view what, const auto& has, const auto& now) {
    MICA_CHECK(has == now, usage, index_, ": was made with ", what, " ", escaped(join(has)), ", now it is ",
               escaped(join(now)),
               "; leave the flag out, or use --index FILE for a second index, or --rebuild");
  };
  same("--pooling", former.pooling, wanted.pooling);
  same("the prefix", former.prefix, wanted.prefix);
  same("--passage-tokens", former.passage_tokens, wanted.passage_tokens);
  same("--dims", former.width, wanted.width);
  same("--index-type", type_of(former), type_of(wanted));
}

bool Search::update(const search::IndexReader* former, const search::IndexInfo& info,
                    TextEmbedder& embedder) const {
  std::vector<search::FileState> files = search::find_files(folder_);
  std::error_code unknown;  // then the index is not in the folder
  const std::string own = std::filesystem::weakly_canonical(index_, unknown)
                              .lexically_relative(std::filesystem::weakly_canonical(folder_, unknown))
                              .generic_string();
  std::erase_if(files, [&](const search::FileState& file) { return file.path == own; });
  const search::IndexChanges changes(former, std::move(files));
  if (former != nullptr && !changes.any()) return true;
  const Stopwatch watch;
  std::size_t tokens = 0;
  Progress progress(*this);
  search::Updating with;
  with.count = [&](std::string_view text) { return embedder.count(text, TextUse::document); };
  with.embed = [&](std::span<const std::string> passages) {
    Rows rows = embedder.embed(passages, TextUse::document);
    tokens += rows.all_tokens();
    return std::move(rows.numbers);
  };
  with.proceed = [&](std::uint64_t bytes) {
    progress.update({.what = "embedding", .done = bytes, .all = changes.bytes(), .unit = WorkUnit::bytes});
    return !interrupted();
  };
  std::size_t unread = 0;
  with.unreadable = [&](const std::string& path) {
    if (unread++ == 0)
      note(*this, join("mica: ", escaped(path), ": cannot be read, and is not in the index"));
  };
  search::IndexWriter out(index_, info);
  const bool whole = changes.apply(folder_, with, out);
  if (!whole && rebuild_ && io::exists(index_)) {
    progress.clear();
    note(*this, join("mica: interrupted; ", index_, " stays as it was"));
    return false;
  }
  out.commit();
  progress.clear();
  if (unread > 1) note(*this, join("mica: ", unread, " files cannot be read, and are not in the index"));
  if (!whole) {
    note(*this, join("mica: interrupted; ", out.passages(), " passages are kept in ", index_,
                     " with whole files; the same command continues"));
    return false;
  }
  note(*this, join("mica: ", index_, ": ", changes.changed() - unread, " files embedded, ", changes.kept(),
                   " unchanged; ", tokens, " tokens, ",
                   fixed(static_cast<double>(tokens) / watch.seconds(), 0), " t/s"));
  return true;
}

std::vector<search::Match> Search::matches(const search::IndexReader& index, TextEmbedder& embedder) const {
  const std::size_t tokens = embedder.count(query_, TextUse::query);
  MICA_CHECK(tokens <= embedder.max_tokens(), limit, "the query is too large: it has ", tokens,
             " tokens, and ", embedder.max_tokens(), " are read at most; shorten it");
  const std::vector<std::vector<TokenId>> ids = {embedder.tokens(query_, TextUse::query, "the query")};
  const Rows row = embedder.embed_tokens(ids);
  for (const float x : row.numbers)
    MICA_CHECK(std::isfinite(x), failed, "the embedding of the query has a number that is not finite");
  return search::best_of(search::similarities(index, row[0]),
                         rerank_.empty() ? top_ : std::max(top_, ranked_passages));
}

std::vector<Found> Search::found(const search::IndexReader& index,
                                 std::span<const search::Match> best) const {
  std::vector<std::size_t> begins;  // the first passage of each file
  std::size_t n = 0;
  for (const search::IndexedFile& file : index.files()) {
    begins.push_back(n);
    n += file.passages.size();
  }
  std::vector<Found> all;
  for (const search::Match& match : best) {
    const auto behind = std::upper_bound(begins.begin(), begins.end(), match.passage);
    const auto i = static_cast<std::size_t>(behind - begins.begin()) - 1;
    const search::IndexedFile& file = index.files()[i];
    const search::Passage& passage = file.passages[match.passage - begins[i]];
    const std::string path = search::path_in(folder_, file.state.path);
    const auto text = search::read_text_file(path);
    MICA_CHECK(text && text->size() == file.state.size, file, escaped(path),
               ": changed during the search; search again");
    all.push_back({match.score, std::filesystem::path(path).lexically_normal().string(), passage,
                   text->substr(passage.offset, passage.bytes)});
  }
  return all;
}

void Search::rank(std::vector<Found>& all) const {
  Model model = open(gguf::open(rerank_), std::max(1024u, 2 * static_cast<unsigned>(passage_tokens_)));
  MICA_CHECK(model.config().ranks, usage, rerank_,
             ": is no reranker; --rerank needs a model that scores pairs");
  TextEmbedder ranker(model, {.rows = {.texts = texts}, .truncate = true});
  std::vector<std::string> documents;
  for (const Found& each : all) documents.push_back(each.text);
  const std::vector<float> scores = ranker.rank(query_, documents);
  for (std::size_t i = 0; i < all.size(); ++i) {
    MICA_CHECK(std::isfinite(scores[i]), failed, all[i].path, ": the score is not finite");
    all[i].score = scores[i];
  }
  std::stable_sort(all.begin(), all.end(), [](const Found& a, const Found& b) { return a.score > b.score; });
}

/// The shortest decimal number that reads back as the same float; null when it is not finite.
std::string score_text(float score) { return std::isfinite(score) ? detail::number_text(score) : "null"; }

/// A path may have line ends, which would look like another result; print() shows other control bytes.
std::string on_one_line(std::string path) {
  for (std::size_t at = path.find('\n'); at != path.npos; at = path.find('\n', at))
    path.replace(at, 1, "\\x0a");
  return path;
}

/// The first line of a text, shortened.
std::string first_line(const std::string& text) {
  constexpr std::size_t max = 100;
  const std::string line = text.substr(0, text.find_first_of("\r\n"));
  return line.size() <= max ? line : line.substr(0, detail::cut_before(line, max)) + "...";
}

std::string indented(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out += join("    ", text.substr(0, end), "\n");
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

void Search::show(const std::vector<Found>& all, const search::IndexReader& index) const {
  std::string out;
  for (const Found& each : all) {
    if (json || jsonl) {
      out += join(out.empty() || jsonl ? "" : ",", "{\"score\":", score_text(each.score),
                  ",\"path\":", json_string(each.path), ",\"first_line\":", each.passage.first_line,
                  ",\"last_line\":", each.passage.last_line, ",\"text\":", json_string(each.text),
                  jsonl ? "}\n" : "}");
      continue;
    }
    out += join(at_right(fixed(static_cast<double>(each.score), 4), 7), "  ", on_one_line(each.path), ":",
                each.passage.first_line, "-", each.passage.last_line, "  ", first_line(each.text), "\n");
    if (context_) out += indented(each.text) + "\n";
  }
  print(json ? join("{\"results\":[", out, "],\"files\":", index.files().size(),
                    ",\"passages\":", index.passages(), "}\n")
             : out);
}

int Search::run() {
  settle_words();
  MICA_CHECK(!model_path.empty(), usage, "search: needed: MODEL FOLDER QUERY");
  search::check_folder(folder_);
  std::unique_ptr<search::IndexReader> former = former_index();
  const auto longest = static_cast<std::size_t>(former ? former->info().passage_tokens : 0);
  std::vector<Found> all;
  {
    Model model = open(open_document(*this), std::max({longest, passage_tokens_, std::size_t{512}}));
    MICA_CHECK(!model.config().ranks, usage, model_path,
               ": is a reranker; search needs a model that embeds, and takes a reranker with --rerank");
    const std::uint64_t fingerprint = gguf::fingerprint(model.document());
    if (former) take_from(former->info(), fingerprint);
    TextEmbedderOptions how = options();
    how.truncate = true;  // a passage of one character may be too long
    TextEmbedder embedder(model, how);
    const search::IndexInfo info = info_of(model, embedder, fingerprint);
    if (former) check_same(former->info(), info);
    if (!update(former.get(), info, embedder)) return 130;
    former = std::make_unique<search::IndexReader>(index_);
    if (query_.empty()) return 0;
    all = found(*former, matches(*former, embedder));
  }
  if (!rerank_.empty() && !all.empty()) rank(all);
  if (all.size() > top_) all.resize(top_);
  show(all, *former);
  if (former->passages() == 0) note(*this, join("mica: ", folder_, " has no texts"));
  return 0;
}

}  // namespace

AnyVerb make_search() { return std::make_unique<Search>(); }

}  // namespace mica::program
