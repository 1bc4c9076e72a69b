// SPDX-License-Identifier: Apache-2.0
//
// One property of every packed layout, of weights and of KV tiles: what is packed comes back bit for bit,
// every byte of the size that the layout states is written, none beyond it, every bit of the source has
// exactly one place, and the size is the one that plans count.

#include "mica/base/rng.hpp"
#include "mica/format/lists.hpp"
#include "mica/kv/aging.hpp"
#include "mica/tensor/packed12.hpp"
#include "mica/tensor/packing.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace mica::test::layouts_test {
namespace {

using Bytes = std::vector<std::uint8_t>;

/// A layout as the property sees it, with an example of what it packs.
struct Layout {
  std::string name;
  Bytes source;
  Bytes free;                  ///< (source) bits that may be flipped in any combination
  std::size_t bytes = 0;       ///< of the packed form, as the layout states it
  std::size_t booked = 0;      ///< bytes that plans count for it
  std::size_t max_unused = 0;  ///< how many of these the layout may leave
  std::function<bool(const std::uint8_t* source, std::byte* packed)> pack;
  std::function<void(const std::byte* packed, std::uint8_t* source)> unpack;
};

Bytes xor_of(Bytes a, const Bytes& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] ^= b[i];
  return a;
}

/// The packed form, which is written whole whatever lay there, and nothing around it.
Bytes packed_form(const Layout& layout, const Bytes& source) {
  constexpr std::size_t guard = 64;
  Bytes packed[2];
  for (const std::uint8_t before : {std::uint8_t{0}, std::uint8_t{0xFF}}) {
    Bytes memory(layout.bytes + 2 * guard, before);
    REQUIRE(layout.pack(source.data(), reinterpret_cast<std::byte*>(memory.data() + guard)));
    const auto end = memory.end() - guard;
    const auto same = [&](std::uint8_t byte) { return byte == before; };
    CHECK(std::all_of(memory.begin(), memory.begin() + guard, same));
    CHECK(std::all_of(end, memory.end(), same));
    packed[before & 1] = Bytes(memory.begin() + guard, end);
  }
  CHECK(packed[0] == packed[1]);
  return packed[0];
}

bool comes_back(const Layout& layout, const Bytes& source) {
  const Bytes packed = packed_form(layout, source);
  Bytes back(source.size());
  layout.unpack(reinterpret_cast<const std::byte*>(packed.data()), back.data());
  return back == source;
}

/// Every free bit has one place. Flip j turns the free bits whose number, counted from 1, has bit j; what
/// changes in the packed form, over all flips, is at each place the number of the bit that lies there, or 0.
void check_places(const Layout& layout) {
  std::vector<std::size_t> free;
  for (std::size_t i = 0; i < 8 * layout.free.size(); ++i) {
    if ((layout.free[i / 8] >> i % 8 & 1) != 0) free.push_back(i);
  }
  const Bytes before = packed_form(layout, layout.source);
  std::vector<std::size_t> number(8 * layout.bytes);
  for (std::size_t j = 0; free.size() >> j != 0; ++j) {
    Bytes flip(layout.source.size());
    for (std::size_t n = 0; n < free.size(); ++n) {
      if (((n + 1) >> j & 1) != 0) flip[free[n] / 8] |= static_cast<std::uint8_t>(1 << free[n] % 8);
    }
    const Bytes flipped = xor_of(packed_form(layout, xor_of(layout.source, flip)), before);
    for (std::size_t i = 0; i < number.size(); ++i)
      number[i] |= static_cast<std::size_t>(flipped[i / 8] >> i % 8 & 1) << j;
  }
  std::vector<std::size_t> places(free.size() + 1);
  bool known = true;
  for (const std::size_t n : number) n < places.size() ? void(++places[n]) : void(known = false);
  CHECK(known);
  CHECK(std::count(places.begin() + 1, places.end(), 1u) == static_cast<std::ptrdiff_t>(free.size()));
}

void check_layout(const Layout& layout) {
  CAPTURE(layout.name);
  CHECK(layout.bytes <= layout.booked);
  CHECK(layout.bytes + layout.max_unused >= layout.booked);
  CHECK(comes_back(layout, layout.source));
  for (unsigned pattern = 0; pattern < 256; ++pattern) {  // every free byte takes every value
    Bytes flip = layout.free;
    for (std::size_t i = 0; i < flip.size(); ++i) flip[i] &= static_cast<std::uint8_t>(pattern + 37 * i);
    if (!comes_back(layout, xor_of(layout.source, flip))) FAIL_CHECK("pattern ", pattern);
  }
  check_places(layout);
}

Bytes random_bytes(std::size_t n, CounterRng& rng) {
  Bytes out(n);
  for (std::uint8_t& byte : out) byte = static_cast<std::uint8_t>(rng.next());
  return out;
}

