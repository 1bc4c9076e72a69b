// SPDX-License-Identifier: Apache-2.0
#include "budgeted.hpp"

#include "console.hpp"
#include "mica/arch/any_of.hpp"
#include "mica/base/bits.hpp"
#include "mica/base/error.hpp"
#include "mica/budget/limits.hpp"
#include "mica/budget/size.hpp"
#include "mica_tools/fit/candidate.hpp"

#include <algorithm>
#include <utility>

namespace mica::program {
namespace {

/// "--weights streamed -c 4096": if weights do not fit; empty if not even a ring fits.
std::string streamed_way_out(const gguf::Document& document, plan::Question question, std::size_t n_ctx,
                             std::uint64_t budget) {
  if (question.choice.weights == paging::Choice::streamed) return {};
  question.choice.weights = paging::Choice::streamed;
  question.choice.weights_bytes = 1;  // the minimum
  const std::size_t n = plan::longest_context(document, question, n_ctx + format::tile_tokens, budget);
  return n == 0 ? std::string() : join("--weights streamed -c ", n);
}

/// "--chunk 128": the largest of some smaller steps with which all else stays; empty if none fits.
std::string smaller_steps(const gguf::Document& document, plan::Question question, std::uint64_t budget) {
  while (question.model.chunk > plan::min_chunk) {
    question.model.chunk = std::max(question.model.chunk / 4, plan::min_chunk);
    if (plan_within(document, question, budget).peak_bytes <= budget)
      return join("--chunk ", question.model.chunk);
  }
  return {};
}

/// "-c 6144, or with --cache-type-k q8_0 --cache-type-v q8_0 -c 11264, or with --chunk 128"; with streamed weights
/// if nothing else fits.
std::string ways_out(const gguf::Document& document, const plan::Question& question, std::size_t n_ctx,
                     std::uint64_t budget) {
  std::string text;
  const std::size_t longest = plan::longest_context(document, question, n_ctx, budget);
  if (longest != 0) text = join("-c ", longest);
  plan::Question smaller = question;
  smaller.choice.cache_type_k = smaller.choice.cache_type_v = kv::Element::q8_0;
  if (question.choice.cache_type_k != kv::Element::q8_0 ||
      question.choice.cache_type_v != kv::Element::q8_0) {
    const std::size_t n = plan::longest_context(document, smaller, n_ctx + format::tile_tokens, budget);
    if (n > longest) {  // elements of four bits are smaller
      text += join(text.empty() ? "" : ", or with ", "--cache-type-k q8_0 --cache-type-v q8_0 -c ", n);
    }
  }
  if (const std::string steps = smaller_steps(document, question, budget); !steps.empty())
    text += join(text.empty() ? "" : ", or with ", steps);
  return text.empty() ? streamed_way_out(document, question, n_ctx, budget) : text;
}

/// "weights 2.5 KiB, kv 111.2 MiB at 4096 tokens, ...": every account that is not 0, and memory that only
/// loading takes.
std::string parts_text(const plan::Question& question, const plan::Plan& plan) {
  std::string text;
  const auto add = [&](std::string_view name, std::uint64_t bytes) {
    if (bytes > 0) text += join(text.empty() ? "" : ", ", name, " ", budget::size_text(bytes));
  };
  plan.accounts.for_each([&](budget::Account account, std::uint64_t bytes) {
    add(budget::name(account), bytes);
    if (account != budget::Account::kv || bytes == 0) return;
    text += join(" at ", plan.tokens, " tokens");
    if (question.sequences.count > 1) text += join(" and ", question.sequences.count, " sequences");
  });
  add("loading", plan.peak_bytes - std::min(plan.peak_bytes, plan.accounts.total()));
  return text;
}

/// "The minimum is --memory 201.3MiB, with 16 tokens of context": no "with" if nothing must change.
std::string min_text(const gguf::Document& document, const plan::Question& question, plan::Adjustable free) {
  const plan::Fallback min = smallest_fallback(document, question, free);
  const std::string changes = plan::differences(question, min);
  return join("The minimum is --memory ", budget::size_word(min.plan.peak_bytes),
              changes.empty() ? "" : join(", with ", changes));
}

/// Bytes that opening takes for each entry of a vocabulary: twice the measured bytes of tokenizers' tables.
constexpr std::uint64_t estimated_piece_bytes = 128;

/// An upper estimate for the tokenizer: to make one only to count its bytes is slow.
std::uint64_t estimated_tokenizer_bytes(const gguf::Document& document) {
  const auto pieces = document.metadata().get<gguf::Array<std::string_view>>("tokenizer.ggml.tokens");
  return document.resident_bytes() + estimated_piece_bytes * (pieces ? pieces->size() : 0);
}

/// question: of the run, with the bytes of its tokenizer.
void let_weights_leave(const AnswerVerb& verb, const gguf::Document& document, const plan::Question& question,
                       OpenOptions& open) {
  OpenOptions leaving = open;
  leaving.choice.weights = paging::Choice::streamed;
  if (weights_may_leave(verb, document, question, budget_of(document, leaving)))
    open.choice.weights = leaving.choice.weights;
}

/// Weights stay as they are if that fits, since the budget of streamed ones may be smaller (ceiling_of).
std::optional<plan::Fallback> first_fallback(const gguf::Document& document, const plan::Question& requested,
                                             const OpenOptions& open, plan::Adjustable free) {
  OpenOptions streamed = open;
  streamed.choice.weights = paging::Choice::streamed;
  const std::uint64_t budget = budget_of(document, open), less = budget_of(document, streamed);
  if (!free.weights || less == budget) return fallback_within(document, requested, budget, free);
  plan::Adjustable stay = free;
  stay.weights = false;
  if (auto fallback = fallback_within(document, requested, budget, stay)) return fallback;
  return fallback_within(document, requested, less, free);
}

}  // namespace

plan::Question question_of(const OpenOptions& open) {
  plan::Question question;
  question.model = {.n_ctx = open.n_ctx,
                    .chunk = open.chunk,
                    .logits_rows = open.logits_rows,
                    .drafts = open.drafts,
                    .log = {}};
  question.choice = open.choice;
  question.sequences = open.sequences;
  question.mtp = open.mtp;
  question.threads = open.threads == 0 ? budget::cpu_limits().threads() : open.threads;
  return question;
}

plan::Plan plan_run(const gguf::Document& document, const plan::Question& question) {
  return plan::make_plan(document, question);
}

plan::Plan plan_within(const gguf::Document& document, plan::Question question, std::uint64_t budget_bytes) {
  return fit::plan_within(document, std::move(question), budget_bytes);
}

std::uint64_t budget_of(const gguf::Document& document, const OpenOptions& open) {
  return ceiling_of(document, open).bytes;
}

plan::Adjustable freedom_of(const RunningOptions& options) {
  return {options.n_ctx == 0, !options.elements_given, !options.weights_given, !options.chunk_given,
          options.degrade,    !options.eviction_given, !options.storage_given};
}

bool weights_may_leave(const AnswerVerb& verb, const gguf::Document& document, plan::Question question,
                       std::uint64_t budget) {
  if (!verb.governor || verb.weights_given || question.choice.weights != paging::Choice::resident ||
      document.sources().front().file() == nullptr ||
      arch::largest_mixture(arch::AnyOf<arch::All>::config(document)) != 0)
    return false;
  question.choice.weights = paging::Choice::streamed;
  return plan_run(document, question).peak_bytes <= budget;
}

std::string refusal(const gguf::Document& document, const plan::Question& question, const plan::Plan& plan,
                    std::uint64_t budget, plan::Adjustable free) {
  plan::Question known = question;
  known.tokenizer_bytes = plan.accounts[budget::Account::tokenizer];  // counted once
  const std::string solutions = ways_out(document, known, plan.n_ctx, budget);
  return join("needs ", budget::size_text(plan.peak_bytes), ", budget ", budget::size_text(budget), " (",
              parts_text(question, plan), "). ", solutions.empty() ? "" : join("Fits with ", solutions, ". "),
              min_text(document, known, free));
}

std::optional<plan::Fallback> fallback_within(const gguf::Document& document, const plan::Question& question,
                                              std::uint64_t budget, plan::Adjustable free) {
  return plan::Fallbacks<>(document, question, budget, free).first_that_fits();
}

plan::Fallback smallest_fallback(const gguf::Document& document, const plan::Question& question,
                                 plan::Adjustable free) {
  return plan::Fallbacks<>(document, question, 0, free).smallest();
}

void make_it_fit(const AnswerVerb& verb, const gguf::Document& document, OpenOptions& open) {
  const bool planned =
      open.memory_bytes.has_value();  // else memory grows with use, and only the first tokens must fit
  const std::uint64_t budget = budget_of(document, open);
  plan::Question requested = question_of(open);
  if (!planned) {
    requested.tokens = plan::min_tokens;
    plan::Question roughly = requested;
    roughly.tokenizer_bytes = estimated_tokenizer_bytes(document);
    if (document.file_bytes() < budget / 4 * 3 && plan_run(document, roughly).peak_bytes < budget)
      return let_weights_leave(verb, document, roughly, open);
  }
  const plan::Adjustable free = freedom_of(verb);
  const auto fallback = first_fallback(document, requested, open, free);
  if (!fallback) {
    const plan::Plan plan = plan_within(document, requested, budget);
    raise(ErrorCode::budget, document.path(), ": ", refusal(document, requested, plan, budget, free));
  }
  const std::string changes = plan::differences(requested, *fallback);
  if (!changes.empty()) note(verb, join("mica: to fit ", budget::size_text(budget), ": ", changes));
  open.n_ctx = fallback->question.model.n_ctx;
  open.choice = fallback->question.choice;
  open.chunk = fallback->question.model.chunk;
  plan::Question fitted = fallback->question;
  fitted.tokenizer_bytes = fallback->plan.accounts[budget::Account::tokenizer];
  let_weights_leave(verb, document, fitted, open);
}

void refuse_what_does_not_fit(const gguf::Document& document, const OpenOptions& open) {
  const std::uint64_t budget = budget_of(document, open);
  const plan::Question question = question_of(open);
  const plan::Plan plan = plan_within(document, question, budget);
  if (plan.peak_bytes <= budget) return;
  raise(ErrorCode::budget, document.path(), ": ", refusal(document, question, plan, budget));
}

void note_long_context(const OutputOptions& output, std::size_t n_ctx, const arch::Config& config) {
  if (n_ctx <= config.n_ctx_train) return;
  note(output, join("mica: a context of ", n_ctx, " tokens is more than the ", config.n_ctx_train,
                    " that the model was trained for: answers get worse beyond that"));
}

std::size_t default_window(const gguf::Document& document) {
  constexpr std::size_t usual = 512;
  return std::min(usual, arch::AnyOf<arch::All>::config(document).n_ctx_train);
}

std::string larger_context(const AnswerVerb& verb, const Model& model, std::size_t tokens) {
  if (tokens > model::max_context)
    return join("less text: no context has more than ", model::max_context, " tokens");
  plan::Question question = question_of(open_options(verb));
  question.model.n_ctx = std::min(round_up(tokens, format::tile_tokens), model::max_context);
  question.tokenizer_bytes = 0;  // not needed for the text
  const plan::Plan plan = plan_run(model.document(), question);
  const std::size_t trained = plan.config.n_ctx_train;
  return join(
      "-c ", plan.n_ctx, ", which takes ", budget::size_text(plan.accounts[budget::Account::kv]),
      " of keys and values",
      plan.n_ctx > trained ? join(" (the model was trained for ", trained, " tokens)") : std::string());
}

}  // namespace mica::program
