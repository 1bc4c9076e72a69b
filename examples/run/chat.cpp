// SPDX-License-Identifier: Apache-2.0
#include "chat.hpp"

#include "console.hpp"
#include "conversation.hpp"
#include "fit.hpp"
#include "line_input.hpp"
#include "mica/io/atomic_file.hpp"
#include "plan_text.hpp"

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace mica::program {
namespace {

constexpr std::string_view help_text =
    "/help             this text                 /clear         forget the conversation\n"
    "/exit, /bye       leave (also Ctrl-D)       /undo          take the last exchange back\n"
    "/regen            answer once more          /system TEXT   the system's words; none: take them away\n"
    "/set NAME VALUE   temp top_k top_p min_p repeat_penalty seed n\n"
    "/show WHAT        stats plan template       /read FILE     say what the file says\n"
    "/save FILE        write the conversation    \"\"\"            begins and ends text of many lines\n"
    "Ctrl-C stops an answer.";

/// The commands and their state.
class Chat {
 public:
  Chat(const Options& options, Model& model, ChatFormat format)
      : options_(options),
        model_(model),
        conversation_(options, model, std::move(format)),
        answerer_(options, model, conversation_.format().stop()),
        sampler_(options.sampler),
        lines_(options) {
    answerer_.show_timings(options.verbose);
  }

  int talk(const std::optional<std::string>& first) {
    if (first) say(*first);
    while (!over_) {
      const auto line = lines_.read("> ");
      if (!line) break;
      forget_interrupt();
      const std::string text = lines_.with_quoted_lines(*line);
      if (text.empty()) continue;
      if (text.front() == '/') {
        command(text);
      } else {
        say(text);
      }
    }
    return code_;
  }

 private:
  /// An error costs one exchange, not the conversation.
  void say(const std::string& text) {
    conversation_.messages().push_back({"user", text});
    answer();
  }
  void answer() {
    try {
      code_ = conversation_.answer(answerer_);
      if (code_ == 130) code_ = 0;  // it stopped the answer, and that is all
    } catch (const Error& error) {
      conversation_.messages().pop_back();
      write_error(join("mica: ", error.message(), "\n"));
      code_ = exit_code(error.code());
    }
    over_ = options_.single_turn;
  }

  void command(const std::string& line);
  void set(std::string_view name, const std::string& value);
  void show(std::string_view what);
  void save(const std::string& path);
  [[nodiscard]] std::string stats();

  const Options& options_;
  Model& model_;
  Conversation conversation_;
  Answerer answerer_;
  sample::SamplerOptions sampler_;
  LineInput lines_;
  int code_ = 0;
  bool over_ = false;
};

void Chat::command(const std::string& line) {
  const std::size_t space = line.find(' ');
  const std::string name = line.substr(0, space);
  const std::string rest =
      space == std::string::npos ? std::string() : line.substr(line.find_first_not_of(' ', space));
  try {
    if (name == "/exit" || name == "/bye" || name == "/quit") {
      over_ = true;
    } else if (name == "/help" || name == "/?") {
      write_error(join(help_text, "\n"));
    } else if (name == "/clear") {
      conversation_.clear();
    } else if (name == "/undo") {
      if (!conversation_.undo()) write_error("mica: nothing to take back\n");
    } else if (name == "/regen") {
      if (conversation_.undo_answer()) answer();
    } else if (name == "/system") {
      conversation_.set_system(rest);
    } else if (name == "/set") {
      const std::size_t gap = rest.find(' ');
      set(rest.substr(0, gap), gap == std::string::npos ? std::string() : rest.substr(gap + 1));
    } else if (name == "/show") {
      show(rest);
    } else if (name == "/read") {
      say(read_text(rest));
    } else if (name == "/save") {
      save(rest);
    } else {
      write_error(join("mica: unknown command ", escaped(name), "; see /help\n"));
    }
  } catch (const Error& error) {
    write_error(join("mica: ", error.message(), "\n"));
  }
}

void Chat::set(std::string_view name, const std::string& value) {
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  MICA_CHECK(!value.empty() && *end == '\0', usage, "/set ", escaped(name), ": '", escaped(value),
             "' is not a number");
  const auto whole = static_cast<std::int64_t>(number);
  sample::SamplerOptions changed = sampler_;
  if (name == "temp" || name == "temperature") {
    changed.temperature = static_cast<float>(number);
  } else if (name == "top_k") {
    changed.top_k = whole;
  } else if (name == "top_p") {
    changed.top_p = static_cast<float>(number);
  } else if (name == "min_p") {
    changed.min_p = static_cast<float>(number);
  } else if (name == "repeat_penalty") {
    changed.repeat_penalty = static_cast<float>(number);
  } else if (name == "seed") {
    changed.seed = static_cast<std::uint64_t>(whole);
  } else if (name == "n") {
    answerer_.set_max_tokens(whole < 0 ? 0 : static_cast<std::size_t>(whole));
  } else {
    raise(ErrorCode::usage, "/set knows temp, top_k, top_p, min_p, repeat_penalty, seed and n; found '",
          escaped(name), "'");
  }
  answerer_.set_sampler(changed);
  sampler_ = changed;
}

void Chat::show(std::string_view what) {
  if (what == "template") {
    write_error(join(conversation_.format().source(), "\n"));
  } else if (what == "plan") {
    const plan::Plan plan = plan_run(model_.document(), question_of(open_options(options_)));
    write_error(plan_text(plan, model_.ledger().limit()));
  } else if (what == "stats" || what.empty()) {
    write_error(stats());
  } else {
    raise(ErrorCode::usage, "/show knows stats, plan and template; found '", escaped(what), "'");
  }
}

std::string Chat::stats() {
  return join(answerer_.timings_line(), "\ncontext ", conversation_.session().tokens().size(), " of ",
              model_.transformer().n_ctx(), " tokens, ", conversation_.messages().size(), " messages\n");
}

void Chat::save(const std::string& path) {
  MICA_CHECK(!path.empty(), usage, "/save needs the name of a file");
  std::string text;
  for (const text::Message& message : conversation_.messages()) {
    text += join("### ", message.role, "\n\n", message.content, "\n\n");
  }
  io::AtomicFile file(path);
  file.write(std::as_bytes(std::span(text.data(), text.size())));
  file.commit();
}

}  // namespace

int chat(const Options& options, Model& model, ChatFormat format, const std::optional<std::string>& first) {
  return Chat(options, model, std::move(format)).talk(first);
}

}  // namespace mica::program
