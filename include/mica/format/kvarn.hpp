// SPDX-License-Identifier: Apache-2.0
//
// Keys and values that are encoded a tile at a time, keys with scales on both axes of a tile: of channels and
// of tokens, found in turns until they no longer change, without calibration (after KVarN, L. K. Muller et
// al., arXiv 2606.03458, 2026). Four and three bits a code; groups are 32 dimensions of a head:
//
//   keys     value = mean + channel scale * token scale * level. A dimension has a mean and a channel scale
//            for the sixteen tokens, a group of a token has a token scale.
//   values   value = token scale * level, of heads that are rotated before (format/detail/rotation.hpp)
//
//   keys     | codes [octet of channels][bits][16 bytes] | channels [dimension] | token scales [group][16] |
//   values   | codes [group][16 tokens][4 * bits bytes] | token scales [group][16] |
//
// A channel takes a byte, and so does a token scale. Heads are padded to whole groups. If a token has a
// number that F16 cannot hold, all numbers of this token become NaN, and those of the other tokens do not.
//
// Differences from the paper: keys are not rotated, because with scales of their own channels this had a
// lower KL (docs/kv.md); tiles have sixteen tokens; levels are uneven; channels of keys have a mean.
#pragma once

#include "mica/base/bits.hpp"
#include "mica/format/concept.hpp"
#include "mica/format/detail/rotation.hpp"
#include "mica/format/encode/levels.hpp"
#include "mica/format/iq4.hpp"
#include "mica/format/q4_s.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace mica::format {

namespace detail {

/// The levels with the least squared error for normal numbers (S. Lloyd, 1957, 1982; J. Max, 1960), in bytes.
inline constexpr std::int8_t normal_levels4[16] = {-126, -95, -74, -58, -43, -30, -18, -6,
                                                   6,    18,  30,  43,  58,  74,  95,  126};
inline constexpr std::int8_t normal_levels3[8] = {-125, -78, -44, -14, 14, 44, 78, 125};

/// A scale of levels, in eight bits: an eighth of that of Q4_S, since levels are up to 126.
struct LevelScale {
  static constexpr std::uint8_t no_number = Q4_S::no_number;  // of tokens with numbers that F16 cannot hold
  static constexpr float unit = 0.125f;
  [[nodiscard]] static constexpr float of(std::uint8_t bits) noexcept { return Q4_S::scale_of(bits) * unit; }
  [[nodiscard]] static constexpr std::uint8_t nearest(float scale) noexcept {
    return Q4_S::nearest_scale(scale * (1 / unit));
  }
};

/// 32 numbers as levels and their scale. The least squared error of eight scales.
template <const auto& levels>
struct LevelGroup {
  static constexpr std::size_t size = 32;
  using Levels = search::Codebook<levels>;

  /// Codes of `count` numbers, 1 to 32; returns the scale's bits.
  static std::uint8_t encode(const float* values, std::size_t count, std::uint8_t* codes) noexcept {
    float filled[size], amax = 0;
    for (std::size_t i = 0; i < size; ++i) {
      filled[i] = values[i % count];
      amax = std::max(amax, std::fabs(filled[i]));
    }
    std::fill_n(codes, count, std::uint8_t{0});
    const int about = LevelScale::nearest(amax / Levels::high);
    if (about == 0) return 0;
    int best = 0;
    float least = std::numeric_limits<float>::infinity(), q[size];
    for (int scale = std::max(about - 6, 1); scale <= std::min(about + 1, LevelScale::no_number - 1);
         ++scale) {
      const float factor = LevelScale::of(static_cast<std::uint8_t>(scale)), inverse = 1 / factor;
      for (std::size_t i = 0; i < size; ++i) q[i] = filled[i] * inverse;
      Levels::settle(q);
      float error = 0;
      for (std::size_t i = 0; i < size; ++i)
        error += (filled[i] - q[i] * factor) * (filled[i] - q[i] * factor);
      if (!(error < least)) continue;
      least = error;
      best = scale;
    }
    const float inverse = 1 / LevelScale::of(static_cast<std::uint8_t>(best));
    for (std::size_t i = 0; i < size; ++i) q[i] = filled[i] * inverse;
    Levels::settle(q);
    for (std::size_t i = 0; i < count; ++i)
      codes[i] = search::code_of_level<levels>[static_cast<std::uint8_t>(static_cast<std::int8_t>(q[i]))];
    return static_cast<std::uint8_t>(best);
  }
};

}  // namespace detail

