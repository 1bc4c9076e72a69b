// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as base logits: refused by an error, or rows of probabilities.

#include "fuzz/heap.hpp"
#include "fuzz/input.hpp"
#include "mica_tools/measure/base_logits.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

namespace mica::fuzz::base_logits_fuzz {
namespace {

void run(std::string_view bytes) {
  static const Folder folder;
  const std::string path = folder.write("logits", bytes);
  accepted_within(bytes.size(), [&] {
    BaseLogitsReader reader(path);
    for (const TokenId id : reader.tokens())
      require(id < reader.n_vocab(), "ids are those of the vocabulary");
    const std::size_t rows = reader.windows() * Windows::counted(reader.n_ctx());
    for (std::size_t row = 0; row < rows; ++row) {
      const QuantizedRow& read = reader.next();
      for (TokenId id = 0; id < reader.n_vocab(); ++id)
        require(std::isfinite(read[id]), "logarithms of probabilities are finite");
    }
  });
}

}  // namespace

MICA_FUZZ_TARGET(base_logits) {
  run({reinterpret_cast<const char*>(data), size});
  return 0;
}

}  // namespace mica::fuzz::base_logits_fuzz
