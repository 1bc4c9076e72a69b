// SPDX-License-Identifier: Apache-2.0

#include "mica/gguf/value.hpp"

#include "io/temporary_folder.hpp"

#include <limits>

namespace mica::test::value_test {
namespace {

using gguf::Array;
using gguf::Value;
using gguf::ValueType;

template <class T>
constexpr std::optional<T> convert(gguf::detail::Scalar stored) {
  return stored.as<T>();
}

static_assert(convert<std::uint32_t>(std::int32_t{7}) == 7u, "a count written as i32 is a count");
static_assert(!convert<std::uint32_t>(std::int32_t{-1}), "a negative one is not");
static_assert(!convert<std::uint8_t>(std::uint64_t{256}));
static_assert(!convert<std::int64_t>(std::uint64_t{1} << 63));
static_assert(convert<std::int8_t>(std::int64_t{-128}) == std::int8_t{-128});
static_assert(!convert<float>(1u) && !convert<int>(1.0f), "whole and fractional numbers do not mix");
static_assert(!convert<bool>(1) && !convert<int>(true), "a bool is no number");
static_assert(convert<float>(0.5) == 0.5f && convert<double>(0.5f) == 0.5);
static_assert(!convert<float>(1e39) && !convert<float>(-1e39), "a finite number does not become infinite");
static_assert(convert<float>(std::numeric_limits<double>::infinity()) ==
              std::numeric_limits<float>::infinity());

template <class T>
std::vector<std::byte> raw(T value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> array_of(ValueType type, std::uint64_t count, std::string_view elements) {
  std::vector<std::byte> bytes = raw(static_cast<std::uint32_t>(type));
  for (const std::byte b : raw(count)) bytes.push_back(b);
  for (const char c : elements) bytes.push_back(static_cast<std::byte>(c));
  return bytes;
}

TEST_CASE("a NaN in a file stays a NaN when it is read as another width") {
  const auto bytes = raw(std::numeric_limits<double>::quiet_NaN());
  const auto value = Value(ValueType::f64, bytes).as<float>();
  REQUIRE(value);
  CHECK(*value != *value);
}

TEST_CASE("a value answers only to its own kind") {
  const auto number = raw(std::int32_t{-3});
  const Value value(ValueType::i32, number);
  CHECK(value.as<int>() == -3);
  CHECK(value.as<std::int64_t>() == -3);
  CHECK(!value.as<std::uint32_t>());
  CHECK(!value.as<float>());
  CHECK(!value.as<bool>());
  CHECK(!value.as<std::string_view>());
  CHECK(!value.as<Array<int>>());
  CHECK(!value.is_array());
  CHECK(value.size() == 1);
}

TEST_CASE("a number is taken in every type that holds it and in no other") {
  const auto low = raw(std::int32_t{-129});
  CHECK(Value(ValueType::i32, low).as<std::int16_t>() == -129);
  CHECK(!Value(ValueType::i32, low).as<std::int8_t>());
  const auto high = raw(std::uint16_t{128});
  CHECK(Value(ValueType::u16, high).as<std::uint8_t>() == 128);
  CHECK(!Value(ValueType::u16, high).as<std::int8_t>());
  constexpr double inf = std::numeric_limits<double>::infinity();
  for (const double real : {0.0, -0.5, 1e38, -1e38, inf, -inf}) {
    const auto bytes = raw(real);
    CHECK(Value(ValueType::f64, bytes).as<double>() == real);
    CHECK(Value(ValueType::f64, bytes).as<float>() == static_cast<float>(real));
  }
  for (const double real : {1e39, -1e39}) {  // would become infinite
    const auto bytes = raw(real);
    CHECK(Value(ValueType::f64, bytes).as<double>() == real);
    CHECK(!Value(ValueType::f64, bytes).as<float>());
  }
}

TEST_CASE("a string is its bytes, the NUL among them too") {
  std::vector<std::byte> bytes = raw(std::uint64_t{3});
  for (const char c : {'a', '\0', 'b'}) bytes.push_back(static_cast<std::byte>(c));
  const Value value(ValueType::string, bytes);
  CHECK(value.as<std::string_view>() == std::string_view("a\0b", 3));
  CHECK(value.as<std::string>()->size() == 3);
  CHECK(!value.as<int>());
  CHECK(value.description() == "'a\\x00b' (string)");
}

TEST_CASE("the elements of an array convert one by one, and one that does not fit refuses all") {
  const auto bytes = array_of(ValueType::i16, 3, std::string_view("\x01\x00\x02\x00\xFF\xFF", 6));
  const Value value(ValueType::array, bytes);
  const auto numbers = value.as<Array<std::int64_t>>();
  REQUIRE(numbers);
  CHECK(std::vector<std::int64_t>(numbers->begin(), numbers->end()) == std::vector<std::int64_t>{1, 2, -1});
  CHECK((*numbers)[2] == -1);
  CHECK(!value.as<Array<std::uint16_t>>());
  CHECK(!value.as<Array<float>>());
  CHECK(!value.as<Array<std::string_view>>());
  CHECK(!value.as<std::int16_t>());
  CHECK(value.description() == "array of 3 i16");
}

TEST_CASE("the strings of an array are walked in order") {
  const auto bytes = array_of(ValueType::string, 3,
                              std::string_view("\2\0\0\0\0\0\0\0ab\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0c", 27));
  const Value value(ValueType::array, bytes);
  const auto texts = value.as<Array<std::string_view>>();
  REQUIRE(texts);
  CHECK(texts->size() == 3);
  CHECK(std::vector<std::string_view>(texts->begin(), texts->end()) ==
        std::vector<std::string_view>{"ab", "", "c"});
  CHECK(!value.as<Array<int>>());
}

TEST_CASE("an empty array has no elements of any type that it is asked for in its kind") {
  const auto bytes = array_of(ValueType::u8, 0, "");
  CHECK(Value(ValueType::array, bytes).as<Array<std::int64_t>>()->empty());
  const Array<std::string_view> none;
  CHECK(none.begin() == none.end());
}

TEST_CASE("a description shows the number and its type") {
  CHECK(Value(ValueType::i8, raw(std::int8_t{-5})).description() == "-5 (i8)");
  CHECK(Value(ValueType::f32, raw(1e-6f)).description() == "9.99999997e-07 (f32)");
  CHECK(Value(ValueType::boolean, raw(true)).description() == "true (bool)");
}

}  // namespace
}  // namespace mica::test::value_test
