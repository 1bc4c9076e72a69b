// SPDX-License-Identifier: Apache-2.0
#include "command_line.hpp"

#include "foreign_flags.hpp"
#include "suggestion.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace mica::program {
namespace {

class Reader {
 public:
  Reader(Flags& flags, std::span<const std::string> arguments) : flags_(flags), rest_(arguments) {}

  CommandLine read() && {
    while (const auto word = next()) {
      if (*word == "--") {
        line_.words.insert(line_.words.end(), rest_.begin(), rest_.end());
        break;
      }
      if (word->size() < 2 || word->front() != '-') {
        line_.words.push_back(*word);
      } else if (!own(*word) && !foreign(*word) && !attached(*word) && !letters(*word)) {
        refuse(*word);
      }
    }
    return std::move(line_);
  }

 private:
  std::optional<std::string> next() {
    if (rest_.empty()) return std::nullopt;
    std::string word = rest_.front();
    rest_ = rest_.subspan(1);
    return word;
  }

  void give(Flag& flag, std::string text, std::string name) {
    line_.values.push_back({&flag, std::move(text), std::move(name)});
  }

  /// A flag of this verb, perhaps with its value after an equals sign.
  bool own(const std::string& word) {
    const std::size_t sign = word.find('=');
    const std::string name = word.substr(0, sign);
    Flag* const flag = flags_.find(name);
    if (flag == nullptr) return false;
    if (sign != std::string::npos) {
      give(*flag, word.substr(sign + 1), name);
    } else if (flag->is_switch()) {
      const bool off = std::find(flag->off.begin(), flag->off.end(), name) != flag->off.end();
      give(*flag, off ? "false" : "true", name);
    } else {
      give(*flag, value_of(*flag, name), name);
    }
    return true;
  }

  std::string value_of(const Flag& flag, const std::string& name) {
    const bool is_flag = flag.type == "FILE" && !rest_.empty() && flags_.find(rest_.front()) != nullptr;
    if (is_flag)
      raise(ErrorCode::usage, name, " needs ", flag.needs, ", found the flag ", rest_.front(),
            "; a file of that name is ./", rest_.front(), ".");
    auto value = next();
    if (!value) raise(ErrorCode::usage, name, " needs ", flag.needs, ", and nothing follows it.");
    return *std::move(value);
  }

  bool foreign(const std::string& word) {
    const std::size_t sign = word.find('=');
    const ForeignFlag* const row = find_foreign(foreign::flags, std::string_view(word).substr(0, sign));
    if (row == nullptr) return false;
    if (row->kind == ForeignFlag::Kind::refused) raise(ErrorCode::usage, row->name, ": ", row->why, ".");
    if (row->kind == ForeignFlag::Kind::valued && sign == std::string::npos && value_follows()) next();
    line_.notes.push_back(join(row->why, "; ", row->name, " ignored"));
    return true;
  }

  /// Whether the next word is not a flag; a negative number is not.
  bool value_follows() const {
    if (rest_.empty()) return false;
    const std::string& word = rest_.front();
    return word.size() < 2 || word[0] != '-' || (word[1] >= '0' && word[1] <= '9');
  }

  /// A number behind a letter: -n5.
  bool attached(const std::string& word) {
    Flag* const flag = word[1] == '-' ? nullptr : flags_.find(word.substr(0, 2));
    double number = 0;
    if (flag == nullptr || flag->is_switch() || !read_number(word.substr(2), Range<double>(), number))
      return false;
    give(*flag, word.substr(2), word.substr(0, 2));
    return true;
  }

  /// Several switches of one letter: -qv.
  bool letters(const std::string& word) {
    const auto flag_of = [&](char letter) { return flags_.find(std::string{'-', letter}); };
    const auto is_switch = [&](char letter) {
      const Flag* const flag = flag_of(letter);
      return flag != nullptr && flag->is_switch() && letter != 'h';
    };
    if (!std::all_of(word.begin() + 1, word.end(), is_switch)) return false;
    for (const char letter : word.substr(1)) give(*flag_of(letter), "true", std::string{'-', letter});
    return true;
  }

  [[noreturn]] void refuse(const std::string& word) const {
    const std::string name = word.substr(0, word.find('='));
    if (word.find(' ') != std::string::npos)
      raise(ErrorCode::usage, "unknown flag ", escaped(name), ". Write text that begins with - after --.");
    // One dash is often typed in place of two.
    std::string near = suggestion(name, flags_.names());
    if (near.empty() && !name.starts_with("--")) near = suggestion("-" + name, flags_.names());
    raise(ErrorCode::usage, "unknown flag ", escaped(name), ".", near);
  }

  Flags& flags_;
  std::span<const std::string> rest_;
  CommandLine line_;
};

}  // namespace

CommandLine read_command_line(Flags& flags, std::span<const std::string> arguments) {
  return Reader(flags, arguments).read();
}

ErrorForm error_form_of(std::span<char* const> arguments) {
  ErrorForm form = ErrorForm::text;
  const bool is_bench = !arguments.empty() && std::string_view(arguments.front()) == "bench";
  std::string_view before;
  for (const std::string_view word : arguments) {
    if (word == "--") break;
    if (is_bench && (before == "-o" || before == "--output")) {
      if (word == "json") form = ErrorForm::json;
      if (word == "jsonl") form = ErrorForm::jsonl;
    }
    before = word;
    if (word == "--json" && form == ErrorForm::text) form = ErrorForm::json;
    if (word == "--jsonl") form = ErrorForm::jsonl;
  }
  return form;
}

}  // namespace mica::program
