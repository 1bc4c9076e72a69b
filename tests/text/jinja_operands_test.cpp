// SPDX-License-Identifier: Apache-2.0
//
// Every operator, filter, method and test with operands of every kind, and with integers at both ends of
// their range: each gives a value or a template error, and the same one every time.

#include "mica_jinja/template.hpp"
#include "structure/pages.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace jinja_operands_test {

namespace {

using mica::jinja::Limits;
using mica::jinja::Template;
using mica::jinja::TemplateError;
using mica::jinja::Value;
namespace engine = mica::jinja::detail;

__extension__ using Wide = __int128;

constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t highest = std::numeric_limits<std::int64_t>::max();
constexpr std::array<std::int64_t, 8> ends = {lowest, lowest + 1, -1, 0, 1, 2, highest - 1, highest};

constexpr std::string_view no_fit = "an integer does not fit into 64 bits";

struct Result {
  std::string text;                                // what was printed, or the error's detail
  std::optional<TemplateError::Cause> cause = {};  // of an error
  bool operator==(const Result&) const = default;
};

Result render(const Template& parsed, const Value& globals) {
  try {
    return {parsed.render(globals)};
  } catch (const TemplateError& error) {
    return {error.detail(), error.cause()};
  }
}

Result render(std::string_view source, Value::Entries globals) {
  return render(Template::parse(source), Value::mapping(std::move(globals)));
}

/// One value of each kind that a program can give to a template.
const std::vector<Value>& kinds() {
  static const std::vector<Value> values = {
      Value(),
      nullptr,
      true,
      -3,
      2.5,
      "",
      "It's <b>bold</b> & \"long enough to be on the heap\"",
      Value::list({3, 1, 2}),
      Value::list({"a", nullptr, Value::list({1.5, "b & c"})}),
      Value::tuple({"k", "v"}),
      Value::mapping({{"role", "user"}, {"content", "<hello> to a text of some length"}}),
      Value::mapping({{7, Value::list({})}, {"k", nullptr}}),
  };
  return values;
}

/// Renders with each of the operands for v and w; the second time must tell the same as the first.
/// Returns how many gave a value.
template <class Operands, class Others>
std::size_t render_all(const std::string& source, const Operands& operands, const Others& others) {
  CAPTURE(source);
  Limits limits;
  limits.steps = 20'000;
  const Template parsed = Template::parse(source, limits);
  std::size_t values = 0;
  std::size_t changed = 0;
  for (const auto& v : operands) {
    for (const auto& w : others) {
      const Value globals = Value::mapping({{"v", v}, {"w", w}});
      const Result first = render(parsed, globals);
      values += first.cause ? 0 : 1;
      changed += first == render(parsed, globals) ? 0 : 1;
    }
  }
  CHECK(changed == 0);
  return values;
}

template <class Operands>
std::size_t render_all(const std::string& source, const Operands& operands) {
  return render_all(source, operands, std::vector<Value>{nullptr});
}

std::vector<std::string> names_of(std::initializer_list<std::span<const engine::NamedOperation>> tables) {
  std::set<std::string> names;
  for (const auto table : tables) {
    for (const engine::NamedOperation& operation : table) names.emplace(operation.name);
  }
  return {names.begin(), names.end()};
}

std::vector<std::string> filter_names() { return names_of({engine::text_filters, engine::row_filters}); }

std::vector<std::string> method_names() {
  return names_of({engine::string_methods, engine::mapping_methods});
}

/// Tests are written by name behind `is`; those that are signs have names as well.
std::vector<std::string> test_names() {
  std::vector<std::string> names = names_of({engine::predicates});
  std::erase_if(names, [](const std::string& name) { return name.find_first_of("=<>!") != name.npos; });
  return names;
}

/// a op b with 128 bits, rounded as Python rounds; nothing for what has no result.
std::optional<Wide> exact(std::string_view op, Wide a, Wide b) {
  if (op == "+") return a + b;
  if (op == "-") return a - b;
  if (op == "*") return a * b;
  if (b == 0) return std::nullopt;
  const Wide rest = a % b;
  const bool below = rest != 0 && (rest < 0) != (b < 0);
  if (op == "//") return a / b - (below ? 1 : 0);
  return below ? rest + b : rest;
}

/// The numbers of a range, by arithmetic that cannot overflow; nothing when there are more than max_items.
std::optional<std::vector<Value>> exact_range(Wide start, Wide stop, Wide step, std::size_t max_items) {
  std::vector<Value> numbers;
  for (Wide at = start; step > 0 ? at < stop : at > stop; at += step) {
    if (numbers.size() == max_items) return std::nullopt;
    numbers.emplace_back(static_cast<std::int64_t>(at));
  }
  return numbers;
}

}  // namespace

