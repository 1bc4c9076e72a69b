// SPDX-License-Identifier: Apache-2.0
//
// list: the models of the cache, and those that have a short name.
#include "columns.hpp"
#include "console.hpp"
#include "json_text.hpp"
#include "mica/base/assert.hpp"
#include "mica/budget/size.hpp"
#include "mica_tools/fit/catalogue.hpp"
#include "mica_tools/hub/cache.hpp"
#include "mica_tools/hub/meant.hpp"
#include "mica_tools/hub/unfinished.hpp"
#include "mica_tools/hub/variant.hpp"
#include "safe_text.hpp"
#include "verbs.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace mica::program {
namespace {

class ListVerb final : public Verb {
 public:
  ListVerb()
      : Verb({"list", "the models that are here, or those with a short name", "mica list"}, Needs::name) {}
  int run() override;

 private:
  void declare(Flags& flags) override {
    flags.group("List");
    flags.toggle("--known", known_, "the short names, and the repository of each");
    flags.toggle("--names", names_,
                 "names alone, one a line, of unfinished downloads too: the words that mica rm takes");
  }
  [[nodiscard]] static std::string names_of(const hub::Cache& cache);

  bool known_ = false;
  bool names_ = false;
};

/// A model of the cache.
struct Here {
  std::string name;
  std::string path;
  std::uint64_t bytes = 0;
};

std::vector<Here> models_of(const hub::Cache& cache, const std::string& repo) {
  std::vector<Here> models;
  std::set<std::string> seen;
  for (const hub::Snapshot& snapshot : cache.snapshots(repo, "main")) {
    for (const hub::Variant& variant : hub::variants_of(snapshot.files)) {
      const hub::File& first = variant.files.front();
      if (!first.sha256.empty() && !seen.insert(first.sha256).second) continue;  // of another commit too
      models.push_back({join("hf.co/", repo, ":", variant.quant),
                        cache.path(repo, snapshot.commit, first.path), variant.bytes});
    }
  }
  return models;
}

/// Lines, or objects of JSON, of the downloads of a repository that did not end.
std::string unfinished_text(const hub::Cache& cache, const std::string& repo, bool json) {
  std::string text;
  const std::vector<hub::Unfinished> downloads = hub::unfinished(cache, repo);
  if (downloads.empty()) return text;
  const std::vector<hub::File> files = hub::files_here(cache, repo);
  for (const hub::Unfinished& each : downloads) {
    const hub::Name name = hub::name_of(repo, each, files, downloads);
    const bool is_sum = name.file.empty() && each.sha256.starts_with(name.quant);  // pull does not know it
    text += json ? join(text.empty() ? "" : ",", "{\"name\":", json_string(name.text()),
                        ",\"repo\":", json_string(repo), ",\"bytes\":", each.bytes, ",\"of\":", each.of,
                        ",\"in_progress\":", each.in_progress, "}")
                 : join("unfinished: ", cell_text(name.text()), ", ", each.text(),
                        each.in_progress ? "; a download is in progress\n"
                        : is_sum         ? "; mica rm removes it\n"
                                         : "; mica pull continues, mica rm removes it\n");
  }
  return text;
}

/// Lines of the models of a repository that lack shards.
std::string incomplete_text(const hub::Cache& cache, const std::string& repo) {
  std::string text;
  for (const hub::Snapshot& snapshot : cache.snapshots(repo, "main")) {
    for (const hub::Variant& variant : hub::all_variants_of(snapshot.files)) {
      if (const std::string fault = variant.fault(); !fault.empty())
        text += join("incomplete: hf.co/", cell_text(repo), ":", cell_text(variant.quant), ", ", fault,
                     "; mica pull downloads what is missing, mica rm removes it\n");
    }
  }
  return text;
}

std::string known_text(bool json) {
  std::string text;
  for (const fit::Row& each : fit::catalogue) {
    if (each.gguf.empty()) continue;
    text += json ? join(text.empty() ? "{\"known\":[" : ",", "{\"name\":", json_string(each.name),
                        ",\"repo\":", json_string(each.gguf), "}")
                 : join(at_left(std::string(each.name), 32), "hf.co/", each.gguf, "\n");
  }
  return json ? text + "]}\n" : text;
}

std::string ListVerb::names_of(const hub::Cache& cache) {
  std::set<std::string> names;
  for (const std::string& repo : cache.repositories()) {
    for (const Here& model : models_of(cache, repo)) names.insert(model.name);
    const std::vector<hub::Unfinished> downloads = hub::unfinished(cache, repo);
    const std::vector<hub::File> files = hub::files_here(cache, repo);
    for (const hub::Unfinished& each : downloads)
      names.insert(hub::name_of(repo, each, files, downloads).text());
  }
  std::string text;
  for (const std::string& name : names) text += cell_text(name) + "\n";
  return text;
}

int ListVerb::run() {
  if (known_ && !names_) return print(known_text(json || jsonl)), 0;
  MICA_CHECK(!names_ || (!json && !jsonl && !known_), usage,
             "list: --names is a text of names alone; needed: without --known, --json and --jsonl");
  const hub::Cache cache = hub::Cache::of_environment();
  if (names_) return print(names_of(cache)), 0;
  std::vector<Here> models;
  std::string unfinished;
  for (const std::string& repo : cache.repositories()) {
    for (Here& model : models_of(cache, repo)) models.push_back(std::move(model));
    const std::string more = unfinished_text(cache, repo, json || jsonl);
    unfinished += join((json || jsonl) && !unfinished.empty() && !more.empty() ? "," : "", more);
    if (!json && !jsonl) unfinished += incomplete_text(cache, repo);
  }
  std::string text;
  std::size_t width = 0;
  for (const Here& model : models) width = std::max(width, cell_text(model.name).size());
  for (const Here& model : models) {
    text += json || jsonl ? join(text.empty() ? "" : ",", "{\"name\":", json_string(model.name),
                                 ",\"bytes\":", model.bytes, ",\"path\":", json_string(model.path), "}")
                          : join(at_left(cell_text(model.name), width),
                                 at_right(budget::size_text(model.bytes), 12), "\n");
  }
  if (json || jsonl) {
    print(join("{\"cache\":", json_string(cache.folder()), ",\"models\":[", text, "],\"unfinished\":[",
               unfinished, "]}\n"));
    return 0;
  }
  print(text + unfinished);
  if (models.empty() && unfinished.empty())
    note(*this, join("mica: no models in ", cache.folder(),
                     "; mica pull downloads one, mica list --known has names"));
  return 0;
}

}  // namespace

AnyVerb make_list() { return std::make_unique<ListVerb>(); }

}  // namespace mica::program
