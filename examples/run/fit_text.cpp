// SPDX-License-Identifier: Apache-2.0
#include "fit_text.hpp"

#include "fit_command.hpp"
#include "json_text.hpp"
#include "mica/budget/size.hpp"
#include "mica_tools/fit/llmfit_score.hpp"
#include "mica_tools/fit/rules.hpp"
#include "safe_text.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

namespace mica::program {
namespace {

using budget::size_text;
using fit::Fit;
using fit::Mode;
using fit::Ranked;

/// 7.6 B, 0.49 B: thousand million weights.
std::string billions(double parameters) {
  return fixed(parameters / 1e9, parameters < 0.995e9 ? 2 : 1) + " B";
}

std::string rate_text(double bytes) { return fixed(bytes / 1e9, bytes < 10e9 ? 1 : 0) + " GB/s"; }

/// Both pools, where both are used: "4.7 + 55.1 GiB".
std::string memory_text(fit::Pools pools) {
  if (pools.vram == 0) return size_text(pools.ram);
  if (pools.ram == 0) return size_text(pools.vram);
  return join(fixed(static_cast<double>(pools.vram) / fit::rules::gib, 1), " + ",
              fixed(static_cast<double>(pools.ram) / fit::rules::gib, 1), " GiB");
}

std::string percent(double part) { return fixed(100 * part, 0) + " %"; }

std::string speed_text(double tokens) { return fixed(tokens, tokens < 10 ? 2 : 1); }

std::string quality_text(double quality) { return fixed(quality, quality < 9.95 ? 1 : 0); }

/// "March 2026".
std::string month_text(fit::Month month) {
  constexpr std::array<std::string_view, 12> names = {"January",   "February", "March",    "April",
                                                      "May",       "June",     "July",     "August",
                                                      "September", "October",  "November", "December"};
  return join(names.at(static_cast<std::size_t>(month.month - 1)), " ", month.year);
}

std::string notes_text(const Fit& fit) {
  std::string text;
  for (const std::string& note : fit.notes) text += join(text.empty() ? "" : "; ", note);
  return text;
}

/// Columns of text, numbers to the right.
class Table {
 public:
  struct Column {
    std::string head;
    bool right;
    int leaves = 0;  // its turn when lines are too wide; 0: it stays
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> cells) {
    for (std::string& cell : cells) cell = cell_text(cell);  // names may come from a file
    rows_.push_back(std::move(cells));
  }
  /// Leaves out columns until lines have `max` bytes or less. Returns the names of those that left.
  [[nodiscard]] std::string narrow(std::size_t max) {
    std::string left;
    for (int turn = 1; line_width() > max; ++turn) {
      const auto leaving = std::find_if(columns_.begin(), columns_.end(),
                                        [&](const Column& column) { return column.leaves == turn; });
      if (leaving == columns_.end()) break;
      left += join(left.empty() ? "" : ", ", leaving->head.empty() ? "notes" : leaving->head);
      const auto at = leaving - columns_.begin();
      for (auto& row : rows_) row.erase(row.begin() + at);
      columns_.erase(leaving);
    }
    return left;
  }
  [[nodiscard]] std::string text() const {
    std::vector<std::string> heads;
    for (const Column& column : columns_) heads.push_back(column.head);
    std::string text = line(heads);
    for (const auto& row : rows_) text += line(row);
    return text;
  }

