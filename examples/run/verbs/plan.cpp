// SPDX-License-Identifier: Apache-2.0
//
// The memory of a run, account by account, before a model is loaded.
#include "advice_text.hpp"
#include "budgeted.hpp"
#include "choice.hpp"
#include "columns.hpp"
#include "console.hpp"
#include "input.hpp"
#include "json_text.hpp"
#include "machine_speed.hpp"
#include "meter.hpp"
#include "mica/arch/any_of.hpp"
#include "mica/arch/lists.hpp"
#include "mica/budget/limits.hpp"
#include "mica/budget/size.hpp"
#include "mica/io/atomic_file.hpp"
#include "mica/plan/solve.hpp"
#include "mica_tools/embed/text_embedder.hpp"
#include "mica_tools/remote/url.hpp"
#include "plan_text.hpp"
#include "rank_hosts.hpp"
#include "verbs.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace mica::program {
namespace {

class PlanVerb final : public RunningVerb {
 public:
  PlanVerb()
      : RunningVerb(
            {"plan", "what a model needs, before it is loaded", "mica plan model.gguf -c 8192 --memory 6GiB"},
            Needs::header) {}
  int run() override;

  bool measure = false;
  std::size_t parallel = 1;  // sequences at once
  bool solve = false;
  std::string svg;  // a file, empty
  bool probe = false;
  std::string ranks_file;  // empty: one machine

