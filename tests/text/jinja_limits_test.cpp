// SPDX-License-Identifier: Apache-2.0
//
// Templates that want too much, and templates that make no sense: each is answered with an error, soon.

#include "mica_jinja/template.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace jinja_limits_test {

namespace {

using mica::jinja::Limits;
using mica::jinja::Template;
using mica::jinja::TemplateError;
using mica::jinja::Value;
using Cause = TemplateError::Cause;

std::string repeated(std::string_view text, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += text;
  return out;
}

std::optional<TemplateError> error_of(const std::string& source, const Limits& limits = {}) {
  try {
    (void)Template::parse(source, limits).render(Value::mapping({{"big", std::string(1'000'000, 'a')}}));
    return std::nullopt;
  } catch (const TemplateError& error) {
    return error;
  }
}

void check_cause(Cause cause, const std::vector<std::string>& sources) {
  for (const std::string& source : sources) {
    const std::string start = source.substr(0, 100);
    CAPTURE(start);
    const auto error = error_of(source);
    REQUIRE(error);
    CHECK(error->cause() == cause);
    CHECK(error->line() >= 1);
  }
}

const std::string grow = "{% set ns = namespace(x=[1], y=[1], t=(1,), s='aa') %}{% for i in range(100000) %}";

}  // namespace

TEST_CASE("loops that would never end are stopped") {
  check_cause(Cause::limit,
              {"{% for i in range(400000000) %}{% for j in range(400000000) %}{% endfor %}{% endfor %}",
               "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
               "{{ range(-9223372036854775807, 9223372036854775807) }}",
               "{% for c in big %}{% for d in big %}{% endfor %}{% endfor %}"});
}

TEST_CASE("macros cannot call themselves forever") {
  std::string doubling;  // forty macros, each calls the next one twice
  for (int i = 0; i < 40; ++i) {
    const std::string next = "{{ m" + std::to_string(i + 1) + "() }}";
    doubling += "{% macro m" + std::to_string(i) + "() %}" + next + next + "{% endmacro %}";
  }
  check_cause(
      Cause::limit,
      {"{% macro a(x) %}{{ a(x) }}{% endmacro %}{{ a(messages) }}",
       "{% macro a(x=a()) %}{% endmacro %}{{ a() }}",
       "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}",
       "{% macro a(x) %}{{ " + repeated("[", 60) + "a(x)" + repeated("]", 60) + " }}{% endmacro %}{{ a(1) }}",
       doubling + "{% macro m40() %}x{% endmacro %}{{ m0() }}"});
}

