// SPDX-License-Identifier: Apache-2.0
#include "model_name.hpp"

#include "answer_options.hpp"
#include "budgeted.hpp"
#include "child.hpp"
#include "console.hpp"
#include "download_progress.hpp"
#include "mica/budget/limits.hpp"
#include "mica/budget/size.hpp"
#include "mica_tools/fit/candidate.hpp"
#include "mica_tools/fit/select.hpp"
#include "mica_tools/hub/choice.hpp"
#include "mica_tools/hub/published.hpp"
#include "mica_tools/hub/resolve_url.hpp"
#include "model_folder.hpp"
#include "remote.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <span>
#include <system_error>
#include <utility>

namespace mica::program {
namespace {

using Opener = std::function<gguf::Document(const hub::Variant&)>;

/// The index of the variant that a name means, by the rules of mica fit where it has no quantisation; empty when
/// there is none. A model of an architecture that cannot be planned is the reference.
std::optional<std::size_t> chosen_of(const Verb& verb, std::span<const hub::Variant> variants,
                                     const hub::Name& name, const Wish& wish, const Opener& header_of) {
  if (const hub::Variant* const found = hub::find_variant(variants, name))
    return static_cast<std::size_t>(found - variants.data());
  if (variants.empty() || !name.quant.empty() || !name.file.empty()) return std::nullopt;
  if (variants.size() == 1) return 0;
  const std::size_t reference = hub::reference_variant(variants);
  gguf::Document header = header_of(variants[reference]);
  try {
    fit::Candidate candidate(std::move(header), budget::cpu_limits().threads(), plan_within);
    const hub::Choice choice = hub::choose(variants, candidate, wish.budget, wish.n_ctx);
    note(verb, join("mica: ", name.text(), ": ", choice.reason));
    return choice.variant;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported) throw;
    return reference;
  }
}

/// The name with the quantisation of its variant.
hub::Name named(hub::Name name, const hub::Variant& variant) {
  if (name.file.empty()) name.quant = variant.quant;
  return name;
}

bool is_on(std::string value) {
  value = remote::detail::lower(value);
  return value == "1" || value == "true" || value == "yes" || value == "on";
}

Wish wish_of(const Verb& verb) {
  const auto* const running = dynamic_cast<const RunningVerb*>(&verb);
  const budget::MemoryLimits limits = budget::memory_limits();
  if (running == nullptr) return {limits.usable(), 0};
  return {running->memory_bytes.value_or(limits.usable()), running->n_ctx};
}

std::string where_missing(const Verb& verb, const hub::Name& name) {
  return join(name.text(), ": not found in ", hub::Cache::of_environment().folder(), ", and ",
              verb.offline ? "--offline" : "HF_HUB_OFFLINE",
              " forbids requests to the hub; mica list shows what is there");
}

/// The path or URL of a model, downloaded where the verb needs its weights.
std::string place_of(const Verb& verb, const hub::Name& name) {
  const Wish wish = wish_of(verb);
  if (const auto found = find_here(verb, name, wish)) return found->place;
  MICA_CHECK(!is_offline(verb), file, where_missing(verb, name));
  if (verb.needs == Verb::Needs::header) {
    const FoundModel found = find_there(verb, name, wish);
    return found.here ? download(verb, found, {}) : found.place;
  }
  return in_child([&] {
    const FoundModel found = find_there(verb, name, wish);
    if (!found.here) {
      if (const auto* const answer = dynamic_cast<const AnswerVerb*>(&verb)) {
        plan_download(verb, found, open_options(*answer), freedom_of(*answer), false);
      } else if (const auto* const running = dynamic_cast<const RunningVerb*>(&verb)) {
        plan_download(verb, found, open_options(*running), {}, false);
      }
    }
    return download(verb, found, {});
  });
}

}  // namespace

bool is_offline(const Verb& verb) {
  return verb.offline || is_on(remote::detail::variable("HF_HUB_OFFLINE"));
}

bool is_model_name(const std::string& word) { return hub::parse_short_name(word).has_value(); }

std::optional<hub::Name> hub_name_of(const std::string& word) {
  std::error_code error;
  if (word.empty() || std::filesystem::exists(word, error)) return std::nullopt;
  if (auto name = hub::parse_name(word)) return name;
  return word.find('/') == word.npos ? hub::parse_short_name(word) : std::nullopt;
}

std::optional<hub::Name> hub_name_of(const Verb& verb) {
  std::optional<hub::Name> name;
  if (verb.hf_repo.empty()) {
    name = hub_name_of(verb.model_path);
    MICA_CHECK(name || verb.hf_file.empty(), usage, "--hf-file ", escaped(verb.hf_file, 200),
               " needs a repository: --hf-repo ORG/REPO");
  } else {
    MICA_CHECK(verb.model_path.empty(), usage, "a model was given twice: ", escaped(verb.model_path, 200),
               " and --hf-repo ", escaped(verb.hf_repo, 200));
    name = hub::parse_name(verb.hf_repo);
    if (!name) name = hub::parse_repo(verb.hf_repo, "--hf-repo");
  }
  if (!verb.hf_file.empty()) {
    MICA_CHECK(hub::is_safe_path(verb.hf_file), usage, "--hf-file: '", escaped(verb.hf_file, 200),
               "' is no path of a file in a repository");
    name->file = verb.hf_file;
  }
  return name;
}

