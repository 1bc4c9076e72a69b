// SPDX-License-Identifier: Apache-2.0
#include "line_input.hpp"

#ifdef MICA_HAS_LIBEDIT
#include <histedit.h>
#endif

#include <clocale>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <unistd.h>

namespace mica::program {

#ifdef MICA_HAS_LIBEDIT

namespace {

/// `$XDG_STATE_HOME/mica/history`, its folder made; empty when there is no place for it.
std::string history_file() {
  const char* const state = std::getenv("XDG_STATE_HOME");
  const char* const home = std::getenv("HOME");
  if (state == nullptr && home == nullptr) return {};
  const auto folder =
      (state != nullptr ? std::filesystem::path(state) : std::filesystem::path(home) / ".local/state") /
      "mica";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  return error ? std::string() : (folder / "history").string();
}

}  // namespace

struct LineInput::Editor {
  explicit Editor(bool keeps_history) : file(keeps_history ? history_file() : std::string()) {
    std::setlocale(LC_CTYPE, "");
    ::history(lines, &event, H_SETSIZE, 1000);
    if (!file.empty()) ::history(lines, &event, H_LOAD, file.c_str());
    ::el_set(line, EL_CLIENTDATA, this);
    ::el_set(line, EL_PROMPT, prompt_of);
    ::el_set(line, EL_EDITOR, "emacs");
    ::el_set(line, EL_HIST, ::history, lines);
  }
  Editor(const Editor&) = delete;
  Editor& operator=(const Editor&) = delete;
  ~Editor() {
    if (!file.empty()) ::history(lines, &event, H_SAVE, file.c_str());
    ::history_end(lines);
    ::el_end(line);
  }

  static char* prompt_of(::EditLine* edit_line) {
    Editor* self = nullptr;
    ::el_get(edit_line, EL_CLIENTDATA, &self);
    return self->prompt.data();
  }

  std::optional<std::string> read(const std::string& wanted) {
    prompt = wanted;
    int count = 0;
    const char* const text = ::el_gets(line, &count);
    if (text == nullptr || count <= 0) return interrupted() ? std::optional<std::string>("") : std::nullopt;
    if (count > 1) ::history(lines, &event, H_ENTER, text);
    std::string out(text, static_cast<std::size_t>(count));
    if (out.back() == '\n') out.pop_back();
    return out;
  }

  std::string file;
  std::string prompt;
  ::HistEvent event{};
  ::History* lines = ::history_init();
  ::EditLine* line = ::el_init("mica", stdin, stderr, stderr);
};

#else

struct LineInput::Editor {
  std::optional<std::string> read(const std::string&) { return std::nullopt; }
};

#endif

LineInput::LineInput(const Options& options)
    : prompts_(::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1) {
#ifdef MICA_HAS_LIBEDIT
  const char* const term = std::getenv("TERM");
  if (prompts_ && term != nullptr && std::string_view(term) != "dumb") {
    editor_ = std::make_unique<Editor>(!options.no_history);
  }
#else
  static_cast<void>(options);
#endif
}

LineInput::~LineInput() = default;

std::optional<std::string> LineInput::read(const std::string& prompt) {
  if (editor_) return editor_->read(prompt);
  if (prompts_) write_error(prompt);
  return lines_.next();
}

std::string LineInput::with_quoted_lines(std::string line) {
  constexpr std::string_view quotes = "\"\"\"";
  if (!line.starts_with(quotes)) return line;
  std::string text = line.substr(quotes.size());
  while (!text.ends_with(quotes)) {
    const auto next = read("... ");
    if (!next) return text;
    text.append(text.empty() ? "" : "\n").append(*next);
  }
  text.resize(text.size() - quotes.size());
  return text;
}

}  // namespace mica::program
