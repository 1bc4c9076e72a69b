// SPDX-License-Identifier: Apache-2.0
//
// rm: removes models of the cache. Files of other tools in the same repository stay.
#include "console.hpp"
#include "json_text.hpp"
#include "mica/base/assert.hpp"
#include "mica/budget/size.hpp"
#include "mica_tools/hub/cache.hpp"
#include "mica_tools/hub/meant.hpp"
#include "mica_tools/hub/unfinished.hpp"
#include "mica_tools/hub/variant.hpp"
#include "model_name.hpp"
#include "verbs.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

namespace mica::program {
namespace {

/// The files that a name means.
struct Removal {
  std::string word;  // as it was given
  hub::Name name;
  hub::Meant meant;
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

/// The models of a repository, unfinished ones too, by the names that remove them.
std::vector<std::string> names_here(const std::string& repo, const std::vector<hub::File>& files,
                                    const std::vector<hub::Unfinished>& downloads) {
  std::vector<std::string> names;
  const auto add = [&](const hub::Name& name, bool finished, std::uint64_t bytes) {
    names.push_back(
        join(escaped(name.text(), 300), finished ? " (" : " (unfinished, ", budget::size_text(bytes), ")"));
  };
  const std::vector<hub::Variant> variants = hub::all_variants_of(hub::with_unfinished(files, downloads));
  const auto is_here = [&](const hub::File& part) {
    return std::any_of(files.begin(), files.end(),
                       [&](const hub::File& file) { return file.path == part.path; });
  };
  for (const hub::Variant& variant : variants) {
    const bool is_only = std::count_if(variants.begin(), variants.end(), [&](const hub::Variant& other) {
                           return hub::detail::upper(other.quant) == hub::detail::upper(variant.quant);
                         }) == 1;
    hub::Name name{repo, variant.quant};
    if (!is_only || !hub::is_revision(variant.quant)) name = {repo, {}, variant.path()};
    add(name, std::all_of(variant.files.begin(), variant.files.end(), is_here), variant.bytes);
  }
  for (const hub::Unfinished& each : downloads) {
    const auto has_it = [&](const hub::Variant& variant) { return each.is_of(variant); };
    if (std::none_of(variants.begin(), variants.end(), has_it))
      add(hub::name_of(repo, each, files, downloads), false, each.bytes);
  }
  return names;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += join(text.empty() ? "" : ", ", name);
  return text;
}

[[noreturn]] void refuse_in_progress(const hub::Name& name, const hub::Unfinished& download) {
  raise(ErrorCode::failed, name.text(), ": a download is in progress: ", download.text(),
        "; wait for its end or interrupt it, and remove it then");
}

/// Raises for a name that is not here, that means several models without --all, or of which a download is in
/// progress.
Removal RmVerb::removal_of(const hub::Cache& cache, const std::string& word) const {
  auto name = hub_name_of(word);
  if (!name) {
    std::error_code error;
    raise(std::filesystem::exists(word, error) ? ErrorCode::usage : ErrorCode::file, escaped(word, 200),
          ": is no model by name; mica list shows those that are here, and rm removes other files");
  }
  name->repo = cache.spelled(name->repo);
  const std::vector<hub::File> files = hub::files_here(cache, name->repo);
  const std::vector<hub::Unfinished> downloads = hub::unfinished(cache, name->repo);
  Removal removal{word, *name, {}};
  if (!name->quant.empty() || !name->file.empty()) {
    removal.meant = hub::meant_here(files, downloads, *name);
  } else {
    const std::vector<std::string> names = names_here(name->repo, files, downloads);
    MICA_CHECK(names.size() <= 1 || all_, usage, name->text(), ": has ", names.size(),
               " models here: ", joined(names), "; name one of them, or all with --all");
    for (const hub::Variant& variant : hub::all_variants_of(files)) {
      for (const hub::File& file : variant.files) removal.meant.paths.insert(file.path);
    }
    removal.meant.unfinished = downloads;
  }
  for (const hub::Unfinished& each : removal.meant.unfinished) {
    if (each.in_progress) refuse_in_progress(*name, each);
  }
  MICA_CHECK(!removal.meant.paths.empty() || !removal.meant.unfinished.empty(), file, name->text(),
             ": not found in ", cache.folder(), "; mica list shows what is there");
  return removal;
}

/// Returns the bytes that are freed. Files are first, since a refusal of these removes nothing.
std::uint64_t remove(const hub::Cache& cache, const Removal& removal) {
  const std::string& repo = removal.name.repo;
  std::uint64_t bytes =
      cache.remove(repo, [&](const std::string& path) { return removal.meant.paths.contains(path); });
  for (const hub::Unfinished& each : removal.meant.unfinished) {
    if (!hub::remove_unfinished(cache, repo, each)) refuse_in_progress(removal.name, each);
    bytes += each.bytes;
  }
  cache.remove(repo, [](const std::string&) { return false; });  // folders that became empty
  return bytes;
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
      note(*this,
           join("mica: ", removal.word,
                removal.meant.paths.empty() ? ": unfinished download removed, freed " : ": removed, freed ",
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
