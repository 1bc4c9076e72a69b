// SPDX-License-Identifier: Apache-2.0
#include "answer_options.hpp"

#include "chat_format.hpp"
#include "console.hpp"
#include "mica/budget/limits.hpp"
#include "mica/budget/size.hpp"
#include "mica/runtime/mtp_drafter.hpp"
#include "mica/sample/stages.hpp"
#include "mica_tools/chat/chat_style.hpp"
#include "mica_tools/pace/pacer.hpp"
#include "mica_tools/remote/url.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace mica::program {
namespace {

/// ngram[:N[,K]] or mtp[:K]; empty: no drafts. Raises ErrorCode::usage for anything else.
void read_speculation(std::string_view how, NgramOptions& ngram, std::size_t& mtp) {
  ngram = {};
  mtp = 0;
  if (!how.starts_with("ngram")) ngram.drafts = 0;
  std::string_view rest = how;
  const auto number = [&rest](char before, std::size_t& out) {
    if (rest.empty() || rest.front() != before) return;
    const char* const end = rest.data() + rest.size();
    const auto [next, error] = std::from_chars(rest.data() + 1, end, out);
    if (error == std::errc()) rest = {next, end};
  };
  if (rest.starts_with("ngram")) {
    rest.remove_prefix(5);
    number(':', ngram.n);
    if (rest.size() < how.size() - 5) number(',', ngram.drafts);
  } else if (rest.starts_with("mtp")) {
    rest.remove_prefix(3);
    mtp = MtpOptions{}.drafts;
    number(':', mtp);
    MICA_CHECK(mtp >= 1 && mtp <= draft_limit, usage, "found '", escaped(how),
               "', allowed: mtp:K with K from 1 to ", draft_limit);
  }
  if (!rest.empty())
    raise(ErrorCode::usage, "found '", escaped(how), "', allowed: ngram, ngram:N, ngram:N,K, mtp, mtp:K");
  static_cast<void>(Ngram(ngram));
}

}  // namespace

void ChatOptions::add_to(Flags& flags) {
  flags.group("Chat");
  flags.text("-sys,--system-prompt", system_prompt, "TEXT", "the system prompt");
  flags.text("-sysf,--system-prompt-file", system_prompt_file, "FILE", "the same from a file");
  flags.toggle("-cnv,--conversation,!-no-cnv,!--no-conversation", conversation,
               "chat; --no-conversation: answer once");
  flags.toggle("-st,--single-turn", single_turn, "one answer, then end");
  flags.toggle("--no-history", no_history, "keep no file of typed lines");
  add_template(flags);
}

void ChatOptions::add_template(Flags& flags) {
  std::vector<std::string> styles;
  for (const text::ChatStyle& style : text::detail::chat_styles) styles.emplace_back(style.name);
  flags.group("Chat");
  flags.choice("--chat-template", chat_template, styles, "NAME",
               join("a built-in format instead of the model's template: ", detail::listed(styles)));
  flags.text("--chat-template-file", chat_template_file, "FILE", "a template instead of the model's");
  flags.checked("--chat-template-kwargs", chat_template_kwargs, "JSON",
                "variables of the template, such as {\"reasoning_effort\":\"high\"}",
                check_template_variables);
  flags.choice("--think,--reasoning", think,
               {{"auto", Think::automatic}, {"on", Think::on}, {"off", Think::off}, {"hide", Think::hide}},
               "auto", "WHAT",
               "on, off: the model thinks before it answers, or not, if its template has a switch; auto: the "
               "template decides; hide: as auto, and thoughts are not shown");
}