std::optional<FoundModel> find_here(const Verb& verb, const hub::Name& requested, const Wish& wish) {
  const hub::Cache cache = hub::Cache::of_environment();
  hub::Name name = requested;
  name.repo = cache.spelled(name.repo);
  for (const hub::Snapshot& snapshot : cache.snapshots(name.repo, name.revision)) {
    if (hub::is_commit(name.revision) && snapshot.commit != name.revision) continue;
    const std::vector<hub::Variant> variants = hub::variants_of(snapshot.files);
    const auto path = [&](const hub::Variant& variant) {
      return cache.path(name.repo, snapshot.commit, variant.path());
    };
    const auto chosen = chosen_of(verb, variants, name, wish,
                                  [&](const hub::Variant& variant) { return gguf::open(path(variant)); });
    if (!chosen) continue;
    const hub::Variant& variant = variants[*chosen];
    return FoundModel{named(name, variant), snapshot.commit, variant, path(variant), true};
  }
  return std::nullopt;
}

FoundModel find_there(const Verb& verb, const hub::Name& requested, const Wish& wish) {
  const hub::Listing listing = list_repository(requested);
  hub::Name name = requested;
  name.repo = listing.repo;
  const std::vector<hub::Variant> variants = hub::variants_of(listing.files);
  const auto url = [&](const hub::Variant& variant) {
    return hub::resolve_url(name.repo, listing.commit, variant.path()).shown();
  };
  const auto chosen = chosen_of(verb, variants, name, wish,
                                [&](const hub::Variant& variant) { return open_remote(url(variant)); });
  if (!chosen) hub::refuse_unknown(listing.files, name);
  const hub::Variant& variant = variants[*chosen];
  const hub::Cache cache = hub::Cache::of_environment();
  const bool here = std::all_of(variant.files.begin(), variant.files.end(),
                                [&](const hub::File& file) { return cache.has(name.repo, file); });
  return {named(name, variant), listing.commit, variant, url(variant), here};
}

void plan_download(const Verb& verb, const FoundModel& found, OpenOptions open, plan::Adjustable free,
                   bool force) {
  const std::string name = found.name.text();
  const gguf::Document header = open_remote(found.place);
  plan::Question question = question_of(open);
  if (question.model.n_ctx == 0) {
    const std::size_t trained = arch::AnyOf<arch::All>::config(header).n_ctx_train;
    question.model.n_ctx = std::min(trained, fit::default_context);
  }
  const std::uint64_t budget = open.memory_bytes ? *open.memory_bytes : budget_of(header, open);
  const plan::Plan plan = plan_within(header, question, budget);
  const std::string needs =
      join("needs ", budget::size_text(plan.peak_bytes), ", you have ", budget::size_text(budget), ": ");
  if (plan.peak_bytes <= budget)
    return note(verb, join("mica: ", name, ": ", needs, "fits at ", plan.n_ctx, " tokens"));
  const auto fallback = fallback_within(header, question, budget, free);
  if (fallback) {
    return note(verb, join("mica: ", name, ": ", needs, "does not fit at ", plan.n_ctx, " tokens, but with ",
                           plan::differences(question, *fallback)));
  }
  const std::string refused = join(name, ": ", refusal(header, question, plan, budget, free));
  if (!force) {
    raise(ErrorCode::budget, refused,
          ". Nothing was downloaded; mica pull --force downloads it all the same");
  }
  note(verb, join("mica: ", refused));
}

std::string download(const Verb& verb, const FoundModel& found, const Pull& pull) {
  const hub::Cache cache = hub::Cache::of_environment();
  const std::string path = cache.path(found.name.repo, found.commit, found.variant.path());
  if (!found.here) {
    note(verb, join("mica: downloading ", found.name.text(), ", ", budget::size_text(found.variant.bytes),
                    ", to ", cache.folder()));
  }
  DownloadProgress progress(verb, found.variant.bytes, pull.events);
  const hub::Watch watch = {[&](std::uint64_t done) { progress.update(done); },
                            [] { return interrupted().load(); },
                            [&](const std::string& text) { note(verb, join("mica: ", text)); }};
  const bool done =
      fetch_files({found.name, found.commit, found.variant.files, cache.folder(), pull.connections}, watch);
  progress.clear();
  if (done) return path;
  note(verb, "mica: interrupted; the downloaded part is kept; the same command continues");
  throw Stop{130, {}};
}

void find_named_model(Verb& verb) {
  using Needs = Verb::Needs;
  if (verb.needs == Needs::local || verb.needs == Needs::name) return;
  // A URL is used as it is where a header is enough.
  const bool is_plain_url = remote::is_url(verb.model_path) && verb.needs == Needs::header &&
                            verb.model_path.find("/resolve/") != std::string::npos;
  if (const auto name = is_plain_url ? std::nullopt : hub_name_of(verb)) {
    verb.model_path = place_of(verb, *name);
    verb.hf_repo.clear();
  }
  auto* const answer = dynamic_cast<AnswerVerb*>(&verb);
  if (answer != nullptr && answer->answers_with_one_model() && is_model_folder(answer->model_path)) {
    const Wish wish = wish_of(verb);
    answer->model_path = best_of_folder(verb, answer->model_path, wish.budget, wish.n_ctx);
  }
  if (answer == nullptr || answer->draft.empty() || remote::is_url(answer->draft)) return;
  if (const auto name = hub_name_of(answer->draft)) answer->draft = place_of(verb, *name);
}

}  // namespace mica::program