TEST_CASE("the page of templates lists the filters, tests, methods and functions that there are") {
  const auto listed = [](std::string_view start) {
    std::set<std::string> words;
    std::ifstream page(MICA_SOURCE "/docs/templates.md");
    bool inside = false;
    for (std::string line; std::getline(page, line);) {
      inside = !line.empty() && (inside || line.starts_with(start));
      if (!inside) continue;
      for (std::string& word : mica::test::code_of(line)) words.insert(std::move(word));
    }
    return std::vector<std::string>(words.begin(), words.end());
  };
  CHECK(listed("Filters: ") == filter_names());
  CHECK(listed("Tests: ") == names_of({engine::predicates}));
  CHECK(listed("Methods of strings: ") == names_of({engine::string_methods}));
  CHECK(listed("Methods of mappings: ") == names_of({engine::mapping_methods}));
  std::set<std::string> functions;
  for (const engine::NamedFunction& function : engine::functions) functions.emplace(function.name);
  CHECK(listed("Functions: ") == std::vector<std::string>(functions.begin(), functions.end()));
}

TEST_CASE("every filter gives a value or a template error for every kind of value and of argument") {
  for (const std::string& name : filter_names()) {
    CAPTURE(name);
    std::size_t values = render_all("{{ v|" + name + " }}", kinds());
    for (const char* arguments : {"(w)", "('a', w)", "(w, w)", "('a', 'b', w)"}) {
      values += render_all("{{ v|" + name + arguments + " }}", kinds(), kinds());
    }
    CHECK(values > 0);
  }
}

TEST_CASE(
    "every method and every test gives a value or a template error for every kind of value and of argument") {
  for (const std::string& name : method_names()) {
    CAPTURE(name);
    std::size_t values = render_all("{{ v." + name + "() }}", kinds());
    for (const char* arguments : {"(w)", "('a', w)", "('a', 'b', w)"}) {
      values += render_all("{{ v." + name + arguments + " }}", kinds(), kinds());
    }
    CHECK(values > 0);
  }
  for (const std::string& name : test_names()) {
    CAPTURE(name);
    CHECK(render_all("{{ v is " + name + " }}", kinds()) +
              render_all("{{ v is " + name + "(w) }}", kinds(), kinds()) >
          0);
  }
}

TEST_CASE("every operator gives a value or a template error for every two kinds of values") {
  for (const char* op : {"+", "-", "*", "/", "//", "%", "~", "==", "<", "in", "and"}) {
    CAPTURE(op);
    CHECK(render_all(std::string("{{ v ") + op + " w }}", kinds(), kinds()) > 0);
  }
  CHECK(render_all("{{ v[w] }}{{ v[w:] }}{{ v[::w] }}", kinds(), kinds()) > 0);
}

TEST_CASE("whole numbers at the ends of 64 bits are calculated exactly or refused") {
  for (const char* op : {"+", "-", "*", "//", "%"}) {
    const Template parsed = Template::parse(std::string("{{ v ") + op + " w }}");
    for (const std::int64_t a : ends) {
      for (const std::int64_t b : ends) {
        CAPTURE(op);
        CAPTURE(a);
        CAPTURE(b);
        const Result found = render(parsed, Value::mapping({{"v", a}, {"w", b}}));
        const auto wanted = exact(op, a, b);
        if (!wanted) {
          CHECK(found.text == "division by zero");
        } else if (*wanted < lowest || *wanted > highest) {
          CHECK(found.cause == TemplateError::Cause::evaluation);
          CHECK(found.text == no_fit);
        } else {
          CHECK(found.text == std::to_string(static_cast<std::int64_t>(*wanted)));
        }
      }
    }
  }
  for (const std::int64_t a : ends) {
    CAPTURE(a);
    const bool fits = a != lowest;
    CHECK(render("{{ -v }}", {{"v", a}}).text == (fits ? std::to_string(-(fits ? a : 0)) : no_fit));
    CHECK(render("{{ v|int }}", {{"v", std::to_string(a)}}).text == std::to_string(a));
  }
}

