// SPDX-License-Identifier: Apache-2.0
//
// The flags of run, chat and complete: sampling, the end of an answer, chat.
#pragma once

#include "constraint_choice.hpp"
#include "flags.hpp"
#include "input.hpp"
#include "mica/runtime/generate_options.hpp"
#include "mica/runtime/governor.hpp"
#include "mica/runtime/ngram.hpp"
#include "mica/sample/sampler_options.hpp"
#include "running_options.hpp"
#include "sampler_texts.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mica::program {

/// Thoughts of a model. hide: as automatic, and they are not shown.
enum class Think : std::uint8_t { automatic, on, off, hide };

struct ChatOptions {
  std::string system_prompt;
  std::string system_prompt_file;
  std::optional<bool> conversation;  // -cnv, -no-cnv
  bool single_turn = false;
  bool no_history = false;    // no file with typed lines
  std::string chat_template;  // name of a built-in format
  std::string chat_template_file;
  std::string chat_template_kwargs;  // variables of the template, a JSON object; empty
  Think think = Think::automatic;

  void add_to(Flags& flags);
  /// The template and its variables alone.
  void add_template(Flags& flags);
};

struct AnswerOptions {
  std::optional<std::int64_t> n_predict;  // negative: no limit
  std::int64_t seed = -1;                 // negative: from the clock
  sample::SamplerOptions sampler;         // without what is text
  SamplerTexts sampler_texts;
  std::string stages, stage_letters;  // the order of stages; empty: the standard one
  OnFull on_full = OnFull::stop;
  std::int64_t keep = 0;             // first tokens that a shift keeps; negative: the whole prompt
  std::string speculate;             // "ngram:3,4", "mtp:3", empty
  NgramOptions drafts{.drafts = 0};  // the same as numbers
  std::size_t mtp = 0;               // drafts of the model's own head; 0: none
  std::string draft;                 // the file of a model that drafts, empty
  bool draft_answers = false;        // the model of --draft answers by itself
  std::size_t draft_max = 8;         // maximum of drafts per step
  std::size_t draft_min = 0;         // minimum; 0: chosen by measured time
  bool stats = false;
  bool ignore_eos = false;
  bool show_special = false;
  std::vector<std::string> reverse_prompts;
  ConstraintChoice constraint;
  bool governor = true;
  std::string keep_free;       // "500MiB", empty
  GovernorOptions thresholds;  // of the governor
  std::string pace;            // "85C", "15W", "50%", empty

  void add_to(Flags& flags);
  /// The sampler alone, and the governor alone.
  void add_sampling(Flags& flags);
  void add_governor(Flags& flags);

  /// The maximum of tokens of an answer; 0: no maximum.
  [[nodiscard]] std::size_t limit() const {
    return n_predict.value_or(-1) < 0 ? 0 : static_cast<std::size_t>(*n_predict);
  }
  /// The seed of the sampler: the number given, or one from the clock.
  [[nodiscard]] std::uint64_t chosen_seed() const;
};

/// A verb that answers.
class AnswerVerb : public RunningVerb, public PromptOptions, public ChatOptions, public AnswerOptions {
 public:
  using RunningVerb::RunningVerb;

  /// Whether a folder stands for the best of its models.
  [[nodiscard]] virtual bool answers_with_one_model() const noexcept { return true; }
  void prepare() override;
  /// Repeats what rank 0 does, until that ends: returns, or raises an error.
  virtual void follow();

  std::string session;  // a file, empty

 protected:
  void declare(Flags& flags) override;
  void add_session(Flags& flags);
};

/// With rows of logits for drafts.
[[nodiscard]] OpenOptions open_options(const AnswerVerb& verb);

}  // namespace mica::program