/// What the channels of a group of a tile of keys have, a byte each:
///
///   bits 0 to 3   the code of the mean, a level of IQ4_NL, one of which is about zero
///   bits 4 to 6   the scale, 2^(-step / 2)
///   bit 7         of channels 0 to 7: a bit of the scale of the means, from its lowest bit on
class KvarnChannels {
 public:
  static constexpr std::size_t size = 32;  // channels
  static constexpr int max_step = 7;
  static constexpr float half_step = 1.41421356f;  // the root of 2

  explicit KvarnChannels(const std::byte* bytes) noexcept : bytes_(bytes) {}

  [[nodiscard]] float scale(std::size_t i) const noexcept { return scale_of(at(i) >> 4 & max_step); }
  [[nodiscard]] float mean(std::size_t i) const noexcept {
    return mean_factor() * static_cast<float>(IQ4_NL::levels[at(i) & 15]);
  }
  /// The scale of the means.
  [[nodiscard]] float mean_factor() const noexcept {
    unsigned bits = 0;
    for (std::size_t i = 0; i < 8; ++i) bits |= (at(i) >> 7) << i;
    return detail::LevelScale::of(static_cast<std::uint8_t>(bits));
  }
  [[nodiscard]] static float scale_of(unsigned step) noexcept {
    const float power = std::bit_cast<float>((127 - (step + 1) / 2) << 23);
    return step % 2 == 0 ? power : power * half_step;
  }

 private:
  [[nodiscard]] unsigned at(std::size_t i) const noexcept { return std::to_integer<unsigned>(bytes_[i]); }
  const std::byte* bytes_;
};

template <int bits>
struct Kvarn {
  static_assert(bits == 3 || bits == 4);
  static constexpr std::string_view name = bits == 4 ? "KVARN4" : "KVARN3";
  static constexpr int code_bits = bits;
  static constexpr std::size_t group_size = 32;
  static constexpr const auto& levels = []() -> const auto& {
    if constexpr (bits == 4)
      return detail::normal_levels4;
    else
      return detail::normal_levels3;
  }
  ();
  using Group = detail::LevelGroup<levels>;
  using Scale = detail::LevelScale;

