// SPDX-License-Identifier: Apache-2.0
//
// Which models a machine can run, how well, and how fast: mica fit ranks the catalogue, or the models and
// files that are named.
#include "budgeted.hpp"
#include "console.hpp"
#include "fit_machine.hpp"
#include "fit_text.hpp"
#include "mica/base/assert.hpp"
#include "mica/gguf/detail/packed_files.hpp"
#include "model_folder.hpp"
#include "recipe_words.hpp"
#include "verb.hpp"
#include "verbs.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mica::program {
namespace {

class FitVerb final : public Verb, public MachineOptions {
 public:
  FitVerb()
      : Verb({"fit", "the models that this machine, or a described one, can run: how well, how fast",
              "mica fit --ram 6G --cores 2"}) {}
  int run() override;

  std::vector<std::string> models;
  std::size_t n_ctx = 0;
  std::string quant;
  std::string use = "general";
  std::size_t rows = 0;                     // 0: all
  fit::Level level = fit::Level::marginal;  // the minimum; decides the exit code if it is not given
  bool level_given = false;
  bool perfect = false;
  bool explain = false;

 private:
  void declare(Flags& flags) override {
    flags.group("Fit");
    flags.words(models, "MODEL",
                "names of the catalogue, GGUF files, folders of them; none: the whole catalogue");
    flags.word_likens("MODEL", names_in(fit::row_names()));
    flags.number("-c,--max-context,--ctx-size", n_ctx, {0, std::numeric_limits<std::uint32_t>::max()},
                 "requested context in tokens; 0: 8192, or what the model was trained for");
    flags.text("--quant", quant, "TYPE", "this quantisation alone, with the longest context that fits")
        .likens(names_in(recipe_words()));
    flags.choice("--use", use, {"general", "coding", "chat", "reasoning"}, "NAME",
                 "the use of the model, which decides what is quick and which models are preferred: general "
                 "coding chat reasoning");
    flags.number("-n,--rows", rows, {}, "maximum of rows; 0: all");
    flags
        .choice("--level", level,
                {{"perfect", fit::Level::perfect},
                 {"good", fit::Level::good},
                 {"marginal", fit::Level::marginal}},
                "", "NAME",
                "only models of this level or a better one: perfect good marginal; without it all models")
        .marks(level_given)
        .standard = std::nullopt;
    flags.toggle("--perfect", perfect, "the same as --level perfect");
    flags.toggle("--explain", explain, "the arithmetic of each row, and the results of other rules");
    MachineOptions::add_to(flags);
  }
};

using fit::Ranked;

/// The question, and the answers so far.
class Judge {
 public:
  Judge(const FitVerb& verb, const fit::Machine& machine)
      : verb_(verb),
        machine_(machine),
        use_(fit::use_of(verb.use)),
        selector_(machine, {verb.n_ctx, use_.min_decode}) {}

  void catalogue() {
    for (const fit::Row& row : fit::catalogue) add(row);
  }
  void named(const std::string& word) {
    struct ::stat status {};
    if (::stat(word.c_str(), &status) != 0) {
      const int error = errno;
      MICA_CHECK(::lstat(word.c_str(), &status) != 0, file, escaped(word, 200),
                 ": a link that leads to no file: ", std::strerror(error));
      MICA_CHECK(error == ENOENT || error == ENOTDIR, file, escaped(word, 200),
                 ": cannot be opened: ", std::strerror(error));
      return add(fit::row_of(word));
    }
    if (!S_ISDIR(status.st_mode) || gguf::is_packed_folder(word)) return add(gguf::open(word));
    for_each_model_of(verb_, word, [this](gguf::Document file) { add(std::move(file)); });
  }
  [[nodiscard]] const fit::Use& use() const noexcept { return use_; }
  [[nodiscard]] std::vector<Ranked> ranked() const { return fit::ranked(fits_, use_); }
  /// The models that have one quantisation, and not that of --quant.
  [[nodiscard]] const std::string& refused() const noexcept { return refused_; }
  [[nodiscard]] const std::string& explained(const std::string& name) const { return explained_.at(name); }

