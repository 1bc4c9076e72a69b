// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../topics.hpp"

namespace mica::program::topic {

inline constexpr Topic formats{"formats", "quantisation: which type to choose",
                               R"(A format says how many bits a weight has. Fewer bits: smaller, faster, and
less exact.

  F16, BF16     16 bits      as published
  Q8_0          8.5 bits     hardly any difference
  Q6_K          6.6 bits     very close
  Q5_K_M        5.7 bits
  Q4_K_M        4.9 bits     the usual choice
  IQ4_XS        4.5 bits
  Q3_K_M        4.0 bits     the difference shows in small models
  Q2_K          3.2 bits     for large models that fit in no other way

Of two files of the same size, a larger model with fewer bits is most often
better than a smaller model with more bits, down to about four bits.

  mica quantize model-f16.gguf model-q4.gguf Q4_K_M
  mica quantize model-f16.gguf x Q4_K_M --dry-run      every tensor, no file

An importance matrix improves formats of few bits. It is collected while the
model reads a text like those that it will be used for:

  mica imatrix model-f16.gguf -f text.txt -o imatrix.gguf
  mica quantize model-f16.gguf model-q3.gguf Q3_K_M --imatrix imatrix.gguf

mica perplexity model.gguf -f text.txt measures the difference. A file that is
quantised already should not be quantised again; use one in F16 or BF16.
)"};

}  // namespace mica::program::topic
