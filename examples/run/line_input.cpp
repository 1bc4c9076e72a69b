// SPDX-License-Identifier: Apache-2.0
#include "line_input.hpp"

#include "paste.hpp"

#ifdef MICA_HAS_LIBEDIT
#include <histedit.h>
#endif

#include <clocale>
#include <cstdlib>
#include <cwchar>
#include <filesystem>
#include <string_view>
#include <unistd.h>

namespace mica::program {
namespace {

constexpr std::string_view quotes = "\"\"\"";

}  // namespace

#ifdef MICA_HAS_LIBEDIT

namespace {

/// `$XDG_STATE_HOME/mica/history`, whose folder is made; empty if there is no place for it.
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
  Editor(bool keeps_history, std::span<const ChatWord> known)
      : words(known), file(keeps_history ? history_file() : std::string()) {
    std::setlocale(LC_CTYPE, "");
    ::history(lines, &event, H_SETSIZE, 1000);
    if (!file.empty()) ::history(lines, &event, H_LOAD, file.c_str());
    ::el_set(line, EL_CLIENTDATA, this);
    ::el_set(line, EL_PROMPT_ESC, prompt_of, '\1');  // \1 encloses sequences, which have no width
    ::el_set(line, EL_EDITOR, "emacs");
    ::el_set(line, EL_HIST, ::history, lines);
    ::el_set(line, EL_ADDFN, "mica-paste", "inserts pasted text", paste);
    ::el_set(line, EL_BIND, "\\e[200~", "mica-paste", nullptr);
    ::el_set(line, EL_ADDFN, "mica-complete", "completes commands and file names", complete);
    ::el_set(line, EL_BIND, "^I", "mica-complete", nullptr);
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

  /// The text up to the mark that ends it goes into the line.
  static unsigned char paste(::EditLine* edit_line, int) {
    const std::wstring end(paste_end.begin(), paste_end.end());
    std::wstring text;
    for (wchar_t c = 0; !text.ends_with(end);) {
      if (::el_wgetc(edit_line, &c) != 1) return CC_EOF;  // interrupted, or the terminal is closed
      text += c;
    }
    text = cleaned_paste(text.substr(0, text.size() - end.size()));
    return text.empty() || ::el_winsertstr(edit_line, text.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
  }

  /// Tab: completes, or shows the candidates; in a message it is a tab.
  static unsigned char complete(::EditLine* edit_line, int) {
    Editor* self = nullptr;
    ::el_get(edit_line, EL_CLIENTDATA, &self);
    const ::LineInfo* const info = ::el_line(edit_line);
    const std::string_view typed(info->buffer, static_cast<std::size_t>(info->cursor - info->buffer));
    if (!typed.starts_with('/')) return ::el_insertstr(edit_line, "\t") == 0 ? CC_REFRESH : CC_ERROR;
    const Completion found = complete_line(typed, self->words);
    if (!found.added.empty())
      return ::el_insertstr(edit_line, found.added.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
    if (found.candidates.empty()) return CC_ERROR;
    std::string list = "\n";
    for (const std::string& candidate : found.candidates) list += candidate + "  ";
    write_error(list + "\n");
    return CC_REDISPLAY;
  }

  std::optional<std::string> read(const std::string& wanted) {
    prompt = wanted;
    int count = 0;
    const char* const text = ::el_gets(line, &count);
    if (text == nullptr || count <= 0)
      return interrupted() && !terminated() ? std::optional<std::string>("") : std::nullopt;
    if (count > 1) ::history(lines, &event, H_ENTER, text);
    std::string out(text, static_cast<std::size_t>(count));
    if (out.back() == '\n') out.pop_back();
    return out;
  }

  std::span<const ChatWord> words;
  std::string file;
  std::string prompt;
  ::HistEvent event{};
  ::History* lines = ::history_init();
  ::EditLine* line = ::el_init("mica", stdin, stderr, stderr);
};

#else

/// Without libedit there is no editor.
struct LineInput::Editor {
  std::optional<std::string> read(const std::string&) { return std::nullopt; }
};

#endif

LineInput::LineInput(const AnswerVerb& verb, std::span<const ChatWord> words)
    : prompts_(::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1),
      colors_(prompts_ && colored(verb, STDERR_FILENO)) {
  const char* const term = std::getenv("TERM");
  asks_for_paste_ = prompts_ && term != nullptr && std::string_view(term) != "dumb";
#ifdef MICA_HAS_LIBEDIT
  if (asks_for_paste_) editor_ = std::make_unique<Editor>(!verb.no_history, words);
#else
  static_cast<void>(words);
#endif
}

LineInput::~LineInput() = default;

std::optional<std::string> LineInput::read(const std::string& prompt) {
  if (!prompts_) return lines_.next();
  const std::string_view color = colors_ ? "\x1b[1;32m" : "", end = colors_ ? "\x1b[0m" : "";
  if (asks_for_paste_) write_sequence(paste_on);
  std::optional<std::string> line;
  if (editor_) {
    line = editor_->read(colors_ ? join('\1', color, '\1', prompt) : prompt);
  } else {
    write_sequence(join(color, prompt));
    line = lines_.next();
    if (line) line = with_paste(*std::move(line), [this] { return lines_.next(); });
  }
  write_sequence(join(end, asks_for_paste_ ? paste_off : ""));
  return line;
}

bool LineInput::is_quoted(const std::string& line) noexcept { return line.starts_with(quotes); }

std::string LineInput::quoted_text(const std::string& line) {
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
