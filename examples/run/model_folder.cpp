// SPDX-License-Identifier: Apache-2.0
#include "model_folder.hpp"

#include "budgeted.hpp"
#include "console.hpp"
#include "fit_machine.hpp"
#include "mica/base/error.hpp"
#include "mica/budget/size.hpp"
#include "mica/gguf/detail/packed_files.hpp"
#include "mica/gguf/detail/shard_name.hpp"
#include "mica/io/detail/path.hpp"
#include "mica_tools/fit/rank.hpp"
#include "mica_tools/fit/select.hpp"
#include "mica_tools/fit/use.hpp"
#include "safe_text.hpp"

#include <algorithm>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

namespace mica::program {
namespace {

/// "quick: 12.3 tokens a second in 2.1 GiB of 3.0 GiB, assumed".
std::string reason_of(const fit::Ranked& best) {
  const fit::Fit& fit = best.fit;
  return join(fit::name(best.tier), ", ", fixed(fit.decode, 1), " tokens a second (", fit.basis, "), ",
              budget::size_text(fit.need.ram + fit.need.vram), " of ",
              budget::size_text(fit.available.ram + fit.available.vram), " at ", fit.setting.n_ctx,
              " tokens");
}

std::string without_slashes(const std::string& folder) {
  return folder.substr(0, std::max<std::size_t>(folder.find_last_not_of('/') + 1, 1));
}

bool is_gguf(const std::string& name) { return name.ends_with(".gguf"); }

std::string file_name(const std::string& path) { return std::filesystem::path(path).filename().string(); }

/// Of models that do not fit as they are, the one that needs least: a run changes what no flag sets until it
/// fits, or refuses it.
std::string nearest_of(const Verb& verb, const std::string& folder, std::span<const fit::Ranked> all,
                       std::uint64_t budget) {
  const auto least = std::min_element(
      all.begin(), all.end(), [](const auto& a, const auto& b) { return a.fit.need.ram < b.fit.need.ram; });
  note(verb,
       join("mica: ", cell_text(folder), ": none of ", all.size(), all.size() == 1 ? " model" : " models",
            " fits ", budget::size_text(budget), "; the nearest is ", file_name(least->fit.name),
            ", which needs ", budget::size_text(least->fit.need.ram)));
  return least->fit.name;
}

}  // namespace

void for_each_model_of(const Verb& verb, const std::string& folder,
                       const std::function<void(gguf::Document)>& use) {
  const std::string path = without_slashes(folder);
  bool some = false;
  for (const std::string& name : io::detail::names_in(path)) {
    const auto shard = gguf::ShardName::parse(name);
    if (!is_gguf(name) || (shard && shard->number != 1)) continue;
    some = true;
    try {
      use(gguf::open(join(path, "/", name)));
    } catch (const Error& error) {
      note(verb, join("mica: left out: ", cell_text(error.message())));
    }
  }
  MICA_CHECK(some, file, path, ": a folder without GGUF files");
}

bool is_model_folder(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error) || gguf::is_packed_folder(path)) return false;
  if (!std::filesystem::exists(std::filesystem::path(path) / "config.json", error)) return true;
  const auto names = io::detail::names_in(without_slashes(path));
  return std::any_of(names.begin(), names.end(), is_gguf);
}

std::string best_of_folder(const Verb& verb, const std::string& folder, std::uint64_t budget,
                           std::size_t n_ctx) {
  const std::string path = without_slashes(folder);
  // What runs here is the processor, whatever cards there are.
  fit::Machine machine = machine_of(MachineOptions());
  machine.vram_bytes = 0;
  machine.unified = false;
  machine.available_bytes = budget;
  const fit::Use& use = fit::use_of("general");
  const fit::Selector selector(machine, {n_ctx, use.min_decode});
  std::vector<fit::Fit> fits;
  for_each_model_of(verb, path, [&](gguf::Document file) {
    fit::check_writes(file);
    fit::Candidate candidate(std::move(file), machine.cores, plan_within);
    fits.push_back(selector.select(candidate));
  });
  MICA_CHECK(!fits.empty(), file, path, ": no GGUF file of this folder can be run; the lines above say why");
  const std::vector<fit::Ranked> ranked = fit::ranked(std::move(fits), use);
  const fit::Ranked& best = ranked.front();
  if (best.tier == fit::Tier::too_tight) return nearest_of(verb, path, ranked, budget);
  const std::string shown = cell_text(path);
  std::string text = join("mica: ", shown, ": ", cell_text(file_name(best.fit.name)), ": ", reason_of(best));
  if (ranked.size() > 1)
    text += join("; then ", cell_text(file_name(ranked[1].fit.name)), ": ", reason_of(ranked[1]));
  if (ranked.size() > 2) text += join("; ", ranked.size() - 2, " more: mica fit ", shown);
  note(verb, text);
  return best.fit.name;
}

}  // namespace mica::program
