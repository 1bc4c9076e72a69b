// SPDX-License-Identifier: Apache-2.0
//
// Which models a machine can run, how well, and how fast: mica fit ranks the catalogue, or the models and files that are named.
#include "budgeted.hpp"
#include "console.hpp"
#include "fit_machine.hpp"
#include "fit_text.hpp"
#include "mica/base/assert.hpp"
#include "mica/gguf/packed_files.hpp"
#include "mica/gguf/shard_name.hpp"
#include "mica/io/near_name.hpp"
#include "options.hpp"
#include "verbs.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace mica::program {
namespace {

using fit::Ranked;

/// GGUF files of a folder, of sharded models the first shard, by name.
std::vector<std::string> files_of(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string path = entry.path().string();
    const auto shard = gguf::ShardName::parse(path);
    if (entry.path().extension() == ".gguf" && (!shard || shard->number == 1)) files.push_back(path);
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// The level that a flag names.
fit::Level level_named(std::string_view name) {
  constexpr std::pair<std::string_view, fit::Level> levels[] = {
      {"perfect", fit::Level::perfect}, {"good", fit::Level::good}, {"marginal", fit::Level::marginal}};
  for (const auto& [known, level] : levels) {
    if (known == name) return level;
  }
  raise(ErrorCode::usage, "--level: found \"", escaped(name), "\", allowed: perfect good marginal");
}

/// What was asked, and the answers as they come.
class Judge {
 public:
  Judge(const Options& options, const fit::Machine& machine)
      : options_(options),
        machine_(machine),
        use_(fit::use_of(options.fit.use)),
        selector_(machine, {options.n_ctx}) {}

  void catalogue() {
    for (const fit::Row& row : fit::catalogue) add(row);
  }
  void named(const std::string& word) {
    std::error_code error;
    if (std::filesystem::is_directory(word, error) && !gguf::is_packed_folder(word)) return folder(word);
    if (std::filesystem::exists(word, error)) return add(gguf::open(word));
    add(fit::row_of(word));
  }
  [[nodiscard]] const fit::Use& use() const noexcept { return use_; }
  [[nodiscard]] std::vector<Ranked> ranked() const { return fit::ranked(fits_, use_); }
  [[nodiscard]] const std::string& explained(const std::string& name) const { return explained_.at(name); }

 private:
  void folder(const std::string& path) {
    const std::vector<std::string> files = files_of(path);
    MICA_CHECK(!files.empty(), file, path, ": a folder without GGUF files");
    for (const std::string& each : files) try {
        add(gguf::open(each));
      } catch (const Error& error) {
        note(options_, join("mica: left out: ", error.message()));
      }
  }
  void add(const fit::Row& row) { judge(fit::Candidate(row, machine_.cores, plan_within, machine_.mlx)); }
  void add(gguf::Document file) { judge(fit::Candidate(std::move(file), machine_.cores, plan_within)); }

  void judge(fit::Candidate candidate) {
    const std::string& quant = options_.fit.quant;
    if (!quant.empty() && !candidate.keep_only(quant)) return;
    fit::Fit fit = selector_.select(candidate);
    if (!quant.empty()) fit.most_context = selector_.longest_context(candidate, fit);
    if (options_.fit.explain) explained_[fit.name] = explanation(machine_, use_, candidate, fit);
    fits_.push_back(std::move(fit));
  }

  const Options& options_;
  const fit::Machine& machine_;
  const fit::Use& use_;
  fit::Selector selector_;
  std::vector<fit::Fit> fits_;
  std::map<std::string, std::string> explained_;
};

/// "Nearest: qwen3-8b in Q2_K with 1024 tokens needs 4.1 GiB, 3.6 GiB are available": the first three.
std::string nearest(const std::vector<Ranked>& rows) {
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(rows.size(), 3); ++i) {
    const fit::Fit& fit = rows[i].fit;
    text += join(text.empty() ? "" : "; ", fit.name, " in ", fit.quantisation, " with ", fit.setting.n_ctx,
                 " tokens (", fit::name(fit.mode), ", ", fit::name(fit.level), ") needs ",
                 budget::size_text(fit.need.vram + fit.need.ram), " of ",
                 budget::size_text(fit.available.vram + fit.available.ram));
  }
  return text;
}

void show(const Options& options, const fit::Machine& machine, const Judge& judge,
          const std::vector<Ranked>& rows) {
  if (options.json) return print(fit_json(machine, judge.use(), rows));
  if (options.fit.explain) {
    for (const Ranked& row : rows) print(judge.explained(row.fit.name) + "\n");
    return;
  }
  if (rows.empty()) return;
  print(join(machine_text(machine), "\n\n", fit_table(rows, !options.fit.quant.empty())));
}

}  // namespace

int fit_models(const Options& options) {
  const FitOptions& asked = options.fit;
  const fit::Machine machine = machine_of(options);
  const fit::Level least = level_named(asked.perfect ? "perfect" : asked.level);
  Judge judge(options, machine);
  for (const std::string& word : options.words) judge.named(word);
  if (options.words.empty()) judge.catalogue();
  const std::vector<Ranked> all = judge.ranked();
  MICA_CHECK(!all.empty() || !asked.quant.empty(), file,
             "fit: no GGUF file of the named folders can be opened; the lines above say why");
  MICA_CHECK(!all.empty(), usage, "fit: --quant ", escaped(asked.quant),
             ": no model has that quantisation; known: ", quantize::recipe_names(),
             machine.mlx ? " mlx-8bit mlx-4bit" : "");
  const auto wanted = [&](const Ranked& row) { return row.fit.level <= least; };
  const bool some = std::any_of(all.begin(), all.end(), wanted);
  std::vector<Ranked> rows;
  const bool filtered = asked.perfect || asked.level != "marginal";
  for (const Ranked& row : all) {
    if (!filtered || wanted(row)) rows.push_back(row);
  }
  if (asked.rows != 0 && rows.size() > asked.rows) rows.resize(asked.rows);
  show(options, machine, judge, rows);
  if (some) return 0;
  raise(ErrorCode::budget, "fit: none of ", all.size(), " models is ", fit::name(least), " or better on ",
        machine_text(machine), ".  Nearest: ", nearest(all));
}

}  // namespace mica::program