void AnswerOptions::add_sampling(Flags& flags) {
  sample::SamplerOptions& s = sampler;
  flags.group("Sampling");
  flags.number("-s,--seed", seed, {-1}, "seed of the sampler; -1: from the clock");
  flags.number("--temp,--temperature", s.temperature, {0.0f, sample::Temperature::max},
               "divides logits, from 0 to 10000; 0: always the most likely token");
  flags.number("--top-k", s.top_k, {0}, "the k most likely; 0: all");
  flags.number("--top-p", s.top_p, {0.0f, 1.0f}, "the most likely whose probabilities sum to p; 1: all");
  flags.number("--min-p", s.min_p, {0.0f, 1.0f}, "those above p times the most likely; 0: all");
  flags.number("--repeat-penalty", s.repeat_penalty, {1e-3f, 1e3f},
               "above 1: makes recent tokens less likely");
  flags.number("--repeat-last-n", s.repeat_last_n, {0, 1 << 20}, "tokens that penalties count");
  flags.number("--frequency-penalty", s.frequency_penalty, {-1e3f, 1e3f}, "per occurrence");
  flags.number("--presence-penalty", s.presence_penalty, {-1e3f, 1e3f}, "once");
  flags.number("--dry-multiplier", s.dry.multiplier, {0.0f, 1e3f},
               "DRY: a penalty for tokens that would extend a repetition of the text; 0: off");
  flags.number("--dry-base", s.dry.base, {1.0f, 1e3f}, "DRY: its growth with each token of the repetition");
  flags.number("--dry-allowed-length", s.dry.allowed_length, {1, 1 << 20},
               "DRY: shorter repetitions have no penalty");
  flags.number("--dry-penalty-last-n", s.dry.last_n, {-1, 1 << 20},
               "DRY: tokens that are searched; -1: the context");
  flags.texts(
      "--dry-sequence-breaker", sampler_texts.breakers, "TEXT",
      "DRY: a text that no repetition extends over, in place of \\n : \" *; none: no such text; may be "
      "repeated");
  flags.number("--top-n-sigma,--top-nsigma", s.top_n_sigma, {-1.0f, 1e3f},
               "those within n standard deviations of the best logit; 0 and below: all");
  flags.number("--typical,--typical-p", s.typical, {0.0f, 1.0f},
               "the most typical whose probabilities sum to p; 1: all");
  flags.number("--xtc-probability", s.xtc_probability, {0.0f, 1.0f},
               "how often XTC drops the most likely but one; 0: never");
  flags.number("--xtc-threshold", s.xtc_threshold, {0.0f, 1.0f},
               "XTC: the probability from which a token is one of those; above 0.5: never");
  flags.number("--dynatemp-range", s.dynatemp_range, {0.0f, sample::Temperature::max},
               "the temperature follows the entropy within this distance; 0: fixed");
  flags.number("--dynatemp-exp", s.dynatemp_exponent, {0.0f, 1e3f}, "the power of the entropy there");
  flags.number(
      "--mirostat", s.mirostat, {0, 2},
      "1, 2: keeps the surprise of tokens near a target, in place of the stages that narrow; 0: off");
  flags.number("--mirostat-lr", s.mirostat_eta, {0.0f, 10.0f}, "its learning rate, eta");
  flags.number("--mirostat-ent", s.mirostat_tau, {0.0f, 100.0f}, "its target in bits, tau");
  flags
      .texts(
          "-l,--logit-bias", sampler_texts.biases, "TOKEN+N",
          "a number that is added to the logit of a token, an id or its text; TOKEN-inf: never that token; "
          "may be repeated")
      .store = [this](const std::string& value, const std::string&) {
    static_cast<void>(bias_of(value));
    return sampler_texts.biases.push_back(value), true;
  };
  const auto order = [this](auto read) {
    return [this, read](const std::string& value, const std::string&) { sampler.order = read(value); };
  };
  flags.checked("--samplers", stages, "ORDER", join("the stages that run, in order: ", standard_order),
                order(stages_of));
  flags.checked("--sampler-seq,--sampling-seq", stage_letters, "LETTERS", "the same as letters: edskypmxt",
                order(stages_of_letters));
}

void AnswerOptions::add_governor(Flags& flags) {
  flags.group("Model");
  flags.choice("--governor", governor, {{"on", true}, {"off", false}}, "on", "WHAT",
               "on: while memory is short, caches, scratch and weights yield memory, and reclaim it later; "
               "off: nothing "
               "does");
  flags.checked("--keep-free", keep_free, "SIZE",
                "memory is short for the governor below this; by default 2 % of the limit, 8MiB to 512MiB",
                [this](const std::string& text, const std::string& where) {
                  const std::uint64_t bytes = budget::parse_size(text, 0, where);
                  MICA_CHECK(bytes > 0, usage, where, " needs a size above 0, and no percentage, found '",
                             escaped(text), "'");
                  thresholds.min_low = thresholds.max_low = bytes;
                });
  flags.at_end([this](std::vector<std::string>&) {
    if (keep_free.empty()) return;
    const budget::MemoryLimits limits = budget::memory_limits();
    const std::uint64_t most = std::min(limits.installed, limits.cgroup);
    MICA_CHECK(thresholds.min_low < most, usage, "--keep-free: found ", escaped(keep_free),
               ", needed less than the ", budget::size_text(most), " of ",
               limits.cgroup < limits.installed ? "the control group" : "the machine");
  });
}

