// SPDX-License-Identifier: Apache-2.0
//
// The front door: a path and some options become a model that can be used, whatever family and formats the
// file holds.
//
//   auto model = mica::open("story.gguf");
//   auto session = model.session();
#pragma once

#include "mica/alloc/booking.hpp"
#include "mica/alloc/budgeted.hpp"
#include "mica/alloc/huge.hpp"
#include "mica/arch/any_of.hpp"
#include "mica/base/error.hpp"
#include "mica/budget/ledger.hpp"
#include "mica/budget/limits.hpp"
#include "mica/exec/observed.hpp"
#include "mica/exec/team.hpp"
#include "mica/gguf/reader.hpp"
#include "mica/model/chosen.hpp"
#include "mica/plan/solve.hpp"
#include "mica/runtime/any_model.hpp"
#include "mica/runtime/detail/process_share.hpp"
#include "mica/runtime/leader.hpp"
#include "mica/runtime/memory_watch.hpp"
#include "mica/runtime/open_options.hpp"
#include "mica/runtime/session.hpp"
#include "mica/text/tokenizer.hpp"
#include "mica/text/vocabulary_gguf.hpp"

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace mica {

/// An open model with everything that belongs to it. Movable; sessions refer to what it holds and stay valid.
/// One thread at a time with all of its sessions; config(), tokenizer(), document(), ledger() and threads()
/// from any thread.
/// Families: the list of those that can be opened; Formats: those that weights may have. Shorter lists are a
/// smaller program, and a format of the program's own joins by Append<format::All, Mine>.
template <class Families, class Formats = format::All>
class BasicModel {
 public:
  /// Raises mica::Error: file, tensor or key, what was found, what is needed; budget when it does not fit.
  BasicModel(gguf::Document document, const OpenOptions& options)
      : parts_(std::make_unique<Parts>(std::move(document), options)) {}

  /// The parts that open() chose and made. They live as long as the model and keep their addresses when it is
  /// moved.
  [[nodiscard]] AnyModel& transformer() noexcept { return *parts_->transformer; }
  [[nodiscard]] const arch::Config& config() const noexcept { return parts_->transformer->config(); }
  [[nodiscard]] const text::AnyTokenizer& tokenizer() const noexcept { return parts_->tokenizer; }
  [[nodiscard]] const gguf::Document& document() const noexcept { return parts_->document; }
  [[nodiscard]] const budget::Ledger& ledger() const noexcept { return *parts_->ledger; }
  /// The same, to book what belongs to the model's answers: constraints.
  [[nodiscard]] budget::Ledger& ledger() noexcept { return *parts_->ledger; }
  [[nodiscard]] std::size_t threads() const noexcept { return parts_->team.workers(); }
  /// The file's head for multi-token prediction, for a MtpDrafter (runtime/mtp_drafter.hpp); null without
  /// OpenOptions::mtp.
  [[nodiscard]] AnyModel* mtp_head() noexcept { return parts_->mtp_head.get(); }
  /// OpenOptions::watch.
  [[nodiscard]] MemoryWatch* memory_watch() const noexcept { return parts_->watched.watch.get(); }

  /// An empty sequence. Sessions of one model take turns, and the model outlives them.
  [[nodiscard]] Session<AnyModel> session() & { return Session<AnyModel>(transformer()); }
  Session<AnyModel> session() && = delete;
  /// The sequence that Session::save() wrote there; raises as Session::open().
  [[nodiscard]] Session<AnyModel> open_session(const std::string& path, SessionNote* note = nullptr) & {
    return Session<AnyModel>::open(transformer(), path, note);
  }
  Session<AnyModel> open_session(const std::string& path, SessionNote* note = nullptr) && = delete;

 private:
  /// In the order in which they need each other.
  struct Parts {
    Parts(gguf::Document file, const OpenOptions& options);

    gguf::Document document;
    std::shared_ptr<budget::Ledger> ledger;
    detail::ProcessShare process;
    alloc::Booking header;
    text::AnyTokenizer tokenizer;
    alloc::Booking vocabulary;
    exec::Team team;
    std::shared_ptr<exec::RunObserver> runs;
    exec::Observed<exec::Team> executor;
    std::unique_ptr<AnyModel> transformer;
    std::unique_ptr<AnyModel> mtp_head;  // null: not requested
    /// The watch has the model while this lives.
    struct Watched {
      std::shared_ptr<MemoryWatch> watch;
      AnyModel& model;
      Watched(std::shared_ptr<MemoryWatch> given, AnyModel& its) : watch(std::move(given)), model(its) {
        if (watch) watch->attach(model);
      }
      Watched(const Watched&) = delete;
      Watched& operator=(const Watched&) = delete;
      ~Watched() {
        if (watch) watch->detach(model);
      }
    } watched;
  };

  std::unique_ptr<Parts> parts_;
};

/// A model of any family.
using Model = BasicModel<arch::All>;

namespace detail {

template <class List>
inline constexpr bool are_families = false;
template <Arch... F>
inline constexpr bool are_families<TypeList<F...>> = sizeof...(F) > 0;

}  // namespace detail

/// Opens a GGUF file, or the first or any shard of a set. Uses the kernels of all elements of keys and
/// values; a library of mica_add_kernels(... KV ...) has some alone, and needs a Transformer of your own.
template <class Families = arch::All, class Formats = format::All>
requires(detail::are_families<Families>&& detail::Formats<Formats>)
    [[nodiscard]] BasicModel<Families, Formats> open(std::string path, const OpenOptions& options = {}) {
  return {gguf::open(std::move(path), format::table_with<Formats>()), options};
}

/// The same for a model in memory, which outlives the Model. `name` stands for the file in error texts.
template <class Families = arch::All, class Formats = format::All>
requires(detail::are_families<Families>&& detail::Formats<Formats>)
    [[nodiscard]] BasicModel<Families, Formats> open(std::span<const std::byte> bytes, std::string_view name,
                                                     const OpenOptions& options = {}) {
  return {gguf::parse(bytes, name, format::table_with<Formats>()), options};
}

/// The overload for wrong lists: its static_asserts name the lists that are allowed.
template <class Families, class Formats = format::All, class... Arguments>
requires(!detail::are_families<Families> || !detail::Formats<Formats>) [[nodiscard]] Model
    open(Arguments&&... arguments) {
  static_assert(detail::are_families<Families>,
                "mica::open<Families, Formats>: the first list must be a mica::TypeList of families, such as "
                "mica::TypeList<mica::arch::Llama> (arch/concept.hpp)");
  static_assert(!detail::are_families<Families> || detail::Formats<Formats>,
                "mica::open<Families, Formats>: the second list must be a mica::TypeList of formats, such as "
                "mica::TypeList<mica::format::Q8_0> (format/concept.hpp)");
  return open<arch::All, format::All>(std::forward<Arguments>(arguments)...);
}

/// The budget of a model. With streamed weights the files are mapped as a whole, for rows of the embedding:
/// that takes address space, which may have a limit, and no memory.
[[nodiscard]] inline budget::Ceiling ceiling_of(const gguf::Document& document, const OpenOptions& options) {
  budget::MemoryLimits limits = options.limits ? *options.limits : budget::memory_limits();
  if (options.choice.weights == paging::Choice::streamed && limits.address_space != limits.unlimited)
    limits.address_space -= std::min(limits.address_space, document.file_bytes());
  return budget::ceiling_of(options.memory_bytes, limits);
}

namespace detail {

using ProgramAllocator = alloc::Budgeted<alloc::Huge>;

/// Calls make(). An ErrorCode::budget whose message lacks the path of the document gets it in front.
template <class F>
[[nodiscard]] auto with_name(const gguf::Document& document, F&& make) {
  try {
    return make();
  } catch (const Error& error) {
    const bool named = error.message().find(document.path()) != std::string::npos;
    if (error.code() != ErrorCode::budget || named) throw;
    raise(ErrorCode::budget, document.path(), ": ", error.message());
  }
}

/// The model of a document, or the head for multi-token prediction in it.
enum class Part : std::uint8_t { model, mtp_head };

template <class Families, class Formats>
[[nodiscard]] std::unique_ptr<AnyModel> make_any_model(const gguf::Document& document,
                                                       exec::Observed<exec::Team>& team,
                                                       budget::Ledger& ledger, const OpenOptions& options,
                                                       Part part = Part::model) {
  const ModelOptions numbers{.n_ctx = options.n_ctx,
                             .chunk = options.chunk,
                             .logits_rows = options.logits_rows,
                             .drafts = options.drafts,
                             .log = options.log,
                             .progress = options.progress};
  plan::Question question{numbers, options.choice, team.workers(), 0, 0, options.sequences};
  question.mtp = options.mtp;
  const std::uint64_t left = ledger.left();
  const std::uint64_t process = plan::process_bytes(document);  // booked already, and part of every plan
  if (part == Part::model)
    plan::fill_weight_capacity<Families, Formats>(document, question, left + std::min(process, ~left));
  using T = model::Chosen<arch::AnyOf<Families>, ProgramAllocator, exec::Observed<exec::Team>, Formats>;
  const ProgramAllocator allocator(ledger, budget::Account::weights);
  return with_name(document, [&] {
    return AnyModel::of<T>([&] {
      return part == Part::model ? model::make_chosen<T>(document, team, numbers, allocator, question.choice)
                                 : model::make_chosen<T>(document, team, model::mtp_options(numbers),
                                                         allocator, model::mtp_choice(question.choice));
    });
  });
}

/// The same, and the watch is asked while weights are read.
template <class Families, class Formats>
[[nodiscard]] std::unique_ptr<AnyModel> make_watched_model(const gguf::Document& document,
                                                           exec::Observed<exec::Team>& team,
                                                           budget::Ledger& ledger,
                                                           const OpenOptions& options) {
  if (!options.watch) return make_any_model<Families, Formats>(document, team, ledger, options);
  MemoryWatch::Loading loading{options.progress, options.watch.get()};
  OpenOptions watched = options;
  watched.progress = loading.with_watch();
  return make_any_model<Families, Formats>(document, team, ledger, watched);
}

/// The model that the others repeat, if options say so.
[[nodiscard]] inline std::unique_ptr<AnyModel> led(std::unique_ptr<AnyModel> model,
                                                   const OpenOptions& options) {
  if (options.leads == nullptr) return model;
  return AnyModel::of<Leader>([&] { return Leader(std::move(model), *options.leads, options.log); });
}

/// The budget of a model, in bytes. A warning says if it is less than requested.
[[nodiscard]] inline std::uint64_t budget_of(const gguf::Document& document, const OpenOptions& options) {
  const budget::Ceiling ceiling = ceiling_of(document, options);
  if (ceiling.lowered()) options.log(LogLevel::warning, join("memory budget: ", budget::text(ceiling)));
  return ceiling.bytes;
}

[[nodiscard]] inline std::shared_ptr<budget::Ledger> ledger_of(const gguf::Document& document,
                                                               const OpenOptions& options) {
  return options.ledger ? options.ledger : std::make_shared<budget::Ledger>(budget_of(document, options));
}

/// Books what is there already, or raises.
[[nodiscard]] inline alloc::Booking book_or_raise(const gguf::Document& document, budget::Ledger& ledger,
                                                  budget::Account account, std::uint64_t bytes) {
  auto booking = alloc::Booking::make(ProgramAllocator(ledger, account), account, bytes);
  check_booked(booking.has_value(), document, ledger, account, bytes);
  return *std::move(booking);
}

}  // namespace detail

template <class Families, class Formats>
BasicModel<Families, Formats>::Parts::Parts(gguf::Document file, const OpenOptions& options)
    : document(std::move(file)),
      ledger(detail::ledger_of(document, options)),
      process(document, *ledger),
      header(detail::book_or_raise(document, *ledger, budget::Account::tokenizer, document.resident_bytes())),
      tokenizer(text::make_tokenizer(text::vocabulary_from(document.metadata(), options.log))),
      vocabulary(detail::book_or_raise(document, *ledger, budget::Account::tokenizer, tokenizer.bytes())),
      team(options.threads == 0 ? budget::cpu_limits().threads() : options.threads, options.log),
      runs(options.runs),
      executor(team, runs.get()),
      transformer(detail::led(
          detail::make_watched_model<Families, Formats>(document, executor, *ledger, options), options)),
      mtp_head(!options.mtp ? nullptr
                            : detail::make_any_model<Families, Formats>(document, executor, *ledger, options,
                                                                        detail::Part::mtp_head)),
      watched(options.watch, *transformer) {
  MICA_CHECK(tokenizer.vocabulary().size() <= transformer->config().n_vocab, file, document.path(),
             ": tokenizer.ggml.tokens holds ", tokenizer.vocabulary().size(),
             " tokens; token_embd.weight has rows for ", transformer->config().n_vocab);
}

}  // namespace mica

/// Compiles the model of these families and formats in one unit; `extern` before it says that another unit
/// does. runtime/units/ does so for all of them, in the library that mica_add_runtime() makes.
#define MICA_INSTANTIATE_MODEL(FAMILIES, FORMATS)                                                          \
  template std::unique_ptr<::mica::AnyModel> mica::detail::make_any_model<FAMILIES, FORMATS>(              \
      const ::mica::gguf::Document&, ::mica::exec::Observed<::mica::exec::Team>&, ::mica::budget::Ledger&, \
      const ::mica::OpenOptions&, ::mica::detail::Part);

#ifdef MICA_COMPILED_RUNTIME
extern MICA_INSTANTIATE_MODEL(mica::arch::All, mica::format::All)
#endif
