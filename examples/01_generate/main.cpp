// SPDX-License-Identifier: Apache-2.0
//
// Lesson 1: opens a model and completes a text.
//
//   01_generate [MODEL.gguf]
//
// mica::open() reads the header of the file and chooses family, formats and tokenizer at run time. In lesson
// 2 these choices are types.

#include "mica/runtime/complete.hpp"

#include <exception>
#include <filesystem>
#include <iostream>

int main(int argc, char** argv) try {
  const std::string path = argc > 1 ? argv[1] : "examples/models/fairy.gguf";
  if (!std::filesystem::exists(path)) return std::cout << path << " is not there: name a model\n", 0;
  auto model = mica::open(path);
  std::cout << "Once upon a time" << mica::complete(model, "Once upon a time", {.max_tokens = 60}) << '\n';
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
