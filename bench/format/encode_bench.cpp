// SPDX-License-Identifier: Apache-2.0
//
// usage: encode_bench [--json FILE]
//
// One thread: MB/s of floats that become blocks of each format, with importance, rows of 4,096. Best and median of half
// a second.

#include "kernel/measure.hpp"
#include "mica/base/rng.hpp"
#include "mica_tools/encode/encode.hpp"

#include <string>
#include <string_view>

namespace {

using namespace mica;  // NOLINT: a program

constexpr std::size_t rows = 64;
constexpr std::size_t cols = 4096;

void measure(format::Id id, std::span<const float> values, std::span<const float> importance,
             std::FILE* json) {
  std::vector<std::byte> out(rows * format::info(id).row_bytes(cols));
  const auto t = bench::time([&] { format::encode_rows(id, values, cols, importance, out); });
  const double megabytes = static_cast<double>(rows * cols * sizeof(float)) / 1e6;
  const std::string name(format::name(id));
  std::printf("%-7s %8.1f %8.1f MB/s\n", name.c_str(), megabytes / t.best, megabytes / t.median);
  if (json == nullptr) return;
  std::fprintf(json, "{\"format\": \"%s\", \"unit\": \"MB/s\", \"best\": %.1f, \"median\": %.1f}\n",
               name.c_str(), megabytes / t.best, megabytes / t.median);
}

}  // namespace

int main(int argc, char** argv) {
  std::FILE* const json =
      argc == 3 && std::string_view(argv[1]) == "--json" ? std::fopen(argv[2], "w") : nullptr;
  CounterRng rng(1);
  std::vector<float> values(rows * cols), importance(cols);
  for (float& x : values) {
    x = 0;
    for (int i = 0; i < 4; ++i) x += static_cast<float>(rng.uniform() - 0.5);
  }
  for (float& w : importance) w = static_cast<float>(rng.uniform());
  if (json != nullptr) {
    std::fprintf(
        json, "{\"command\": \"encode_bench --json FILE\", \"clock\": \"processor time of one thread\"}\n");
  }
  format::Encodable::for_each(
      [&](auto type) { measure(decltype(type)::type::id, values, importance, json); });
  if (json != nullptr) std::fclose(json);
}
