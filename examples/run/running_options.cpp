// SPDX-License-Identifier: Apache-2.0
#include "running_options.hpp"

#include "mica/base/assert.hpp"
#include "mica/budget/limits.hpp"
#include "mica/budget/size.hpp"
#include "mica/kv/elements.hpp"
#include "mica/model/transformer.hpp"
#include "targets.hpp"

#include <algorithm>
#include <utility>

namespace mica::program {
namespace {

constexpr std::size_t max_threads = 1024;

/// Elements of keys or values: one name, or RECENT:OLD.
Flag& element(Flags& flags, std::string_view names, std::string& to, std::string about, Flags::Check check) {
  return flags.checked(names, to, "TYPE", std::move(about), std::move(check))
      .likens({"f16", "q8_0", "f32", "bf16", "q6_0", "q5_1", "q5_0", "q4_1", "q4_0", "q4_s", "iq4_nl",
               "kivi4", "kivi2", "kvarn4", "kvarn3", "kvarn2"});
}

}  // namespace

void RunningOptions::add_to(Flags& flags, std::string context, std::string standard) {
  flags.group("Model");
  flags.number("-c,--ctx-size,--ctx", n_ctx, {0, model::max_context}, std::move(context)).standard =
      std::move(standard);
  add_threads(flags, threads, "Model");
  flags
      .text("--targets", targets, "NAME",
            "best instruction set to use, such as AVX2; doctor names them. For measurements: numbers do not "
            "change")
      .likens(target_names(kernel::highway::compiled_targets(), kernel::highway::Beside::all));
  flags
      .number("-b,-ub,--batch-size,--ubatch-size,--chunk", chunk, {1, 1 << 16},
              "maximum of tokens of a step when a prompt is read")
      .marks(chunk_given);
  flags.checked(
      "--memory", memory, "SIZE",
      "budget: 6GiB, 800M, 75% of what is available; by default what the limits of the process and the "
      "machine leave",
      [](const std::string& text, const std::string& where) {
        if (budget::parse_size(text, std::uint64_t{1} << 40, where) == 0)
          raise(ErrorCode::usage, where, " needs a size above 0, found '", escaped(text),
                "'; leave it out to use what the limits of the process and the machine allow");
      });
  element(flags, "-ctk,--cache-type-k", choice.cache_type_k,
          "keys: f16 q8_0 f32 bf16 q6_0 q5_1 q5_0 q4_1 q4_0 q4_s iq4_nl, the last seven with _rotated or "
          "_plain behind them too; by age: kivi4 kivi2 kvarn4 kvarn3 kvarn2 RECENT:OLD",
          [](const std::string& name, const std::string&) {
            static_cast<void>(kv::parse_elements(name, "keys"));
          })
      .marks(elements_given);
  element(flags, "-ctv,--cache-type-v", choice.cache_type_v, "values: the same names",
          [](const std::string& name, const std::string&) {
            static_cast<void>(kv::parse_elements(name, "values"));
          })
      .marks(elements_given);
  flags.number("--cache-recent", choice.cache_recent, {1, 1 << 24},
               "number of recent tokens, where elements of keys and values change with age");
  flags
      .choice("--kv", choice.kv, {"segmented", "contiguous", "reserved", "paged", "spilled", "spilled-paged"},
              "NAME", "storage of keys and values: segmented contiguous reserved paged spilled spilled-paged")
      .marks(storage_given);
  flags
      .checked("--evict", choice.evict, "HOW",
               "which tokens a cache of KEEP tokens evicts: none sinks:KEEP heavy:KEEP (sinks:KEEP,SINKS "
               "heavy:KEEP,RECENT)",
               [](const std::string& how, const std::string&) { static_cast<void>(parse_eviction(how)); })
      .likens({"none", "sinks:", "heavy:"})
      .marks(eviction_given);
  flags.choice("--kernels", choice.kernels, {"exact", "fast8"}, "NAME",
               "how prompts are computed: exact, or fast8: faster, weights rounded to 8 bits");
  flags
      .choice("--weights", choice.weights,
              {"resident", "mapped", "streamed", "mapped-sequential", "mapped-populated", "mapped-locked"},
              "NAME",
              "how weights come into memory: mapped (also -sequential, -populated, -locked), resident, or "
              "streamed: what does not fit the budget is read from the disk")
      .marks(weights_given);
  flags.at_end([this](std::vector<std::string>& notes) { settle_memory(notes); });
}

void add_rank_split(Flags& flags, ranks::Split& split) {
  flags.choice("--rank-split", split, {{"rows", ranks::Split::rows}, {"layers", ranks::Split::layers}},
               "rows", "NAME",
               "what several ranks divide: rows of every layer, or layers, for slow networks");
}

void RunningOptions::add_ranks(Flags& flags) {
  flags.group("Model");
  flags.checked(
      "--rank-shares", rank_shares_text, "LIST",
      "of several processes that mpirun started: the share of each in the weights, such as 2,1,1; by "
      "default equal ones",
      [](const std::string& text, const std::string& where) {
        static_cast<void>(parse_shares(text, where));
      });
  add_rank_split(flags, rank_split);
  flags.at_end([this](std::vector<std::string>&) {
    if (!rank_shares_text.empty()) rank_shares = parse_shares(rank_shares_text, "--rank-shares");
  });
}

void RunningOptions::add_degrade(Flags& flags) {
  flags.group("Model");
  flags.toggle(
      "--degrade", degrade,
      "to fit the budget, a window of tokens, keys and values in a file or of 4 bits may be chosen: they "
      "change answers, or are slow");
}

void RunningVerb::prepare() {
  check_machine();
  if (!targets.empty()) limit_targets(targets);
  link = join_ranks(runs_on_ranks() ? std::string_view() : about.name);
}

/// Limits are read once, here; plans and ledgers use these numbers.
void RunningOptions::settle_memory(std::vector<std::string>& notes) {
  limits = budget::memory_limits();
  if (memory.empty()) return;
  const std::uint64_t requested = budget::parse_size(memory, limits.usable(), "--memory");
  MICA_CHECK(requested != 0, usage, "--memory: found \"", escaped(memory),
             "\", needed a size above 0; without --memory the limits of the process and the machine count.");
  const budget::Ceiling ceiling = budget::ceiling_of(requested, limits);
  memory_bytes = other_machine ? requested : ceiling.bytes;
  if (ceiling.lowered())
    notes.push_back(join("--memory ", budget::text(ceiling), other_machine ? " in a run here" : ""));
}

void add_threads(Flags& flags, std::size_t& threads, std::string group) {
  flags.group(std::move(group));
  flags.custom("-t,--threads", "N", "threads; 0 and -1: what affinity and the CPU quota allow",
               join("a whole number from 1 to ", max_threads, ", or 0 or -1 for the machine's own"), "0",
               [&threads](const std::string& text, const std::string&) {
                 std::int64_t n = 0;
                 const bool fits = read_number(text, Range<std::int64_t>{-1, max_threads}, n);
                 if (fits) threads = static_cast<std::size_t>(std::max<std::int64_t>(n, 0));
                 return fits;
               });
  flags.at_end([&threads](std::vector<std::string>& notes) {
    const std::size_t cores = budget::cpu_limits().threads();
    if (threads > cores)
      notes.push_back(join(threads, " threads share ", cores, cores == 1 ? " core" : " cores",
                           "; that is slower, and -t 0 takes one for each usable core"));
  });
}

OpenOptions open_options(const RunningOptions& options) {
  OpenOptions open;
  open.n_ctx = options.n_ctx;
  open.chunk = options.chunk;
  open.threads = options.threads;
  open.choice = choice_of(options.choice);
  open.memory_bytes = options.memory_bytes;
  open.limits = options.limits;
  if (options.link != nullptr) {
    open.choice.ranks =
        ranks::Several<ranks::AnyLink>(*options.link, options.rank_shares, options.rank_split);
    if (options.link->rank() == 0) open.leads = options.link.get();
    if (open.memory_bytes) *open.memory_bytes -= std::min(*open.memory_bytes, mpi_bytes);
    open.limits = options.limits.without(mpi_bytes);
  }
  return open;
}

}  // namespace mica::program
