// SPDX-License-Identifier: Apache-2.0
#include "chat.hpp"

#include "budgeted.hpp"
#include "console.hpp"
#include "conversation.hpp"
#include "line_input.hpp"
#include "load.hpp"
#include "mica/io/atomic_file.hpp"
#include "mica/io/detail/near_name.hpp"
#include "mica/io/file.hpp"
#include "plan_text.hpp"
#include "verbs.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace mica::program {
namespace {

constexpr std::string_view help_text =
    "/help, /?           this text               /clear        remove the conversation\n"
    "/bye, /exit, /quit  leave (also Ctrl-D)     /undo         remove the last exchange\n"
    "/regen              answer once more        /system TEXT  the system prompt; no TEXT: remove it\n"
    "/show WHAT          stats plan template     /read FILE    send the text of a file\n"
    "/save FILE          write the conversation  \"\"\"           begins and ends text of several lines\n"
    "/exact TEXT         ask the model of -m, with --draft-answers; no TEXT: the last question once more\n"
    "/set NAME VALUE     temp top_k top_p min_p repeat_penalty repeat_last_n frequency_penalty\n"
    "                    presence_penalty dry_multiplier dry_base dry_allowed_length dry_penalty_last_n\n"
    "                    top_n_sigma typical xtc_probability xtc_threshold dynatemp_range dynatemp_exp\n"
    "                    mirostat mirostat_lr mirostat_ent samplers seed n; think on|off|auto|hide, nothink\n"
    "Pasted lines are one message. Tab completes commands and file names. Ctrl-C stops an answer.";

/// Names of /set: flags of the sampler, and the limit of an answer.
constexpr std::string_view settings =
    "temp top_k top_p min_p repeat_penalty repeat_last_n frequency_penalty presence_penalty dry_multiplier "
    "dry_base dry_allowed_length dry_penalty_last_n top_n_sigma typical xtc_probability xtc_threshold "
    "dynatemp_range dynatemp_exp mirostat mirostat_lr mirostat_ent samplers seed n think nothink";

/// The flag behind a name of /set: top_k is --top-k. Raises ErrorCode::usage for any other name.
Flag& flag_of(Flags& flags, std::string_view name) {
  io::NearName near{std::string(name)};
  bool known = false;
  for_each_word(settings, [&](std::string_view one) {
    known = known || one == name;
    near.offer(one);
  });
  MICA_CHECK(known, usage, "/set: unknown name '", escaped(name), "'.",
             near.best() ? join(" Did you mean ", *near.best(), "?") : std::string(), " Known: ", settings);
  std::string key(name == "n" ? "predict" : name);
  std::replace(key.begin(), key.end(), '_', '-');
  return *flags.find_key(key);
}

/// Raises ErrorCode::file for a pipe, a device or a folder, which a write could wait for, and usage for an
/// existing file that is not a saved conversation, so that a mistyped name, or one that Tab completed, cannot
/// overwrite a model.
void check_replaceable(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  MICA_CHECK(!std::filesystem::exists(status) || std::filesystem::is_regular_file(status), file,
             "/save: ", path,
             " is not a regular file (a pipe, socket, device or folder); choose another name");
  if (std::filesystem::file_size(path, error) == 0 || error) return;
  constexpr std::string_view mark = "### ";
  std::string begin(mark.size(), '\0');
  const io::File file = io::File::open(path);
  if (file.size() >= begin.size()) file.read_at(0, std::as_writable_bytes(std::span(begin)));
  MICA_CHECK(begin == mark, usage, "/save: ", path,
             " already exists and is not a saved conversation; choose another name");
}

/// The commands and their state.
class Talk {
 public:
  Talk(const AnswerVerb& verb, Model& model, ChatFormat format)
      : verb_(verb),
        model_(model),
        conversation_(verb, model, std::move(format)),
        draft_(open_draft(verb, model)),
        answerer_(verb, model, draft_.get(), conversation_.format().renderer().stop),
        sampler_(verb.sampler),
        lines_(verb, known_words()) {
    if (verb.draft_answers)
      drafting_.emplace(verb, draft_->model(), nullptr, conversation_.format().renderer().stop);
    if (drafting_) drafting_->share_governor(answerer_);
    set_answerers([&](Answerer& one) { one.show_timings(verb.verbose); });
  }

