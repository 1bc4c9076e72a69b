// SPDX-License-Identifier: Apache-2.0
//
// The memory that a model will need, before it is loaded. The plan is a dry run of the program: the same
// Transformer over an allocator that only counts, its cache filled to n_ctx.
#pragma once

#include "mica/alloc/counting.hpp"
#include "mica/arch/any_of.hpp"
#include "mica/arch/lists.hpp"
#include "mica/base/bits.hpp"
#include "mica/budget/ledger.hpp"
#include "mica/format/concept.hpp"
#include "mica/model/chosen.hpp"
#include "mica/plan/detail/sequences.hpp"
#include "mica/text/tokenizer.hpp"
#include "mica/text/vocabulary_gguf.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace mica::plan {

/// The part of process_bytes() that grows with a vocabulary, for each of its entries.
inline constexpr std::uint64_t process_bytes_per_piece = 5;

/// The part that any process has: 11.25 MiB.
inline constexpr std::uint64_t any_process_bytes = std::uint64_t{45} << 18;

/// Bytes of a process that no allocator sees: code, stacks, the C and C++ libraries, a model that is in memory
/// already (gguf::parse; resident weights are a copy of it), and temporary memory while a file is opened, which
/// grows with the vocabulary. How many pages of a program are in memory depends on the kernel and on the
/// policies that run: bench/plan/measure.py found 9.9 to 10.6 MiB for small vocabularies, up to 1.2 MiB more
/// where weights are streamed, and 10.4 to 11.8 for 64,000 to 262,000 pieces, and bench/budgets.py up to 11.1,
/// on x86-64 Linux with glibc.
[[nodiscard]] inline std::uint64_t process_bytes(const gguf::Document& document) {
  const auto pieces = document.metadata().get<gguf::Array<std::string_view>>("tokenizer.ggml.tokens");
  std::uint64_t bytes = any_process_bytes + process_bytes_per_piece * (pieces ? pieces->size() : 0);
  for (const gguf::Source& source : document.sources()) bytes += source.in_memory() ? source.size() : 0;
  return bytes;
}

/// The run that is planned.
struct Question {
  ModelOptions model;                                 // its sizes
  model::Choice choice;                               // its policies
  std::size_t threads = 1;                            // each has scratch
  std::size_t tokens = 0;                             // how far the context will be filled; 0: to n_ctx
  std::optional<std::uint64_t> tokenizer_bytes = {};  // from an earlier plan of the same file
  Sequences sequences = {};                           // contexts that are filled at the same time
  bool sequence_bytes = false;                        // whether the plan has them
  bool mtp = false;                                   // with the head for multi-token prediction of the file
};

/// The result.
struct Plan {
  budget::Accounts accounts;           // at the end of the run
  std::uint64_t peak_bytes = 0;        // the maximum at any moment
  std::size_t n_ctx = 0;               // tokens
  std::size_t tokens = 0;              // tokens that the KV account holds, of the first sequence
  std::size_t kv_bytes_per_token = 0;  // of layers that keep all tokens
  std::size_t kv_capacity = 0;         // the maximum of resident tokens in them; 0: all
  std::size_t kv_window_bytes = 0;     // of the others, at the full context
  std::uint64_t weight_bytes = 0;      // of all tensors, as in the file
  std::uint64_t streamed_bytes = 0;    // of them, that each step reads from the file
  bool reads_ahead = true;             // a layer is read while others are computed: there is memory for two
  /// Bytes of one sequence, by tiles of its tokens: [0] empty, [1] 1 to 16 tokens, ... Where sequences share,
  /// as with kv::Paged, those of its own tokens are differences.
  std::vector<std::uint64_t> sequence_bytes;
  arch::Config config;  // of the document
};

