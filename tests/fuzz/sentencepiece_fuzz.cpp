// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a SentencePiece file, for an embedding of some rows: refused by an error, or a vocabulary
// whose special ids are among its tokens.

#include "fuzz/convert_checks.hpp"
#include "fuzz/input.hpp"

#include <cstddef>
#include <cstdint>

namespace mica::fuzz::sentencepiece_fuzz {

MICA_FUZZ_TARGET(sentencepiece) {
  static const Folder folder;
  Input input(data, size);
  const std::uint64_t n_vocab = 1 + input.below(40);
  const bool fairseq = input.flag();
  const std::string path = folder.write("spiece.model", input.rest());
  accepted([&] {
    convert::VocabularyData read = convert::read_sentencepiece(path, n_vocab);
    if (fairseq && n_vocab >= convert::fairseq_tokens) convert::place_fairseq_tokens(n_vocab, read);
    convert::detail::pad_vocabulary(n_vocab, read);
    check_vocabulary(read, n_vocab);
  });
  return 0;
}

}  // namespace mica::fuzz::sentencepiece_fuzz
