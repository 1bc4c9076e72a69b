// SPDX-License-Identifier: Apache-2.0
//
// The exchanges of a token without its products: what the network alone takes. For machines.py, which starts
// it on all ranks.
//
//   mpirun ... exchanges WIDTH FF_WIDTH LAYERS [TOKENS]      rank 0 prints milliseconds a token, the median
//
// A layer exchanges codes of WIDTH numbers, floats of WIDTH, codes of FF_WIDTH, floats of WIDTH, as a Llama
// with integer weights does; before the layers is the embedding, behind them 40 logits of each rank.
#include "mica_tools/mpi/world.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char** argv) {
  if (argc < 4) return std::fputs("usage: exchanges WIDTH FF_WIDTH LAYERS [TOKENS]\n", stderr), 2;
  const auto number = [&](int i) { return static_cast<std::size_t>(std::atol(argv[i])); };
  const std::size_t width = number(1), ff_width = number(2), layers = number(3);
  const std::size_t tokens = argc > 4 ? number(4) : 50;
  mica::mpi::World world;
  const auto codes = [](std::size_t numbers) { return numbers + numbers / 32 * sizeof(float); };
  std::vector<std::size_t> messages{width * sizeof(float)};
  for (std::size_t i = 0; i < layers; ++i)
    messages.insert(messages.end(),
                    {codes(width), width * sizeof(float), codes(ff_width), width * sizeof(float)});
  messages.push_back(world.size() * 40 * 8);
  std::vector<std::byte> bytes(*std::max_element(messages.begin(), messages.end()));
  std::vector<std::size_t> ends(world.size());
  std::vector<double> times;
  for (std::size_t token = 0; token < tokens; ++token) {
    const auto begin = std::chrono::steady_clock::now();
    for (const std::size_t size : messages) {
      for (std::size_t r = 0; r < ends.size(); ++r) ends[r] = size * (r + 1) / ends.size();
      if (!world.exchange(std::span(bytes).first(size), ends))
        return std::fputs("a rank is gone\n", stderr), 1;
    }
    times.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(tokens / 2), times.end());
  if (world.rank() == 0) std::printf("%.2f\n", times[tokens / 2]);
  return 0;
}