  int talk(const std::optional<std::string>& first) {
    if (lines_.is_interactive()) greet();
    if (first) say(*first);
    bool warned = false;
    while (!over_ && !answerer_.rank_lost()) {
      conversation_.rest(answerer_);
      const auto line = lines_.read("> ");
      if (!line || terminated()) {
        if (lines_.is_interactive()) write_error("\n");  // Ctrl-D shows nothing
        left_ = lines_.is_interactive();
        break;
      }
      if (interrupted()) {  // while a line was typed
        if (warned) {
          conversation_.save(answerer_);
          return 130;
        }
        warned = true;
        forget_interrupt();
        write_error("\n(once more, or Ctrl-D, to leave)\n");
        continue;
      }
      warned = false;
      take(*line);
    }
    conversation_.save(answerer_);
    asked_->raise_undelivered();
    if (answerer_.halted()) {
      if (code_ != 4) write_error_line(answerer_.halted_text());
      return 4;
    }
    if (terminated()) return 130;
    return left_ ? 0 : code_;
  }

 private:
  /// "mica: gemma-3-270m-it, context 32768 tokens; ..."
  void greet() const {
    const auto name = model_.document().metadata().get<std::string_view>("general.name");
    const std::string path = std::filesystem::path(model_.document().path()).filename().string();
    note(verb_, join("mica: ", cell_text(name && !name->empty() ? *name : std::string_view(path)),
                     ", context ", model_.transformer().n_ctx(), " tokens; ",
                     drafting_ ? "answers come from the draft, /exact asks this model; " : "",
                     "/help shows the commands, \"\"\" begins and ends text of several lines, Ctrl-D "
                     "leaves"));
  }

  /// Text of several lines is always a message: pasted code may begin with a slash.
  void take(const std::string& line) {
    if (line.empty()) return;
    if (LineInput::is_quoted(line)) {
      say(lines_.quoted_text(line));
    } else if (line.front() == '/' && line.find('\n') == std::string::npos) {
      command(line);
    } else {
      say(line);
    }
  }
  /// After an error the conversation continues without this exchange.
  void say(const std::string& text) {
    answer(usual(), [&](Answerer& by) { return conversation_.say(text, by); });
  }
  /// The answerer of messages: the draft's with --draft-answers.
  [[nodiscard]] Answerer& usual() noexcept { return drafting_ ? *drafting_ : answerer_; }
  template <class Generate>
  void answer(Answerer& by, Generate&& generate) {
    asked_ = &by;
    conversation_.set_session(&by == &answerer_ ? nullptr : &draft_->drafter().session());
    try {
      const int code = generate(by);
      if (code != 130) keep(code);  // after an interrupt only the answer ends
      over_ = by.undelivered() || terminated() || answerer_.halted();
      if (by.result().reason == StopReason::length) {
        note(verb_, join("mica: stopped after ", by.result().tokens.size(),
                         " tokens, the limit of -n; /set n -1 removes the limit"));
      }
      if (by.result().tokens.empty())
        note(verb_, "mica: no token was sampled: the conversation is as before this message");
      forget_interrupt();
    } catch (const Error& error) {
      write_error_line(error.message());
      if (error.code() == ErrorCode::limit)
        note(verb_, "mica: /undo removes the last exchange, /clear all messages");
      keep(exit_code(error.code()));
    }
    over_ = over_ || verb_.single_turn;
  }

  struct Command;
  [[nodiscard]] static std::span<const Command> commands();
  [[nodiscard]] static std::span<const ChatWord> known_words();
  [[nodiscard]] static std::string near_command(const std::string& name);
  void command(const std::string& line);
  /// Keeps the code of the first message without an answer.
  void keep(int code) { code_ = code_ == 0 ? code : code_; }
  void leave(const std::string&) { over_ = left_ = true; }
  void help(const std::string&) { write_error(join(help_text, "\n")); }
  /// Confirms the effect of a command.
  void confirm(std::string_view text) const { note(verb_, join("(", text, ")")); }
  void clear(const std::string&) {
    conversation_.clear();
    const bool has_system = !conversation_.messages().empty();
    confirm(has_system ? "the conversation is cleared, the system prompt stays"
                       : "the conversation is cleared");
  }
  void undo(const std::string&) {
    MICA_CHECK(conversation_.undo(), usage, "there is no exchange to remove");
    const std::size_t remaining = conversation_.messages().size();
    confirm(join("the last exchange is removed; ", remaining,
                 remaining == 1 ? " message remains" : " messages remain"));
  }
  void regenerate(const std::string&) {
    answer(usual(), [&](Answerer& by) { return conversation_.regenerate(by); });
  }
  void exact(const std::string& text) {
    MICA_CHECK(drafting_, usage,
               "/exact needs --draft FILE --draft-answers; without them each answer is exact");
    answer(answerer_, [&](Answerer& by) {
      return text.empty() ? conversation_.regenerate(by) : conversation_.say(text, by);
    });
  }
  void system(const std::string& text) {
    conversation_.set_system(text);
    confirm(text.empty() ? "there are no words of the system"
                         : "the system's words are set, from the next answer on");
  }
  void read(const std::string& path) {
    MICA_CHECK(!path.empty(), usage, "/read needs the name of a file");
    say(read_text(path));
  }
  /// Changes a setting of the next answers, whichever model gives them.
  template <class Set>
  void set_answerers(const Set& set) {
    set(answerer_);
    if (drafting_) set(*drafting_);
  }
  void set(const std::string& setting);
  void set_thinking(std::string_view what);
  void show(const std::string& what);
  void save(const std::string& path);
  [[nodiscard]] std::string stats();