template <class F>
Layout rows16(std::size_t rows, std::size_t blocks, CounterRng& rng) {
  using Block = typename F::Block;
  const std::size_t cols = blocks * F::block_size, bytes = rows * blocks * sizeof(Block);
  Layout out{std::string(F::name), random_bytes(bytes, rng), Bytes(bytes, 0xFF), bytes, bytes, 0, {}, {}};
  out.pack = [=](const std::uint8_t* source, std::byte* packed) {
    tensor::pack(tensor::Matrix<F>(reinterpret_cast<const Block*>(source), rows, cols), packed);
    return true;
  };
  out.unpack = [=](const std::byte* packed, std::uint8_t* source) {
    const tensor::Matrix<tensor::Packed<F>> w(reinterpret_cast<const Block*>(packed), rows, cols);
    for (std::size_t i = 0; i < rows * blocks; ++i) {
      const Block block = w.block(i / blocks, i % blocks);
      std::memcpy(source + i * sizeof(Block), &block, sizeof(Block));
    }
  };
  return out;
}

/// Weights of sixteen high bytes, all of which have all low bytes, and some others.
template <class F>
Layout packed12(std::size_t rows, std::size_t cols, int first_high, CounterRng& rng) {
  using Block = typename F::Block;
  constexpr bool half = std::is_same_v<Block, Half>;
  const std::size_t n = rows * cols, file = n * sizeof(Block);
  Layout out{
      std::string(F::name), Bytes(file), Bytes(file), tensor::packed12_bytes(rows, cols), file, file, {}, {}};
  // As BF16: sign, seven bits of the exponent, low byte. F16: three bits less before it, three behind it.
  const auto put = [&](std::size_t i, unsigned high, unsigned low) {
    const unsigned exponent = high % 8 + 3;
    const unsigned bits =
        half ? (high & 8) << 12 | exponent << 11 | low << 3 : ((first_high + high) & 255) << 8 | low;
    const unsigned free = half ? 0xFFu << 3 : 0xFFu;
    out.source[2 * i] = static_cast<std::uint8_t>(bits);
    out.source[2 * i + 1] = static_cast<std::uint8_t>(bits >> 8);
    out.free[2 * i] = static_cast<std::uint8_t>(free);
    out.free[2 * i + 1] = static_cast<std::uint8_t>(free >> 8);
  };
  for (std::size_t i = 0; i < n; ++i) put(i, i / 256 % 16, i % 256);
  for (std::size_t i = n; i-- > 1;) {  // any order
    const std::size_t j = rng.next() % (i + 1);
    for (std::size_t k = 0; k < 2; ++k) std::swap(out.source[2 * i + k], out.source[2 * j + k]);
  }
  for (const std::size_t i : {std::size_t{3}, n / 2, n - 1}) put(i, half ? 11 : 77, 5);
  out.pack = [=](const std::uint8_t* source, std::byte* packed) {
    return tensor::pack12(tensor::Matrix<F>(reinterpret_cast<const Block*>(source), rows, cols), packed);
  };
  out.unpack = [=](const std::byte* packed, std::uint8_t* source) {
    const tensor::Matrix<tensor::Packed12<F>> w(reinterpret_cast<const Block*>(packed), rows, cols);
    for (std::size_t i = 0; i < n; ++i) {
      const Block block = w.block(i / cols, i % cols);
      std::memcpy(source + 2 * i, &block, 2);
    }
  };
  return out;
}

/// The part of a tile that has keys, or values. Plans count tiles; values have the bytes behind the keys.
template <class E>
Layout tile_part(bool keys, std::size_t head_dim, std::size_t source_bytes) {
  const kv::FixedOld<E> elements;
  Layout out;
  out.name = std::string(E::name) + (keys ? " keys of " : " values of ") + std::to_string(head_dim);
  out.source = out.free = Bytes(source_bytes);
  out.bytes = keys ? E::key_tile_bytes(head_dim) : E::value_tile_bytes(head_dim);
  out.booked = kv::key_bytes(elements, head_dim);
  if (!keys) out.booked = kv::tile_bytes(elements, head_dim) - out.booked;
  out.max_unused = keys ? 0 : 63;
  return out;
}