 private:
  void declare(Flags& flags) override {
    add_model(flags);
    other_machine = true;
    RunningOptions::add_to(flags);
    add_degrade(flags);
    flags.group("Speed");
    flags.toggle(
        "--measure", measure,
        "measure in some seconds the kernels that this model uses; the first time, and with --solve, "
        "all of them");
    flags.group("Plan");
    flags.number("-np,--parallel", parallel, {1, 1024}, "sequences at once, each with a context of its own");
    flags.toggle("--solve", solve, "all solutions within --memory, each with its longest context");
    flags.text("--svg", svg, "FILE", "draw the planned peak against the context");
    flags.text("--ranks", ranks_file, "FILE",
               "one plan for several machines, which this file describes: share, peak and time of each");
    add_rank_split(flags, rank_split);
    flags.toggle("--probe", probe,
                 "measure the disk for a second: the steps per second when weights are streamed");
  }
};

/// The share of a whole as a row of 40 cells.
std::string bar(std::uint64_t part, std::uint64_t whole) {
  constexpr std::uint64_t cells = 40;
  const std::uint64_t unit = std::max<std::uint64_t>(whole / cells, 1);
  const std::uint64_t full = std::min((part + unit / 2) / unit, cells);
  return std::string(static_cast<std::size_t>(full), '#') +
         std::string(static_cast<std::size_t>(cells - full), '.');
}

/// The predicted speed of a run, at the beginning of its context and at the end.
struct PredictedSpeed {
  std::size_t prompt = 0;  // tokens of the first prompt
  plan::MachineSpeed machine;
  plan::Speed first, last;
};

/// Tokens of the prompt for which the time to the first token is shown, if the context has as many.
constexpr std::size_t prompt_tokens = 512;

/// Bytes of experts that a token reads from the file, if each expert has the same probability.
std::uint64_t expert_reads(const gguf::Document& document, const plan::Plan& plan,
                           const plan::Question& question) {
  const plan::Work work =
      plan::work_of(document, plan.config, {question.choice.cache_type_k, question.choice.cache_type_v}, 0);
  return static_cast<std::uint64_t>(plan::reads_of(work, plan, question.model.chunk).token_experts);
}

double part_as_in_file(const gguf::Document& document, const plan::Plan& plan, paging::Choice weights) {
  return plan::part_as_in_file(document, weights, plan.weight_bytes, plan.accounts[budget::Account::weights]);
}

/// What a run of this plan uses.
plan::SpeedParts parts_of(const plan::Work& work, double as_in_file) {
  plan::SpeedParts parts;
  for (const auto& [id, weights] : work.weights) parts.formats.insert(id);
  parts.elements = {work.keys.element, work.values.element};
  parts.as_in_file = as_in_file > 0;
  return parts;
}

/// Empty if this machine was not measured.
std::optional<PredictedSpeed> predicted_speed(const PlanVerb& verb, const gguf::Document& document,
                                              const plan::Plan& plan, const plan::Question& question) {
  const io::File* const file = largest_file(document);
  const kv::AnyElements<> elements = elements_of(question.choice);
  const double as_in_file = part_as_in_file(document, plan, question.choice.weights);
  const auto measure = [&] {
    const plan::SpeedParts parts =
        parts_of(plan::work_of(document, plan.config, elements, 0, plan.kv_capacity), as_in_file);
    const bool reads_disk = verb.solve || plan.streamed_bytes > 0;
    return measure_speed(verb, question.threads, reads_disk ? file : nullptr, verb.solve ? nullptr : &parts);
  };
  const auto machine = verb.measure ? measure() : known_speed(question.threads, file);
  if (!machine) return std::nullopt;
  const std::size_t prompt = std::min(prompt_tokens, plan.n_ctx), chunk = question.model.chunk;
  const std::size_t sequences = question.sequences.count;
  const auto at = [&](std::size_t tokens) {
    const plan::Work work = plan::work_of(document, plan.config, elements, tokens, plan.kv_capacity);
    return plan::predict(work, *machine, plan::reads_of(work, plan, chunk, sequences),
                         {prompt, chunk, sequences, as_in_file});
  };
  return PredictedSpeed{prompt, *machine, at(prompt), at(plan.n_ctx)};
}

std::string speed_text(const std::optional<PredictedSpeed>& predicted, const plan::Plan& plan,
                       std::size_t threads) {
  if (!predicted) {
    const bool usual = threads == budget::cpu_limits().threads();
    return join("speed        not known here; mica doctor --measure", usual ? "" : join(" -t ", threads),
                " takes up to a minute, once\n");
  }
  const auto& [prompt, machine, first, last] = *predicted;
  if (plan.config.encodes)
    return join("speed        ", at_right(fixed(first.prefill, 1), 11), "  tokens a second of texts of ",
                prompt, " (", machine.basis, ")\n");
  return join("speed        ", at_right(fixed(first.decode, first.decode < 10 ? 2 : 1), 11),
              "  tokens a second, ", fixed(last.decode, 2), " at ", plan.n_ctx, "; prompts ",
              fixed(first.prefill, 1), ", the first token after ", fixed(first.first_token_seconds, 2),
              " s for a prompt of ", prompt, " (", machine.basis, ")\n");
}

std::string speed_json(const std::optional<PredictedSpeed>& predicted) {
  if (!predicted) return {};
  const auto& [prompt, machine, first, last] = *predicted;
  return join(",\"speed\":{\"basis\":", json_string(machine.basis),
              ",\"decode_per_second\":", fixed(first.decode, 3),
              ",\"decode_per_second_full\":", fixed(last.decode, 3),
              ",\"prefill_per_second\":", fixed(first.prefill, 3),
              ",\"first_token_seconds\":", fixed(first.first_token_seconds, 3), "}");
}

std::string plan_json(const plan::Plan& plan, const plan::Question& question, const std::string& evict,
                      std::uint64_t budget, bool fits, const std::string& more) {
  std::string accounts;
  plan.accounts.for_each([&](budget::Account account, std::uint64_t bytes) {
    accounts += join(accounts.empty() ? "" : ",", json_string(budget::name(account)), ":", bytes);
  });
  return join(
      "{\"peak_bytes\":", plan.peak_bytes, ",\"accounts\":{", accounts, "},\"budget_bytes\":", budget,
      ",\"fits\":", fits, ",\"n_ctx\":", plan.n_ctx, ",\"n_ctx_train\":", plan.config.n_ctx_train,
      ",\"kv_bytes_per_token\":", plan.kv_bytes_per_token, ",\"kv_window_bytes\":", plan.kv_window_bytes,
      ",\"weight_bytes\":", plan.weight_bytes, ",\"streamed_bytes\":", plan.streamed_bytes, more,
      ",\"architecture\":", json_string(plan.config.arch), ",\"layers\":", plan.config.layers.size(),
      ",\"parallel\":", question.sequences.count, ",\"threads\":", question.threads,
      ",\"chunk\":", question.model.chunk, ",\"kv\":", json_string(kv::name(question.choice.kv)),
      ",\"evict\":", json_string(evict), ",\"weights\":", json_string(paging::name(question.choice.weights)),
      ",\"type_k\":", json_string(kv::name(question.choice.cache_type_k)),
      ",\"type_v\":", json_string(kv::name(question.choice.cache_type_v)), "}\n");
}

/// The steps per second that the disk of a model allows; each reads the weights that are not resident.
double steps_per_second(const gguf::Document& document, const plan::Plan& plan) {
  const io::File* const file = largest_file(document);
  MICA_CHECK(
      plan.streamed_bytes > 0 && file != nullptr, usage, document.path(),
      ": --probe: nothing is streamed; use --weights streamed and a --memory that is less than the model");
  return disk_speed(*file).in_order / static_cast<double>(plan.streamed_bytes);
}

/// What the settings of this machine mean for the planned run; the lines that are not fine.
std::vector<advice::Advice> advice_for(const PlanVerb& verb, const gguf::Document& document,
                                       const plan::Plan& plan, const plan::Question& question) {
  advice::MachineFacts machine = advice::read_machine_facts("");
  machine.memory = verb.limits;
  const std::string_view weights = paging::name(question.choice.weights);
  const advice::RunFacts run = {.peak_bytes = plan.peak_bytes,
                                .streamed_bytes = plan.streamed_bytes,
                                .maps = weights.starts_with("mapped"),
                                .locks = weights == "mapped-locked"};
  const io::File* const file = largest_file(document);
  if (file == nullptr) return advice::advise(machine, nullptr, run);
  advice::FileFacts place = advice::read_file_facts("", file->path());
  place.bytes = std::max(file->size(), plan.weight_bytes);  // of all files of a model
  const bool reads = run.streamed_bytes > 0 && place.storage != advice::Storage::memory;
  if (reads) place.reads_direct = advice::reads_direct(*file);
  return advice::advise(machine, &place, run);
}

/// "F16       in memory    4.2 GiB  29,184 tokens": a line for each solution.
std::string solutions_text(const std::vector<plan::Solution>& solutions,
                           const std::optional<plan::MachineSpeed>& machine, const gguf::Document& document,
                           const plan::Question& question) {
  const std::size_t chunk = question.model.chunk, sequences = question.sequences.count;
  std::string text = "\nkeys, values  weights    longest context       peak\n";
  for (const plan::Solution& solution : solutions) {
    text += join(at_left(std::string(kv::name(solution.element)), 14),
                 solution.streamed ? "streamed   " : "in memory  ");
    if (solution.n_ctx == 0) {
      text += join("does not fit: ", budget::size_text(solution.plan.peak_bytes),
                   " even with the shortest context\n");
      continue;
    }
    text += join(at_right(join(solution.n_ctx), 8), " tokens",
                 at_right(budget::size_text(solution.plan.peak_bytes), 11));
    if (solution.streamed)
      text += join("  ", budget::size_text(solution.plan.streamed_bytes), " read for each step");
    if (machine) {
      const plan::Work work =
          plan::work_of(document, solution.plan.config, {solution.element, solution.element}, 0);
      const plan::Speed speed =
          plan::predict(work, *machine, plan::reads_of(work, solution.plan, chunk), {1, chunk, sequences});
      text += join("  ", fixed(speed.decode, 2), " tokens a second at first");
    }
    text += "\n";
  }
  return text;
}

std::string solutions_json(const std::vector<plan::Solution>& solutions) {
  std::string text;
  for (const plan::Solution& solution : solutions)
    text += join(text.empty() ? "" : ",", "{\"element\":", json_string(kv::name(solution.element)),
                 ",\"weights\":", solution.streamed ? "\"streamed\"" : "\"resident\"",
                 ",\"n_ctx\":", solution.n_ctx, ",\"peak_bytes\":", solution.plan.peak_bytes,
                 ",\"streamed_bytes\":", solution.plan.streamed_bytes, "}");
  return join(",\"ways\":[", text, "]");
}

/// The changes of run, chat and complete if the plan does not fit, and the smallest budget.
std::string fallback_json(const std::optional<plan::Fallback>& fallback, const plan::Fallback& min) {
  const auto object = [](const plan::Fallback& r) {
    const model::Choice& choice = r.question.choice;
    return join("{\"peak_bytes\":", r.plan.peak_bytes, ",\"n_ctx\":", r.plan.n_ctx,
                ",\"chunk\":", r.question.model.chunk,
                ",\"weights\":", json_string(paging::name(choice.weights)),
                ",\"streamed_bytes\":", r.plan.streamed_bytes,
                ",\"type_k\":", json_string(kv::name(choice.cache_type_k)),
                ",\"type_v\":", json_string(kv::name(choice.cache_type_v)), "}");
  };
  return join(fallback ? join(",\"run\":", object(*fallback)) : std::string(), ",\"least\":", object(min));
}

/// The model on the machines of a file.
int plan_for_ranks(const PlanVerb& verb, const gguf::Document& document, plan::Question question) {
  MICA_CHECK(!verb.solve && !verb.probe && verb.svg.empty() && verb.memory.empty(), usage,
             "--ranks has a budget for each machine; leave out --memory, --solve, --probe and --svg");
  const RankHosts hosts = parse_rank_hosts(verb.ranks_file, read_text(verb.ranks_file));
  if (question.model.n_ctx == 0)
    question.model.n_ctx =
        std::min(arch::AnyOf<arch::All>::config(document).n_ctx_train, plan::comfortable_tokens);
  question.choice.ranks = ranks::Several<ranks::AnyLink>(ranks::Division(), verb.rank_split);
  const std::uint64_t beside = hosts.machines.size() == 1 ? 0 : mpi_bytes;
  const auto planner = [&](const gguf::Document& d, plan::Question q, std::uint64_t budget) {
    plan::Plan plan = plan_within(d, std::move(q), budget - std::min(budget, beside));
    plan.accounts[budget::Account::process] += beside;
    plan.peak_bytes += beside;
    return plan;
  };
  const plan::RanksPlan plan = plan::plan_ranks(document, question, hosts.machines, hosts.network, planner);
  print(verb.json ? ranks_json(hosts, plan) : ranks_text(hosts, plan, document.path()));
  return 0;
}

int PlanVerb::run() {
  MICA_CHECK(!remote::is_url(model_path) || !probe, usage, remote::shown(model_path),
             ": --probe measures the disk that a file lies on; download the file first");
  refuse_own_input(svg);
  const gguf::Document document = open_document(*this);
  OpenOptions open = open_options(*this);
  open.logits_rows = open.sequences.count = parallel;
  const arch::Config model = arch::AnyOf<arch::All>::config(document);
  MICA_CHECK(!model.encodes || parallel == 1, usage, document.path(),
             " is a text encoder: its texts share steps of up to --chunk tokens; leave out --parallel");
  if (model.encodes) open = embedding_options(std::move(open), model);  // as mica embed opens it
  const plan::Question question = question_of(open);
  if (!ranks_file.empty()) return plan_for_ranks(*this, document, question);
  const std::uint64_t budget = open.memory_bytes ? *open.memory_bytes : budget_of(document, open);
  const plan::Plan plan = plan_within(document, question, budget);
  note_long_context(*this, plan.n_ctx, plan.config);
  const bool fits = plan.peak_bytes <= budget;
  const plan::Adjustable free = model.encodes ? plan::Adjustable() : freedom_of(*this);  // as mica embed
  const std::optional<plan::Fallback> fallback =
      fits ? std::nullopt : fallback_within(document, question, budget, free);
  const double steps = probe ? steps_per_second(document, plan) : 0;
  const std::optional<PredictedSpeed> predicted = predicted_speed(*this, document, plan, question);
  const std::uint64_t experts = expert_reads(document, plan, question);
  const std::vector<advice::Advice> lines = advice_for(*this, document, plan, question);
  if (!svg.empty()) {
    const std::string drawing = plan_svg(document, question, budget);
    io::write_atomically(svg, [&](io::AtomicFile& out) { out.write(std::as_bytes(std::span(drawing))); });
  }
  std::vector<plan::Solution> solutions;
  if (solve)
    solutions =
        plan::solutions(document, question, n_ctx != 0 ? plan.n_ctx : plan.config.n_ctx_train, budget);
  if (json) {
    print(plan_json(
        plan, question, choice.evict, budget, fits,
        join(",\"expert_read_bytes\":", experts,
             probe ? join(",\"disk_steps_per_second\":", fixed(steps, 3)) : "", speed_json(predicted),
             ",\"advice\":", advice_json(lines), solve ? solutions_json(solutions) : "",
             fits ? "" : fallback_json(fallback, smallest_fallback(document, question, free)))));
  } else {
    print(plan_text(plan, budget));
    if (experts > 0) {
      print(join("experts      ", at_right(budget::size_text(experts), 11),
                 "  read from the file for each token, on average\n"));
    }
    print(speed_text(predicted, plan, question.threads));
    print(advice_text(lines, 13));
    if (solve)
      print(solutions_text(solutions, predicted ? std::optional(predicted->machine) : std::nullopt, document,
                           question));
    // run changes its plan by itself, and has one sequence; for several the user gives the flags.
    const std::string who = parallel > 1 || model.encodes ? "it fits with:" : "mica run uses:";
    if (fallback) print(join(at_left(who, 26), plan::differences(question, *fallback), "\n"));
    if (probe)
      print(join("disk         ", at_right(fixed(steps, 2), 11),
                 "  steps a second at the speed that the disk has now; reads from a cache are faster\n"));
  }
  if (fits) return 0;
  raise(ErrorCode::budget, document.path(), ": ", refusal(document, question, plan, budget, free));
}

}  // namespace