  const AnswerVerb& verb_;
  Model& model_;
  Conversation conversation_;
  const std::unique_ptr<Draft> draft_;
  Answerer answerer_;                 // of the model of -m
  std::optional<Answerer> drafting_;  // of the draft, with --draft-answers
  Answerer* asked_ = &answerer_;      // last
  sample::SamplerOptions sampler_;
  LineInput lines_;
  int code_ = 0;       // of a chat that ends with the messages of a pipe
  bool left_ = false;  // by a command, or by Ctrl-D at a terminal: refused messages were seen
  bool over_ = false;
};

struct Talk::Command : ChatWord {
  void (Talk::*run)(const std::string&);
};

std::span<const Talk::Command> Talk::commands() {
  static constexpr Command all[] = {
      {{"/bye", ""}, &Talk::leave},
      {{"/clear", ""}, &Talk::clear},
      {{"/exact", "TEXT"}, &Talk::exact},
      {{"/exit", ""}, &Talk::leave},
      {{"/help", ""}, &Talk::help},
      {{"/quit", ""}, &Talk::leave},
      {{"/read", "FILE"}, &Talk::read},
      {{"/regen", ""}, &Talk::regenerate},
      {{"/save", "FILE"}, &Talk::save},
      {{"/set", settings}, &Talk::set},
      {{"/show", "plan stats template"}, &Talk::show},
      {{"/system", "TEXT"}, &Talk::system},
      {{"/undo", ""}, &Talk::undo},
      {{"/?", ""}, &Talk::help},
  };
  return all;
}

std::span<const ChatWord> Talk::known_words() {
  static const std::vector<ChatWord> words(commands().begin(), commands().end());
  return words;
}

/// "; did you mean /help?", or the command that lists all.
std::string Talk::near_command(const std::string& name) {
  io::NearName near(name);
  for (const Command& command : commands()) near.offer(command.name);
  return near.best() ? join("; did you mean ", *near.best(), "?") : std::string("; see /help");
}

void Talk::command(const std::string& line) {
  const std::size_t space = line.find(' ');
  const std::string name = in_lower_case(std::string_view(line).substr(0, space));
  const std::string rest = space == std::string::npos
                               ? std::string()
                               : line.substr(std::min(line.size(), line.find_first_not_of(' ', space)));
  const auto all = commands();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Command& c) { return c.name == name; });
  try {
    MICA_CHECK(found != all.end(), usage, "unknown command ", escaped(name), near_command(name));
    (this->*found->run)(rest);
  } catch (const Error& error) {
    write_error_line(error.message());
  }
}

void Talk::set_thinking(std::string_view what) {
  if (what == "on" || what == "off") {
    conversation_.set_thinking(what == "on");
  } else {
    conversation_.set_thinking(std::nullopt);
  }
  set_answerers([&](Answerer& one) { one.show_thoughts(what == "on" || what == "auto"); });
  const bool has_effect = conversation_.format().has_thinking_switch() || what == "auto" || what == "hide";
  confirm(join("think is ", what, ", from the next answer on",
               has_effect ? "" : "; the model's template has no switch for it"));
}

