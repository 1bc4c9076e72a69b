// SPDX-License-Identifier: Apache-2.0

#include "mica/constraint/gbnf.hpp"

#include "errors.hpp"
#include "reference.hpp"
#include "slow_grammar.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace mica::test::gbnf_test {

using namespace constraint;

namespace {

/// Tells which texts a grammar accepts.
class Accepted {
 public:
  explicit Accepted(std::string_view grammar, const GbnfOptions& options = {})
      : language_(parse_gbnf(grammar, options)), recognizer_(language_) {}

  [[nodiscard]] bool operator()(std::string_view text) { return accepts(recognizer_, text); }
  [[nodiscard]] bool begins(std::string_view text) { return after(recognizer_, text) != StateId::dead; }
  [[nodiscard]] bool has_rules() const { return language_.expressions->has_calls(language_.start); }
  [[nodiscard]] std::size_t states() const { return recognizer_.size(); }

 private:
  Language language_;
  Recognizer recognizer_;
};

std::string refusal(std::string_view grammar, const GbnfOptions& options = {}) {
  return refusal_of([&] { static_cast<void>(parse_gbnf(grammar, options)); });
}
void refuses(std::string_view grammar, std::string_view code, std::string_view words,
             const GbnfOptions& options = {}) {
  const std::string message = refusal(grammar, options);
  CAPTURE(grammar);
  INFO(message);
  CHECK(message.starts_with(code));
  CHECK(message.find(words) != std::string::npos);
}

}  // namespace

TEST_CASE("a random grammar accepts the texts that a slow recognizer accepts, or is refused") {
  CounterRng rng(5);
  const auto texts = texts_of("ab", 5);
  std::size_t left_recursive = 0, without_texts = 0, with_rules = 0;
  for (int round = 0; round < 400; ++round) {
    std::vector<Form> rules;
    const std::size_t n_rules = 1 + draw(rng, 3);
    std::string grammar;
    for (std::size_t i = 0; i < n_rules; ++i) {
      rules.push_back(random_form(rng, 2, n_rules));
      grammar += (i == 0 ? "root" : "r" + std::to_string(i)) + " ::= " + rules.back().gbnf() + "\n";
    }
    CAPTURE(grammar);
    try {
      Accepted accepted(grammar);
      with_rules += accepted.has_rules();
      for (const std::string& text : texts) {
        CAPTURE(text);
        REQUIRE(accepted(text) == slowly_accepts(rules, text));
      }
    } catch (const Error& error) {
      left_recursive += error.code() == ErrorCode::unsupported;
      if (error.code() == ErrorCode::unsupported) continue;
      REQUIRE(error.code() == ErrorCode::usage);
      ++without_texts;
      for (const std::string& text : texts) REQUIRE_FALSE(slowly_accepts(rules, text));
    }
  }
  CHECK(left_recursive < 160);
  CHECK(without_texts > 20);
  CHECK(with_rules > 20);
}