std::string plan_text(const plan::Plan& plan, std::uint64_t budget) {
  std::string text;
  const auto line = [&](std::string_view name, std::uint64_t bytes) {
    text += join(at_left(std::string(name), 13), at_right(budget::size_text(bytes), 11), "  ",
                 bar(bytes, plan.peak_bytes), "\n");
  };
  plan.accounts.for_each([&](budget::Account account, std::uint64_t bytes) {
    if (bytes > 0) line(budget::name(account), bytes);
  });
  line("peak", plan.peak_bytes);
  const std::string windows = plan.kv_window_bytes == 0
                                  ? std::string()
                                  : join(", ", budget::size_text(plan.kv_window_bytes), " in windows");
  if (plan.streamed_bytes > 0) {
    text += join("streamed     ", at_right(budget::size_text(plan.streamed_bytes), 11),
                 "  read from the file for each step\n");
  }
  const std::string resident =
      plan.kv_capacity == 0 ? std::string() : join(", at most ", plan.kv_capacity, " tokens resident");
  return text + join("budget       ", at_right(budget::size_text(budget), 11), "  ", plan.n_ctx,
                     " tokens of context, ", budget::size_text(plan.kv_bytes_per_token),
                     " of keys and values per token", windows, resident, "\n");
}

AnyVerb make_plan() { return std::make_unique<PlanVerb>(); }

}  // namespace mica::program
