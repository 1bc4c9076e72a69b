// SPDX-License-Identifier: Apache-2.0
//
// The language feature by feature. The expected texts are what Jinja 3.1 prints for the same template and variables
// when it is configured as Hugging Face configures it.

#include "mica_jinja/template.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <string_view>

namespace jinja_language_test {

namespace {

using mica::jinja::CivilTime;
using mica::jinja::Template;
using mica::jinja::Value;

Value message(const char* role, const char* content) {
  return Value::mapping({{"role", role}, {"content", content}});
}

Value variables() {
  const Value inner = Value::mapping({{"z", nullptr}});
  const Value second =
      Value::mapping({{"role", "assistant"}, {"content", "yo"}, {"n", Value::mapping({{"v", 2}})}});
  return Value::mapping(
      {{"a", "Hello World"},
       {"n", 7},
       {"f", 2.5},
       {"l", Value::list({3, 1, 2})},
       {"s", Value::list({"b", "A", "c"})},
       {"d", Value::mapping({{"x", 1}, {"y", Value::list({1, 2, inner})}, {"items", "I"}, {"k é", true}})},
       {"t", true},
       {"none", nullptr},
       {"u", "ÄÖ日本 语\343\200\200"},
       {"msgs", Value::list({message("user", "hi"), second, message("user", "bye")})},
       {"e", Value::list({})}});
}

struct Case {
  const char* source;
  const char* expected;
};

template <std::size_t N>
void check(const Case (&cases)[N]) {
  const auto now = CivilTime::parse("2025-01-15T12:34:56");
  const Value globals = variables();
  for (const Case& each : cases) {
    CAPTURE(std::string_view(each.source));
    CHECK(Template::parse(each.source).render(globals, now) == each.expected);
  }
}

}  // namespace

TEST_CASE("values print as Python prints them") {
  check({
      {"{{ a }}", "Hello World"},
      {"{{ n }}", "7"},
      {"{{ f }}", "2.5"},
      {"{{ l }}", "[3, 1, 2]"},
      {"{{ s }}", "['b', 'A', 'c']"},
      {"{{ d }}", "{'x': 1, 'y': [1, 2, {'z': None}], 'items': 'I', 'k é': True}"},
      {"{{ t }}", "True"},
      {"{{ none }}", "None"},
      {"{{ x }}", ""},
      {"{{ 1 }}{{ 1.0 }}{{ 0.0001 }}{{ 123456789.123 }}", "11.00.0001123456789.123"},
      {"{{ '1e100'|float }} {{ '1e16'|float }} {{ '1e15'|float }} {{ '1.5e-5'|float }} {{ '5e-324'|float }}",
       "1e+100 1e+16 1000000000000000.0 1.5e-05 5e-324"},
      {"{{ '-inf'|float }} {{ False }}", "-inf False"},
      {"{{ (namespace()|string)[0] }}{{ (range|string)[0] }}", "<<"},
  });
}

TEST_CASE("arithmetic is Python's") {
  check({
      {"{{ 7//2 }}", "3"},
      {"{{ -7//2 }}", "-4"},
      {"{{ 7//-2 }}", "-4"},
      {"{{ -7%3 }}", "2"},
      {"{{ 7%-3 }}", "-2"},
      {"{{ 7/2 }}", "3.5"},
      {"{{ 7.5//2 }}", "3.0"},
      {"{{ -7.5%2 }}", "0.5"},
      {"{{ -7.5//2 }}", "-4.0"},
      {"{{ 7.5//-2 }}", "-4.0"},
      {"{{ 0.1+0.2 }}", "0.30000000000000004"},
      {"{{ 1/3 }}", "0.3333333333333333"},
      {"{{ 10%3.5 }}", "3.0"},
      {"{{ true+true }}", "2"},
      {"{{ true*3 }}", "3"},
      {"{{ false+0.5 }}", "0.5"},
      {"{{ +f }}{{ +n }}", "2.57"},
      {"{{ 1 + 2 * 3 - 4 }}", "3"},
      {"{{ (1+2)*3 }}", "9"},
      {"{{ 2*3%4 }}", "2"},
      {"{{ 1 - 1 - 1 }}", "-1"},
  });
}

TEST_CASE("strings and lists add and repeat") {
  check({
      {"{{ 'a' ~ 1 ~ none ~ [1] ~ x }}", "a1None[1]"},
      {"{{ 'a' + 'b' * 3 }}", "abbb"},
      {"{{ 3 * 'ab' }}", "ababab"},
      {"{{ [1]+[2] }}", "[1, 2]"},
      {"{{ (1,)+(2,) }}", "(1, 2)"},
  });
}

TEST_CASE("what is not there is undefined") {
  check({
      {"{{ d.nope }}|{{ d['nope'] }}|{{ l[10] }}|{{ a.foo }}|{{ n.foo }}|{{ none.foo }}", "|||||"},
  });
}

TEST_CASE("indices and slices count characters and may be negative") {
  check({
      {"{{ a[0] }}{{ a[-1] }}{{ a[1:4] }}{{ a[-3:] }}{{ a[:-3] }}{{ a[100:] }}|{{ a[-100:3] }}",
       "HdellrldHello Wo|Hel"},
      {"{{ u[0] }}{{ u[-2] }}{{ u[1:4] }}{{ u|length }}{{ u|trim }}|{{ u.strip() }}|{{ u[2:100] }}",
       "Ä语Ö日本7ÄÖ日本 语|ÄÖ日本 语|日本 语\343\200\200"},
      {"{{ l[1:] }}{{ l[::-1] }}{{ l[:2] }}{{ l[-1] }}{{ l[::2] }}{{ l[5:] }}{{ l[-2:] }}{{ (1,2,3)[1:] }}{{ "
       "range(5)[1:3]|list }}",
       "[1, 2][2, 1, 3][3, 1]2[3, 2][][1, 2](2, 3)[1, 2]"},
      {"{{ d['keys']()|list }}{{ 'ab'['upper']() }}{{ d['items'] }}", "['x', 'y', 'items', 'k é']ABI"},
  });
}

TEST_CASE("keys that are equal are one key, in short mappings and in long ones") {
  check({
      {"{{ {true: 'a'}[1] }}{{ {1: 'a'}[true] }}{{ {0: 'a'}[false] }}{{ {1.0: 'a'}[1] }}", "aaaa"},
      {"{{ {namespace(): 1}[namespace()] is defined }}", "False"},
      {"{% set m = {0: 'zero', none: 'nothing', 1: 'one', 2: 2, 3: 3, 4: 4, 5: 5, 'k': 'v', 0.5: 'half'} %}"
       "{{ m[0] }} {{ m[none] }} {{ m[true] }} {{ m['k'] }} {{ m[0.5] }} {{ 'z' in m }} {{ 8 in m }}",
       "zero nothing one v half False False"},
  });
}

TEST_CASE("variables are the entries whose keys are strings") {
  const Value globals = Value::mapping({{1, "one"}, {nullptr, "nothing"}, {"a", "x"}});
  CHECK(Template::parse("{{ a }}{{ b }}").render(globals) == "x");
  CHECK(globals.find("a") != nullptr);
  const Value text("a");
  CHECK(text.find("a") == nullptr);
}

TEST_CASE("mappings have their methods") {
  check({
      {"{{ d['items'] }}", "I"},
      {"{{ d.items()|list }}", "[('x', 1), ('y', [1, 2, {'z': None}]), ('items', 'I'), ('k é', True)]"},
      {"{{ d.keys()|list }}", "['x', 'y', 'items', 'k é']"},
      {"{{ d.values()|list }}", "[1, [1, 2, {'z': None}], 'I', True]"},
      {"{{ d.items() }}",
       "dict_items([('x', 1), ('y', [1, 2, {'z': None}]), ('items', 'I'), ('k é', True)])"},
      {"{{ d.keys() }}", "dict_keys(['x', 'y', 'items', 'k é'])"},
      {"{{ d.values() }}", "dict_values([1, [1, 2, {'z': None}], 'I', True])"},
      {"{{ d.get('x') }}", "1"},
      {"{{ d.get('q') }}", "None"},
      {"{{ d.get('q', 5) }}", "5"},
      {"{{ d.x }}", "1"},
      {"{{ d.y[2].z }}", "None"},
      {"{{ 'x' in d }}", "True"},
      {"{{ 'q' not in d }}", "True"},
      {"{{ d|length }}", "4"},
      {"{{ d.pop }}|{{ l.append }}", "|"},
  });
}

TEST_CASE("membership and comparison") {
  check({
      {"{{ 1 in l }}", "True"},
      {"{{ 9 in l }}", "False"},
      {"{{ 'ell' in a }}", "True"},
      {"{{ 'z' not in a }}", "True"},
      {"{{ x in l }}", "False"},
      {"{{ 1 in x }}", "False"},
      {"{{ 1 in range(3) }}", "True"},
      {"{{ 1 == 1.0 }}", "True"},
      {"{{ 1 == true }}", "True"},
      {"{{ '1' == 1 }}", "False"},
      {"{{ [1,2] == [1,2] }}", "True"},
      {"{{ (1,) == [1] }}", "False"},
      {"{{ {'a':1} == {'a':1.0} }}", "True"},
      {"{{ {1:2} == {1:2, 3:4} }}", "False"},
      {"{{ {1:2} == {3:2} }}", "False"},
      {"{{ namespace() == namespace() }}", "False"},
      {"{{ x == y }}", "True"},
      {"{{ x == none }}", "False"},
      {"{{ none == none }}", "True"},
      {"{{ d == d }}", "True"},
      {"{{ 1 != 2 }}", "True"},
      {"{{ 1 < 2 < 3 }}", "True"},
      {"{{ 1 < 3 < 2 }}", "False"},
      {"{{ 'a' < 'b' }}", "True"},
      {"{{ 1 <= 1 }}", "True"},
      {"{{ 2 >= 3 }}", "False"},
      {"{{ 1 < 2 == true }}", "False"},
  });
}

TEST_CASE("logic returns its operands") {
  check({
      {"{{ not x }}", "True"},
      {"{{ not 1 }}", "False"},
      {"{{ 1 and 2 }}", "2"},
      {"{{ 0 or 'd' }}", "d"},
      {"{{ 0 and x.y }}", "0"},
      {"{{ '' or [] }}", "[]"},
      {"{{ not a == 'b' }}", "True"},
      {"{{ 1 or x.y.z }}", "1"},
      {"{{ 'yes' if t else 'no' }}", "yes"},
      {"{{ 'yes' if x else 'no' }}", "no"},
      {"{{ 'yes' if x }}", ""},
      {"{{ 1 if 0 else 2 if 0 else 3 }}", "3"},
      {"{{ (1 if 1) if 1 }}", "1"},
  });
}

TEST_CASE("displays and literals") {
  check({
      {"{{ [1, 'a', none, true, 1.5, [], {}, (), (1,), (1,2), x] }}",
       "[1, 'a', None, True, 1.5, [], {}, (), (1,), (1, 2), Undefined]"},
      {"{{ {'a': 1, 2: 'b', none: [1], 1.5: {}} }}", "{'a': 1, 2: 'b', None: [1], 1.5: {}}"},
      {"{{ {} }}", "{}"},
      {"{{ {'a':1,'a':2} }}", "{'a': 2}"},
      {"{{ ['it\\'s', \"q\\\"\", 'both\\'\"', 'n\\n\\t\\\\', '\\x01', 'é', '\\u200b', '\\x7f'] }}",
       "[\"it's\", 'q\"', 'both\\'\"', 'n\\n\\t\\\\', '\\x01', 'é', '\\u200b', '\\x7f']"},
      {"{{ 'a\\nb\\tc\\\\d\\'e\\x41\\u00e9\\U0001F600' }}", "a\nb\tc\\d'eAé😀"},
      {"{{ \"dq\\q\" }}", "dq\\q"},
      {"{{ 'a\\\nb\\-c\\ d' }}", "ab\\-c\\ d"},
      {"{{ 'a' 'b' \"c\" }}", "abc"},
  });
}

TEST_CASE("strings have Python's methods") {
  check({
      {"{{ a.upper() }}", "HELLO WORLD"},
      {"{{ a.lower() }}", "hello world"},
      {"{{ a.title() }}", "Hello World"},
      {"{{ 'hELLO wORLD'.capitalize() }}", "Hello world"},
      {"{{ \"they're bill's\".title() }}", "They'Re Bill'S"},
      {"{{ '  x '.strip() }}|{{ '  x '.lstrip() }}|{{ '  x '.rstrip() }}|{{ 'xxaxx'.strip('x') }}|{{ "
       "'abcab'.strip('ab') }}|{{ '\\n\\na\\n'.lstrip('\\n') }}|{{ 'ab'.strip('') }}",
       "x|x |  x|a|c|a\n|ab"},
      {"{{ 'a,b,c'.split(',') }}", "['a', 'b', 'c']"},
      {"{{ 'a b  c '.split() }}", "['a', 'b', 'c']"},
      {"{{ 'a,b,c'.split(',',1) }}", "['a', 'b,c']"},
      {"{{ ' a b c'.split(none,1) }}", "['a', 'b c']"},
      {"{{ ''.split() }}", "[]"},
      {"{{ ''.split(',') }}", "['']"},
      {"{{ 'a</t>b'.split('</t>')[-1] }}", "b"},
      {"{{ 'abc'.split('x', maxsplit=1) }}", "['abc']"},
      {"{{ 'a b c'.split(' ', 0) }}", "['a b c']"},
      {"{{ 'a\\nb\\r\\nc'.splitlines() }}", "['a', 'b', 'c']"},
      {"{{ 'a\\nb\\n'.splitlines(true) }}", "['a\\n', 'b\\n']"},
      {"{{ a.startswith('He') }}", "True"},
      {"{{ a.endswith(('x','ld')) }}", "True"},
      {"{{ a.startswith(('a','b')) }}", "False"},
      {"{{ a.replace('o','0') }}", "Hell0 W0rld"},
      {"{{ a.replace('o','0',1) }}", "Hell0 World"},
      {"{{ 'aaa'.replace('','-') }}", "-a-a-a-"},
      {"{{ 'aaa'.replace('a','') }}", ""},
      {"{{ 'ab'.replace('','-',2) }}", "-a-b"},
      {"{{ u.replace('日','x') }}", "ÄÖx本 语\343\200\200"},
      {"{{ ''.replace('','x') }}", "x"},
      {"{{ ','.join(['a','b']) }}", "a,b"},
      {"{{ '-'.join('abc') }}", "a-b-c"},
      {"{{ ', '.join(d) }}", "x, y, items, k é"},
  });
}

TEST_CASE("text is formatted with braces and percent signs") {
  check({
      {"{{ '{} {}'.format(1,'b') }}", "1 b"},
      {"{{ '{0}{1}{0}'.format('a','b') }}", "aba"},
      {"{{ '{{}}'.format() }}", "{}"},
      {"{{ '{}'.format(none) }}", "None"},
  });
}

TEST_CASE("strings answer questions about themselves") {
  check({
      {"{{ 'abc'.isdigit() }}", "False"},
      {"{{ '12'.isdigit() }}", "True"},
  });
}

TEST_CASE("filters change text") {
  check({
      {"{{ a|upper }}", "HELLO WORLD"},
      {"{{ a|lower }}", "hello world"},
      {"{{ 'foo bar-baz (qux'|title }}", "Foo Bar-Baz (Qux"},
      {"{{ 'fOO bAR'|capitalize }}", "Foo bar"},
      {"{{ 5|upper }}", "5"},
      {"{{ none|upper }}", "NONE"},
      {"{{ x|upper }}|", "|"},
      {"{{ '  a '|trim }}|{{ 'xax'|trim('x') }}|{{ 5|trim }}|{{ x|trim }}|", "a|a|5||"},
  });
}

TEST_CASE("filters measure and join lists") {
  check({
      {"{{ a|length }}", "11"},
      {"{{ l|length }}", "3"},
      {"{{ d|count }}", "4"},
      {"{{ x|length }}", "0"},
      {"{{ 'é'|length }}", "1"},
      {"{{ range(4)|length }}", "4"},
      {"{{ d.items()|length }}", "4"},
      {"{{ l|join }}", "312"},
      {"{{ l|join(', ') }}", "3, 1, 2"},
      {"{{ s|join('-') }}", "b-A-c"},
      {"{{ x|join(',') }}", ""},
      {"{{ 'abc'|join('.') }}", "a.b.c"},
      {"{{ [1,none,'a',[1]]|join('|') }}", "1|None|a|[1]"},
      {"{{ d|join(',') }}", "x,y,items,k é"},
      {"{{ l|first }}", "3"},
      {"{{ l|last }}", "2"},
      {"{{ e|first }}| {{ e|last }}| {{ a|first }}", "| | H"},
      {"{{ a|last }}", "d"},
      {"{{ d|first }}", "x"},
      {"{{ range(3)|last }}", "2"},
      {"{{ x|first }}", ""},
  });
}

TEST_CASE("filters sort, select and map") {
  check({
      {"{{ l|sort }}", "[1, 2, 3]"},
      {"{{ s|sort }}", "['A', 'b', 'c']"},
      {"{{ s|sort(case_sensitive=true) }}", "['A', 'b', 'c']"},
      {"{{ l|sort(reverse=true) }}", "[3, 2, 1]"},
      {"{{ l|sort(true) }}", "[3, 2, 1]"},
      {"{{ msgs|sort(attribute='content')|map(attribute='content')|list }}", "['bye', 'hi', 'yo']"},
      {"{{ 'bca'|sort }}", "['a', 'b', 'c']"},
      {"{{ d|sort }}", "['items', 'k é', 'x', 'y']"},
      {"{{ l|unique|list }}", "[3, 1, 2]"},
      {"{{ ['a','A','b']|unique|list }}", "['a', 'b']"},
      {"{{ [1,1.0,true,2]|unique|list }}", "[1, 2]"},
      {"{{ l|min }}", "1"},
      {"{{ l|max }}", "3"},
      {"{{ s|min }}", "A"},
      {"{{ s|max }}", "c"},
      {"{{ e|min }}|", "|"},
      {"{{ msgs[1:2]|map(attribute='n.v')|list }}", "[2]"},
      {"{{ l|map('string')|list }}", "['3', '1', '2']"},
      {"{{ s|map('upper')|join }}", "BAC"},
      {"{{ msgs|map(attribute='role')|list }}", "['user', 'assistant', 'user']"},
      {"{{ msgs|map(attribute='zz')|list }}", "[Undefined, Undefined, Undefined]"},
      {"{{ ['1','2']|map('int')|list }}", "[1, 2]"},
      {"{{ [[1,2],[3]]|map('join','-')|list }}", "['1-2', '3']"},
      {"{{ l|map('default', 5)|list }}", "[3, 1, 2]"},
      {"{{ [0,1,2]|select|list }}", "[1, 2]"},
      {"{{ [0,1,2]|reject|list }}", "[0]"},
      {"{{ msgs|selectattr('role','equalto','user')|list|length }}", "2"},
      {"{{ msgs|rejectattr('role','==','user')|map(attribute='content')|list }}", "['yo']"},
      {"{{ msgs|selectattr('n')|list }}", "[{'role': 'assistant', 'content': 'yo', 'n': {'v': 2}}]"},
      {"{{ msgs|selectattr('n','defined')|list }}",
       "[{'role': 'assistant', 'content': 'yo', 'n': {'v': 2}}]"},
      {"{{ s|select('in',['A'])|list }}", "['A']"},
      {"{{ msgs|selectattr('role','in',['user'])|list|length }}", "2"},
      {"{{ 'Y' if (e|select) else 'N' }} {{ (l|select)[0] }}| {% set g = l|select %}{{ g|list }}{{ g|list }}",
       "Y | [3, 1, 2][]"},
  });
}

TEST_CASE("filters convert values") {
  check({
      {"{{ x|default('d') }}", "d"},
      {"{{ none|default('d') }}", "None"},
      {"{{ none|default('d', true) }}", "d"},
      {"{{ ''|d('e', true) }}", "e"},
      {"{{ x|d }}| {{ 0|default(1, boolean=true) }}", "| 1"},
      {"{{ d.q|default({}) }}", "{}"},
      {"{{ '5'|int }}", "5"},
      {"{{ 'x'|int }}", "0"},
      {"{{ 'x'|int(9) }}", "9"},
      {"{{ 3.9|int }}", "3"},
      {"{{ '3.9'|int }}", "3"},
      {"{{ true|int }}", "1"},
      {"{{ none|int }}", "0"},
      {"{{ ' 42 '|int }}", "42"},
      {"{{ '-7'|int }}", "-7"},
      {"{{ '+5'|int }} {{ '+-5'|int }} {{ '-+5'|int(3) }} {{ '+'|int }}", "5 0 3 0"},
      {"{{ '9223372036854775807'|int }} {{ '-9.5e17'|int }} {{ '1e999'|int(7) }}",
       "9223372036854775807 -950000000000000000 7"},
      {"{{ 'nan'|int(7) }} {{ 'inf'|int(7) }} {{ 'nan'|float|int(7) }}", "7 7 7"},
      {"{{ '+1.5'|float }} {{ '--1.5'|float }} {{ '-'|float(2.5) }}", "1.5 0.0 2.5"},
      {"{{ '5.5'|float }}", "5.5"},
      {"{{ 'x'|float }}", "0.0"},
      {"{{ 'x'|float(1.5) }}", "1.5"},
      {"{{ 3|float }}", "3.0"},
      {"{{ '1e3'|float }}", "1000.0"},
      {"{{ 'inf'|float }}", "inf"},
      {"{{ 'nan'|float }}", "nan"},
      {"{{ ' 2 '|float }}", "2.0"},
      {"{{ 42.55|round }}", "43.0"},
      {"{{ 42.55|round(1) }}", "42.5"},
      {"{{ 42.5|round }}", "42.0"},
      {"{{ 43.5|round }}", "44.0"},
      {"{{ 42|round }}", "42"},
      {"{{ 2.675|round(2) }}", "2.67"},
      {"{{ 42.55|round|int }}", "43"},
      {"{{ -2.5|round }}", "-2.0"},
  });
}

TEST_CASE("tojson is json.dumps") {
  check({
      {"{{ d|tojson }}", "{\"x\": 1, \"y\": [1, 2, {\"z\": null}], \"items\": \"I\", \"k é\": true}"},
      {"{{ l|tojson }}", "[3, 1, 2]"},
      {"{{ a|tojson }}", "\"Hello World\""},
      {"{{ none|tojson }}", "null"},
      {"{{ true|tojson }}", "true"},
      {"{{ [false, true]|tojson }}", "[false, true]"},
      {"{{ ['nan'|float, 'inf'|float, '-inf'|float]|tojson }}", "[NaN, Infinity, -Infinity]"},
      {"{{ l|tojson(separators=none) }}", "[3, 1, 2]"},
      {"{{ 1.0|tojson }}", "1.0"},
      {"{{ u|tojson }}", "\"ÄÖ日本 语\343\200\200\""},
      {"{{ '\\x01\\x7f\"\\\\/<>&\\''|tojson }}", "\"\\u0001\177\\\"\\\\/<>&'\""},
      {"{{ (1,2)|tojson }}", "[1, 2]"},
      {"{{ {1:2,none:3,true:4,1.5:5}|tojson }}", "{\"1\": 4, \"null\": 3, \"1.5\": 5}"},
      {"{{ '1e20'|float|tojson }}", "1e+20"},
      {"{{ d|tojson(indent=2) }}",
       "{\n  \"x\": 1,\n  \"y\": [\n    1,\n    2,\n    {\n      \"z\": null\n    }\n  ],\n  \"items\": "
       "\"I\",\n  \"k é\": true\n}"},
      {"{{ {'a':[],'b':{},'c':[1,{'d':2}]}|tojson(indent=4) }}",
       "{\n    \"a\": [],\n    \"b\": {},\n    \"c\": [\n        1,\n        {\n            \"d\": 2\n       "
       " }\n    ]\n}"},
      {"{{ d|tojson(separators=(',',':')) }}",
       "{\"x\":1,\"y\":[1,2,{\"z\":null}],\"items\":\"I\",\"k é\":true}"},
      {"{{ u|tojson(ensure_ascii=true) }}", "\"\\u00c4\\u00d6\\u65e5\\u672c \\u8bed\\u3000\""},
      {"{{ '😀'|tojson(ensure_ascii=true) }}", "\"\\ud83d\\ude00\""},
      {"{{ {'a':[1]}|tojson(indent=0) }}", "{\n\"a\": [\n1\n]\n}"},
      {"{{ {'a':1}|tojson(indent=1, separators=(',', ': ')) }}", "{\n \"a\": 1\n}"},
  });
}

TEST_CASE("filters lay out text and mappings") {
  check({
      {"{{ 'a\\nb\\n\\nc'|indent }}|{{ 'a\\nb'|indent(2, true) }}|{{ 'a\\n'|indent(width=3) }}|{{ ''|indent "
       "}}",
       "a\n    b\n\n    c|  a\n  b|a\n|"},
      {"{{ d|items|list }}", "[('x', 1), ('y', [1, 2, {'z': None}]), ('items', 'I'), ('k é', True)]"},
      {"{{ x|items|list }}", "[]"},
      {"{{ '<b>'|safe }}", "<b>"},
      {"{{ 5|string }}", "5"},
      {"{{ l|string }}", "[3, 1, 2]"},
      {"{{ 'abc'|list }}", "['a', 'b', 'c']"},
      {"{{ d|list }}", "['x', 'y', 'items', 'k é']"},
      {"{{ x|list }}", "[]"},
      {"{{ 'a'|string|length }}", "1"},
      {"{{ '%s-%s'|format('a', 1) }}", "a-1"},
      {"{{ a|replace('o','0') }}", "Hell0 W0rld"},
      {"{{ a|replace('o','0',1) }}", "Hell0 World"},
      {"{{ 555|replace(5,6) }}", "666"},
  });
}

TEST_CASE("tests stand behind is") {
  check({
      {"{{ x is defined }}", "False"},
      {"{{ a is defined }}", "True"},
      {"{{ x is undefined }}", "True"},
      {"{{ none is none }}", "True"},
      {"{{ x is none }}", "False"},
      {"{{ a is string }}", "True"},
      {"{{ n is number }}", "True"},
      {"{{ t is number }}", "True"},
      {"{{ f is float }}", "True"},
      {"{{ n is integer }}", "True"},
      {"{{ t is integer }}", "False"},
      {"{{ d is mapping }}", "True"},
      {"{{ l is mapping }}", "False"},
      {"{{ l is sequence }}", "True"},
      {"{{ a is sequence }}", "True"},
      {"{{ d is sequence }}", "True"},
      {"{{ n is sequence }}", "False"},
      {"{{ x is sequence }}", "True"},
      {"{{ l is iterable }}", "True"},
      {"{{ n is iterable }}", "False"},
      {"{{ a is iterable }}", "True"},
      {"{{ x is iterable }}", "True"},
      {"{{ (l|select) is sequence }}", "False"},
      {"{{ (l|select) is iterable }}", "True"},
      {"{{ d.items() is sequence }}", "False"},
      {"{{ range(3) is sequence }}", "True"},
      {"{{ none is iterable }}", "False"},
      {"{{ t is true }}", "True"},
      {"{{ t is boolean }}", "True"},
      {"{{ 1 is true }}", "False"},
      {"{{ false is false }}", "True"},
      {"{{ 1 is eq(1) }}", "True"},
      {"{{ 1 is ne(1) }}", "False"},
      {"{{ 1 is in([1]) }}", "True"},
      {"{{ 'a' is equalto('a') }}", "True"},
      {"{{ x is not defined }}", "True"},
      {"{{ a is not string }}", "False"},
      {"{{ not a is string }}", "False"},
      {"{{ not x is defined and a is string }}", "True"},
      {"{{ a is string and n is number }}", "True"},
      {"{{ (a is string) ~ 'x' }}", "Truex"},
      {"{{ a is defined or b }}", "True"},
      {"{{ 5 is not in([1]) }}", "True"},
  });
}

TEST_CASE("functions are there without being given") {
  check({
      {"{{ range(5)|list }}", "[0, 1, 2, 3, 4]"},
      {"{{ range(1,5)|list }}", "[1, 2, 3, 4]"},
      {"{{ range(5,1,-2)|list }}", "[5, 3]"},
      {"{{ range(0)|list }}", "[]"},
      {"{{ range(5)[2] }}", "2"},
      {"{{ range(5)[-1] }}", "4"},
      {"{{ 3 in range(5) }}", "True"},
      {"{{ dict(a=1,b=2) }}", "{'a': 1, 'b': 2}"},
      {"{{ dict({'a':1}, b=2) }}", "{'a': 1, 'b': 2}"},
      {"{{ dict(d, x=9).x }}", "9"},
      {"{{ namespace(a=1).a }}", "1"},
      {"{{ namespace({'b':2}).b }}", "2"},
      {"{{ namespace() is mapping }}", "False"},
      {"{{ namespace(a=1).zz }}|", "|"},
      {"{{ strftime_now('%Y-%m-%d %H:%M:%S %d %b %B %A %a %y %p %I %%') }}",
       "2025-01-15 12:34:56 15 Jan January Wednesday Wed 25 PM 12 %"},
      {"{{ strftime_now('%-d %-m') }}", "15 1"},
  });
}

TEST_CASE("loops know where they are") {
  check({
      {"{% for i in e %}x{% else %}none{% endfor %} {% for i in x %}x{% else %}undef{% endfor %} {% for c in "
       "'ab' %}{{c}}.{% endfor %} {% for k in d %}{{k}},{% endfor %}",
       "none undef a.b. x,y,items,k é,"},
      {"{% for i in l if i > 1 %}{{ i }}{{ loop.index }}{{ loop.length }}{{ loop.last }};{% else %}none{% "
       "endfor %} {% for i in l if i > 9 %}x{% else %}none{% endfor %}",
       "312False;222True; none"},
      {"{% for i in l %}{% for j in l %}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}",
       "123112321233"},
      {"{% for i in l %}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }};{% endfor %}",
       "32True;21False;10False;"},
      {"{% for i in l %}{{ loop.previtem }}<{{ i }}>{{ loop.nextitem }};{% endfor %}", "<3>1;3<1>2;1<2>;"},
      {"{% for i in l %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }};{% endfor %}",
       "FalseTrue;TrueTrue;TrueFalse;"},
      {"{% for i in l %}{{ loop|length }}{{ loop['index'] }}{{ loop.nope is defined }}{% endfor %}",
       "31False32False33False"},
  });
}

TEST_CASE("break leaves a loop, continue goes on with the next item") {
  check({
      {"{% for i in [1,2,3,4] %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}", "12"},
      {"{% for i in [1,2,3,4] %}{% if i == 2 %}{% continue %}{% endif %}{{ i }}{% endfor %}", "134"},
      {"{% for i in [1,2] %}{% for j in [1,2,3] %}{% if j == 2 %}{% break %}{% endif %}{{ i }}{{ j }};"
       "{% endfor %}{% endfor %}",
       "11;21;"},
      {"{% for i in [1,2] %}{{ i }}{% break %}{% else %}none{% endfor %}", "1none"},
      {"{% for i in [1,2] %}{{ i }}{% continue %}{% else %}none{% endfor %}", "12none"},
  });
}

TEST_CASE("names live in their block") {
  check({
      {"{% set v = 1 %}{% for i in l %}{{ v }}{% set v = v + 1 %}{{ v }}{% endfor %}{{ v }}", "1212121"},
      {"{% set ns = namespace(v=0) %}{% for i in l %}{% set ns.v = ns.v + i %}{% endfor %}{{ ns.v }}", "6"},
      {"{% if t %}{% set q = 1 %}{% endif %}{{ q }} {% set p, q = 1, 2 %}{{ p }}{{ q }} {% set (p, q) = [3, "
       "4] %}{{ p }}{{ q }} {% set z = 1, 2 %}{{ z }}",
       "1 12 34 (1, 2)"},
      {"{% set (p, q,) = [1, 2] %}{{ p }}{{ q }}{% set z = 1, %}{{ z }}", "12(1,)"},
      {"{% for (p, q), r in [[[1, 2], 3]] %}{{ p }}{{ q }}{{ r }}{% endfor %}", "123"},
      {"{% set b %}block {{ n }}{% endset %}{{ b }}", "block 7"},
      {"{% set ns = namespace() %}{% set ns.b %}cap{% endset %}{{ ns.b }}", "cap"},
      {"{% filter upper %}abc{{ a }}{% endfilter %} {% filter replace('a','b')|upper %}aaa{% endfilter %}",
       "ABCHELLO WORLD BBB"},
  });
}

TEST_CASE("macros take arguments as functions do") {
  check({
      {"{% macro m(a, b=2, c=a) %}[{{ a }}{{ b }}{{ c }}]{% endmacro %}{{ m(1) }}{{ m(1,3) }}{{ m(b=1,a=5) "
       "}}{{ m() }}{{ m(1,2,3) }}",
       "[121][131][515][2][123]"},
      {"{% macro m() %}<{{ caller() }}>{% endmacro %}{% call m() %}body{{ n }}{% endcall %}", "<body7>"},
      {"{% macro m(l) %}{% for i in l %}{{ caller(i) }}{% endfor %}{% endmacro %}{% call(i) m(l) %}({{ i "
       "}}){% endcall %}",
       "(3)(1)(2)"},
      {"{% macro m() %}<{{ caller() }}>{% endmacro %}{% set o = {'m': m} %}"
       "{% call o.m() %}x{% endcall %}{% call o['m']() %}y{% endcall %}",
       "<x><y>"},
      {"{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}", "False"},
      {"{% macro outer() %}{{ inner() }}{% endmacro %}{% macro inner() %}in{% endmacro %}{{ outer() }}",
       "in"},
      {"{% macro m() %}{{ v }}{% endmacro %}{% set v = 5 %}{{ m() }}{% set v = 6 %}{{ m() }}", "56"},
      {"{% macro m() %}{% set v = 9 %}{{ v }}{% endmacro %}{% set v = 5 %}{{ m() }}{{ v }}", "95"},
      {"{% macro fact(n) %}{% if n < 2 %}1{% else %}{{ n * fact(n-1)|int }}{% endif %}{% endmacro %}{{ "
       "fact(5) }}",
       "120"},
      {"{% for i in l %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}", "312"},
      {"{% macro m(a,b,c=0) %}{{a}}{{b}}{{c}}{% endmacro %}{{ m(*[1,2]) }}{{ m(1, *[2]) }}{{ m(1, c=4, *[3]) "
       "}}",
       "120120134"},
  });
}

TEST_CASE("other blocks") {
  check({
      {"{% generation %}gen{% set gg = 1 %}{% endgeneration %}{{ gg }}|", "gen|"},
      {"{% raw %}{{ x }} {% if %}{% endraw %}|{%- raw -%}  a  {%- endraw -%}  b", "{{ x }} {% if %}|ab"},
      {"{% raw %}a{% endraw x %}b{% endraw %}c", "a{% endraw x %}bc"},
      {"{% raw %}{% endrawx %}{% endraw %}", "{% endrawx %}"},
      {"line #} c", "line #} c"},
      {"a{ b{", "a{ b{"},
  });
}

TEST_CASE("operators bind as in Jinja") {
  check({
      {"{{ 1 , 2 }}", "(1, 2)"},
      {"{{ 1, }}", "(1,)"},
      {"{{ (1) }}", "1"},
      {"{{ () }}", "()"},
      {"{{ (1,) }}", "(1,)"},
      {"{{ [1,] }}", "[1]"},
      {"{{ {'a':1,} }}", "{'a': 1}"},
      {"{{ 'a' if 1 else 'b' ~ 'c' }}", "a"},
      {"{{ 'a' ~ 'b' if 0 else 'c' }}", "c"},
      {"{{ not 1 == 2 }}", "True"},
      {"{{ 1 if not x else 2 }}", "1"},
      {"{{ a|length > 3 }}", "True"},
      {"{{ 1 ~ 2 * 3 }}", "16"},
      {"{{ 0 }}", "0"},
      {"{{ 00 }}", "0"},
      {"{{ d.y.0 }}", "1"},
      {"{{ d.y.2.z }}", "None"},
      {"{{ l.1 }}", "1"},
      {"{{ l. 1 }}", "1"},
      {"{{ 1.foo is defined }}", "False"},
      {"{{ [range]|first()(3)|list }}", "[0, 1, 2]"},
      {"{{ range(n if t else 1)|length }}", "7"},
      {"{{ msgs.0.role }}", "user"},
      {"{{ msgs[0].role[0] }}", "u"},
      {"{{ msgs[-1]['content'] }}", "bye"},
      {"{{ msgs[0]['n'] is defined }}", "False"},
      {"{{ true }}", "True"},
      {"{{ True }}", "True"},
      {"{{ false }}", "False"},
      {"{{ None }}", "None"},
      {"{{ none }}", "None"},
      {"{{ none is none }}", "True"},
      {"{{ (a|upper).lower() }}", "hello world"},
      {"{{ a|upper|lower|title }}", "Hello World"},
      {"{{ -n }}", "-7"},
      {"{{ +n }}", "7"},
      {"{{ - - n }}", "7"},
      {"{{ -f }}", "-2.5"},
      {"{{ -n|string }}", "-7"},
      {"{{ (-n)|string|length }}", "2"},
      {"{{ d is mapping and d.x == 1 }}", "True"},
      {"{{ a in ['Hello World'] }}", "True"},
      {"{{ [] == [] }}", "True"},
      {"{{ () == () }}", "True"},
      {"{{ 1.5 is number }}", "True"},
      {"{{ 'a' * 0 }}|{{ 'a' * -1 }}|", "||"},
      {"{{ {'a': {'b': 1}}.a.b }}", "1"},
      {"{{ [[1,2],[3]][1][0] }}", "3"},
      {"{{ 'abc'[1] }}", "b"},
      {"{{ ('a','b')[0] }}", "a"},
      {"{{ ({'a':1})['a'] }}", "1"},
      {"{{ msgs == msgs }}", "True"},
      {"{{ msgs[0] == msgs[2] }}", "False"},
      {"{{ msgs[0] in msgs }}", "True"},
      {"{{ msgs|length }}", "3"},
      {"{{ msgs[1:]|length }}", "2"},
      {"{{ msgs[::-1][0].content }}", "bye"},
      {"{% if x is defined and x %}a{% elif n > 5 %}b{% else %}c{% endif %} {% if 0 %}a{% elif 0 %}b{% endif "
       "%}| {% if not none %}n{% endif %}",
       "b | n"},
      {"{{ 'ab' }}", "ab"},
      {"{{ \"multi line\" }}", "multi line"},
      {"{{ (d.q or {}).r is defined }}", "False"},
      {"{{ (none or 'x') }}", "x"},
      {"{{ d.get('zz', {}).get('y') }}", "None"},
      {"{{ [1,2,3]|last }}", "3"},
      {"{{ {'a':1}|length }}", "1"},
      {"{{ 'x'|default }}", "x"},
      {"{{ nope|default(nope2)|default('z') }}", "z"},
      {"{{ l.0 }}", "3"},
      {"{{ a.0 }}", "H"},
      {"{{ x == x }}", "True"},
      {"{{ [x] }}", "[Undefined]"},
      {"{{ x ~ x }}", ""},
      {"{{ x|string }}|{{ [none]|tojson }}", "|[null]"},
      {"{{ {'a':none}|string }}", "{'a': None}"},
      {"{{ 3 if true }}{{ 3 if false }}", "3"},
      {"{{ [1 if false] }}", "[Undefined]"},
      {"{{ (1 if false) is defined }}", "False"},
      {"{{ 'abc'|map('upper')|join('-') }}", "A-B-C"},
      {"{{ 'ab'|reject('equalto','a')|list }}", "['b']"},
      {"{{ {'a':1}|map('upper')|list }}", "['A']"},
      {"{{ '日本語'|upper }}", "日本語"},
      {"{{ 'ß'|lower }}", "ß"},
      {"{{ 'ſ'|lower }}", "ſ"},
      {"{{ 1.0|int }}", "1"},
      {"{{ 100000.0|int }}", "100000"},
      {"{{ 100000.0 }}", "100000.0"},
      {"{{ 1.10 }}", "1.1"},
      {"{{ -0.0 }}", "-0.0"},
      {"{{ 3.14|string }}", "3.14"},
      {"{{ 1000000000000000.0+0.5 }}", "1000000000000000.5"},
      {"{{ 123456789012345680.0 }}", "1.2345678901234568e+17"},
      {"{{ 'a' < 'B' }}", "False"},
      {"{{ 'é' > 'z' }}", "True"},
      {"{{ 'a' == 'a ' }}", "False"},
      {"{{ 'abc' > 'ab' }}", "True"},
      {"{{ none|string }}", "None"},
      {"{{ [3,1]|sort|first }}", "1"},
      {"{{ d|dictsort|first|last }}", "I"},
      {"{{ (d|dictsort)[0][0] }}", "items"},
      {"{{ 'a b'.split()|map('capitalize')|join(' ') }}", "A B"},
      {"{{ {'role':'x'}|tojson|length }}", "13"},
      {"{{ '%s: %d%%'|format('a', 3) }}", "a: 3%"},
      {"{{ '%d %d %d'|format(1.5, -1.9, true) }}", "1 -1 1"},
      {"{{ l is defined and l[0] is number }}", "True"},
      {"{{ (l|length) - 1 }}", "2"},
      {"{{ l|length - 1 }}", "2"},
      {"{{ l[l|length - 1] }}", "2"},
  });
}

TEST_CASE("white space goes as trim_blocks, lstrip_blocks and signs say") {
  check({
      {"A\n  {% if true %}\n  b\n  {% endif %}\nC", "A\n  b\nC"},
      {"A {% if true %} b {% endif %} C", "A  b  C"},
      {"A\n{%- if true %}\nb\n{%- endif -%}\n\n C", "AbC"},
      {"A\n  {%+ if true +%}\n  b\n{%+ endif %}\nC", "A\n  \n  b\nC"},
      {"  {{ 1 }}\n  {{- 2 -}}  \n 3", "  123"},
      {"{% if true %}\n\n\nx\n{% endif %}\n\n", "\n\nx\n"},
      {"x\n", "x"},
      {"x\n\n", "x\n"},
      {"x\r", "x"},
      {"\n\n x", "\n\n x"},
      {"{# c #}\nx\n  {# d #}\ny", "x\ny"},
      {"a {# c #}\n b", "a  b"},
      {"a {#+ c +#}\n b\n   {#- c #}z", "a \n bz"},
      {"{% set x = 1 %}\n{% set y = 2 %}\n{{ x }}{{ y }}\n", "12"},
      {"{%- set x = 1 %}\n    {%- set y = 2 %}    \n{{ x }}", "    \n1"},
      {"   {% raw %} a {% endraw %}\n b", " a  b"},
      {"x\n   {% raw %}\n a\n   {% endraw %}\n b", "x\n\n a\n b"},
      {"x  {%- raw -%}\n a\n   {%- endraw -%}\n b", "xab"},
      {"{% raw %}{% endraw +%}\n b", "\n b"},
      {"{% for i in [1,2] %}\n  {{ i }}\n{% endfor %}\nend", "  1\n  2\nend"},
      {"{% for i in [1,2] -%}\n  {{ i }}\n{%- endfor %}\nend", "12end"},
      {"{% for i in [1,2] %}\n    {% if i == 1 %}\n      one\n    {% else %}\n      other\n    {% endif "
       "%}\n{% endfor %}",
       "      one\n      other\n"},
      {"a\r\nb\r{% if true %}\r\nc{% endif %}\r\n", "a\nb\nc"},
      {"{{ 'a\r\nb' }}", "a\nb"},
      {"{%if true%}x{%endif%}{%-if true-%} y {%-endif-%} z", "xyz"},
      {"{{1}}{{-1}}{{- 1 }}{{ 1 -}} x", "1111x"},
      {"{{ {'a': {'b': '}}'}} }}{{ '%}' }}{% set q = '%}' %}{{ q }}", "{'a': {'b': '}}'}}%}%}"},
      {"{{ \"}}\" }}{{ '{{' }}{{ \"{%\" }} { % } }} %} #}", "}}{{{% { % } }} %} #}"},
      {"\343\200\200{%- if true %}x{% endif %}", "x"},
      {" \t {% if true %}x{% endif %}", "x"},
      {"\f{% if true %}x{% endif %}", "x"},
      {"x \n \302\240 {% if true %}y{% endif %}", "x \ny"},
      {"a{{ 1 }}   {% if true %}b{% endif %}", "a1   b"},
      {"{{ 1 }}\n   {% if true %}b{% endif %}", "1\nb"},
      {"{% if true %}\n   {% if true %}b{% endif %}{% endif %}", "b"},
      {"{% if true -%}\n   {% if true %}b{% endif %}{% endif %}", "b"},
      {"{{ 1 -}}\n   {% if true %}b{% endif %}", "1b"},
      {"{% if true +%}\n{% endif %}x", "\nx"},
      {"{#-#}x{##}y{# #}z{#-#}", "xyz"},
      {"{% if true %}{# c #}\n  a{% endif %}", "  a"},
      {"{#- a -#}\n\n{%- if true -%}\n\n x \n\n{%- endif -%}\n\n{{- 'y' -}}\n\n", "xy"},
      {"{%- generation %}\nabc\n{%- endgeneration %}\nd", "abcd"},
  });
}

}  // namespace jinja_language_test
