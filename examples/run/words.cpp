// SPDX-License-Identifier: Apache-2.0
#include "words.hpp"

#include "mica/base/error.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace mica::program {
namespace {

struct Alias {
  std::string_view from;
  std::string_view to;
};

/// Single-dash words of several letters, which no parser of POSIX style takes.
constexpr Alias aliases[] = {
    {"-ctk", "--cache-type-k"},
    {"-ctv", "--cache-type-v"},
    {"-ub", "--chunk"},
    {"-sys", "--system-prompt"},
    {"-st", "--single-turn"},
    {"-cnv", "--conversation"},
    {"-no-cnv", "--no-conversation"},
    {"-co", "--color"},
    {"-sysf", "--system-prompt-file"},
    {"-np", "--parallel"},
};

struct Ignored {
  std::string_view flag;
  bool takes_value;
  std::string_view why;
};

constexpr Ignored ignored[] = {
    {"-ngl", true, "mica runs on the CPU"},
    {"--n-gpu-layers", true, "mica runs on the CPU"},
    {"--gpu-layers", true, "mica runs on the CPU"},
    {"-fa", true, "attention is always computed in chunks"},
    {"--flash-attn", true, "attention is always computed in chunks"},
    {"-tb", true, "one team of threads serves both"},
    {"--threads-batch", true, "one team of threads serves both"},
    {"--no-mmap", false, "use --weights resident"},
    {"--mlock", false, "use --weights resident"},
    {"--no-warmup", false, "there is no warm-up"},
    {"--jinja", false, "templates are always used"},
    {"--no-display-prompt", false, "the prompt is never shown"},
    {"--log-disable", false, "use -q"},
    {"--simple-io", false, "output is plain on a pipe"},
    {"-sm", true, "mica runs on the CPU"},
    {"-mg", true, "mica runs on the CPU"},
    {"-ts", true, "mica runs on the CPU"},
    {"-dev", true, "mica runs on the CPU"},
};

}  // namespace

Words clean(std::span<char* const> arguments) {
  Words out;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view word = arguments[i];
    if (word == "--") {  // the rest is text
      out.words.insert(out.words.end(), arguments.begin() + static_cast<std::ptrdiff_t>(i), arguments.end());
      break;
    }
    const auto drop = std::find_if(std::begin(ignored), std::end(ignored),
                                   [&](const Ignored& x) { return x.flag == word; });
    if (drop != std::end(ignored)) {
      const bool value_follows =
          i + 1 < arguments.size() && drop->takes_value &&
          (arguments[i + 1][0] != '-' || (arguments[i + 1][1] >= '0' && arguments[i + 1][1] <= '9'));
      if (value_follows) ++i;
      out.notes.push_back(join(drop->why, "; ", word, " ignored"));
      continue;
    }
    const auto alias =
        std::find_if(std::begin(aliases), std::end(aliases), [&](const Alias& x) { return x.from == word; });
    out.words.emplace_back(alias != std::end(aliases) ? alias->to : word);
  }
  return out;
}

}  // namespace mica::program