 private:
  [[nodiscard]] std::size_t width(std::size_t column) const {
    std::size_t width = columns_[column].head.size();
    for (const auto& row : rows_) width = std::max(width, row[column].size());
    return width;
  }
  [[nodiscard]] std::size_t line_width() const {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < columns_.size(); ++i) sum += width(i) + (i == 0 ? 0 : 2);
    return sum;
  }
  [[nodiscard]] std::string line(const std::vector<std::string>& cells) const {
    std::string text;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string blanks(width(i) - cells[i].size(), ' ');
      text += (i == 0 ? "" : "  ") + (columns_[i].right ? blanks + cells[i] : cells[i] + blanks);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text + "\n";
  }
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

std::string machine_json(const fit::Machine& machine) {
  return join("{\"ram_bytes\":", machine.ram_bytes, ",\"ram_available_bytes\":", machine.available_bytes,
              ",\"vram_bytes\":", machine.vram_bytes, ",\"unified\":", machine.unified,
              ",\"cores\":", machine.cores, ",\"ram_bytes_per_second\":", fixed(machine.speed.read_bytes, 0),
              ",\"ram_basis\":", json_string(machine.speed.basis),
              ",\"vram_bytes_per_second\":", fixed(machine.vram_bytes == 0 ? 0 : machine.vram_rate, 0),
              ",\"vram_basis\":", json_string(machine.vram_basis), "}");
}

/// Where the model is from, as fields of JSON.
std::string row_json(const fit::Row& row) {
  return join(",\"licence\":", json_string(row.licence),
              ",\"source\":", json_string(join("https://huggingface.co/", row.source)),
              row.gguf.empty() ? "" : join(",\"repository\":", json_string(row.gguf)), ",\"published\":\"",
              row.published.year, row.published.month < 10 ? "-0" : "-", row.published.month,
              "\",\"made_for\":", json_string(fit::name(row.made_for)));
}

/// llmfit's score of a fit.
std::string llmfit_json(const Fit& fit, const fit::Use& use) {
  const fit::rules::Score score = fit::rules::llmfit_score(fit, use);
  return join("{\"score\":", fixed(score.total, 1), ",\"quality\":", fixed(score.quality, 1),
              ",\"speed\":", fixed(score.speed, 1), ",\"fit\":", fixed(score.fit, 1),
              ",\"context\":", fixed(score.context, 1), "}");
}

std::string ranked_json(const Ranked& row, const fit::Use& use) {
  const Fit& fit = row.fit;
  std::string notes;
  for (const std::string& note : fit.notes) notes += join(notes.empty() ? "" : ",", json_string(note));
  const std::string command = fit_command(fit);
  return join("{\"name\":", json_string(fit.name), ",\"model\":", json_string(fit.title),
              fit.row == nullptr ? std::string() : row_json(*fit.row),
              command.empty() ? "" : join(",\"command\":", json_string(command)),
              ",\"parameters\":", fixed(fit.parameters, 0), ",\"active_parameters\":", fixed(fit.active, 0),
              ",\"quantisation\":", json_string(fit.quantisation), ",\"n_ctx\":", fit.setting.n_ctx,
              ",\"n_ctx_asked\":", fit.requested, ",\"n_ctx_train\":", fit.n_ctx_train,
              fit.max_context_that_fits == 0 ? "" : join(",\"n_ctx_most\":", fit.max_context_that_fits),
              ",\"kv_element\":", json_string(kv::name(fit.setting.element)),
              ",\"mode\":", json_string(fit::name(fit.mode)),
              ",\"level\":", json_string(fit::name(fit.level)), ",\"estimated\":", fit.estimated(),
              ",\"vram_needed_bytes\":", fit.need.vram, ",\"vram_available_bytes\":", fit.available.vram,
              ",\"ram_needed_bytes\":", fit.need.ram, ",\"ram_available_bytes\":", fit.available.ram,
              ",\"vram_recommended_bytes\":", fit.recommended,
              ",\"utilisation\":", fixed(fit::utilisation(fit.need, fit.available), 4),
              ",\"tokens_per_second\":", fixed(fit.decode, 3), ",\"speed_basis\":", json_string(fit.basis),
              ",\"tier\":", json_string(fit::name(row.tier)), ",\"quality\":", fixed(row.quality.total, 2),
              ",\"llmfit\":", llmfit_json(fit, use), ",\"notes\":[", notes, "]}");
}

/// The accounts of `mica plan`; for modes of other engines weights, keys and values, and the engine.
std::string our_sum(fit::Candidate& candidate, const Fit& fit) {
  const plan::Plan& plan = candidate.plan(fit.setting);
  std::string sum;
  const auto add = [&](std::string_view name, std::uint64_t bytes) {
    if (bytes != 0) sum += join(sum.empty() ? "" : " + ", name, " ", size_text(bytes));
  };
  if (!fit.estimated()) {
    plan.accounts.for_each(
        [&](budget::Account account, std::uint64_t bytes) { add(budget::name(account), bytes); });
    return join(sum, "; peak ", size_text(fit.need.ram));
  }
  const fit::Parts& weights = candidate.weights(fit.setting.quantisation);
  add("weights", static_cast<std::uint64_t>(weights.all));
  add("keys and values", plan.accounts[budget::Account::kv]);
  add("state", plan.accounts[budget::Account::state]);
  add("margin of the engine", fit::gpu_margin_bytes);
  if (fit.mode == Mode::moe_offload)
    sum += join("; of the weights ", size_text(fit.need.ram), " of experts beside the processor");
  return join(sum, " (an estimate)");
}

/// The minimum of KV heads and of head_dim over layers with attention, and the number of these layers.
struct Attention {
  std::size_t layers = 0, heads = 0, kv_heads = 0, head_dim = 0;
};

Attention attention_of(const arch::Config& config) {
  Attention all;
  for (const arch::Layer& layer : config.layers) {
    const auto* const attention = layer.find<block::Attention>();
    if (attention == nullptr) continue;
    ++all.layers;
    all.heads = std::max(all.heads, attention->heads);
    all.kv_heads = std::max(all.kv_heads, attention->kv_heads);
    all.head_dim = std::max(all.head_dim, attention->head_dim);
  }
  return all;
}

std::string llmfit_text(const arch::Config& config, const Fit& fit) {
  namespace rules = fit::rules;
  const Attention a = attention_of(config);
  const double b = fit.parameters / 1e9;
  const double kv = rules::llmfit_kv(config.layers.size(), a.kv_heads, a.head_dim, fit.setting.n_ctx, 2);
  const double bytes = rules::llmfit_bytes_per_weight(fit.quantisation);
  std::string why;
  if (a.layers != config.layers.size())
    why = join("; of its ", config.layers.size(), " layers only ", a.layers, " have keys and values");
  else if (config.max_of<block::Attention>([](const auto& x) { return x.reach_tokens; }) != 0)
    why = "; layers with a window keep less";
  return join("  llmfit      ", fixed(b, 2), " x ", fixed(bytes, 2), " + keys and values ", fixed(kv, 2),
              " + 0.5 = ", fixed(rules::llmfit_memory(b, fit.quantisation, kv), 2),
              " \"GB\", 10^9 bytes of weights and 2^30 of the rest in one sum", why, "\n");
}

std::string calculator_text(const arch::Config& config, double weight_bytes, const Fit& fit) {
  namespace rules = fit::rules;
  const Attention a = attention_of(config);
  const rules::Calculator calculator{.file_mb = weight_bytes / 1e6,
                                     .billions = fit.parameters / 1e9,
                                     .layers = config.layers.size(),
                                     .width = config.width,
                                     .tokens = fit.setting.n_ctx};
  const double kv =
      rules::kv_mb(a.layers, a.kv_heads, a.head_dim, fit.setting.n_ctx, calculator.kv_pair_bytes);
  return join("  calculator  ", fixed(calculator.file_mb, 2), " + keys and values ",
              fixed(calculator.kv_mb(), 2), " + ", fixed(calculator.overhead_mb(), 2), " = ",
              fixed(calculator.total_mb(), 2), " MB of 10^6 bytes; ", a.kv_heads, " of ", a.heads,
              " heads in ", a.layers, " of ", config.layers.size(),
              " layers have keys and values: ", fixed(kv, 2), " MB at most\n");
}

/// "  order       quick: ...", "  quality     4.21 x 5.04 (March 2026) x 0.98 (Q6_K) = 20.8".
std::string order_text(const Fit& fit, const fit::Use& use) {
  const fit::Quality quality = fit::quality_of(fit, use);
  std::string text = join("  order       ", fit::name(fit::tier_of(fit, use)), "; quick for ", use.name,
                          " is Good or better, ", fixed(use.min_decode, 0), " tokens/s, and ",
                          fit::needed_context(fit, use), " tokens\n");
  text += join("  quality     ", fixed(quality.billions, 2),
               fit.experts == 0 ? "" : " (geometric mean of all weights and those of a token)");
  text += fit.model == nullptr
              ? std::string(", of no known date")
              : join(" x ", fixed(quality.date, 2), " (", month_text(fit.model->published), ")");
  text += join(" x ", fixed(quality.worth, 2), " (", fit.quantisation, ")");
  if (quality.purpose != 1)
    text += join(" x ", fixed(quality.purpose, 1), " (purpose: ", fit::name(fit.model->made_for), ")");
  return join(text, " = ", quality_text(quality.total), "\n");
}

std::string llmfit_score_text(const Fit& fit, const fit::Use& use) {
  const fit::rules::Score score = fit::rules::llmfit_score(fit, use);
  const fit::rules::LlmfitUse& weights = fit::rules::llmfit_use(use);
  return join("  llmfit's score  ", fixed(score.total, 1), " for ", use.name, ": quality ",
              fixed(score.quality, 1), " x ", fixed(weights.quality, 2), " + speed ", fixed(score.speed, 1),
              " x ", fixed(weights.speed, 2), " + fit ", fixed(score.fit, 1), " x ", fixed(weights.fit, 2),
              " + context ", fixed(score.context, 1), " x ", fixed(weights.context, 2), "\n");
}

}  // namespace

std::string fit_summary(const Ranked& first, const fit::Use& use, bool all) {
  const Fit& fit = first.fit;
  if (first.tier == fit::Tier::too_tight) return {};
  std::string text = first.tier == fit::Tier::quick
                         ? std::string(all ? "Best here: " : "Best of these: ")
                         : join("Nothing is quick here (", fixed(use.min_decode, 0), " tokens/s with ",
                                fit::needed_context(fit, use), " tokens and headroom). Nearest: ");
  text += join(cell_text(fit.title), " in ", fit.quantisation, ", ", fit::name(fit.mode), ", ",
               memory_text(fit.need), " of ", memory_text(fit.available), ", about ",
               fixed(fit.decode, fit.decode < 10 ? 1 : 0), " tokens/s");
  const std::string command = fit_command(fit);
  return join(text, command.empty() ? std::string() : join(": ", command), "\n");
}

std::string fit_hint(std::span<const Ranked> rows) {
  bool runs = false, pulls = false, has_none = false;
  for (const Ranked& row : rows) {
    if (row.fit.row == nullptr || row.tier == fit::Tier::too_tight) continue;
    const std::string command = fit_command(row.fit);
    runs = runs || command.starts_with("mica run");
    pulls = pulls || command.starts_with("mica pull");
    has_none = has_none || command.empty();
  }
  return join(
      "mica help tiers explains the columns.\n",
      runs ? "mica run MODEL:TYPE downloads a model of the table once, and runs it.\n" : "",
      pulls ? "GPU, MoE offload and CPU+GPU are modes of other engines: mica pull MODEL:TYPE downloads the "
              "file; mica run uses the processor alone.\n"
            : "",
      has_none ? "Rows without a command: no GGUF file is known, so mica pull cannot download them.\n" : "");
}

std::string machine_text(const fit::Machine& machine) {
  const bool card = machine.vram_bytes != 0;
  std::string text = join(size_text(machine.ram_bytes), " of memory, ", size_text(machine.available_bytes),
                          " available, ", machine.cores, machine.cores == 1 ? " core" : " cores", ", ",
                          rate_text(machine.speed.read_bytes), " (", machine.speed.basis, ")");
  if (machine.unified) text += ", shared with the graphics processor";
  if (machine.unified && !card && machine.shared_bytes)
    text += join(", which may use ", size_text(machine.gpu_bytes()));
  if (card) text += join(", graphics cards with ", size_text(machine.vram_bytes));
  if (card && machine.vram_rate > 0)
    text += join(", ", rate_text(machine.vram_rate), " (", machine.vram_basis, ")");
  if (!card && !machine.unified) text += ", no graphics card";
  for (const std::string& note : machine.notes) text += "; " + note;
  return text;
}

std::string fit_table(std::span<const Ranked> rows, bool max, std::size_t width) {
  std::vector<Table::Column> columns = {{"model", false},     {"weights", true, 2}, {"type", false},
                                        {"context", true, 5}, {"memory", true},     {"of it", true, 3},
                                        {"mode", false, 6},   {"level", false, 4},  {"tokens/s", true},
                                        {"tier", false},      {"quality", true, 7}, {"", false, 1}};
  if (max) columns.insert(columns.begin() + 4, {"max context", true});
  Table table(columns);
  for (const Ranked& row : rows) {
    const Fit& fit = row.fit;
    const bool runs = fit.level != fit::Level::too_tight;
    std::vector<std::string> cells = {fit.name,
                                      billions(fit.parameters),
                                      fit.quantisation,
                                      join(fit.setting.n_ctx),
                                      memory_text(fit.need),
                                      percent(fit::utilisation(fit.need, fit.available)),
                                      std::string(fit::name(fit.mode)),
                                      std::string(fit::name(fit.level)),
                                      runs ? speed_text(fit.decode) : "-",
                                      std::string(fit::name(row.tier)),
                                      quality_text(row.quality.total),
                                      notes_text(fit)};
    if (max)
      cells.insert(cells.begin() + 4,
                   fit.max_context_that_fits == 0 ? std::string("-") : join(fit.max_context_that_fits));
    table.add(std::move(cells));
  }
  const std::string left = width == 0 ? std::string() : table.narrow(width);
  return join(table.text(), left.empty() ? std::string()
                                         : join("Too wide for this terminal: ", left,
                                                "; a pipe, a file and --json have all columns.\n"));
}

std::string fit_json(const fit::Machine& machine, const fit::Use& use, std::span<const Ranked> rows) {
  std::string models;
  for (const Ranked& row : rows) models += join(models.empty() ? "" : ",", ranked_json(row, use));
  return join("{\"machine\":", machine_json(machine), ",\"use\":", json_string(use.name), ",\"models\":[",
              models, "]}\n");
}

std::string explanation(const fit::Machine& machine, const fit::Use& use, fit::Candidate& candidate,
                        const Fit& fit) {
  const arch::Config& config = candidate.plan(fit.setting).config;
  std::string text = join(cell_text(fit.title), " (", cell_text(fit.name), "): ", fit.quantisation, ", ",
                          fit.setting.n_ctx, " tokens, keys and values in ", kv::name(fit.setting.element),
                          ", ", fit::name(fit.mode), ": ", fit::name(fit.level), "\n");
  text += join("  needed      ", our_sum(candidate, fit), "\n");
  text += join(
      "  available   ", memory_text(fit.available), ", of the fuller pool ",
      percent(fit::utilisation(fit.need, fit.available)), " needed",
      fit::has_headroom(fit.need, fit.available) ? ", with 20 % headroom" : ", without 20 % headroom",
      fit.mode == Mode::gpu ? join("; a graphics card with ", size_text(fit.recommended), " is recommended")
                            : std::string(),
      "\n");
  if (fit.mode == Mode::cpu)
    text +=
        "  level       Good with 20 % headroom, as in llmfit's code; its older pages say Marginal for every "
        "CPU\n";
  text += llmfit_text(config, fit);
  text += calculator_text(config, candidate.weights(fit.setting.quantisation).all, fit);
  const double billion_active = fit.active / 1e9;
  const double theirs =
      fit.estimated() && !machine.unified && machine.vram_rate > 0
          ? fit::rules::llmfit_decode_on_card(machine.vram_rate / 1e9, billion_active,
                                              fit::rules::llmfit_speed_bytes_per_weight(fit.quantisation))
          : fit::rules::llmfit_decode_on_cpu(fit.parameters / 1e9, fit.quantisation, machine.cores);
  text += join("  tokens/s    ", speed_text(fit.decode), " (", fit.basis,
               "), half of the context filled; llmfit's rule: ", speed_text(theirs), "\n");
  text += order_text(fit, use);
  const std::string command = fit_command(fit);
  if (!command.empty()) text += join("  command     ", command, "\n");
  return text + llmfit_score_text(fit, use);
}

}  // namespace mica::program