void AnswerOptions::add_to(Flags& flags) {
  flags.group("Answer");
  flags
      .number("-n,--predict,--n-predict,--max-tokens", n_predict, {-2},
              "maximum of tokens; -1, the default: no maximum; 0: the prompt is read and not answered")
      .needs = "a whole number from 0 on, or -1 for no maximum";
  add_sampling(flags);
  flags.group("Answer");
  flags.choice("--on-full", on_full, {{"stop", OnFull::stop}, {"shift", OnFull::shift}}, "stop", "WHAT",
               "when the context is full: stop, or shift: drop half of the other tokens and continue");
  flags.number("--keep", keep, {-1, 1 << 30}, "first tokens that a shift keeps; -1: all of the first prompt");
  flags
      .checked("--speculate", speculate, "HOW",
               "draft tokens and check them in one step: ngram[:N,K] from the text so far, mtp[:K] by the "
               "model's own head; the answer stays the same",
               [this](const std::string& how, const std::string&) { read_speculation(how, drafts, mtp); })
      .likens({"ngram", "mtp"});
  flags
      .text("-md,--draft,--model-draft", draft, "FILE",
            "a smaller model with the same vocabulary drafts tokens, and one step checks them; the answer "
            "stays the same")
      .names_model();
  flags.toggle("--draft-answers", draft_answers,
               "the model of --draft answers by itself; in a chat /exact asks the model of -m");
  flags.number("--draft-max", draft_max, {1, 64}, "maximum of drafts per step");
  flags.number("--draft-min", draft_min, {0, 64}, "minimum of drafts per step; 0: chosen by measured time");
  flags.toggle("--stats", stats,
               "bytes read, time waited for them, experts that were in memory, page faults");
  flags.toggle("--ignore-eos", ignore_eos, "continue after an end token");
  flags.toggle("--special", show_special, "show control tokens");
  flags.texts("-r,--reverse-prompt", reverse_prompts, "TEXT", "text that ends an answer; may be repeated");
  constraint.add_to(flags);
  add_governor(flags);
  flags.checked(
      "--pace", pace, "LIMIT",
      "rest between layers: 85C keeps the processor's temperature, 15W its power, 50% works half of "
      "the time",
      [](const std::string& text, const std::string& where) {
        static_cast<void>(pace::Pace::parse(text, where));
      });
  flags.at_end([this](std::vector<std::string>&) {
    MICA_CHECK(draft.empty() || speculate.empty(), usage,
               "--draft and --speculate exclude each other; choose one.");
    MICA_CHECK(!draft_answers || !draft.empty(), usage, "--draft-answers needs --draft FILE.");
    MICA_CHECK(!remote::is_url(draft), unsupported, remote::shown(draft),
               ": --draft needs the whole file; download it first");
    sampler.seed = chosen_seed();
  });
}

std::uint64_t AnswerOptions::chosen_seed() const {
  return seed >= 0 ? static_cast<std::uint64_t>(seed) : clock_seed();
}

void AnswerVerb::declare(Flags& flags) {
  add_model(flags);
  PromptOptions::add_to(flags);
  ChatOptions::add_to(flags);
  add_session(flags);
  RunningOptions::add_to(flags);
  add_ranks(flags);
  add_degrade(flags);
  AnswerOptions::add_to(flags);
}

void AnswerVerb::prepare() {
  RunningVerb::prepare();
  if (!link) return;
  MICA_CHECK(mtp == 0, unsupported,
             "--speculate mtp: the head runs as one process; use ngram, or leave it out");
  governor = false;  // it would halt one rank in the middle of a step
  if (!follows()) return;
  quiet = true;
  draft.clear();  // rank 0 has it
  try {
    follow();
  } catch (const Error& error) {
    raise(error.code(), "rank ", link->rank(), ": ", error.message());
  }
  throw Stop{0, {}};
}

void AnswerVerb::add_session(Flags& flags) {
  flags.group("Session");
  flags.text("--session", session, "FILE",
             "continue where this file ends, if there is one, and write it anew at the end");
}

OpenOptions open_options(const AnswerVerb& verb) {
  const RunningOptions& running = verb;
  OpenOptions open = open_options(running);
  open.mtp = verb.mtp != 0;
  open.logits_rows = 1 + (verb.draft.empty() ? std::max(verb.drafts.drafts, verb.mtp) : verb.draft_max);
  open.drafts = open.logits_rows > 1;
  return open;
}

}  // namespace mica::program
