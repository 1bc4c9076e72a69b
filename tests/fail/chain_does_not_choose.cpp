// SPDX-License-Identifier: Apache-2.0
//
// expect: mica::sample::Chain: no stage chooses a token

#include "mica/sample/chain.hpp"

#ifdef MICA_FAIL
using Mine = mica::sample::Chain<mica::sample::TopK, mica::sample::Temperature>;
#else
using Mine = mica::sample::Chain<mica::sample::TopK, mica::sample::Temperature, mica::sample::Dist>;
#endif

std::optional<mica::TokenId> choose(Mine& chain, std::span<const float> logits) {
  return chain.sample(logits);
}