TEST_CASE("numbers are rounded to decimals that are not negative") {
  CHECK(render("{{ v|round(w) }}", {{"v", lowest}, {"w", highest}}).text == std::to_string(lowest));
  CHECK(render("{{ 1.5|round(w) }}", {{"w", highest}}).text == "1.5");
  for (const std::int64_t digits : {lowest, std::int64_t{-1}}) {
    CHECK(render("{{ v|round(w) }}", {{"v", 1.5}, {"w", digits}}).cause == TemplateError::Cause::evaluation);
    CHECK(render("{{ v|round(w) }}", {{"v", 15}, {"w", digits}}).cause == TemplateError::Cause::evaluation);
  }
}

TEST_CASE("ranges reach both ends of 64 bits") {
  constexpr std::size_t max_items = 16;
  Limits limits;
  limits.range_items = max_items;
  const Template parsed = Template::parse("{{ range(a, b, c)|list }}", limits);
  for (const std::int64_t a : ends) {
    for (const std::int64_t b : ends) {
      for (const std::int64_t c : ends) {
        if (c == 0) continue;
        CAPTURE(a);
        CAPTURE(b);
        CAPTURE(c);
        const Result found = render(parsed, Value::mapping({{"a", a}, {"b", b}, {"c", c}}));
        const auto wanted = exact_range(a, b, c, max_items);
        if (wanted) {
          CHECK(found.text == render("{{ v }}", {{"v", Value::list(*wanted)}}).text);
        } else {
          CHECK(found.cause == TemplateError::Cause::limit);
        }
      }
    }
  }
}

TEST_CASE("limits, widths and places beyond a text reach to its end") {
  for (const std::int64_t limit : {lowest, lowest + 1, std::int64_t{-1}, highest - 1, highest}) {
    CAPTURE(limit);
    const Value::Entries globals = {{"t", "a-b-c"}, {"s", " a  b c "}, {"w", limit}};
    CHECK(render("{{ t.split('-', w) }}", globals).text == "['a', 'b', 'c']");
    CHECK(render("{{ s.split(none, w) }}", globals).text == "['a', 'b', 'c']");
    CHECK(render("{{ t.replace('-', '+', w) }}", globals).text == "a+b+c");
    CHECK(render("{{ t|replace('-', '', w) }}", globals).text == "abc");
  }
  CHECK(render("{{ 'a-b-c'.split('-', 1) }}{{ ' a b  c'.split(none, 1) }}", {}).text ==
        "['a', 'b-c']['a', 'b  c']");
  CHECK(render("{{ 'a-b-c'.replace('-', '', 1) }}{{ 'ab'.replace('', '.', 2) }}", {}).text == "ab-c.a.b");
  const Value::Entries globals = {{"v", lowest}, {"w", highest}, {"l", Value::list({1, 2, 3})}};
  CHECK(render("{{ 'abc'[v:w] }}{{ 'abc'[w:] }}{{ 'abc'[:v] }}", globals).text == "abc");
  CHECK(render("{{ l[v:w] }}{{ l[::v] }}{{ l[w:] }}{{ l[v] is defined }}", globals).text ==
        "[1, 2, 3][3][]False");
  CHECK(render("{{ range(v, w, w)[::-1] }}", globals).text ==
        "[9223372036854775806, -1, -9223372036854775808]");
}

TEST_CASE("every filter, method and test takes integers at the ends of 64 bits") {
  const std::vector<Value> owners = {"a b-c", Value::list({2, 1}), Value::mapping({{"a", 1}}), lowest, -1, 1,
                                     highest};
  for (const std::string& name : filter_names()) {
    CAPTURE(name);
    for (const char* arguments : {"(w)", "('a', w)", "(w, w)", "(w, 'a')", "('a', 'b', w)"}) {
      render_all("{{ v|" + name + arguments + " }}", owners, ends);
    }
  }
  for (const std::string& name : method_names()) {
    CAPTURE(name);
    for (const char* arguments : {"(w)", "('a', w)", "('a', w, w)", "(w, 'a')", "('a', 'b', w)"}) {
      render_all("{{ v." + name + arguments + " }}", owners, ends);
    }
  }
  for (const std::string& name : test_names()) render_all("{{ v is " + name + "(w) }}", ends, ends);
  for (const char* format : {"'%d %s'|format(v, w)", "'{} {1}'.format(v, w)", "{v: w}[w]", "[v, w]|sort",
                             "v < w", "v in range(w)", "v|string|int", "v|float|int"}) {
    CHECK(render_all(std::string("{{ ") + format + " }}", ends, ends) > 0);
  }
}

}  // namespace jinja_operands_test