namespace detail {

/// An executor that has a number of workers and is never run.
struct Workers {
  std::size_t count;
  [[nodiscard]] std::size_t workers() const noexcept { return count; }
  template <class F>
  void run(std::size_t tasks, F&& f) noexcept {
    for (std::size_t task = 0; task < tasks; ++task) f(task, 0);
  }
};

/// Fills a cache of a dry model with `tokens` tokens.
template <class Model>
void fill(Model& model, typename Model::Cache& cache, std::size_t tokens) {
  const std::vector<text::TokenId> chunk(model.chunk());
  while (cache.tokens < tokens) {
    const std::size_t n = std::min(chunk.size(), tokens - cache.tokens);
    const model::StepStatus status = model.step(cache, std::span(chunk).first(n));
    MICA_CHECK(status == model::StepStatus::ok, budget, "a context of ", tokens,
               " tokens: planning stopped after ", cache.tokens, ": ", model::text(status));
  }
}

/// The filled caches of all sequences.
template <class Model>
[[nodiscard]] std::vector<typename Model::Cache> filled_caches(Model& model, const Question& question,
                                                               std::size_t tokens) {
  const Sequences& sequences = question.sequences;
  const std::size_t others = sequences.tokens == 0 ? tokens : std::min(sequences.tokens, tokens);
  std::size_t left =
      sequences.total_tokens == 0 ? std::numeric_limits<std::size_t>::max() : sequences.total_tokens;
  std::vector<typename Model::Cache> caches;
  for (std::size_t i = 0; i < std::max<std::size_t>(sequences.count, 1); ++i) {
    const std::size_t n = std::min(i == 0 ? tokens : others, left);
    caches.push_back(model.make_cache());
    fill(model, caches.back(), n);
    left -= std::min(left, round_up<std::size_t>(n, format::tile_tokens));
  }
  return caches;
}

/// Bytes of a cache as it grows by a tile at a time.
template <class Model>
[[nodiscard]] std::vector<std::uint64_t> sequence_bytes(Model& model, const budget::Ledger& ledger) {
  const std::uint64_t before = ledger.used();
  auto cache = model.make_cache();
  std::vector<std::uint64_t> bytes{ledger.used() - before};
  while (cache.tokens < model.n_ctx()) {
    fill(model, cache, std::min(cache.tokens + format::tile_tokens, model.n_ctx()));
    bytes.push_back(ledger.used() - before);
  }
  return bytes;
}

template <class Family, class Formats>
[[nodiscard]] Plan plan_family(const gguf::Document& document, const Question& question,
                               budget::Ledger& ledger) {
  using Dry = model::Chosen<Family, alloc::Counting, Workers, Formats>;
  Workers workers{question.threads};
  const alloc::Counting allocator(ledger, budget::Account::weights);
  auto model = model::make_chosen<Dry>(document, workers, question.model, allocator, question.choice);
  Plan plan;
  plan.n_ctx = model.n_ctx();
  plan.tokens = question.tokens == 0 ? model.n_ctx() : std::min(question.tokens, model.n_ctx());
  if (question.sequence_bytes) plan.sequence_bytes = sequence_bytes(model, ledger);
  const auto caches = filled_caches(model, question, plan.tokens);
  plan.accounts = ledger.accounts();
  if (question.mtp) {  // beside them, with one cache
    auto head = model::make_chosen<Dry>(document, workers, model::mtp_options(question.model), allocator,
                                        model::mtp_choice(question.choice));
    auto cache = head.make_cache();
    fill(head, cache, plan.tokens);
    plan.accounts = ledger.accounts();
  }
  plan.kv_bytes_per_token = model.kv_bytes_per_tile() / format::tile_tokens;
  plan.kv_capacity = model.kv_capacity();
  plan.kv_window_bytes = model.kv_window_bytes();
  plan.weight_bytes = model.weight_bytes();
  plan.streamed_bytes = model.streamed_bytes();
  plan.reads_ahead = paging::reads_ahead(model.weight_capacity());
  plan.config = model.config();
  return plan;
}

/// Bytes of the tables that the tokenizer makes of the header; 0 for a file without a vocabulary.
[[nodiscard]] inline std::uint64_t vocabulary_bytes(const gguf::Document& document) {
  if (!document.metadata().contains("tokenizer.ggml.tokens")) return 0;
  return text::make_tokenizer(text::vocabulary_from(document.metadata())).bytes();
}

}  // namespace detail

/// Plans a run. Raises the errors of opening the model about its file.
template <class Families = arch::All, class Formats = format::All>
[[nodiscard]] Plan make_plan(const gguf::Document& document, const Question& question) {
  budget::Ledger ledger;
  Plan plan = detail::plan_family<arch::AnyOf<Families>, Formats>(document, question, ledger);
  const std::uint64_t tokenizer_bytes = question.tokenizer_bytes
                                            ? *question.tokenizer_bytes
                                            : document.resident_bytes() + detail::vocabulary_bytes(document);
  plan.accounts[budget::Account::tokenizer] += tokenizer_bytes;
  const std::uint64_t process = process_bytes(document);
  plan.accounts[budget::Account::process] += process;
  plan.peak_bytes = ledger.peak() + tokenizer_bytes + process;
  return plan;
}

}  // namespace mica::plan

/// Compiles the dry run of these families and formats in one unit; `extern` before it says that another unit
/// does. runtime/units/ does so for all of them, in the library that mica_add_runtime() makes.
#define MICA_INSTANTIATE_PLAN(FAMILIES, FORMATS)                                                       \
  template ::mica::plan::Plan mica::plan::detail::plan_family<::mica::arch::AnyOf<FAMILIES>, FORMATS>( \
      const ::mica::gguf::Document&, const ::mica::plan::Question&, ::mica::budget::Ledger&);

#ifdef MICA_COMPILED_RUNTIME
extern MICA_INSTANTIATE_PLAN(mica::arch::All, mica::format::All)
#endif
