// SPDX-License-Identifier: Apache-2.0
//
// Flags of verbs that run a model: which one, with what text, how it is computed, what the answer is.
#include "mica/budget/size.hpp"
#include "mica/kv/any_eviction.hpp"
#include "mica/kv/elements.hpp"
#include "mica/runtime/ngram.hpp"
#include "mica/text/chat_style.hpp"
#include "mica_tools/pace/pacer.hpp"
#include "verb_flags.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <system_error>

namespace mica::program::flag_group {
namespace {

constexpr Range<std::size_t> positions{0, std::numeric_limits<std::uint32_t>::max()};
constexpr std::size_t max_threads = 1024;

/// Elements of keys or values: one name, or RECENT:OLD.
Flag& element(Flags& flags, std::string_view names, std::string& to, std::string about, Flags::Check check) {
  return flags.checked(names, to, "TYPE", std::move(about), std::move(check))
      .likens(
          {"f16", "q8_0", "f32", "bf16", "q5_1", "q5_0", "q4_1", "q4_0", "q4_s", "iq4_nl", "kivi4", "kivi2"});
}

/// ngram[:N[,K]]; empty: no drafts. Raises ErrorCode::usage for anything else.
NgramOptions drafts_of(std::string_view how) {
  NgramOptions options;
  if (how.empty()) options.drafts = 0;
  std::string_view rest = how;
  const auto number = [&rest](char before, std::size_t& out) {
    if (rest.empty() || rest.front() != before) return;
    const char* const end = rest.data() + rest.size();
    const auto [next, error] = std::from_chars(rest.data() + 1, end, out);
    if (error == std::errc()) rest = {next, end};
  };
  if (rest.starts_with("ngram")) {
    rest.remove_prefix(5);
    number(':', options.n);
    if (rest.size() < how.size() - 5) number(',', options.drafts);
  }
  if (!rest.empty())
    raise(ErrorCode::usage, "found '", escaped(how), "', allowed: ngram, ngram:N, ngram:N,K");
  static_cast<void>(Ngram(options));
  return options;
}

}  // namespace

void model(Flags& flags, Options& o) {
  flags.group("Model");
  flags.model("-m,--model", o.model, "FILE",
              "GGUF file, of a sharded model any shard; or a packed folder; for inspect, plan, "
              "tokenize, detokenize and template also a URL");
}

void prompt(Flags& flags, Options& o) {
  flags.group("Prompt");
  flags.words(o.words, "PROMPT", "the prompt");
  flags.text("-p,--prompt", o.prompt, "TEXT", "the prompt");
  flags.text("-f,--file,--prompt-file", o.prompt_file, "FILE", "read the prompt from a file; - is stdin");
  flags.toggle("-e,--escape", o.escape, "\\n, \\t and the like in the prompt mean what they mean in C");
}

void session(Flags& flags, Options& o) {
  flags.group("Session");
  flags.text("--session", o.session, "FILE",
             "continue where this file ends, if there is one, and write it anew at the end");
}

void chat(Flags& flags, Options& o) {
  std::vector<std::string> styles;
  for (const text::ChatStyle& style : text::detail::chat_styles) styles.emplace_back(style.name);
  flags.group("Chat");
  flags.text("-sys,--system-prompt", o.system_prompt, "TEXT", "the system prompt");
  flags.text("-sysf,--system-prompt-file", o.system_prompt_file, "FILE", "the same from a file");
  flags.toggle("-cnv,--conversation,!-no-cnv,!--no-conversation", o.conversation,
               "chat; --no-conversation: answer once");
  flags.toggle("-st,--single-turn", o.single_turn, "one answer, then end");
  flags.toggle("--no-history", o.no_history, "keep no file of what was typed");
  flags.choice("--chat-template", o.chat_template, styles, "NAME",
               join("a built-in format instead of the model's template: ", detail::listed(styles)));
  flags.text("--chat-template-file", o.chat_template_file, "FILE", "a template instead of the model's");
}

void stop_text(Flags& flags, Options& o) {
  flags.group("Answer");
  flags.texts("-r,--reverse-prompt", o.reverse_prompts, "TEXT", "text that ends an answer; may be repeated");
}

void threads(Flags& flags, Options& o, std::string group) {
  flags.group(std::move(group));
  flags.custom("-t,--threads", "N", "threads; 0 and -1: what affinity and the CPU quota allow",
               join("a whole number from 1 to ", max_threads, ", or 0 or -1 for the machine's own"), "0",
               [&o](const std::string& text, const std::string&) {
                 std::int64_t n = 0;
                 const bool fits = read_number(text, Range<std::int64_t>{-1, max_threads}, n);
                 if (fits) o.threads = static_cast<std::size_t>(std::max<std::int64_t>(n, 0));
                 return fits;
               });
}

void running(Flags& flags, Options& o) {
  const std::string group = "Model";
  flags.group(group);
  flags.number("-c,--ctx-size,--ctx", o.n_ctx, positions,
               "tokens of context; 0: what the model was trained for");
  threads(flags, o, group);
  flags.text("--targets", o.targets, "NAME",
             "best instruction set to use, such as AVX2; doctor names them. For measurements: numbers do not "
             "change");
  flags
      .number("-b,-ub,--batch-size,--ubatch-size,--chunk", o.chunk, {1, 1 << 16},
              "tokens of one step when a prompt is read")
      .marks(o.chunk_given);
  flags.checked("--memory", o.memory, "SIZE", "budget: 6GiB, 800M, 75% of what is available",
                [](const std::string& text, const std::string& where) {
                  if (budget::parse_size(text, std::uint64_t{1} << 40, where) == 0)
                    raise(ErrorCode::usage, where, " needs a size above 0, found '", escaped(text),
                          "'; leave it out to use what the limits of the process and the machine allow");
                });
  element(
      flags, "-ctk,--cache-type-k", o.choice.cache_type_k,
      "keys: f16 q8_0 f32 bf16 q5_1 q5_0 q4_1 q4_0 q4_s iq4_nl, the last six with _rotated or "
      "_plain behind them too; by age: kivi4 kivi2 RECENT:OLD",
      [](const std::string& name, const std::string&) { static_cast<void>(kv::AnyElements<>(name, "F16")); })
      .marks(o.elements_given);
  element(
      flags, "-ctv,--cache-type-v", o.choice.cache_type_v, "values: the same names",
      [](const std::string& name, const std::string&) { static_cast<void>(kv::AnyElements<>("F16", name)); })
      .marks(o.elements_given);
  flags.number("--cache-recent", o.choice.cache_recent, {1, 1 << 24},
               "tokens at the end whose keys and values are not old yet, where they change with age");
  flags.choice("--kv", o.choice.kv,
               {"segmented", "contiguous", "reserved", "paged", "spilled", "spilled-paged"}, "NAME",
               "where the cache lies: segmented contiguous reserved paged spilled spilled-paged");
  flags
      .checked("--evict", o.choice.evict, "HOW",
               "what a cache of KEEP tokens forgets: none sinks:KEEP heavy:KEEP (sinks:KEEP,SINKS "
               "heavy:KEEP,RECENT)",
               [](const std::string& how, const std::string&) { static_cast<void>(kv::AnyEviction(how)); })
      .likens({"none", "sinks", "heavy"});
  flags.choice("--kernels", o.choice.kernels, {"exact", "fast8"}, "NAME",
               "how prompts are computed: exact, or fast8, quicker and rounded once more");
  flags
      .choice("--weights", o.choice.weights,
              {"resident", "mapped", "streamed", "mapped-sequential", "mapped-populated", "mapped-locked"},
              "NAME",
              "how weights come into memory: mapped (also -sequential, -populated, -locked), resident, or "
              "streamed: what does not fit the budget is read from the disk")
      .marks(o.weights_given);
}

void governor(Flags& flags, Options& o) {
  flags.group("Model");
  flags.choice("--governor", o.governor, {"on", "off"}, "WHAT",
               "on: while memory is short, caches, scratch and weights give way, and come back; off: nothing "
               "does");
  flags.checked(
      "--pace", o.pace, "LIMIT",
      "rest between layers: 85C keeps the processor's temperature, 15W its power, 50% works half of "
      "the time",
      [](const std::string& text, const std::string& where) {
        static_cast<void>(pace::Pace::parse(text, where));
      });
}

void answer(Flags& flags, Options& o) {
  auto& s = o.sampler;
  flags.group("Answer");
  flags.number("-n,--predict,--n-predict,--max-tokens", o.n_predict, {-2},
               "tokens at most; -1: until something else ends it");
  flags.number("-s,--seed", o.seed, {-1}, "seed of the sampler; -1: from the clock");
  flags.number("--temp,--temperature", s.temperature, {0.0f, 1e4f}, "0: always the most likely token");
  flags.number("--top-k", s.top_k, {0}, "the k most likely; 0: all");
  flags.number("--top-p", s.top_p, {0.0f, 1.0f}, "the most likely that together reach p; 1: all");
  flags.number("--min-p", s.min_p, {0.0f, 1.0f}, "those above p times the most likely; 0: all");
  flags.number("--repeat-penalty", s.repeat_penalty, {1e-3f, 1e3f}, "above 1: against tokens seen lately");
  flags.number("--repeat-last-n", s.repeat_last_n, {0, 1 << 20}, "how far back penalties look");
  flags.number("--frequency-penalty", s.frequency_penalty, {-1e3f, 1e3f}, "per occurrence");
  flags.number("--presence-penalty", s.presence_penalty, {-1e3f, 1e3f}, "once");
  flags.choice("--on-full", o.on_full, {"stop", "shift"}, "WHAT",
               "when the context is full: stop, or shift: drop half of what is not kept and go on");
  flags.number("--keep", o.keep, {-1, 1 << 30},
               "first tokens that a shift keeps; -1: all of the first prompt");
  flags.checked("--speculate", o.speculate, "HOW",
                "guess tokens and check them in one step: ngram[:N,K]; the answer stays the same",
                [&o](const std::string& how, const std::string&) { o.drafts = drafts_of(how); });
  flags.text("-md,--draft,--model-draft", o.draft, "FILE",
             "a smaller model with the same vocabulary guesses tokens, and one step checks them; the answer "
             "stays the same");
  flags.number("--draft-max", o.draft_max, {1, 64}, "tokens that it guesses at a time");
  flags.number("--draft-min", o.draft_min, {0, 64},
               "and at least, however long that takes; 0: as many as pay");
  flags.toggle("--stats", o.stats,
               "bytes read, time waited for them, experts that were there, and page faults");
  flags.toggle("--ignore-eos", o.ignore_eos, "go on after an end token");
  flags.toggle("--special", o.show_special, "show control tokens");
}

}  // namespace mica::program::flag_group
