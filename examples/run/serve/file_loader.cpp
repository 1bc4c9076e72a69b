// SPDX-License-Identifier: Apache-2.0
#include "file_loader.hpp"

#include "budgeted.hpp"
#include "chat_format.hpp"
#include "console.hpp"
#include "mica/arch/any_of.hpp"
#include "mica/gguf/reader.hpp"
#include "mica/sample/standard.hpp"

#include <algorithm>
#include <utility>

namespace mica::program {
namespace {

/// Default contexts in tokens: of one model, and of each where several share the memory. Longer ones are one
/// flag away; an answer takes memory for the tokens that it has.
constexpr std::size_t default_context = 32768, default_context_of_many = 8192;

OpenOptions options_of(const AnswerVerb& verb, std::size_t answers) {
  OpenOptions open = open_options(static_cast<const RunningOptions&>(verb));
  open.logits_rows = answers;
  open.choice.kv = kv::Choice::paged;  // sequences share pages
  return open;
}

}  // namespace

const plan::Fallback& FileLoader::chosen(const serve::ModelCard& card, std::uint64_t budget) {
  if (const auto at = chosen_.find(card.id); at != chosen_.end()) return at->second;
  const gguf::Document document = gguf::open(card.path);
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
  plan::Fallback found = *fallback;
  if (weights_may_leave(verb_, document, found.question, rest))
    found.question.choice.weights = paging::Choice::streamed;
  found.question.sequence_bytes = true;
  found.plan = plan_run(document, found.question);
  return chosen_.emplace(card.id, std::move(found)).first->second;
}

std::uint64_t FileLoader::bytes(const serve::ModelCard& card, std::uint64_t budget, std::size_t /*answers*/) {
  const std::uint64_t peak = chosen(card, budget).plan.peak_bytes;
  return peak - std::min(peak, plan::any_process_bytes);
}

std::shared_ptr<serve::LoadedModel> FileLoader::load(const serve::ModelCard& card,
                                                     const std::shared_ptr<budget::Ledger>& ledger,
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
  Model model(gguf::open(card.path), open);
  ChatFormat format(verb_, model.document().metadata(), model.tokenizer().vocabulary());
  if (!format.note().empty()) note(verb_, join("mica: ", card.id, ": ", format.note()));
  serve::ModelCard loaded = card;
  loaded.chat_template = format.source();
  return std::make_shared<serve::LoadedModel>(std::move(model), std::move(loaded), format.functions(),
                                              serve::SequenceBytes(fallback.plan.sequence_bytes));
}

}  // namespace mica::program
