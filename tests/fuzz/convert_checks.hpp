// SPDX-License-Identifier: Apache-2.0
//
// What a vocabulary that was read for a conversion promises.
#pragma once

#include "fuzz/input.hpp"
#include "mica_tools/convert/tokenizer/read_vocabulary.hpp"

#include <cmath>
#include <cstdint>
#include <string>

namespace mica::fuzz {

/// As many tokens as the embedding has rows, special ids among them, finite scores.
inline void check_vocabulary(const convert::VocabularyData& read, std::uint64_t n_vocab) {
  require(read.tokens.size() == n_vocab, "a vocabulary has as many tokens as the embedding has rows");
  for (const auto& id :
       {read.bos, read.eos, read.eot, read.unknown, read.padding, read.separator, read.classifier, read.mask})
    require(!id || *id < n_vocab, "a special id is one of the vocabulary");
  for (const convert::VocabularyToken& token : read.tokens)
    require(std::isfinite(token.score), "scores are finite");
}

}  // namespace mica::fuzz
