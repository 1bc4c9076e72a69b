// SPDX-License-Identifier: Apache-2.0

#include "mica/tensor/packing.hpp"

#include "mica/base/rng.hpp"
#include "mica/format/lists.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

namespace mica::test::packing_test {

TEST_CASE("rows of every format that can be packed come back as they were") {
  std::size_t formats = 0;
  format::All::for_each([&](auto type) {
    using F = typename decltype(type)::type;
    const tensor::Packing packing = tensor::packing_in<format::All>(F::id);
    CHECK(packing.can_pack(16) == PackableFormat<F>);
    CHECK(tensor::can_pack<format::All>(F::id, 16) == PackableFormat<F>);
    CHECK_FALSE(packing.can_pack(15));
    CHECK_FALSE(tensor::can_pack<format::All>(F::id, 15));
    if constexpr (PackableFormat<F>) {
      ++formats;
      for (const std::size_t rows : {16u, 17u, 48u, 61u}) {
        const std::size_t cols = 3 * F::block_size;
        std::vector<std::byte> plain(rows * 3 * sizeof(typename F::Block)), packed(plain.size()),
            again(plain.size());
        CounterRng rng(rows);
        for (std::byte& b : plain) b = static_cast<std::byte>(rng.next());
        packing.pack(plain, cols, packed.data());
        CHECK(packed != plain);
        packing.unpack(packed, cols, again.data());
        CHECK(again == plain);
      }
    }
  });
  CHECK(formats > 10);
  CHECK_FALSE(tensor::packing_in<TypeList<format::Q4_K>>(format::Q6_K::id).can_pack(16));
}

}  // namespace mica::test::packing_test