TEST_CASE("brackets, blocks and signs nest only so deep") {
  check_cause(Cause::limit,
              {"{{ " + repeated("(", 10'000) + "1" + repeated(")", 10'000) + " }}",
               "{{ " + repeated("[", 10'000) + repeated("]", 10'000) + " }}",
               "{{ " + repeated("{1:", 10'000) + "1" + repeated("}", 10'000) + " }}",
               "{{ " + repeated("not ", 10'000) + "1 }}", "{{ " + repeated("-", 10'000) + "1 }}",
               "{{ " + repeated("1 if 1 else ", 10'000) + "1 }}",
               repeated("{% if 1 %}", 10'000) + repeated("{% endif %}", 10'000)});
}

TEST_CASE("long chains are no nesting") {
  CHECK(Template::parse("{{ 1" + repeated("+1", 50'000) + " }}").render({}) == "50001");
  CHECK(Template::parse("{{ 'A'" + repeated("|lower", 10'000) + " }}").render({}) == "a");
  CHECK(Template::parse("{% if 0 %}" + repeated("{% elif 0 %}", 10'000) + "{% else %}x{% endif %}")
            .render({}) == "x");
}

TEST_CASE("no string or list grows beyond its limit") {
  check_cause(
      Cause::limit,
      {"{{ 'a' * 1000000000 }}", "{{ 'a' * 1000000000000000000 }}", "{{ big * 4000000 }}",
       "{{ 'a\nb'|indent(10000000000) }}", "{{ [1]|tojson(indent=10000000000) }}",
       "{{ '%s%s%s%s%s%s%s%s%s'|format(big, big, big, big, big, "
       "big, "
       "big, big, big) }}",
       "{{ '{0}{0}{0}{0}{0}{0}{0}{0}{0}'.format(big) }}", "{{ big.replace('a', 'b' * 1000) }}",
       "{{ big.join(range(100000)|map('string')) }}", grow + "{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
       grow + "{% set ns.x = ns.x + ns.x %}{% endfor %}",
       "{% for i in range(100000) %}{{ 'a' * 1000 }}{% endfor %}"});
}

TEST_CASE("work on long strings is counted by their length") {
  check_cause(Cause::limit, {"{{ big.split('a' * 500000 ~ 'b') }}", "{{ ('a' * 500000 ~ 'b') in big }}",
                             "{% for i in range(100000) %}{{ big|length }}{% endfor %}",
                             "{% for i in range(100000) %}{{ big|int }}{% endfor %}",
                             "{% for i in range(100000) %}{{ {'a': 1}[big] }}{% endfor %}"});
}

TEST_CASE("what shares its parts a million times over is neither printed nor compared") {
  const std::string share = "{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}{% endfor %}";
  const std::string sixty = "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(60) %}" + share;
  check_cause(Cause::limit, {sixty + "{{ ns.x }}", sixty + "{{ ns.x|tojson }}", sixty + "{{ ns.x == ns.y }}",
                             grow + share, "{{ " + repeated("[", 100) + repeated("]", 100) + " }}"});
}

TEST_CASE("nothing can be put into itself") {
  check_cause(Cause::evaluation,
              {"{% set ns = namespace() %}{% set ns.x = ns %}",
               "{% set ns = namespace() %}{% set ns.x = [{'a': (ns,)}] %}",
               "{% set ns = namespace() %}{% set ns.x = {'a': ns}.get %}",
               "{% set ns = namespace() %}{% for i in [ns] %}{% set ns.x = loop %}{% endfor %}",
               "{% set l = [] %}{{ l.append(l) }}", "{% set m = {} %}{{ m.update({'a': m}) }}"});
}

TEST_CASE("integers that do not fit are refused, never wrapped") {
  check_cause(Cause::evaluation, {"{{ 9223372036854775807 + 1 }}", "{{ -9223372036854775807 - 2 }}",
                                  "{{ 3037000500 * 3037000500 }}", "{{ (-9223372036854775807 - 1) // -1 }}",
                                  "{{ -(-9223372036854775807 - 1) }}", "{{ 1 // 0 }}", "{{ 1 % 0 }}",
                                  "{{ 1 / 0 }}", "{{ '9223372036854775808'|int }}",
                                  "{{ '-1e300'|float|int }}", "{{ '%d'|format('1e19'|float) }}"});
  CHECK(Template::parse("{{ (-9223372036854775807 - 1) % -1 }}").render({}) == "0");
  CHECK(Template::parse("{{ [1, 2][-9223372036854775807 - 1::9223372036854775807] }}").render({}) == "[1]");
}

TEST_CASE("operations that make no sense are refused") {
  check_cause(Cause::evaluation, {"{{ x.y }}",
                                  "{{ x['y'] }}",
                                  "{{ x() }}",
                                  "{{ x + 1 }}",
                                  "{{ x < 1 }}",
                                  "{{ 1 + 'a' }}",
                                  "{{ 'a' + 1 }}",
                                  "{{ none + 1 }}",
                                  "{{ 1 < 'a' }}",
                                  "{{ 1 in none }}",
                                  "{{ 1 in 'abc' }}",
                                  "{{ [1] + (1,) }}",
                                  "{{ none[1:] }}",
                                  "{{ [1][::0] }}",
                                  "{{ 'a'.split('') }}",
                                  "{{ ','.join([1]) }}",
                                  "{{ 5|length }}",
                                  "{{ [1, 'a']|sort }}",
                                  "{{ x|tojson }}",
                                  "{{ 1|nofilter }}",
                                  "{{ 1 is notest }}",
                                  "{{ -'a' }}",
                                  "{{ -x }}",
                                  "{{ +x }}",
                                  "{{ x[1:] }}",
                                  "{{ 1.5 / 0 }}",
                                  "{{ 1.5 // 0 }}",
                                  "{{ 1.5 % 0 }}",
                                  "{{ 5() }}",
                                  "{{ 'a'|upper(1) }}",
                                  "{{ 'a'|upper(x=1) }}",
                                  "{{ 'a'.replace('a', 'b', old='c') }}",
                                  "{{ range() }}",
                                  "{{ range(1, 2, 3, 4) }}",
                                  "{{ dict(5) }}",
                                  "{{ dict({}, {}) }}",
                                  "{{ namespace({1: 2}) }}",
                                  "{{ ([1]|select)|length }}",
                                  "{{ ([1]|select)|last }}",
                                  "{{ ([1]|select)|tojson }}",
                                  "{{ {x: 1}|tojson }}",
                                  "{{ [1]|tojson(separators=5) }}",
                                  "{{ [1]|tojson(separators=[',']) }}",
                                  "{{ '%s'|format(a=1) }}",
                                  "{{ '%'|format }}",
                                  "{{ '%d'|format('a') }}",
                                  "{{ '%d'|format('nan'|float) }}",
                                  "{{ '{-1}'.format(1) }}",
                                  "{{ '{'.format() }}",
                                  "{{ '}'.format() }}",
                                  "{% set d = {} %}{% set d.x = 1 %}",
                                  "{% macro m(a) %}{% endmacro %}{{ m(1, a=2) }}",
                                  "{{ {[1]: 2} }}",
                                  "{% for i in none %}{% endfor %}",
                                  "{% for a, b in [[1, 2, 3]] %}{% endfor %}",
                                  "{% set nope.x = 1 %}",
                                  "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}",
                                  "{% macro m(a) %}{% endmacro %}{{ m(z=2) }}",
                                  "{{ '%s %s'|format('x') }}",
                                  "{{ '%5d'|format(1) }}",
                                  "{{ '{:5}'.format(1) }}",
                                  "{{ 'abc'[::-1] }}",
                                  "{{ [1, 2] < [1, 3] }}",
                                  "{{ '{}'.format() }}",
                                  "{{ 'a'|indent(first=1, nope=2) }}",
                                  "{{ range(1, 2, 0) }}",
                                  "{{ range('a') }}"});
}

TEST_CASE("text that is no template is refused when it is parsed") {
  for (const char* source : {"{{ 1",
                             "{% if true",
                             "{% if true %}",
                             "{% endif %}",
                             "{% foo %}",
                             "{% set a, = [5] %}",
                             "{% for a, in [[1]] %}{% endfor %}",
                             "{{ 1 + }}",
                             "{{ }}",
                             "{{ 'abc }}",
                             "{# abc",
                             "{% raw %} abc",
                             "{{ ( }}",
                             "{{ ) }}",
                             "{{ [1}] }}",
                             "{% for %}",
                             "{% for x in %}",
                             "{% set %}",
                             "{% set x %}",
                             "{% set 1 = 2 %}",
                             "{% set true = 2 %}",
                             "{% macro m( %}",
                             "{% macro m(a=1, b) %}{% endmacro %}",
                             "{% else %}",
                             "{% break %}",
                             "{{ a b }}",
                             "{{ a. }}",
                             "{{ a| }}",
                             "{{ a is }}",
                             "{{ 1 ? 2 }}",
                             "{{ $ }}",
                             "{{ {1} }}",
                             "{{ [1 2] }}",
                             "{% call x %}{% endcall %}",
                             "{{ x = 1 }}",
                             "{{ 1, = }}",
                             "{{ 1 not 2 }}",
                             "{{ 1 not a }}",
                             "{{ [1][] }}",
                             "{{ f(*a, *b) }}",
                             "{{ f(*a, 1) }}",
                             "{% call a.b %}{% endcall %}",
                             "{% call a|first %}{% endcall %}",
                             "{% raw x %}{% endraw %}",
                             "{{",
                             "{%",
                             "{{ '\\N{DASH}' }}",
                             "{{ '\\U00110000' }}",
                             "{{ '\\ud800' }}",
                             "{{ '\\x4' }}",
                             "{{ '\\101' }}",
                             "{{ 1e5 }}",
                             "{{ 0x1f }}",
                             "{{ m(**{'a': 1}) }}",
                             "{{ 2 ** 3 }}",
                             "{{ f(a=1, 2) }}",
                             "\xFF",
                             "{{ '\xC3' }}",
                             "{{ 99999999999999999999 }}"}) {
    CAPTURE(source);
    const auto error = error_of(source);
    REQUIRE(error);
    CHECK(error->cause() == Cause::syntax);
  }
}

TEST_CASE("a number beyond the largest double is refused") {
  const auto error = error_of("\n{{ 1" + repeated("0", 400) + ".0 }}");
  REQUIRE(error);
  CHECK(error->cause() == Cause::syntax);
  CHECK(error->line() == 2);
}

TEST_CASE("what is not supported is named") {
  for (const char* source :
       {"{% include 'x' %}", "{% import 'x' as y %}", "{% extends 'x' %}", "{% do f() %}",
        "{% with a = 1 %}{% endwith %}", "{% for i in x recursive %}{% endfor %}"}) {
    CAPTURE(source);
    const auto error = error_of(source);
    REQUIRE(error);
    CHECK(error->cause() == Cause::unsupported);
  }
}

TEST_CASE("an error tells the line and what was found") {
  const auto syntax = error_of("a\n{% if x %}\n{{ 1 + }}\n{% endif %}");
  REQUIRE(syntax);
  CHECK(std::string(syntax->what()) == "chat template, line 3: found '}}' where an expression was expected");
  const auto evaluation = error_of("a\n\n{% for i in [1] %}\n  {{ nope.x }}\n{% endfor %}");
  REQUIRE(evaluation);
  CHECK(std::string(evaluation->what()) == "chat template, line 4: 'nope' is undefined");
  struct Case {
    const char* source;
    const char* said;
  };
  for (const auto& [source, said] : std::initializer_list<Case>{
           {"{% 1 %}", "found '1' where a tag was expected"},
           {"{% %}", "found '%}' where a tag was expected"},
           {"{% if x %}{% foo %}{% endif %}", "found 'foo' where a tag or 'endif' was expected"},
           {"{% for x of y %}{% endfor %}", "found 'of' where 'in' was expected"},
           {"{% for x in y %}", "found the end of the template where '{% endfor %}' was expected"},
           {"{% set ns = namespace() %}{% for i in [1] %}"
            "{% macro m() %}{% endmacro %}{% set ns.m = m %}{% endfor %}{{ ns.m() }}",
            "the block in which the macro 'm' was written is over"}}) {
    const std::string_view the_source = source;
    CAPTURE(the_source);
    const auto error = error_of(source);
    REQUIRE(error);
    CHECK(error->detail() == said);
  }
}

TEST_CASE("what a template raises itself comes out as it said it") {
  const auto error = error_of("\n{{ raise_exception('Größe: ' ~ 3) }}");
  REQUIRE(error);
  CHECK(error->cause() == Cause::raised);
  CHECK(error->detail() == "Größe: 3");
  CHECK(error->line() == 2);
  CHECK(error_of("{{ raise_exception(big) }}")->detail().size() == 4096);
  CHECK(error_of("{{ raise_exception() }}")->cause() == Cause::raised);
  CHECK(error_of("{{ raise_exception() }}")->detail().empty());
}

TEST_CASE("no template writes to a terminal by way of its errors") {
  const auto says = [](const std::string& source) {
    const auto error = error_of(source);
    REQUIRE(error);
    return std::string(error->what());
  };
  CHECK(says("{{ raise_exception('\\x1b]0;owned\\x07 \\\\ end') }}") ==
        "the chat template refuses: \\x1b]0;owned\\x07 \\x5c end");
  CHECK(says("{{ raise_exception('roles must alternate (\\\\user)') }}") ==
        "the chat template refuses: roles must alternate (\\user)");
  CHECK(says("{{ raise_exception('a\\x7f') }}") == "the chat template refuses: a\\x7f");
  CHECK(says("{{ ['a']|map('\\x1b[2J\\n')|list }}").find_first_of("\x1b\n") == std::string::npos);
  CHECK(says("{{ ['a']|select('\\x1b[2J')|list }}") == "chat template, line 1: there is no test '\\x1b[2J'");
  CHECK(says("{{ range(\xc2\x9b=1) }}").find('\xc2') == std::string::npos);
  CHECK(says("{{ 1|tojson(\xc2\x9b=1) }}").find('\xc2') == std::string::npos);
  CHECK(says("{{ 'a'|trim(\xc2\x9b=1) }}") ==
        "chat template, line 1: 'strip' knows no argument '\\xc2\\x9b'");
  CHECK(says("{% macro m() %}{% endmacro %}{{ m(\xc2\x9b=1) }}") ==
        "chat template, line 1: 'm' knows no argument '\\xc2\\x9b'");
  CHECK(says("{{ '%\\x1b'|format(1) }}") ==
        "chat template, line 1: '%\\x1b' is not supported; formats are %s, %d and %%");
  CHECK(says("{{ '{\\x1b}'.format(1) }}") == "chat template, line 1: format() was not given '\\x1b'");
  CHECK(says("\n{{ 1 \x1b }}").find('\x1b') == std::string::npos);
  CHECK(says("{{ {}['\\x1b'].x }}").find('\x1b') == std::string::npos);
  for (const char* longest : {"{{ raise_exception(big) }}", "{{ x[big].y }}", "{{ {}[big].y }}",
                              "{{ ['a']|map(big)|list }}", "{{ ('%' ~ big)|format(1) }}"}) {
    CAPTURE(longest);
    CHECK(says(longest).size() < TemplateError::shown_bytes + 100);
  }
}

TEST_CASE("limits can be set") {
  Limits limits;
  limits.steps = 100;
  CHECK(error_of("{% for i in range(1000) %}{% endfor %}", limits)->detail() == "stopped after 100 steps");
  limits = {};
  limits.output_bytes = 10;
  CHECK_FALSE(error_of("0123456789", limits));
  CHECK(error_of("01234567890", limits)->cause() == Cause::limit);
  limits = {};
  limits.source_bytes = 3;
  CHECK(error_of("abcd", limits)->cause() == Cause::limit);
}

TEST_CASE("several threads render one template") {
  const Template shared =
      Template::parse("{% for i in range(50) %}{{ 'a' ~ i }}{% set x = {'k': i} %}{{ x.k }}{% endfor %}");
  const std::string expected = shared.render({});
  std::vector<std::string> results(3);
  std::vector<std::thread> threads;
  for (std::string& result : results) threads.emplace_back([&] { result = shared.render({}); });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& result : results) CHECK(result == expected);
}

}  // namespace jinja_limits_test