 private:
  void add(const fit::Row& row) { judge(fit::Candidate(row, machine_.cores, plan_within, machine_.mlx)); }
  void add(gguf::Document file) {
    fit::check_writes(file);
    judge(fit::Candidate(std::move(file), machine_.cores, plan_within));
  }

  void judge(fit::Candidate candidate) {
    const std::string& quant = verb_.quant;
    if (!quant.empty() && !candidate.keep_only(quant)) {
      if (candidate.ladder().size() == 1)
        refused_ += join(refused_.empty() ? "" : "; ", candidate.name(), " is published in ",
                         candidate.ladder().front().name, " alone");
      return;
    }
    fit::Fit fit = selector_.select(candidate);
    if (!quant.empty()) fit.max_context_that_fits = selector_.longest_context(candidate, fit);
    if (verb_.explain) explained_[fit.name] = explanation(machine_, use_, candidate, fit);
    fits_.push_back(std::move(fit));
  }

  const FitVerb& verb_;
  const fit::Machine& machine_;
  const fit::Use& use_;
  fit::Selector selector_;
  std::vector<fit::Fit> fits_;
  std::map<std::string, std::string> explained_;
  std::string refused_;
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

/// Columns of stdout; 0 where it is no terminal.
std::size_t terminal_width() {
  struct ::winsize size {};
  const bool is_terminal = ::isatty(STDOUT_FILENO) == 1 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
  return is_terminal ? size.ws_col : 0;
}

void show(const FitVerb& verb, const fit::Machine& machine, const Judge& judge,
          const std::vector<Ranked>& rows) {
  if (verb.json) return print(fit_json(machine, judge.use(), rows));
  if (verb.explain) {
    for (const Ranked& row : rows) print(judge.explained(row.fit.name) + "\n");
    return;
  }
  if (rows.empty()) return;
  print(join(fit_summary(rows.front(), judge.use(), verb.models.empty()), machine_text(machine), "\n\n",
             fit_table(rows, !verb.quant.empty(), terminal_width()), "\n", fit_hint(rows),
             verb.describes_machine()
                 ? ""
                 : "Another machine: mica fit --ram 16G, or --available SIZE on this one.\n",
             machine.speed.basis == "assumed"
                 ? "The bandwidth is assumed: mica doctor --measure, or --bandwidth RATE.\n"
                 : ""));
}

int FitVerb::run() {
  const fit::Machine machine = machine_of(*this);
  const fit::Level min = perfect ? fit::Level::perfect : level;
  Judge judge(*this, machine);
  for (const std::string& word : models) judge.named(word);
  if (models.empty()) judge.catalogue();
  const std::vector<Ranked> all = judge.ranked();
  MICA_CHECK(!all.empty() || !quant.empty(), file,
             "fit: no GGUF file of the named folders can be opened; the lines above say why");
  MICA_CHECK(!all.empty() || models.empty() || judge.refused().empty(), usage, "fit: --quant ",
             escaped(quant), ": ", judge.refused());
  MICA_CHECK(!all.empty(), usage, "fit: --quant ", escaped(quant),
             ": no model has that quantisation; known: ", recipe_words(),
             machine.mlx ? " mlx-8bit mlx-4bit" : "");
  const auto wanted = [&](const Ranked& row) { return row.fit.level <= min; };
  const bool some = std::any_of(all.begin(), all.end(), wanted);
  std::vector<Ranked> shown;
  const bool filtered = perfect || level_given;
  for (const Ranked& row : all) {
    if (!filtered || wanted(row)) shown.push_back(row);
  }
  if (rows != 0 && shown.size() > rows) shown.resize(rows);
  show(*this, machine, judge, shown);
  if (some) return 0;
  raise(ErrorCode::budget, "fit: none of ", all.size(), " models is ", fit::name(min), " or better on ",
        machine_text(machine), ". Nearest: ", nearest(all));
}

}  // namespace

AnyVerb make_fit() { return std::make_unique<FitVerb>(); }

}  // namespace mica::program