  // Required by KvTileElement
  static std::size_t key_tile_bytes(std::size_t head_dim) noexcept {
    return round_up<std::size_t>(groups(head_dim) * (key_code_bytes + group_size + tile_tokens), 32);
  }
  static std::size_t value_tile_bytes(std::size_t head_dim) noexcept {
    return round_up<std::size_t>(groups(head_dim) * tile_tokens * (value_code_bytes + 1), 32);
  }
  static void store_keys(std::byte* tile, std::size_t head_dim, const float* heads) noexcept {
    std::fill_n(tile, key_tile_bytes(head_dim), std::byte{0});
    const Tokens finite = finite_tokens(heads, head_dim);
    for (std::size_t g = 0; g < groups(head_dim); ++g)
      KeyGroup(heads + g * group_size, head_dim, width(head_dim, g), finite).store(tile, head_dim, g);
  }
  static void store_values(std::byte* tile, std::size_t head_dim, const float* heads) noexcept {
    std::fill_n(tile, value_tile_bytes(head_dim), std::byte{0});
    const Tokens finite = finite_tokens(heads, head_dim);
    float turned[max_rotated];
    std::uint8_t codes[group_size];
    for (std::size_t slot = 0; slot < tile_tokens; ++slot) {
      if (finite.is[slot]) rotate(heads + slot * head_dim, head_dim, turned);
      for (std::size_t g = 0; g < groups(head_dim); ++g) {
        auto& scale = const_cast<std::uint8_t&>(value_scales(tile, head_dim, g)[slot]);
        scale = Scale::no_number;
        if (!finite.is[slot]) continue;
        scale = Group::encode(turned + g * group_size, width(head_dim, g), codes);
        std::byte* const bytes = const_cast<std::byte*>(value_codes(tile, g)) + slot * value_code_bytes;
        for (std::size_t i = 0; i < width(head_dim, g); ++i) set_value_code(bytes, i, codes[i]);
      }
    }
  }
  static void load_key(const std::byte* tile, std::size_t slot, std::size_t head_dim, float* out) noexcept {
    for (std::size_t i = 0; i < head_dim; ++i) {
      const std::size_t g = i / group_size;
      const KvarnChannels channel = channels(tile, head_dim, g);
      const float factor = Scale::of(key_scales(tile, head_dim, g)[slot]);
      out[i] = channel.mean(i % group_size) +
               factor * level(key_code(tile, slot, i)) * channel.scale(i % group_size);
    }
  }
  static void load_value(const std::byte* tile, std::size_t slot, std::size_t head_dim, float* out) noexcept {
    for (std::size_t i = 0; i < head_dim; ++i) {
      const std::size_t g = i / group_size;
      const std::byte* const bytes = value_codes(tile, g) + slot * value_code_bytes;
      out[i] = Scale::of(value_scales(tile, head_dim, g)[slot]) * level(value_code(bytes, i % group_size));
    }
    rotate(out, head_dim, out);
  }

  // Specific to Kvarn: where what lies
  static constexpr std::size_t key_code_bytes = group_size * tile_tokens * bits / 8;  // of a group
  static constexpr std::size_t value_code_bytes = group_size * bits / 8;              // of a group of a token
  [[nodiscard]] static constexpr std::size_t groups(std::size_t head_dim) noexcept {
    return ceil_div(head_dim, group_size);
  }
  [[nodiscard]] static const std::byte* key_codes(const std::byte* tile, std::size_t g) noexcept {
    return tile + g * key_code_bytes;
  }
  [[nodiscard]] static KvarnChannels channels(const std::byte* tile, std::size_t head_dim,
                                              std::size_t g) noexcept {
    return KvarnChannels(channel_bytes(tile, head_dim, g));
  }
  [[nodiscard]] static const std::byte* channel_bytes(const std::byte* tile, std::size_t head_dim,
                                                      std::size_t g) noexcept {
    return tile + groups(head_dim) * key_code_bytes + g * group_size;
  }
  /// Token scales of a group, (16), as bits of Scale::of.
  [[nodiscard]] static const std::uint8_t* key_scales(const std::byte* tile, std::size_t head_dim,
                                                      std::size_t g) noexcept {
    return reinterpret_cast<const std::uint8_t*>(tile + groups(head_dim) * (key_code_bytes + group_size)) +
           g * tile_tokens;
  }
  [[nodiscard]] static const std::byte* value_codes(const std::byte* tile, std::size_t g) noexcept {
    return tile + g * tile_tokens * value_code_bytes;
  }
  [[nodiscard]] static const std::uint8_t* value_scales(const std::byte* tile, std::size_t head_dim,
                                                        std::size_t g) noexcept {
    return reinterpret_cast<const std::uint8_t*>(tile + groups(head_dim) * tile_tokens * value_code_bytes) +
           g * tile_tokens;
  }
  [[nodiscard]] static float level(int code) noexcept { return levels[code]; }

