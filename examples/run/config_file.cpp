// SPDX-License-Identifier: Apache-2.0
#include "config_file.hpp"

#include "mica/base/assert.hpp"
#include "mica/budget/size.hpp"
#include "mica/io/file.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <span>
#include <system_error>
#include <utility>

namespace mica::program {
namespace {

std::string bounded_text(const std::string& path) {
  const io::File file = io::File::open(path);
  MICA_CHECK(file.size() <= ConfigFile::max_bytes, file, path, ": ", budget::size_text(file.size()),
             " are no configuration file; it has ", budget::size_text(ConfigFile::max_bytes), " at most");
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(text)));
  return text;
}

void append_utf8(std::string& out, std::uint32_t point) {
  const auto put = [&out](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (point < 0x80) return put(point);
  if (point < 0x800) {
    put(0xC0 | point >> 6);
  } else if (point < 0x10000) {
    put(0xE0 | point >> 12);
    put(0x80 | (point >> 6 & 0x3F));
  } else {
    put(0xF0 | point >> 18);
    put(0x80 | (point >> 12 & 0x3F));
    put(0x80 | (point >> 6 & 0x3F));
  }
  put(0x80 | (point & 0x3F));
}

/// Reads the text from its beginning to its end; line() is the number of the line of the next byte.
class Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) {}

  std::vector<ConfigFile::Entry> read() {
    std::vector<ConfigFile::Entry> entries;
    std::string section;
    while (skip_lines()) {
      begin_ = rest_.substr(0, rest_.find('\n'));
      begin_line_ = line_;
      if (take('[')) {
        section = name("]");
        needed(!section.empty() && take(']'));
        entries.push_back({section, {}, {}, false, line_});
      } else {
        entries.push_back(entry(section));
      }
      end_of_line();
    }
    return entries;
  }

 private:
  ConfigFile::Entry entry(const std::string& section) {
    ConfigFile::Entry entry{section, name("="), {}, false, line_};
    needed(!entry.key.empty() && take('='));
    skip_blanks();
    entry.is_list = take('[');
    if (!entry.is_list) {
      entry.values.push_back(value("#\n"));
      return entry;
    }
    while (true) {
      needed(skip_lines());
      if (take(']')) return entry;
      entry.values.push_back(value(",]#\n"));
      needed(skip_lines());
      needed(take(',') || rest_.front() == ']');
    }
  }

  /// A name up to one of these; underscores are hyphens.
  std::string name(std::string_view ends) {
    skip_blanks();
    const std::size_t size = std::min(rest_.find_first_of(ends), rest_.size());
    std::string name(rest_.substr(0, size));
    name.erase(name.find_last_not_of(" \t") + 1);
    constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    needed(name.find_first_not_of(letters) == std::string::npos);
    std::replace(name.begin(), name.end(), '_', '-');
    rest_.remove_prefix(size);
    return name;
  }

  std::string value(std::string_view ends) {
    if (take('"')) return quoted();
    if (take('\'')) {
      const std::size_t size = rest_.find_first_of("'\n");
      needed(size != std::string_view::npos && rest_[size] == '\'');
      std::string text(rest_.substr(0, size));
      rest_.remove_prefix(size + 1);
      return text;
    }
    const std::size_t size = std::min(rest_.find_first_of(ends), rest_.size());
    std::string text(rest_.substr(0, size));
    text.erase(text.find_last_not_of(" \t\r") + 1);
    needed(!text.empty() && text.find_first_of(" \t\"'[]{}=") == std::string::npos);
    rest_.remove_prefix(size);
    return text;
  }

  /// The text up to the closing quote.
  std::string quoted() {
    std::string text;
    while (true) {
      const std::size_t size = rest_.find_first_of("\"\\\n");
      needed(size != std::string_view::npos && rest_[size] != '\n');
      text += rest_.substr(0, size);
      const char end = rest_[size];
      rest_.remove_prefix(size + 1);
      if (end == '"') return text;
      escape(text);
    }
  }

  void escape(std::string& text) {
    constexpr std::string_view letters = "btnfre\"\\", bytes = "\b\t\n\f\r\x1b\"\\";
    needed(!rest_.empty());
    const char letter = rest_.front();
    rest_.remove_prefix(1);
    if (const std::size_t at = letters.find(letter); at != std::string_view::npos) {
      text += bytes[at];
      return;
    }
    const std::size_t digits = letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
    needed(digits > 0 && rest_.size() >= digits);
    std::uint32_t point = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + digits, point, 16);
    const bool surrogate = point >= 0xD800 && point < 0xE000;
    needed(error == std::errc() && end == rest_.data() + digits && point > 0 && point < 0x110000 &&
           !surrogate);
    append_utf8(text, point);
    rest_.remove_prefix(digits);
  }

  bool take(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void skip_blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r"), rest_.size())); }
  /// Blanks, comments and ends of lines; false at the end of the text.
  bool skip_lines() {
    while (true) {
      skip_blanks();
      if (!rest_.empty() && rest_.front() == '#') {
        rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
      }
      if (rest_.empty()) return false;
      if (rest_.front() != '\n') return true;
      rest_.remove_prefix(1);
      ++line_;
    }
  }
  void end_of_line() {
    skip_blanks();
    needed(rest_.empty() || rest_.front() == '#' || rest_.front() == '\n');
  }
  void needed(bool condition) const {
    MICA_CHECK(condition, usage, begin_line_, ": '", escaped(begin_, 60),
               "' is neither NAME = VALUE nor [VERB]; texts stand in quotes");
  }

  std::string_view rest_;
  std::size_t line_ = 1;
  std::string_view begin_;  // the line where an entry begins
  std::size_t begin_line_ = 1;
};

/// A text in quotes, as in TOML.
std::string toml_string(std::string_view text) {
  constexpr char digits[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7F) {
      out += {'\\', 'u', '0', '0', digits[byte >> 4], digits[byte & 15]};
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string toml_list(std::span<const std::string> texts) {
  std::string out;
  for (const std::string& text : texts) out += join(out.empty() ? "" : ", ", toml_string(text));
  return join("[", out, "]");
}

std::string line_of(const Flag& flag) {
  const bool unset = flag.values.empty() && !flag.standard;
  const std::string value = flag.collects         ? toml_list(flag.values)
                            : flag.values.empty() ? toml_string(flag.standard.value_or(""))
                                                  : toml_string(flag.values.back());
  const std::string line = join(unset ? "# " : "", flag.key(), " = ", value);
  return join(line, std::string(line.size() < 40 ? 40 - line.size() : 1, ' '), "# ", name(flag.source), "\n");
}

}  // namespace

ConfigFile::ConfigFile(std::string path) : path_(std::move(path)) {
  const std::string text = bounded_text(path_);
  try {
    constexpr std::string_view mark = "\xEF\xBB\xBF";  // some editors begin a text with it
    entries_ = Parser(text.starts_with(mark) ? std::string_view(text).substr(mark.size()) : text).read();
  } catch (const Error& error) {
    raise(error.code(), path_, ":", error.message(), ".");
  }
}

std::string ConfigFile::place(const Entry& entry) const { return join(path_, ":", entry.line); }

std::string config_text(std::string_view verb, const Flags& flags) {
  std::string text = join("# mica ", verb, "\n");
  for (const Flag& flag : flags.all()) {
    if (flag.key() != "help" && flag.key() != "config" && flag.key() != "print-config") text += line_of(flag);
  }
  if (const auto* words = flags.words_to(); words != nullptr && !words->empty())
    text += join("# words = ", toml_list(*words), "\n");
  return text;
}

}  // namespace mica::program
