// SPDX-License-Identifier: Apache-2.0
//
// pair works|refused: whether every unit of the program has what the parts serve, or is refused by their names.

#include "alone/pair/unit.hpp"

#include <cstdio>
#include <cstring>
#include <exception>
#include <string>

std::vector<Unit>& units() {
  static std::vector<Unit> all;
  return all;
}

namespace {

template <class F>
std::string answer(F&& f) {
  try {
    return std::to_string(f());
  } catch (const std::exception& error) {
    return error.what();
  }
}

bool check(const Unit& unit, const char* what, const std::string& said, const std::string& expected) {
  const bool good = said.find(expected) != std::string::npos;
  std::printf("%s, %s: %s\n", unit.name, what, said.c_str());
  if (!good) std::printf("expected: %s\n", expected.c_str());
  return good;
}

}  // namespace

int main(int argc, char** argv) {
  const bool works = argc > 1 && std::strcmp(argv[1], "works") == 0;
  bool good = units().size() == (works ? 2 : 1);
  for (const Unit& unit : units()) {
    const std::string sum = answer([&] { return unit.checksum(""); });
    const std::string words = answer([&] { return unit.words("Tell me 3 tales."); });
    // XXH3 of nothing, as its specification gives it
    good &= check(unit, "checksum", sum, works ? std::to_string(0x2D06800538D394C2) : "link mica::checksum");
    good &= check(unit, "words", words, works ? "5" : "link mica::text");
    for (std::size_t i = 0; i < unit.sizes.size(); ++i) {
      if (unit.sizes[i] == units().front().sizes[i]) continue;
      std::printf("class %zu has %zu bytes and %zu\n", i, unit.sizes[i], units().front().sizes[i]);
      good = false;
    }
  }
  return good ? 0 : 1;
}