void Talk::set(const std::string& setting) {
  const std::size_t gap = setting.find(' ');
  const std::string name = in_lower_case(setting.substr(0, gap));
  const std::size_t begin = setting.find_first_not_of(' ', std::min(gap, setting.size()));
  if (name == "nothink") return set_thinking("off");
  MICA_CHECK(!name.empty(), usage, "/set NAME VALUE: the name is one of ", settings);
  AnswerOptions changed = verb_;
  ChatOptions chat = verb_;
  changed.sampler = sampler_;
  Flags flags;
  changed.add_to(flags);
  chat.add_to(flags);
  Flag& flag = flag_of(flags, name);
  const bool is_think = name == "think";
  MICA_CHECK(is_think || begin != std::string::npos, usage, "/set ", name, " needs ", flag.needs);
  const std::string value = begin == std::string::npos ? "on" : setting.substr(begin);
  flag.take(value, Source::flag, join("/set ", name));
  if (is_think) return set_thinking(in_lower_case(value));
  if (name == "n") {
    set_answerers([&](Answerer& one) { one.set_max_tokens(changed); });
  } else {
    if (name == "seed") changed.sampler.seed = changed.chosen_seed();
    set_answerers([&](Answerer& one) { one.set_sampler(changed); });
    sampler_ = changed.sampler;
  }
  const bool no_limit = name == "n" && changed.n_predict.value_or(-1) < 0;
  confirm(join(name, " is ", value, no_limit ? ": no maximum" : "", ", from the next answer on"));
}

void Talk::show(const std::string& what) {
  if (what == "template") {
    write_error(join(conversation_.format().source(), "\n"));
  } else if (what == "plan") {
    const plan::Plan plan = plan_run(model_.document(), question_of(open_options(verb_)));
    write_error(plan_text(plan, model_.ledger().limit()));
  } else if (what == "stats" || what.empty()) {
    write_error(stats());
  } else {
    raise(ErrorCode::usage, "/show knows stats, plan and template; found '", escaped(what), "'");
  }
}

std::string Talk::stats() {
  return join(asked_->timings_line(), "\ncontext ", conversation_.session().tokens().size(), " of ",
              conversation_.session().model().n_ctx(), " tokens, ", conversation_.messages().size(),
              " messages\n");
}

void Talk::save(const std::string& path) {
  MICA_CHECK(!path.empty(), usage, "/save needs the name of a file");
  check_replaceable(path);
  std::string text;
  for (const text::Message& message : conversation_.messages()) {
    text += join("### ", message.role, "\n\n", message.content, "\n\n");
  }
  io::AtomicFile file(path, io::Access::owner);
  file.write(std::as_bytes(std::span(text.data(), text.size())));
  file.commit();
  confirm(join("written to ", cell_text(path), ", messages: ", conversation_.messages().size()));
}

/// Its flags are those of an AnswerVerb (answer_options.cpp).
class Chat final : public AnswerVerb {
 public:
  Chat() : AnswerVerb({"chat", "talk to a model", "mica chat model.gguf -sys \"Answer in rhymes.\""}) {}
  bool runs_on_ranks() const noexcept override { return true; }
  int run() override {
    constraint.prepare();
    return chat(*this);
  }
};

}  // namespace

ChatFormat format_of(const AnswerVerb& verb, const Model& model) {
  ChatFormat format(verb, model.document().metadata(), model.tokenizer().vocabulary());
  if (!format.note().empty()) note(verb, join("mica: ", format.note()));
  const bool is_set = verb.think == Think::on || verb.think == Think::off;
  if (is_set && !format.has_thinking_switch()) {
    note(verb,
         join("mica: --think: ", format.has_template() ? "the model's template" : "a built-in chat format",
              " has no switch for it"));
  }
  if (!verb.chat_template_kwargs.empty() && !format.has_template())
    note(verb, "mica: --chat-template-kwargs: a built-in chat format has no variables");
  return format;
}

int answer_once(const AnswerVerb& verb, Model& model, ChatFormat format, const std::string& prompt) {
  Conversation conversation(verb, model, std::move(format));
  MICA_CHECK(!verb.draft_answers, usage, draft_answers_needs_chat);
  const std::unique_ptr<Draft> draft = open_draft(verb, model);
  Answerer answerer(verb, model, draft.get(), conversation.format().renderer().stop);
  const int code = conversation.say(prompt, answerer);
  conversation.save(answerer);
  answerer.raise_undelivered();
  return code;
}

int chat(const AnswerVerb& verb) {
  check_session_file(verb);
  // Without --single-turn, lines of stdin are messages.
  const auto prompt = verb.single_turn ? prompt_with_stdin(verb) : verb.full_prompt();
  Model model = open_model(verb);
  return chat(verb, model, prompt);
}

int chat(const AnswerVerb& verb, Model& model, const std::optional<std::string>& prompt) {
  ChatFormat format = format_of(verb, model);
  if (verb.single_turn && prompt) return answer_once(verb, model, std::move(format), *prompt);
  return Talk(verb, model, std::move(format)).talk(prompt);
}

AnyVerb make_chat() { return std::make_unique<Chat>(); }

}  // namespace mica::program