/// Source: codes (16, head_dim), then sixteen scales.
Layout q8_0(bool keys, std::size_t head_dim, CounterRng& rng) {
  using format::Q8_0;
  const std::size_t n = 16 * head_dim;
  Layout out = tile_part<Q8_0>(keys, head_dim, n + 32);
  for (std::size_t i = 0; i < n; ++i) {  // one number of a head is the largest, the others have any six bits
    const bool largest = i % head_dim == i / head_dim % head_dim;
    const auto code = static_cast<std::int8_t>(rng.next() % 128 - 64);
    out.source[i] = static_cast<std::uint8_t>(largest ? 127 : code);
    out.free[i] = largest ? 0 : 0x3F;
  }
  for (std::size_t i = n; i < n + 32; i += 2) {
    out.source[i + 1] = static_cast<std::uint8_t>((1 + rng.next() % 30) << 2);  // a normal number
    out.free[i] = 0xFF;
    out.free[i + 1] = 3;
  }
  out.pack = [=](const std::uint8_t* source, std::byte* packed) {
    std::vector<float> head(head_dim);
    for (std::size_t slot = 0; slot < 16; ++slot) {
      Half scale;
      std::memcpy(&scale, source + n + 2 * slot, 2);
      for (std::size_t i = 0; i < head_dim; ++i)
        head[i] = to_float(scale) * static_cast<float>(static_cast<std::int8_t>(source[slot * head_dim + i]));
      keys ? Q8_0::store_key(packed, slot, head_dim, head.data())
           : Q8_0::store_value(packed, slot, head_dim, head.data());
    }
    return true;
  };
  out.unpack = [=](const std::byte* packed, std::uint8_t* source) {
    std::vector<float> head(head_dim);
    std::memcpy(source + n, Q8_0::scales(packed, head_dim), 32);
    for (std::size_t slot = 0; slot < 16; ++slot) {
      keys ? Q8_0::load_key(packed, slot, head_dim, head.data())
           : Q8_0::load_value(packed, slot, head_dim, head.data());
      const float scale = to_float(Q8_0::scales(packed, head_dim)[slot]);
      for (std::size_t i = 0; i < head_dim; ++i)
        source[slot * head_dim + i] = static_cast<std::uint8_t>(static_cast<int>(head[i] / scale));
    }
  };
  return out;
}

/// Source: codes (16, head_dim), then ranges, of channels or of (group, 16).
template <class E>
Layout kivi(bool keys, std::size_t head_dim, CounterRng& rng) {
  using format::KiviRange;
  constexpr int step = E::Group::step, max = E::Group::code_max;
  const std::size_t n = 16 * head_dim, groups = ceil_div(head_dim, E::group_size);
  const std::size_t ranges = keys ? head_dim : 16 * groups;
  const auto span_of = [=](std::size_t i) {  // number i of the source
    return keys ? i % head_dim : i % head_dim / E::group_size * 16 + i / head_dim;
  };
  Layout out = tile_part<E>(keys, head_dim, n + 2 * ranges);
  for (std::size_t i = 0; i < n; ++i) {  // a group has a lowest and a highest code
    const std::size_t at = keys ? (i / head_dim + i % head_dim) % 16 : i % head_dim % E::group_size;
    out.source[i] = static_cast<std::uint8_t>(at == 0 ? 0 : at == 1 ? max : rng.next() % (max + 1));
    out.free[i] = static_cast<std::uint8_t>(at < 2 ? 0 : max);
  }
  for (std::size_t i = n; i < n + 2 * ranges; i += 2) {
    out.source[i] = static_cast<std::uint8_t>(16 + rng.next() % 180);
    out.free[i] = 7;
    out.source[i + 1] = static_cast<std::uint8_t>(rng.next() % 128 - 64);
    out.free[i + 1] = 0x3F;
  }
  out.pack = [=](const std::uint8_t* source, std::byte* packed) {
    std::vector<float> heads(n);
    for (std::size_t i = 0; i < n; ++i) {
      KiviRange range;
      std::memcpy(&range, source + n + 2 * span_of(i), 2);
      heads[i] = E::Group::value(range, source[i]);
    }
    keys ? E::store_keys(packed, head_dim, heads.data()) : E::store_values(packed, head_dim, heads.data());
    return true;
  };
  out.unpack = [=](const std::byte* packed, std::uint8_t* source) {
    std::vector<float> head(head_dim);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t slot = i / head_dim, at = i % head_dim;
      if (at == 0) {
        keys ? E::load_key(packed, slot, head_dim, head.data())
             : E::load_value(packed, slot, head_dim, head.data());
      }
      const KiviRange range = keys ? E::key_ranges(packed, head_dim)[at]
                                   : E::value_ranges(packed, head_dim, at / E::group_size)[slot];
      std::memcpy(source + n + 2 * span_of(i), &range, 2);
      source[i] =
          static_cast<std::uint8_t>((static_cast<int>(head[at] / range.factor()) - range.zero) / step);
    }
  };
  return out;
}

