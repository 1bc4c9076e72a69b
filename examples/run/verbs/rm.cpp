// SPDX-License-Identifier: Apache-2.0
//
// rm: removes models of the cache. Files of other tools in the same repository stay.
#include "console.hpp"
#include "json_text.hpp"
#include "mica/base/assert.hpp"
#include "mica/budget/size.hpp"
#include "mica_tools/hub/cache.hpp"
#include "mica_tools/hub/unfinished.hpp"
#include "mica_tools/hub/variant.hpp"
#include "model_name.hpp"
#include "verbs.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace mica::program {
namespace {

/// The files that a name means.
struct Removal {
  std::string word;  // as it was given
  hub::Name name;
  std::set<std::string> paths;  // in all snapshots
  std::vector<hub::Unfinished> unfinished;
};

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
  [[nodiscard]] Removal removal_of(const hub::Cache& cache, const std::string& word) const;

  std::vector<std::string> words_;
  bool all_ = false;
};

/// The files of a repository, of all snapshots.
std::vector<hub::File> files_here(const hub::Cache& cache, const std::string& repo) {
  std::vector<hub::File> files;
  std::set<std::string> seen;
  for (const hub::Snapshot& snapshot : cache.snapshots(repo, "main")) {
    for (const hub::File& file : snapshot.files) {
      if (seen.insert(file.path).second) files.push_back(file);
    }
  }
  return files;
}

[[noreturn]] void refuse_in_progress(const hub::Name& name, const hub::Unfinished& download) {
  raise(ErrorCode::failed, name.text(), ": a download is in progress: ", download.text(),
        "; wait for its end or interrupt it, and remove it then");
}

/// Raises for a name that is not here, that means several models without --all, or of which a download is in
/// progress.
Removal RmVerb::removal_of(const hub::Cache& cache, const std::string& word) const {
  auto name = hub_name_of(word);
  MICA_CHECK(name, usage, escaped(word, 200),
             ": is no model by name; mica list shows those that are here, and rm "
             "removes other files");
  name->repo = cache.spelled(name->repo);
  Removal removal{word, *name, {}, {}};
  const std::vector<hub::File> files = files_here(cache, name->repo);
  const std::vector<hub::Variant> variants = hub::all_variants_of(files);
  std::vector<hub::Unfinished> downloads = hub::unfinished(cache, name->repo);
  const bool means_one = !name->quant.empty() || !name->file.empty();
  MICA_CHECK(means_one || variants.size() <= 1 || all_, usage, name->text(), ": has ", variants.size(),
             " quantisations here: ", hub::detail::listed(variants), "; name one as ", name->text(), ":",
             variants.back().quant, ", or all with --all");
  const auto one = means_one ? hub::find_variant_here(files, downloads, *name) : std::nullopt;
  for (const hub::Variant& variant : variants) {
    if (means_one && !(one && hub::detail::is_shard_of(variant.path(), *one))) continue;
    for (const hub::File& file : variant.files) removal.paths.insert(file.path);
  }
  for (hub::Unfinished& each : downloads) {
    if (means_one && !(one && each.is_of(*one))) continue;
    if (each.in_progress) refuse_in_progress(*name, each);
    removal.unfinished.push_back(std::move(each));
  }
  MICA_CHECK(!removal.paths.empty() || !removal.unfinished.empty(), file, name->text(), ": not found in ",
             cache.folder(), "; mica list shows what is there");
  return removal;
}

/// Returns the bytes that are freed.
std::uint64_t remove(const hub::Cache& cache, const Removal& removal) {
  std::uint64_t bytes = 0;
  for (const hub::Unfinished& each : removal.unfinished) {
    if (!hub::remove_unfinished(cache, removal.name.repo, each)) refuse_in_progress(removal.name, each);
    bytes += each.bytes;
  }
  return bytes + cache.remove(removal.name.repo,
                              [&](const std::string& path) { return removal.paths.contains(path); });
}

/// All names are checked before the first file is removed.
int RmVerb::run() {
  MICA_CHECK(!words_.empty(), usage, "no model was named; mica list shows those that are here");
  const hub::Cache cache = hub::Cache::of_environment();
  std::vector<Removal> removals;
  std::optional<Error> refusal;
  std::string refusals;
  for (const std::string& word : words_) {
    try {
      removals.push_back(removal_of(cache, word));
    } catch (const Error& error) {
      if (!refusal) refusal = error;
      refusals += join(error.message(), ". ");
    }
  }
  if (refusal && words_.size() == 1) throw *refusal;
  if (refusal) raise(refusal->code(), refusals, "Nothing was removed");
  std::uint64_t all = 0;
  for (const Removal& removal : removals) {
    const std::uint64_t bytes = remove(cache, removal);
    all += bytes;
    if (json || jsonl) {
      print(join("{\"name\":", json_string(removal.word), ",\"bytes\":", bytes, "}\n"));
    } else {
      note(*this, join("mica: ", removal.word,
                       removal.paths.empty() ? ": unfinished download removed, freed " : ": removed, freed ",
                       budget::size_text(bytes)));
    }
  }
  if (removals.size() > 1)
    note(*this, join("mica: ", removals.size(), " models removed, freed ", budget::size_text(all)));
  return 0;
}

}  // namespace

AnyVerb make_rm() { return std::make_unique<RmVerb>(); }

}  // namespace mica::program
