// SPDX-License-Identifier: Apache-2.0
#include "flags.hpp"

#include "console.hpp"
#include "suggestion.hpp"

#include <algorithm>

namespace mica::program {
namespace {

/// "-c,--ctx-size,!--no-ctx" divided at commas.
std::vector<std::string_view> parts_of(std::string_view names) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at <= names.size();) {
    const std::size_t end = std::min(names.find(',', at), names.size());
    parts.push_back(names.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

}  // namespace

namespace detail {

bool same_letters(std::string_view a, std::string_view b) noexcept {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

std::optional<bool> truth_of(std::string_view text) {
  for (const std::string_view yes : {"true", "on", "yes", "1"}) {
    if (same_letters(text, yes)) return true;
  }
  for (const std::string_view no : {"false", "off", "no", "0"}) {
    if (same_letters(text, no)) return false;
  }
  return std::nullopt;
}

std::string listed(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += join(out.empty() ? "" : " ", name);
  return out;
}

}  // namespace detail

std::string_view name(Source source) noexcept {
  constexpr std::string_view names[] = {"default", "file", "environment", "flag"};
  return names[static_cast<std::size_t>(source)];
}

std::vector<std::string> names_in(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end > 0) names.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return names;
}

std::string Flag::key() const {
  for (const std::string& name : names) {
    if (name.starts_with("--")) return name.substr(2);
  }
  return names.front().substr(1);
}

std::string Flag::variable() const { return variable_of(key()); }

void Flag::take(const std::string& value, Source from, const std::string& where) {
  if (from != source) drop();
  source = from;
  bool fits = !value.empty() || is_switch() || type == "TEXT";
  const auto likely = [&] {  // none where the first word of sinks:0 is known
    const auto first = [](std::string_view text) { return text.substr(0, text.find(':')); };
    const bool is_known = std::any_of(known.begin(), known.end(),
                                      [&](const auto& name) { return first(name) == first(value); });
    return is_known ? std::string() : suggestion(first(value), known, first);
  };
  try {
    fits = fits && store(value, where);
  } catch (const Error& error) {
    const bool named = error.message().starts_with(where);
    raise(ErrorCode::usage, named ? "" : join(where, ": "), sentence(error.message()), likely());
  }
  if (!fits) raise(ErrorCode::usage, where, " needs ", needs, ", found '", escaped(value), "'.", likely());
  if (!collects) values.clear();
  values.push_back(value);
  if (given != nullptr) *given = true;
}

void Flag::drop() {
  values.clear();
  if (clear) clear();
}

Flag& Flags::add(std::string_view names, std::string type, std::string about) {
  Flag& flag = flags_.emplace_back();
  for (const std::string_view name : parts_of(names)) {
    if (name.starts_with('!')) {
      flag.off.emplace_back(name.substr(1));
    } else {
      flag.names.emplace_back(name);
    }
  }
  flag.type = std::move(type);
  flag.about = std::move(about);
  flag.group = group_;
  return flag;
}

Flag& Flags::custom(std::string_view names, std::string type, std::string about, std::string needs,
                    std::optional<std::string> standard, Store store) {
  Flag& flag = add(names, std::move(type), std::move(about));
  flag.needs = std::move(needs);
  flag.standard = std::move(standard);
  flag.store = std::move(store);
  return flag;
}

Flag& Flags::texts(std::string_view names, std::vector<std::string>& to, std::string type,
                   std::string about) {
  const std::string needs = join("a ", type);
  Flag& flag =
      custom(names, std::move(type), std::move(about), needs, std::nullopt,
             [&to](const std::string& value, const std::string&) { return to.push_back(value), true; });
  flag.collects = true;
  flag.clear = [&to] { to.clear(); };
  return flag;
}

Flag& Flags::checked(std::string_view names, std::string& to, std::string type, std::string about,
                     Check check) {
  Flag& flag = text(names, to, std::move(type), std::move(about));
  flag.store = [&to, check = std::move(check)](const std::string& value, const std::string& where) {
    check(value, where);
    return to = value, true;
  };
  return flag;
}

Flag& Flags::choice(std::string_view names, std::string& to, std::vector<std::string> known, std::string type,
                    std::string about) {
  Flag& flag = text(names, to, std::move(type), std::move(about));
  flag.needs = join("one of ", detail::listed(known));
  flag.known = known;
  flag.store = [&to, known = std::move(known)](const std::string& value, const std::string&) {
    const auto same = [&](const std::string& name) { return detail::same_letters(name, value); };
    const auto found = std::find_if(known.begin(), known.end(), same);
    if (found != known.end()) to = *found;
    return found != known.end();
  };
  return flag;
}

Flag& Flags::numbers(std::string_view names, std::vector<std::size_t>& to, Range<std::size_t> range,
                     std::string about) {
  std::string standard;
  for (const std::size_t n : to) standard += join(standard.empty() ? "" : ",", n);
  const std::string needs = join("numbers with commas between them, each ", detail::needed_number(range));
  return custom(names, "LIST", std::move(about), needs, standard,
                [&to, range](const std::string& text, const std::string&) {
                  std::vector<std::size_t> read;
                  for (const std::string_view part : parts_of(text)) {
                    if (!read_number(part, range, read.emplace_back())) return false;
                  }
                  return to = std::move(read), true;
                });
}

void Flags::words(std::vector<std::string>& to, std::string type, std::string about) {
  words_ = &to;
  words_type_ = std::move(type);
  words_about_ = std::move(about);
  each_word_.clear();
  for (std::string& name : names_in(words_type_)) each_word_.push_back({std::move(name), {}});
}

void Flags::word_likens(std::string_view name, std::vector<std::string> known) {
  for (Word& word : each_word_) {
    if (word.name == name) word.known = known;
  }
}

void Flags::model(std::string_view names, std::string& to, std::string type, std::string about) {
  model_ = &text(names, to, std::move(type), std::move(about)).names_model();
}

Flag* Flags::find(std::string_view name) noexcept {
  for (Flag& flag : flags_) {
    for (const std::vector<std::string>* names : {&flag.names, &flag.off}) {
      if (std::find(names->begin(), names->end(), name) != names->end()) return &flag;
    }
  }
  return nullptr;
}

Flag* Flags::find_key(std::string_view key) noexcept {
  for (const std::string_view dashes : {"--", "-"}) {
    const std::string name = join(dashes, key);
    for (Flag& flag : flags_) {
      if (std::find(flag.names.begin(), flag.names.end(), name) != flag.names.end()) return &flag;
    }
  }
  return nullptr;
}

std::vector<std::string> Flags::names() const {
  std::vector<std::string> names;
  for (const Flag& flag : flags_) {
    names.insert(names.end(), flag.names.begin(), flag.names.end());
    names.insert(names.end(), flag.off.begin(), flag.off.end());
  }
  return names;
}

}  // namespace mica::program
