// SPDX-License-Identifier: Apache-2.0
#include "file_loader.hpp"

#include "budgeted.hpp"
#include "chat_format.hpp"
#include "console.hpp"
#include "mica/arch/any_of.hpp"
#include "mica/budget/size.hpp"
#include "mica/gguf/reader.hpp"
#include "mica/sample/standard.hpp"
#include "mica_tools/embed/text_embedder.hpp"

#include <algorithm>
#include <utility>

namespace mica::program {
namespace {

/// Default contexts in tokens: of one model, and of each where several share the memory. Longer ones are one
/// flag away; an answer takes memory for the tokens that it has.
constexpr std::size_t default_context = 32768, default_context_of_many = 8192;
/// Of a text encoder, whose steps have scratch for a whole text; and the shortest ones that are tried where
/// memory is short, before weights are streamed and after that.
constexpr std::size_t default_text = 2048, min_resident_text = 512, min_text = 64;

OpenOptions options_of(const AnswerVerb& verb, std::size_t answers) {
  OpenOptions open = open_options(static_cast<const RunningOptions&>(verb));
  open.logits_rows = answers;
  open.choice.kv = kv::Choice::paged;  // sequences share pages
  return open;
}

}  // namespace

/// Of a text encoder: with texts of the requested length, or shorter ones, until it fits.
plan::Fallback FileLoader::encoder_within(const serve::ModelCard& card, const gguf::Document& document,
                                          std::uint64_t budget) const {
  const arch::Config config = arch::AnyOf<arch::All>::config(document);
  const std::size_t wanted = std::min(verb_.n_ctx == 0 ? default_text : verb_.n_ctx, config.n_ctx_train);
  for (const bool streams : {false, true}) {
    if (streams && verb_.weights_given) break;
    const std::size_t shortest = verb_.n_ctx != 0 ? wanted : streams ? min_text : min_resident_text;
    // First with steps as they are asked for, then with steps of one longest text, then with shorter texts.
    bool small_steps = open_options(static_cast<const RunningOptions&>(verb_)).chunk <= wanted;
    for (std::size_t tokens = wanted; tokens == wanted || tokens >= shortest;) {
      OpenOptions open = open_options(static_cast<const RunningOptions&>(verb_));
      open.n_ctx = tokens;
      if (small_steps) open.chunk = tokens;
      open = embedding_options(std::move(open), config, serve::LoadedModel::texts_of_step);
      if (streams) open.choice.weights = paging::Choice::streamed;
      plan::Question question = question_of(open);
      plan::fill_weight_capacity(document, question, budget);
      plan::Plan plan = plan_run(document, question);
      if (plan.peak_bytes > budget) {
        if (small_steps) tokens /= 2;
        small_steps = true;
        continue;
      }
      if (tokens < wanted || streams)
        note(verb_, join("mica: ", card.id, ": to fit the budget, texts of ", tokens, " tokens at most",
                         streams ? ", streamed weights" : ""));
      return {std::move(question), std::move(plan)};
    }
  }
  raise(ErrorCode::budget, card.path, ": a text encoder of ", budget::size_word(document.file_bytes()),
        " does not fit ", budget::size_word(budget),
        "; use a larger --memory, or shorter texts (-c) in smaller steps (--chunk)");
}

const plan::Fallback& FileLoader::chosen(const serve::ModelCard& card, std::uint64_t budget) {
  if (const auto at = chosen_.find(card.id); at != chosen_.end()) return at->second;
  const gguf::Document document = gguf::open(card.path);
  if (arch::AnyOf<arch::All>::config(document).encodes)
    return keep(card, document, encoder_within(card, document, budget), budget);
  plan::Question question = question_of(options_of(verb_, parallel_));
  plan::Adjustable free = freedom_of(verb_);
  free.context = verb_.n_ctx == 0;
  if (verb_.n_ctx == 0) {
    const std::size_t trained = arch::AnyOf<arch::All>::config(document).n_ctx_train;
    question.model.n_ctx = std::min(trained, many_ ? default_context_of_many : default_context);
  }
  // An answer to the end of the context has a sampler, too.
  const std::uint64_t sampler = arch::AnyOf<arch::All>::config(document).n_vocab * sizeof(sample::Candidate);
  const std::uint64_t rest = budget - std::min(budget, sampler);
  const auto fallback = fallback_within(document, question, rest, free);
  if (!fallback)
    raise(ErrorCode::budget, card.path, ": ",
          refusal(document, question, plan_within(document, question, rest), rest, free), "; a server needs ",
          budget::size_word(server_bytes + sampler), " more than that");
  if (const std::string changes = plan::differences(question, *fallback); !changes.empty())
    note(verb_, join("mica: ", card.id, ": to fit the budget, ", changes));
  return keep(card, document, *fallback, rest);
}

/// With the bytes of sequences, and weights that may leave memory.
const plan::Fallback& FileLoader::keep(const serve::ModelCard& card, const gguf::Document& document,
                                       plan::Fallback found, std::uint64_t budget) {
  if (weights_may_leave(verb_, document, found.question, budget))
    found.question.choice.weights = paging::Choice::streamed;
  found.question.sequence_bytes = true;
  found.plan = plan_run(document, found.question);
  return chosen_.emplace(card.id, std::move(found)).first->second;
}

std::uint64_t FileLoader::bytes(const serve::ModelCard& card, std::uint64_t budget, std::size_t /*answers*/) {
  const std::uint64_t peak = chosen(card, budget).plan.peak_bytes;
  return peak - std::min(peak, plan::any_process_bytes);
}

FileLoader::~FileLoader() {
  if (verb_.link && !verb_.follows()) static_cast<void>(begins_again(*verb_.link, false));
}

Model FileLoader::open(const serve::ModelCard& card, const std::shared_ptr<budget::Ledger>& ledger,
                       std::size_t answers) {
  const plan::Fallback& fallback = chosen(card, ledger->limit());
  OpenOptions open = options_of(verb_, answers);
  open.n_ctx = fallback.question.model.n_ctx;
  open.chunk = fallback.question.model.chunk;
  open.choice = fallback.question.choice;
  open.ledger = ledger;
  open.watch = watch_;
  open.log = log_to_stderr(verb_);
  note(verb_, join("mica: loading ", card.id, ", ", card.path));
  gguf::Document document = gguf::open(card.path);
  if (verb_.link) refuse_different_ranks(*verb_.link, document, open, verb_.rank_shares, verb_.rank_split);
  return Model(std::move(document), open);
}

void FileLoader::follow(const serve::ModelCard& card, const std::shared_ptr<budget::Ledger>& ledger) {
  const std::uint64_t for_models = ledger->limit() - std::min(ledger->limit(), server_bytes + mpi_bytes);
  static_cast<void>(bytes(card, for_models, parallel_));  // as the scheduler of rank 0 asks
  while (begins_again(*verb_.link, false)) {
    Model model = open(card, ledger, parallel_);
    mica::follow(model.transformer(), *verb_.link);
  }
}

std::shared_ptr<serve::LoadedModel> FileLoader::load(const serve::ModelCard& card,
                                                     const std::shared_ptr<budget::Ledger>& ledger,
                                                     std::size_t answers) {
  if (verb_.link) static_cast<void>(begins_again(*verb_.link, true));
  Model model = open(card, ledger, answers);
  const plan::Fallback& fallback = chosen(card, ledger->limit());
  serve::ModelCard loaded = card;
  serve::ChatFunctions chat;
  if (!model.config().encodes) {
    const ChatFormat format(verb_, model.document().metadata(), model.tokenizer().vocabulary());
    if (!format.note().empty()) note(verb_, join("mica: ", card.id, ": ", format.note()));
    loaded.chat_template = format.source();
    chat = format.functions();
  }
  return std::make_shared<serve::LoadedModel>(std::move(model), std::move(loaded), std::move(chat),
                                              serve::SequenceBytes(fallback.plan.sequence_bytes));
}

}  // namespace mica::program