/// Source: numbers (16, head_dim), none of them infinite.
template <class E>
Layout floats(bool keys, std::size_t head_dim, CounterRng& rng) {
  constexpr std::size_t width = sizeof(typename E::Block);
  Layout out = tile_part<E>(keys, head_dim, 16 * head_dim * width);
  out.source = random_bytes(out.source.size(), rng);
  for (std::size_t i = 0; i < out.source.size(); ++i) {
    out.free[i] = i % width == width - 1 ? 0xBF : 0xFF;
    out.source[i] &= out.free[i];
  }
  out.pack = [=](const std::uint8_t* source, std::byte* packed) {
    std::vector<float> head(head_dim);
    for (std::size_t i = 0; i < 16 * head_dim; ++i) {
      typename E::Block number;
      std::memcpy(&number, source + i * width, width);
      E::decode(number, &head[i % head_dim]);
      if (i % head_dim != head_dim - 1) continue;
      keys ? E::store_key(packed, i / head_dim, head_dim, head.data())
           : E::store_value(packed, i / head_dim, head_dim, head.data());
    }
    return true;
  };
  out.unpack = [=](const std::byte* packed, std::uint8_t* source) {
    std::vector<float> head(head_dim);
    for (std::size_t i = 0; i < 16 * head_dim; ++i) {
      if (i % head_dim == 0) {
        keys ? E::load_key(packed, i / head_dim, head_dim, head.data())
             : E::load_value(packed, i / head_dim, head_dim, head.data());
      }
      typename E::Block number;
      E::encode(&head[i % head_dim], number);
      std::memcpy(source + i * width, &number, width);
    }
  };
  return out;
}

/// Source: blocks (16, blocks of a head) of the file format, of any bits.
template <class E, class Part>
Layout blocks(std::size_t head_dim, CounterRng& rng) {
  using Block = typename E::Block;
  const std::size_t n = E::blocks(head_dim);
  Layout out = tile_part<E>(std::is_same_v<Part, typename E::Keys>, head_dim, 16 * n * sizeof(Block));
  out.source = random_bytes(out.source.size(), rng);
  out.free = Bytes(out.source.size(), 0xFF);
  out.pack = [=](const std::uint8_t* source, std::byte* packed) {
    for (std::size_t i = 0; i < 16 * n; ++i) {
      Block block;
      std::memcpy(&block, source + i * sizeof(Block), sizeof(Block));
      E::template set_block<Part>(packed, i / n, head_dim, i % n, block);
    }
    return true;
  };
  out.unpack = [=](const std::byte* packed, std::uint8_t* source) {
    for (std::size_t i = 0; i < 16 * n; ++i) {
      const Block block = E::template block<Part>(packed, i / n, head_dim, i % n);
      std::memcpy(source + i * sizeof(Block), &block, sizeof(Block));
    }
  };
  return out;
}

TEST_CASE("sixteen rows of every format that can be packed") {
  CounterRng rng(1);
  format::All::for_each([&](auto type) {
    using F = typename decltype(type)::type;
    if constexpr (PackableFormat<F>) {
      for (const std::size_t blocks : {1u, 3u, 9u})
        check_layout(rows16<F>(blocks == 3 ? 35 : 16, blocks, rng));
    }
  });
}

TEST_CASE("floats of 16 bits in twelve") {
  CounterRng rng(2);
  for (int high = 0; high < 256; high += 16) check_layout(packed12<format::BF16>(16, 256, high, rng));
  check_layout(packed12<format::BF16>(35, 320, 60, rng));
  check_layout(packed12<format::F16>(16, 256, 0, rng));
  check_layout(packed12<format::F16>(33, 64, 0, rng));
}

TEST_CASE_TEMPLATE("tiles of floats", E, format::F32, format::F16, format::BF16) {
  CounterRng rng(5);
  for (const bool keys : {true, false}) {
    for (const std::size_t head_dim : {2u, 67u}) check_layout(floats<E>(keys, head_dim, rng));
  }
}

TEST_CASE_TEMPLATE("tiles of blocks with four to six bits a number", E, format::Plain<format::Q4_0>,
                   format::Plain<format::Q6_0>, format::Plain<format::Q5_0>, format::Rotated<format::Q5_1>) {
  CounterRng rng(6);
  for (const std::size_t head_dim : {32u, 80u}) {
    check_layout(blocks<E, typename E::Keys>(head_dim, rng));
    check_layout(blocks<E, typename E::Values>(head_dim, rng));
  }
}

TEST_CASE("tiles of signed bytes") {
  CounterRng rng(3);
  for (const bool keys : {true, false}) {
    for (const std::size_t head_dim : {1u, 6u, 64u, 131u}) check_layout(q8_0(keys, head_dim, rng));
  }
}

TEST_CASE_TEMPLATE("tiles with a scale for each channel of the keys", E, format::KIVI4, format::KIVI2) {
  CounterRng rng(4);
  for (const std::size_t head_dim : {2u, 35u, 64u, 90u}) {
    check_layout(kivi<E>(true, head_dim, rng));
    check_layout(kivi<E>(false, head_dim, rng));
  }
}

}  // namespace
}  // namespace mica::test::layouts_test