TEST_CASE("objects, lists and numbers of JSON nest to any depth") {
  Accepted accepted(R"gbnf(
# a small JSON
root   ::= ws value ws
value  ::= "{" ws (pair ws ("," ws pair ws)*)? "}" | "[" ws (value ws ("," ws value ws)*)? "]" |
           string | number | "true" | "false" | "null"
pair   ::= string ws ":" ws value
string ::= "\"" ([^"\\\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))* "\""
number ::= "-"? ("0" | [1-9] [0-9]*) ("." [0-9]+)? ([eE] [-+]? [0-9]+)?
ws     ::= [ \t\n]*
)gbnf");
  for (const std::string_view text :
       {"{}", " [1, -2.5e+3 ,\"x\\u00e9\\n\"]", "{\"a\" : {\"b\":[null,true,{}]}}", "0"})
    CHECK(accepted(text));
  for (const std::string_view text : {"", "{", "[1,]", "01", "{\"a\"}", "\"\n\"", "tru", "[1]]"})
    CHECK_FALSE(accepted(text));
  CHECK_FALSE(accepted.begins("{1"));
  CHECK(accepted(std::string(3000, '[') + std::string(3000, ']')));
}

TEST_CASE("arithmetic with left recursion is a repetition") {
  Accepted accepted(R"gbnf(
root ::= sum
sum  ::= sum [-+] term | term
term ::= (term ("*" | "/"))? atom
atom ::= [0-9]{1,3} | "(" sum ")"
)gbnf");
  for (const std::string_view text : {"1", "1+22*3-(4/(5+6))", "((7))"}) CHECK(accepted(text));
  for (const std::string_view text : {"", "1+", "1000", "(1", "1**2"}) CHECK_FALSE(accepted(text));
}

TEST_CASE("lists, moves of chess and a little C are read") {
  Accepted list("root ::= (\"- \" [^\\n\\u2028]+ \"\\n\"){2,3}");
  CHECK(list("- one\n- zw\u00F6lf\n"));
  CHECK_FALSE(list("- one\n"));
  CHECK_FALSE(list("- a\u2028b\n- c\n"));
  Accepted moves(R"gbnf(
root  ::= move (" " move)* "\n"?
move  ::= (piece | pawn | "O-O" "-O"?) [+#]?
piece ::= [KQRBN] [a-h1-8]? "x"? square
pawn  ::= ([a-h] "x")? square ("=" [QRBN])?
square ::= [a-h] [1-8]
)gbnf");
  CHECK(moves("e4 e5 Nf3 Nc6 Bb5 O-O-O axb8=Q+"));
  CHECK_FALSE(moves("e9"));
  CHECK_FALSE(moves.has_rules());  // nothing is recursive
  Accepted code(R"gbnf(
root      ::= function+
function  ::= "int " name "(" (parameter (", " parameter)*)? ") " block
parameter ::= "int " name
block     ::= "{" statement* "}"
statement ::= name " = " value ";" | "return " value ";" | "if (" value ") " block | block
value     ::= name | [0-9]+ | name "(" (value (", " value)*)? ")" | value " " [-+*/<] " " value
name      ::= [a-z] [a-z0-9]{0,15}
)gbnf");
  CHECK(code("int f(int x, int y) {if (x < y) {x = g(x, 1 + y);}return x;}"));
  CHECK_FALSE(code("int f(int x) {return x}"));
  CHECK_FALSE(code("int f() {if (x) return y;}"));
}

TEST_CASE("spaces that a rule repeats by recursion cost no call") {
  Accepted accepted("root ::= \"a\" ws \"b\"\nws ::= ([ \\t\\n] ws)?\n");
  CHECK_FALSE(accepted.has_rules());
  CHECK(accepted("a" + std::string(10'000, ' ') + "b"));
  CHECK(accepted.states() < 6);
}

TEST_CASE("literals and sets have escapes of characters, not of bytes") {
  Accepted accepted(
      R"gbnf(root ::= "\x41\xe9\u20ac\U0001F600\t\"\\\[\]\-" [\x61-\x63\]\\\-\u00E9]+ [^a]? .)gbnf");
  CHECK(
      accepted("A\u00E9\u20AC\U0001F600\t\"\\[]-"
               "ab]\\-\u00E9"
               "x\n"));
  CHECK_FALSE(
      accepted("A\u00E9\u20AC\U0001F600\t\"\\[]-"
               "x"));
  Accepted sets("root ::= [-a] [a-] [^-^]");
  CHECK(sets("--b"));
  CHECK_FALSE(sets("--^"));
  CHECK(refusal("root ::= [^]").starts_with("usage"));
}

TEST_CASE("rules end with their line, unless a group or an alternative is open") {
  CHECK(Accepted("root ::= \"a\" |\n  \"b\" # or\n\n# more\n  | \"c\"\n")("c"));
  CHECK(Accepted("root ::=\n  (\n \"a\" # one\n \"b\"\n  )\r\nx::=\"y\"")("ab"));
  CHECK(Accepted("root ::= a_b-9{ 2 , 3 }\na_b-9 ::= \"x\"")("xxx"));
  CHECK(Accepted("root ::= x*+?\nx ::= | \"y\" |")("yy"));
  CHECK(Accepted("root ::= ()")(""));
  CHECK(Accepted("start ::= \"a\"\n", {.root = "start"})("a"));
  CHECK(Accepted("Root-Z\t::=\t\"a\"\t\"b\"", {.root = "Root-Z"})("ab"));
  refuses("root ::= \"a\"\n\"b\"", "usage",
          "line 2, column 1 of the grammar: found '\"'; allowed is the name of a rule");
}

TEST_CASE("tokens are the bytes that the vocabulary has for them") {
  const GbnfOptions options = {.token_text = [](std::string_view token) -> std::string {
    if (token == "[7]")
      return "\xFF"
             "7;";
    if (token == "<think>" || token == "</think>") return std::string(token);
    return {};
  }};
  Accepted accepted("root ::= <[7]> <think> thoughts </think> .*\nthoughts ::= !</think>*", options);
  CHECK(
      accepted("\xFF"
               "7;<think>a </thin b\u00E9</think>answer"));
  CHECK(
      accepted("\xFF"
               "7;<think></think>"));
  CHECK(
      accepted("\xFF"
               "7;<think>\xFF"
               "12;</think>"));  // another control token
  CHECK_FALSE(
      accepted("\xFF"
               "7;<think>a"));
  CHECK_FALSE(
      accepted("\xFF"
               "7;<think>\xFF;</think>"));
  Accepted some("root ::= !<[7]>+", options);
  CHECK(some("ab"));
  CHECK(
      some("\xFF"
           "77;"));
  CHECK_FALSE(some(""));
  CHECK_FALSE(
      some.begins("a\xFF"
                  "7;"));
  refuses("root ::= !<think>", "unsupported", "write !<token>* or !<token>+", options);
  refuses("root ::= <think>", "unsupported", "the vocabulary is not known here");
  refuses("root ::= <[8]>", "usage", "the token <[8]>; the vocabulary has no such token", options);
  for (const char* const grammar :
       {"root ::= <think", "root ::= <think\n>", "root ::= <", "root ::= !<[7]\r>*"})
    refuses(grammar, "usage", "a token without >", options);
  for (const char* const grammar : {"root ::= <[7>", "root ::= <7]>", "root ::= <[7]]>"})
    refuses(grammar, "usage", "the vocabulary has no such token", options);
  refuses("root ::= ! \"a\"", "usage", "allowed is a token in < >", options);
}

TEST_CASE("a rule that never ends is left out") {
  Accepted accepted("root ::= \"a\" loop | \"b\" | loop*\nloop ::= \"(\" loop \")\"");
  CHECK(accepted("b"));
  CHECK(accepted(""));
  CHECK_FALSE(accepted.begins("a"));
  CHECK_FALSE(accepted.begins("("));
  refuses("root ::= \"x\" root", "usage", "the rule 'root' of the grammar accepts no text");
  refuses("root ::= a\na ::= b\nb ::= a", "usage", "accepts no text");
}

TEST_CASE("rules that begin with each other are refused with their names") {
  refuses("root ::= a\na ::= b \"x\" | \"y\"\nb ::= \"c\"? a \"z\"", "unsupported", "a -> b -> a");
  refuses("root ::= \"b\" a\na ::= (\"c\" | a){2,}", "unsupported", "a -> a");
  refuses("root ::= list\nlist ::= item? \nitem ::= list \"x\" | list", "unsupported",
          "list -> item -> list");
  refuses("root ::= \"a\"? root \"b\" | \"c\"", "unsupported", "root -> root");
  CHECK(Accepted("root ::= root | \"a\"")("a"));
  CHECK(Accepted("root ::= root root | \"a\"")("aaa"));
}

TEST_CASE("a grammar with a mistake is refused with line, column and what is allowed") {
  refuses("root ::= a\n", "usage",
          "line 1, column 10 of the grammar: found the rule 'a', which is not defined");
  for (const char* const others : {"a b c d", "d c b a", "c a d b"})
    refuses("root ::= x " + std::string(others), "usage", "column 10 of the grammar: found the rule 'x'");
  refuses("root ::= \"a\nb\" %", "usage", "line 2, column 4 of the grammar: found '%'");
  refuses("root = \"a\"", "usage", "allowed is ::=");
  refuses("root ::= \"a", "usage", "found the end; allowed is a quote at the end of a text");
  refuses("root ::= [a", "usage", "allowed is ] at the end of a set");
  refuses("root ::= (\"a\"", "usage", "allowed is ) at the end of a group");
  for (const char* const grammar : {"root ::= \"\\q\"", "root ::= \"\\", "root ::= [\\"})
    refuses(grammar, "usage", "after a backslash");
  refuses("root ::= \"\\x4\"", "usage", "allowed is 2 hexadecimal digits");
  refuses("root ::= \"\\uD83D\"", "usage", "which is no character");
  refuses("root ::= [b-a]", "usage", "a range whose end is before its beginning");
  refuses("root ::= []", "usage", "a set without characters");
  refuses("root ::= *", "usage", "a quantifier with nothing before it");
  refuses("root ::= \"a\" | +", "usage", "column 16 of the grammar: found a quantifier");
  refuses("root ::= \"a\"{x}", "usage", "allowed is a number");
  refuses("root ::= \"a\"{2,1}", "usage", "m < n");
  refuses("root ::= \"a\"{2", "usage", "allowed is }");
  refuses("root ::= \"a\"\nroot ::= \"b\"", "usage",
          "line 2, column 1 of the grammar: found a second definition");
  refuses("other ::= \"a\"", "usage", "no rule 'root'");
  refuses("", "usage", "no rule 'root'");
  refuses("root ::= \"\xFF\"", "usage", "allowed is text in UTF-8");
}

TEST_CASE("limits of a grammar are named, and large ones within them are read") {
  refuses("root ::= \"a\"{100001}", "limit", "allowed are numbers up to 100000");
  refuses("root ::= a b", "limit", "more than 2 rules", {.max_rules = 2});
  refuses("root ::= \"a\"", "limit", "allowed are 5", {.max_bytes = 5});
  refuses("root ::= " + std::string(100'000, '('), "limit", "more than 128 nested groups");
  std::string chain = "root ::= r0\n", doubling = "root ::= r0\n", words = "root ::= (\"w0\"";
  for (int i = 0; i < 20'000; ++i)
    chain += "r" + std::to_string(i) + " ::= (r" + std::to_string(i + 1) + " | \"b\") \"x\"\n";
  CHECK(Accepted(chain + "r20000 ::= \"a\"")("a" + std::string(20'000, 'x')));
  for (int i = 0; i < 40; ++i)
    doubling +=
        "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + " r" + std::to_string(i + 1) + "\n";
  CHECK(Accepted(doubling + "r40 ::= \"a\"").begins("aaaaaaaaaaaaaaaa"));
  for (int i = 1; i < 30'000; ++i) words += " | \"w" + std::to_string(i) + "\"";
  CHECK(Accepted(words + ")*")("w29999w7w12345"));
}

}  // namespace mica::test::gbnf_test
