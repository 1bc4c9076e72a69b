// SPDX-License-Identifier: Apache-2.0
//
// rm: removes models of the cache. Files of other tools in the same repository stay.
#include "console.hpp"
#include "json_text.hpp"
#include "mica/base/assert.hpp"
#include "mica/budget/size.hpp"
#include "mica_tools/hub/cache.hpp"
#include "mica_tools/hub/variant.hpp"
#include "model_name.hpp"
#include "verbs.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace mica::program {
namespace {

class RmVerb final : public Verb {
 public:
  RmVerb()
      : Verb({"rm", "remove models that were downloaded",
              "mica rm hf.co/Qwen/Qwen2.5-0.5B-Instruct-GGUF:Q4_K_M"},
             Needs::name) {}
  int run() override;

 private:
  void declare(Flags& flags) override {
    flags.group("Remove");
    flags.words(words_, "NAME", "models, as mica list shows them");
    flags.toggle("--all", all_, "every model of a repository that is named without a quantisation");
  }
  [[nodiscard]] std::uint64_t remove(const hub::Cache& cache, const std::string& word) const;

  std::vector<std::string> words_;
  bool all_ = false;
};

/// All variants of a repository, of all snapshots.
std::vector<hub::Variant> variants_here(const hub::Cache& cache, const std::string& repo) {
  std::vector<hub::File> files;
  std::set<std::string> seen;
  for (const hub::Snapshot& snapshot : cache.snapshots(repo, "main")) {
    for (const hub::File& file : snapshot.files) {
      if (seen.insert(file.path).second) files.push_back(file);
    }
  }
  return hub::variants_of(files);
}

std::uint64_t RmVerb::remove(const hub::Cache& cache, const std::string& word) const {
  auto name = hub_name_of(word);
  MICA_CHECK(name, usage, escaped(word, 200),
             ": is no model by name; mica list shows those that are here, and rm "
             "removes other files");
  name->repo = cache.spelled(name->repo);
  const std::vector<hub::Variant> variants = variants_here(cache, name->repo);
  std::uint64_t bytes = 0;
  std::vector<hub::Variant> chosen;
  if (!name->quant.empty() || !name->file.empty()) {
    const hub::Variant* const one = hub::find_variant(variants, *name);
    MICA_CHECK(one, file, name->text(), ": is not in ", cache.folder(), "; mica list shows what is there");
    chosen.push_back(*one);
  } else {
    MICA_CHECK(!variants.empty() || cache.unfinished_bytes(name->repo) != 0, file, name->text(),
               ": is not in ", cache.folder(), "; mica list shows what is there");
    MICA_CHECK(variants.size() <= 1 || all_, usage, name->text(), ": is here ", variants.size(),
               " times: ", hub::detail::listed(variants), "; name one as ", name->text(), ":",
               variants.empty() ? "" : variants.back().quant, ", or all with --all");
    chosen = variants;
    bytes += cache.remove_unfinished(name->repo);
  }
  std::set<std::string> paths;
  for (const hub::Variant& variant : chosen) {
    for (const hub::File& file : variant.files) paths.insert(file.path);
  }
  return bytes + cache.remove(name->repo, [&](const std::string& path) { return paths.contains(path); });
}

int RmVerb::run() {
  MICA_CHECK(!words_.empty(), usage, "no model was named; mica list shows those that are here");
  const hub::Cache cache = hub::Cache::of_environment();
  for (const std::string& word : words_) {
    const std::uint64_t bytes = remove(cache, word);
    if (json || jsonl) {
      print(join("{\"name\":", json_string(word), ",\"bytes\":", bytes, "}\n"));
    } else {
      note(*this, join("mica: ", word, ": removed, ", budget::size_text(bytes), " are free"));
    }
  }
  return 0;
}

}  // namespace

AnyVerb make_rm() { return std::make_unique<RmVerb>(); }

}  // namespace mica::program
