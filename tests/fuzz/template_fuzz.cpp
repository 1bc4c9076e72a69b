// SPDX-License-Identifier: Apache-2.0
//
// One input of bytes as a template with variables of every kind. The bytes spell four values, named a to d,
// and behind them the template's text. Built with libFuzzer for a search, and with replay.cpp for the stored
// corpus.
//
//   u n t f          undefined, none, true, false
//   0 ... 9  m M     integers; m is the lowest of 64 bits, M the highest
//   i, 8 bytes       an integer      d, 8 bytes       a float      (the lowest byte first)
//   sN, N bytes      a string        lN, N values     a list       pN, N values   a tuple
//   kN, 2N values    a mapping       any other byte   none         (N: a byte, its low four bits count)

#include "fuzz/input.hpp"
#include "mica_jinja/template.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::fuzz::template_fuzz {
namespace {

using mica::jinja::CivilTime;
using mica::jinja::Limits;
using mica::jinja::Template;
using mica::jinja::TemplateError;
using mica::jinja::Value;

/// Reads values from the front of an input; behind its end all bytes are zero.
class Input {
 public:
  explicit Input(std::string_view bytes) : bytes_(bytes) {}

  [[nodiscard]] std::string_view rest() const { return bytes_; }

  [[nodiscard]] Value value(int depth = 0) {
    const char letter = byte();
    if (letter >= '0' && letter <= '9') return letter - '0';
    switch (letter) {
      case 'u':
        return Value();
      case 't':
        return true;
      case 'f':
        return false;
      case 'm':
        return std::numeric_limits<std::int64_t>::min();
      case 'M':
        return std::numeric_limits<std::int64_t>::max();
      case 'i':
        return static_cast<std::int64_t>(eight_bytes());
      case 'd':
        return std::bit_cast<double>(eight_bytes());
      case 's':
        return Value(text(count()));
      case 'l':
        return Value::list(values(count(), depth));
      case 'p':
        return Value::tuple(values(count(), depth));
      case 'k':
        return mapping(count(), depth);
      default:
        return nullptr;
    }
  }

 private:
  static constexpr int deepest = 4;

  char byte() {
    if (bytes_.empty()) return '\0';
    const char first = bytes_.front();
    bytes_.remove_prefix(1);
    return first;
  }

  std::size_t count() { return static_cast<unsigned char>(byte()) & 15U; }

  std::uint64_t eight_bytes() {
    std::uint64_t out = 0;
    for (int i = 0; i < 8; ++i) out |= std::uint64_t{static_cast<unsigned char>(byte())} << (8 * i);
    return out;
  }

  std::string_view text(std::size_t size) {
    const std::string_view out = bytes_.substr(0, size);
    bytes_.remove_prefix(out.size());
    return out;
  }

  std::vector<Value> values(std::size_t count, int depth) {
    std::vector<Value> out;
    for (std::size_t i = 0; i < count && depth < deepest; ++i) out.push_back(value(depth + 1));
    return out;
  }

  /// Keys are strings here, as in everything that a program gives to a template.
  Value mapping(std::size_t count, int depth) {
    Value::Entries entries;
    for (std::size_t i = 0; i < count && depth < deepest; ++i) {
      const Value key = value(depth + 1);
      const bool is_text = key.is(mica::jinja::Kind::string);
      Value name = is_text ? key : Value(std::string(1, static_cast<char>('a' + i)));
      entries.emplace_back(std::move(name), value(depth + 1));
    }
    return Value::mapping(std::move(entries));
  }

  std::string_view bytes_;
};

/// Small, so that a search tries many templates and not few long loops.
Limits fuzz_limits() {
  Limits limits;
  limits.steps = 20'000;
  limits.output_bytes = 1 << 16;
  limits.range_items = 1'000;
  return limits;
}

/// What was printed, or the error's words.
std::string render(const Template& parsed, const Value& globals) {
  static const auto now = CivilTime::parse("2025-01-15T12:34:56");
  try {
    return parsed.render(globals, now);
  } catch (const TemplateError& error) {
    return error.what();
  }
}

std::optional<Template> parse(std::string_view source) {
  try {
    return Template::parse(source, fuzz_limits());
  } catch (const TemplateError&) {
    return std::nullopt;
  }
}

}  // namespace

/// Anything but a text or a TemplateError ends the process, and so does a template that renders in two ways.
MICA_FUZZ_TARGET(template) {
  Input input({reinterpret_cast<const char*>(data), size});
  Value::Entries globals;
  for (const char* name : {"a", "b", "c", "d"}) globals.emplace_back(name, input.value());
  const auto parsed = parse(input.rest());
  if (!parsed) return 0;
  const Value variables = Value::mapping(std::move(globals));
  if (render(*parsed, variables) != render(*parsed, variables)) std::abort();
  return 0;
}

}  // namespace mica::fuzz::template_fuzz
