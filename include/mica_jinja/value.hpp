// SPDX-License-Identifier: Apache-2.0
//
// The values that a template computes with: Python's, as far as chat templates use them. Strings, lists and
// mappings are shared and never change after they are made, so copying is cheap and nothing can contain
// itself.
#pragma once

#include "mica_jinja/limits.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace mica::jinja {

/// The kinds of values, which are Python's.
enum class Kind : std::uint8_t {
  undefined,   ///< a name without a value: prints as nothing, is false; most operations on it fail
  none,        ///< Python's None, JSON's null
  boolean,     ///< in arithmetic 0 or 1
  integer,     ///< 64 bits
  real,        ///< a double
  string,      ///< bytes, taken for UTF-8
  sequence,    ///< list, tuple, and what Python makes generators and views of
  mapping,     ///< keys stay in the order in which they came
  name_space,  ///< namespace(...), the one thing that can be changed
  loop,        ///< the variable `loop`
  callable,    ///< a macro, a function or a method
};

namespace detail {

/// What is behind a value that does not fit into the value itself.
struct Object {
  explicit Object(Kind object_kind) : kind(object_kind) {}
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;

  Kind kind;
  std::uint32_t depth = 0;  ///< containers inside one another, this one included
  bool has_state = false;   ///< reaches something that can change; such a value must not enter a namespace
};

struct NoValue {};

}  // namespace detail

/// One value; 24 bytes, cheap to copy, safe to share between threads.
/// Views into a value need a value with a name: on a temporary, which ends before the view, the members
/// that give them do not compile.
class Value {
 public:
  /// A mapping's entries in the order in which they print.
  using Entries = std::vector<std::pair<Value, Value>>;

  Value() noexcept = default;  // undefined
  /// A value that is none, a boolean, a number, or a text.
  Value(std::nullptr_t) noexcept : data_(detail::NoValue{}) {}
  Value(bool truth) noexcept : data_(truth) {}
  template <std::integral T>
  requires(!std::same_as<T, bool> && (sizeof(T) < 8 || std::signed_integral<T>)) Value(T number)
  noexcept : data_(static_cast<std::int64_t>(number)) {}
  Value(double number) noexcept : data_(number) {}
  Value(std::string text);
  Value(std::string_view text) : Value(std::string(text)) {}
  Value(const char* text) : Value(std::string(text)) {}
  /// For the engine: a value of the object's kind.
  explicit Value(std::shared_ptr<const detail::Object> object) noexcept : data_(std::move(object)) {}

  /// Undefined, with the sentence that an operation on it will fail with.
  static Value undefined(std::string why);
  /// Throws TemplateError when the result nests deeper than max_container_depth.
  static Value list(std::vector<Value> items);
  static Value tuple(std::vector<Value> items);
  /// Of equal keys the first sets the place and the last sets the value, as in Python. Throws as
  /// list(), and for a key that is a sequence or a mapping.
  static Value mapping(Entries entries);

  /// The kind that a template sees.
  [[nodiscard]] Kind kind() const noexcept {
    if (const detail::Object* held = object()) return held->kind;
    return static_cast<Kind>(data_.index());  // the first five alternatives stand in the order of Kind
  }
  [[nodiscard]] bool is(Kind wanted) const noexcept { return kind() == wanted; }
  /// An integer, a real, or a boolean, which counts as 0 or 1.
  [[nodiscard]] bool is_number() const noexcept { return data_.index() >= 2 && data_.index() <= 4; }

  /// Each requires its own kind, see is(); text() is for strings.
  [[nodiscard]] bool boolean() const { return std::get<bool>(data_); }
  [[nodiscard]] std::int64_t integer() const { return std::get<std::int64_t>(data_); }
  [[nodiscard]] double real() const { return std::get<double>(data_); }
  [[nodiscard]] std::string_view text() const&;
  [[nodiscard]] const std::vector<Value>& items() const&;  ///< of a sequence
  [[nodiscard]] const Entries& entries() const&;           ///< of a mapping

  /// Entry of a mapping, or null when there is none or this is no mapping.
  [[nodiscard]] const Value* find(std::string_view key) const&;

  /// The object behind the value; null for those that have none.
  [[nodiscard]] const detail::Object* object() const& noexcept {
    const auto* held = std::get_if<std::shared_ptr<const detail::Object>>(&data_);
    return held == nullptr ? nullptr : held->get();
  }
  /// object() as a T. Requires that it is a T.
  template <class T>
  [[nodiscard]] const T& as() const& noexcept {
    return static_cast<const T&>(*object());
  }

  void text() const&& = delete;
  void items() const&& = delete;
  void entries() const&& = delete;
  void find(std::string_view key) const&& = delete;
  void object() const&& = delete;
  template <class T>
  void as() const&& = delete;

 private:
  std::variant<std::monostate, detail::NoValue, bool, std::int64_t, double,
               std::shared_ptr<const detail::Object>>
      data_;
};

}  // namespace mica::jinja

#include "mica_jinja/detail/object.hpp"  // the objects, and the members that need them
