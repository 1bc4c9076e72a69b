// SPDX-License-Identifier: Apache-2.0
//
// The flags of a verb as data: names, help, what a value must be and where it goes. The command line, the
// environment and the configuration file set values only through Flag::take(), so texts arrive byte for byte,
// and errors have the same words.
#pragma once

#include "json_text.hpp"
#include "mica/base/error.hpp"

#include <charconv>
#include <concepts>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

namespace mica::program {

/// The source of a value; a later source replaces an earlier one.
enum class Source : std::uint8_t { standard, file, environment, flag };
[[nodiscard]] std::string_view name(Source source) noexcept;

template <class T>
concept Number = std::integral<T> || std::floating_point<T>;

template <class T>
struct BareOf : std::type_identity<T> {};
template <class T>
struct BareOf<std::optional<T>> : std::type_identity<T> {};
/// T of an optional T, and of a T.
template <class T>
using Bare = typename BareOf<T>::type;
template <class To, class T>
concept OrOptional = std::same_as<Bare<To>, T>;

/// The numbers that a flag takes, both ends included.
template <class T>
struct Range {
  T min = std::numeric_limits<T>::lowest();
  T max = std::numeric_limits<T>::max();
};

/// The names of a text with single blanks between them.
[[nodiscard]] std::vector<std::string> names_in(std::string_view text);

/// Stores a value; false if the flag does not take it. May also raise ErrorCode::usage; `where` is for its
/// text.
using Store = std::function<bool(const std::string& value, const std::string& where)>;

/// One flag: a switch where `type` is empty, else a flag with a value.
struct Flag {
  std::vector<std::string> names;  // with dashes
  std::vector<std::string> off;    // names that turn a switch off
  std::string type;                // of a value, in help: N, FILE
  std::string about;
  std::string group;

  std::string needs;                    // what a value must be: "a whole number from 0 on"
  std::vector<std::string> known;       // names for suggestions and completion
  bool is_model = false;                // the value names a model, also with the type FILE
  std::optional<std::string> standard;  // the default as text; empty: none
  bool collects = false;                // every value counts, not the last one alone
  Store store;                          // where a value goes
  std::function<void()> clear;          // of a flag that collects: drops values of an earlier source
  bool* given = nullptr;                // set when there is a value

  Source source = Source::standard;
  std::vector<std::string> values;  // as they were given; empty: the default

  [[nodiscard]] bool is_switch() const noexcept { return type.empty(); }
  /// The first long name without dashes: in files and variables.
  [[nodiscard]] std::string key() const;
  [[nodiscard]] std::string variable() const;

  /// Stores a value. Raises ErrorCode::usage for a wrong one; `where` is the place that the sentence names.
  void take(const std::string& value, Source from, const std::string& where);

  /// Drops the values so far, before other values of the same source.
  void drop();

  Flag& marks(bool& to) { return given = &to, *this; }
  /// Names that a wrong value is compared with, and that a shell completes. Behind a name that ends in a colon the
  /// value goes on.
  Flag& likens(std::vector<std::string> these) { return known = std::move(these), *this; }
  Flag& names_model() { return is_model = true, *this; }
};

/// A word of a verb: its name in help, and the names that it may be, if there are such.
struct Word {
  std::string name;
  std::vector<std::string> known;
};

/// The flags of one verb and its words. Declaring one takes the variable that its value goes to.
class Flags {
 public:
  /// Raises ErrorCode::usage for a text that makes no sense, naming `where`.
  using Check = std::function<void(const std::string& value, const std::string& where)>;

  Flags() = default;
  Flags(Flags&&) = default;
  Flags(const Flags&) = delete;  // its model points into it
  Flags& operator=(const Flags&) = delete;

  // Declaring; flags belong to the group named last
  void group(std::string name) { group_ = std::move(name); }
  // Where `to` is an optional, help shows no default.
  template <OrOptional<std::string> To>
  Flag& text(std::string_view names, To& to, std::string type, std::string about);
  /// Every value counts.
  Flag& texts(std::string_view names, std::vector<std::string>& to, std::string type, std::string about);
  /// A text that `check` refuses when it makes no sense.
  Flag& checked(std::string_view names, std::string& to, std::string type, std::string about, Check check);
  /// One of these names, in any case.
  Flag& choice(std::string_view names, std::string& to, std::vector<std::string> known, std::string type,
               std::string about);
  template <class E>
  Flag& choice(std::string_view names, E& to, std::vector<std::pair<std::string, E>> known,
               std::string standard, std::string type, std::string about);
  /// Names behind a ! turn it off.
  template <OrOptional<bool> To>
  Flag& toggle(std::string_view names, To& to, std::string about);
  template <class To, Number T = Bare<To>>
  Flag& number(std::string_view names, To& to, Range<Bare<To>> range, std::string about);
  /// Whole numbers with commas between them.
  Flag& numbers(std::string_view names, std::vector<std::size_t>& to, Range<std::size_t> range,
                std::string about);
  /// A flag that reads its value by itself.
  Flag& custom(std::string_view names, std::string type, std::string about, std::string needs,
               std::optional<std::string> standard, Store store);
  /// The words that are no flags, after the model.
  void words(std::vector<std::string>& to, std::string type, std::string about);
  /// The names that a word of this name in `type` of words() may be: a shell completes them.
  void word_likens(std::string_view name, std::vector<std::string> known);
  /// The model: the first word, or a flag.
  void model(std::string_view names, std::string& to, std::string type, std::string about);
  /// Called by settle(): checks values against each other, completes them, and notes what makes little sense.
  using Settle = std::function<void(std::vector<std::string>& notes)>;
  void at_end(Settle settle) { settle_.push_back(std::move(settle)); }

