// SPDX-License-Identifier: Apache-2.0
//
// usage: xsimd_bench [FORMAT] [--json FILE]
//
// kernel::Xsimd beside kernel::Highway, on one thread: rows of 4,096, in the layout of the file and packed.
// For each format 24 rows of both are compared with the specification, then one token meets a matrix larger
// than any cache (GB/s of weights) and 128 tokens one that stays in the third level (GMAC/s). Runs of both
// alternate; the best of each counts, and the ratio of the medians shows what the machine did meanwhile.
// xsimd has the instruction set of this program's flags (bench/CMakeLists.txt), Highway the best that it
// finds.

#include "kernel/product.hpp"
#include "mica/format/lists.hpp"
#include "mica/kernel/highway.hpp"
#include "mica/kernel/xsimd.hpp"

namespace {

using namespace bench;  // NOLINT: a program

/// Seconds of a product by both.
struct Pair {
  Spread highway;
  Spread xsimd;
};

/// Alternates for a second.
template <class G>
Pair time_both(Product<G>& product, std::size_t n) {
  std::vector<double> highway, xsimd;
  const auto once = [&](auto kernels, std::vector<double>& runs) {
    const double start = now();
    product.template run<decltype(kernels)>(n, product.rows);
    runs.push_back(now() - start);
  };
  const double begin = now();
  while (highway.size() < 6 || now() - begin < 1) {
    once(kernel::Highway(), highway);
    once(kernel::Xsimd(), xsimd);
  }
  const auto spread = [](std::vector<double>& runs) {
    std::sort(runs.begin(), runs.end());
    return Spread{runs.front(), runs[runs.size() / 2]};
  };
  return {spread(highway), spread(xsimd)};
}

/// `work` per second by both, and xsimd's fraction of it.
void report(std::FILE* json, const std::string& name, std::size_t n, const char* unit, double work,
            const Pair& t) {
  const double ratio = t.highway.best / t.xsimd.best, median = t.highway.median / t.xsimd.median;
  std::printf(" | %7.2f %7.2f %5.2f %5.2f", work / t.highway.best, work / t.xsimd.best, ratio, median);
  if (json == nullptr) return;
  std::fprintf(json,
               "{\"format\": \"%s\", \"tokens\": %zu, \"unit\": \"%s\", \"highway\": %.2f, \"xsimd\": %.2f, "
               "\"ratio\": %.3f, \"ratio_of_medians\": %.3f}\n",
               name.c_str(), n, unit, work / t.highway.best, work / t.xsimd.best, ratio, median);
}

template <class G>
void measure(Inputs& inputs, std::FILE* json) {
  constexpr std::size_t prompt = 128;
  const std::string name = std::string(G::name) + (tensor::is_packed<G> ? " packed" : "");
  std::printf("%-14s", name.c_str());
  {
    Product<G> decode(std::size_t{96} << 20, inputs);
    decode.template check<kernel::Highway>();
    decode.template check<kernel::Xsimd>();
    report(json, name, 1, "GB/s", decode.gb(), time_both(decode, 1));
  }
  Product<G> prefill(std::size_t{2} << 20, inputs);
  report(json, name, prompt, "GMAC/s", prefill.gmac(prompt), time_both(prefill, prompt));
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::string_view chosen;
  std::FILE* json = nullptr;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) != "--json") {
      chosen = argv[i];
    } else if (++i == argc || (json = std::fopen(argv[i], "w")) == nullptr) {
      std::fprintf(stderr, "--json needs a file that can be written\n");
      return 2;
    }
  }
  std::printf(
      "               | 1 token, GB/s               | 128 tokens, GMAC/s\n"
      "               | highway   xsimd ratio  med. | highway   xsimd ratio  med.\n");
  Inputs inputs;
  format::All::for_each([&](auto type) {
    using F = typename decltype(type)::type;
    if constexpr (F::vector_codec) {
      if (!chosen.empty() && F::name != chosen) return;
      measure<F>(inputs, json);
      if constexpr (PackableFormat<F>) measure<tensor::Packed<F>>(inputs, json);
    }
  });
  if (json != nullptr) std::fclose(json);
}