  /// Codes of keys. Four bits: byte `slot` of a plane has two neighbouring channels. Three bits: two planes
  /// have the low two bits of four channels each, the third one the upper bits of all eight.
  [[nodiscard]] static int key_code(const std::byte* tile, std::size_t slot, std::size_t i) noexcept {
    const std::byte* const octet = tile + i / 8 * 16 * bits + slot;
    const auto part = [&](std::size_t plane, std::size_t shift, int mask) {
      return std::to_integer<int>(octet[plane * 16]) >> shift & mask;
    };
    if constexpr (bits == 4) return part(i % 8 / 2, i % 2 * 4, 15);
    return part(i % 8 / 4, i % 4 * 2, 3) | part(2, i % 8, 1) << 2;
  }
  /// Codes of the 32 values of a group of one token. Four bits: byte j has values j and j + 16. Three bits:
  /// byte c of eight has the low two bits of values c, c + 16, c + 8 and c + 24, as in Q6_0, and bit i of the
  /// 32 bits after them the upper one of value i.
  [[nodiscard]] static int value_code(const std::byte* bytes, std::size_t i) noexcept {
    const auto part = [&](std::size_t at, std::size_t shift, int mask) {
      return std::to_integer<int>(bytes[at]) >> shift & mask;
    };
    if constexpr (bits == 4) return part(i % 16, i / 16 * 4, 15);
    return part(i % 8, pair_shift(i), 3) | part(8 + i / 8, i % 8, 1) << 2;
  }
  static void set_key_code(std::byte* tile, std::size_t slot, std::size_t i, int code) noexcept {
    std::byte* const octet = tile + i / 8 * 16 * bits + slot;
    if constexpr (bits == 4) {
      octet[i % 8 / 2 * 16] |= static_cast<std::byte>(code << (i % 2 * 4));
    } else {
      octet[i % 8 / 4 * 16] |= static_cast<std::byte>((code & 3) << (i % 4 * 2));
      octet[2 * 16] |= static_cast<std::byte>(code >> 2 << (i % 8));
    }
  }
  static void set_value_code(std::byte* bytes, std::size_t i, int code) noexcept {
    if constexpr (bits == 4) {
      bytes[i % 16] |= static_cast<std::byte>(code << (i / 16 * 4));
    } else {
      bytes[i % 8] |= static_cast<std::byte>((code & 3) << pair_shift(i));
      bytes[8 + i / 8] |= static_cast<std::byte>(code >> 2 << (i % 8));
    }
  }

 private:
  /// Tokens of which all numbers fit F16.
  struct Tokens {
    bool is[tile_tokens];
  };
  [[nodiscard]] static Tokens finite_tokens(const float* heads, std::size_t head_dim) noexcept {
    Tokens out;
    for (std::size_t slot = 0; slot < tile_tokens; ++slot) {
      const float* const head = heads + slot * head_dim;
      out.is[slot] = std::all_of(head, head + head_dim, [](float x) { return std::fabs(x) <= 65504.0f; });
    }
    return out;
  }
  [[nodiscard]] static constexpr std::size_t width(std::size_t head_dim, std::size_t g) noexcept {
    return std::min(group_size, head_dim - g * group_size);
  }
  [[nodiscard]] static constexpr std::size_t pair_shift(std::size_t i) noexcept {
    return i % 16 / 8 * 4 + i / 16 * 2;
  }

  /// A group of keys: the numbers of `width` channels, less their means, and the scale of each channel.
  class KeyGroup {
   public:
    KeyGroup(const float* heads, std::size_t head_dim, std::size_t width, const Tokens& finite) noexcept
        : width_(width), finite_(finite) {
      subtract_means(heads, head_dim);
      find_scales();
    }
    void store(std::byte* tile, std::size_t head_dim, std::size_t g) const noexcept {
      auto* const channel = const_cast<std::byte*>(channel_bytes(tile, head_dim, g));
      std::copy_n(channels_, group_size, channel);
      std::uint8_t codes[group_size];
      float scaled[group_size];
      for (std::size_t slot = 0; slot < tile_tokens; ++slot) {
        auto& scale = const_cast<std::uint8_t&>(key_scales(tile, head_dim, g)[slot]);
        scale = Scale::no_number;
        if (!finite_.is[slot]) continue;
        for (std::size_t i = 0; i < width_; ++i)
          scaled[i] = rest_[slot][i] / KvarnChannels(channels_).scale(i);
        scale = Group::encode(scaled, width_, codes);
        for (std::size_t i = 0; i < width_; ++i) set_key_code(tile, slot, g * group_size + i, codes[i]);
      }
    }