  /// All values are there. Raises ErrorCode::usage for those that exclude each other.
  void settle(std::vector<std::string>& notes) const {
    for (const Settle& each : settle_) each(notes);
  }

  // Asking
  [[nodiscard]] std::deque<Flag>& all() noexcept { return flags_; }
  [[nodiscard]] const std::deque<Flag>& all() const noexcept { return flags_; }
  /// The flag of a name with its dashes; null when there is none.
  [[nodiscard]] Flag* find(std::string_view name) noexcept;
  /// The flag of a name in a configuration file, a long one or a short one; null when there is none.
  [[nodiscard]] Flag* find_key(std::string_view key) noexcept;
  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] Flag* model_flag() noexcept { return model_; }
  [[nodiscard]] std::vector<std::string>* words_to() const noexcept { return words_; }
  [[nodiscard]] const std::string& words_type() const noexcept { return words_type_; }
  /// The words of words_type(), one by one; the last one may be repeated where the verb allows it.
  [[nodiscard]] const std::vector<Word>& each_word() const noexcept { return each_word_; }
  [[nodiscard]] const std::string& words_about() const noexcept { return words_about_; }

 private:
  Flag& add(std::string_view names, std::string type, std::string about);

  std::deque<Flag> flags_;  // their addresses stay
  std::vector<Settle> settle_;
  std::string group_;
  Flag* model_ = nullptr;
  std::vector<std::string>* words_ = nullptr;
  std::string words_type_, words_about_;
  std::vector<Word> each_word_;
};

/// Reads the whole of a text as a number; false when it is none or out of range.
template <class T>
[[nodiscard]] bool read_number(std::string_view text, Range<T> range, T& to) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool fits = error == std::errc() && end == text.data() + text.size() && value >= range.min &&
                    value <= range.max;  // not a number is in no range
  if (fits) to = value;
  return fits;
}

namespace detail {

[[nodiscard]] inline std::string number_text(double value) { return shortest(value); }
template <std::integral T>
[[nodiscard]] std::string number_text(T value) {
  return std::to_string(value);
}
[[nodiscard]] inline std::string number_text(float value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

/// "a whole number from 0 to 64", "a number from 0 on"
template <class T>
[[nodiscard]] std::string needed_number(Range<T> range) {
  const std::string kind = std::integral<T> ? "a whole number" : "a number";
  const Range<T> widest;
  if (std::is_signed_v<T> && range.min == widest.min) return kind;
  return join(kind, " from ", number_text(range.min),
              range.max == widest.max ? " on" : join(" to ", number_text(range.max)));
}

/// The truth of a switch as variables, files and --switch=... spell it.
[[nodiscard]] std::optional<bool> truth_of(std::string_view text);
[[nodiscard]] bool same_letters(std::string_view a, std::string_view b) noexcept;
[[nodiscard]] std::string listed(const std::vector<std::string>& names);

}  // namespace detail

template <class To, Number T>
Flag& Flags::number(std::string_view names, To& to, Range<Bare<To>> range, std::string about) {
  std::optional<std::string> standard;
  if constexpr (std::same_as<To, T>) standard = detail::number_text(to);
  return custom(names, std::integral<T> ? "N" : "X", std::move(about), detail::needed_number(range),
                std::move(standard), [&to, range](const std::string& text, const std::string&) {
                  T value{};
                  const bool fits = read_number(text, range, value);
                  if (fits) to = value;
                  return fits;
                });
}

template <OrOptional<std::string> To>
Flag& Flags::text(std::string_view names, To& to, std::string type, std::string about) {
  const std::string needs = join("a ", type);
  std::optional<std::string> standard;
  if constexpr (std::same_as<To, std::string>) {
    if (!to.empty()) standard = to;
  }
  return custom(names, std::move(type), std::move(about), needs, std::move(standard),
                [&to](const std::string& value, const std::string&) { return to = value, true; });
}

template <OrOptional<bool> To>
Flag& Flags::toggle(std::string_view names, To& to, std::string about) {
  std::optional<std::string> standard;
  if constexpr (std::same_as<To, bool>) standard = to ? "true" : "false";
  return custom(names, {}, std::move(about), "true or false", std::move(standard),
                [&to](const std::string& value, const std::string&) {
                  const auto truth = detail::truth_of(value);
                  if (truth) to = *truth;
                  return truth.has_value();
                });
}

template <class E>
Flag& Flags::choice(std::string_view names, E& to, std::vector<std::pair<std::string, E>> known,
                    std::string standard, std::string type, std::string about) {
  std::vector<std::string> texts;
  for (const auto& [text, value] : known) texts.push_back(text);
  return custom(names, std::move(type), std::move(about), join("one of ", detail::listed(texts)), standard,
                [&to, known = std::move(known)](const std::string& given, const std::string&) {
                  for (const auto& [text, value] : known) {
                    if (detail::same_letters(text, given)) return to = value, true;
                  }
                  return false;
                })
      .likens(std::move(texts));
}

}  // namespace mica::program
