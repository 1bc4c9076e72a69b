// SPDX-License-Identifier: Apache-2.0
//
// Formats of a user's own: with a vector codec, whose unit this file is, and without, which needs no unit.

#define MICA_USER_CODECS_INL "kernel/user_codec-inl.hpp"
#include "kernel/product.hpp"
#include "kernel/user_format.hpp"
#include "mica/kernel/highway/dispatch.hpp"

MICA_INSTANTIATE_MATMUL(user::Vector16)
MICA_INSTANTIATE_MATMUL(user::Vector32)

namespace mica::user_codec_test {
namespace {

using test::Product;

TEST_CASE_TEMPLATE("a user's format equals the specification, with a codec or without", F, user::Decoded,
                   user::Apart16, user::Apart32, user::Vector16, user::Vector32) {
  CounterRng rng(1);
  // 24 values in a block and 1,008 in a turn of the decoder; 64 in a block and 256 in a chunk
  for (const std::size_t blocks : std::initializer_list<std::size_t>{2, 4, 6, 10, 86}) {
    for (const std::size_t tokens : std::initializer_list<std::size_t>{1, 3, 4, 19}) {
      Product<F> product(21, blocks, tokens, rng);
      if constexpr (requires { product.blocks[0].scale = 1.0f; }) {
        for (auto& block : product.blocks) block.scale = test::noise(rng, 0.01f);
      }
      product.check();
      product.check(3, 20, true);
    }
  }
}

}  // namespace
}  // namespace mica::user_codec_test
