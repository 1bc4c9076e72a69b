// SPDX-License-Identifier: Apache-2.0
//
// Gives files, and every file of folders, to a fuzz target, once: the stored corpus as an ordinary test, by
// any compiler. What libFuzzer finds becomes a file of the corpus, and stays found.
//   replay TARGET FOLDER-OR-FILE...

#include "fuzz/input.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <vector>

namespace {

/// Empty where there is neither.
std::vector<std::filesystem::path> files_of(const char* name) {
  std::error_code error;
  if (std::filesystem::is_regular_file(name, error)) return {name};
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(name, error)) {
    if (entry.is_regular_file(error)) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

mica::fuzz::Target target_of(std::string_view name) {
  const mica::fuzz::Replayed* at = mica::fuzz::Replayed::first;
  while (at != nullptr && at->name != name) at = at->next;
  return at == nullptr ? nullptr : at->target;
}

}  // namespace

int main(int argc, char** argv) {
  const mica::fuzz::Target target = argc > 1 ? target_of(argv[1]) : nullptr;
  if (target == nullptr) return std::printf("the first word is the name of a target\n"), 2;
  std::size_t count = 0;
  for (int i = 2; i < argc; ++i) {
    const auto files = files_of(argv[i]);
    if (files.empty()) return std::printf("%s: neither a file nor a folder with files\n", argv[i]), 2;
    for (const auto& path : files) {
      std::printf("%s\n", path.c_str());
      std::fflush(stdout);  // the last name is the one that failed
      std::ifstream file(path, std::ios::binary);
      const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
      (void)target(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
      ++count;
    }
  }
  std::printf("%zu inputs\n", count);
  return count == 0 ? 1 : 0;
}