   private:
    static constexpr int turns = 4;  // of scales; eight turns have the same error to three digits

    void subtract_means(const float* heads, std::size_t head_dim) noexcept {
      float means[group_size] = {};
      std::size_t count = 0;
      for (std::size_t slot = 0; slot < tile_tokens; ++slot) {
        for (std::size_t i = 0; finite_.is[slot] && i < width_; ++i) means[i] += heads[slot * head_dim + i];
        count += finite_.is[slot] ? 1 : 0;
      }
      for (float& mean : means) mean /= static_cast<float>(std::max<std::size_t>(count, 1));
      std::uint8_t codes[group_size] = {};
      const unsigned scale = detail::LevelGroup<IQ4_NL::levels>::encode(means, width_, codes);
      for (std::size_t i = 0; i < group_size; ++i)
        channels_[i] = static_cast<std::byte>(codes[i] | (i < 8 ? (scale >> i & 1) << 7 : 0));
      for (std::size_t i = 0; i < width_; ++i) {
        const float mean = KvarnChannels(channels_).mean(i);
        for (std::size_t slot = 0; slot < tile_tokens; ++slot)
          rest_[slot][i] = finite_.is[slot] ? heads[slot * head_dim + i] - mean : 0.0f;
      }
    }
    /// By turns the mean square of a channel, with its tokens divided by theirs, and that of a token.
    void find_scales() noexcept {
      float token[tile_tokens], channel[group_size];  // inverse mean squares, mean squares
      std::fill_n(token, tile_tokens, 1.0f);
      for (int turn = 0; turn < turns; ++turn) {
        std::fill_n(channel, group_size, 0.0f);
        for (std::size_t slot = 0; slot < tile_tokens; ++slot) {
          for (std::size_t i = 0; i < width_; ++i)
            channel[i] += rest_[slot][i] * rest_[slot][i] * token[slot];
        }
        for (std::size_t slot = 0; slot < tile_tokens; ++slot) {
          float sum = 0;
          for (std::size_t i = 0; i < width_; ++i) {
            if (channel[i] > 0) sum += rest_[slot][i] * rest_[slot][i] / channel[i];
          }
          token[slot] = sum > 0 ? 1 / sum : 0.0f;
        }
      }
      const float top = *std::max_element(channel, channel + width_);
      for (std::size_t i = 0; i < width_; ++i) {
        int step = 0;  // a step is a factor of two of the mean square
        for (float border = top * 0.70710678f; step < KvarnChannels::max_step && channel[i] < border;
             border *= 0.5f)
          ++step;
        channels_[i] |= static_cast<std::byte>(step << 4);
      }
    }

    std::size_t width_;
    Tokens finite_;
    float rest_[tile_tokens][group_size];
    std::byte channels_[group_size];
  };
};

using KVARN4 =
    Kvarn<4>;  // 4.75 bits for a number of keys, 4.25 for one of values, if head_dim is a multiple of 32
using KVARN3 = Kvarn<3>;  // 3.75 and 3.25 bits, if head_dim is a multiple of 64

/// Whether E is one of them.
template <class E>
inline constexpr bool is_kvarn = false;
template <int bits>
inline constexpr bool is_kvarn<Kvarn<bits>> = true;

static_assert(KvTileElement<KVARN4> && KvTileElement<KVARN3> && !KvElement<KVARN4>);

}  // namespace mica::format
