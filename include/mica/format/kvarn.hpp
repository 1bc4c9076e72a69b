// SPDX-License-Identifier: Apache-2.0
//
// Keys and values that are encoded a tile at a time, keys with scales on both axes of a tile: of channels and
// of tokens, found in turns until they no longer change, without calibration (after KVarN, L. K. Muller et
// al., arXiv 2606.03458, 2026). Four, three and two bits a code; groups are 32 dimensions of a head:
//
//   keys     value = mean + channel scale * token scale * level. A dimension has a mean and a channel scale
//            for the sixteen tokens, a group of a token has a token scale.
//   values   value = token scale * level, of heads that are rotated before (format/detail/rotation.hpp). Two
//            groups of a token share a scale.
//
//   keys     | codes [octet of channels][bits][16 bytes] | channels [dimension] | token scales [group][16] |
//   values   | codes [group][16 tokens][4 * bits bytes] | token scales [pair of groups][16] |
//
// Codes of a group are those of a trellis (format/detail/trellis.hpp): their neighbours decide which half of
// the levels they choose from. A channel takes a byte, and so does a token scale. Heads are padded to whole
// groups. If a token has a number that F16 cannot hold, all numbers of this token become NaN, and those of
// the other tokens do not.
//
// Differences from the paper: keys are not rotated, because with scales of their own channels this had a
// lower KL (docs/kv.md); tiles have sixteen tokens; codes have a trellis; channels of keys have a mean.
#pragma once

#include "mica/base/bits.hpp"
#include "mica/format/concept.hpp"
#include "mica/format/detail/rotation.hpp"
#include "mica/format/detail/trellis.hpp"
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
inline constexpr std::int8_t normal_levels5[32] = {-126, -104, -90, -78, -69, -61, -54, -47, -41, -35, -29,
                                                   -23,  -18,  -13, -8,  -3,  3,   8,   13,  18,  23,  29,
                                                   35,   41,   47,  54,  61,  69,  78,  90,  104, 126};
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

/// 32 or 64 numbers of a token as codes of a trellis and their scale.
template <const auto& levels>
struct TrellisGroups {
  using Codes = Trellis<levels>;
  static constexpr std::size_t max_size = 2 * Codes::size;
  /// The rms of numbers, in levels, whose squared error is about the least.
  static constexpr float rms_levels = sizeof(levels) == 32 ? 45.0f : sizeof(levels) == 16 ? 50.0f : 68.0f;

  /// Codes of `count` numbers, 1 to 64, of whole groups; returns the scale's bits. The least squared error of
  /// three scales. The scale that is returned leaves the part of the numbers that lies in their own direction
  /// as it is: the sum over many tokens is then no smaller than theirs.
  static std::uint8_t encode(const float* values, std::size_t count, std::uint8_t* codes) noexcept {
    float squares = 0;
    for (std::size_t i = 0; i < count; ++i) squares += values[i] * values[i];
    const int about = LevelScale::nearest(std::sqrt(squares / static_cast<float>(count)) * (1 / rms_levels));
    std::fill_n(codes, max_size, std::uint8_t{0});
    if (about == 0) return 0;
    float least = std::numeric_limits<float>::infinity();
    int best = about;
    for (int scale = std::max(about - 1, 1); scale <= std::min(about + 1, LevelScale::no_number - 1);
         ++scale) {
      const float factor = LevelScale::of(static_cast<std::uint8_t>(scale));
      float error = 0;
      for (std::size_t first = 0; first < count; first += Codes::size)
        error += search(values, count, first, 1 / factor).least_error();
      if (!(error * factor * factor < least)) continue;
      least = error * factor * factor;
      best = scale;
    }
    const float inverse = 1 / LevelScale::of(static_cast<std::uint8_t>(best));
    float product = 0;
    for (std::size_t first = 0; first < count; first += Codes::size) {
      Codes chosen = search(values, count, first, inverse);
      static_cast<void>(chosen.least_error());
      chosen.encode(codes + first);
      const TrellisPath path = Codes::path_of(codes + first);
      for (std::size_t i = first; i < std::min(count, first + Codes::size); ++i)
        product += values[i] * Codes::level(codes[i], path, i - first);
    }
    return product > 0 ? std::max<std::uint8_t>(LevelScale::nearest(squares / product), 1)
                       : static_cast<std::uint8_t>(best);
  }

 private:
  [[nodiscard]] static Codes search(const float* values, std::size_t count, std::size_t first,
                                    float inverse) noexcept {
    const std::size_t width = std::min(count - first, Codes::size);
    float scaled[Codes::size] = {};
    for (std::size_t i = 0; i < width; ++i) scaled[i] = values[first + i] * inverse;
    return Codes(scaled, width);
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
  static_assert(bits >= 2 && bits <= 4);
  static constexpr std::string_view name = bits == 4 ? "KVARN4" : bits == 3 ? "KVARN3" : "KVARN2";
  static constexpr int code_bits = bits;
  static constexpr std::size_t group_size = 32;
  static constexpr std::size_t groups_per_value_scale = 2;
  static constexpr const auto& levels = []() -> const auto& {
    if constexpr (bits == 4)
      return detail::normal_levels5;
    else if constexpr (bits == 3)
      return detail::normal_levels4;
    else
      return detail::normal_levels3;
  }
  ();
  using Codes = detail::Trellis<levels>;
  using Groups = detail::TrellisGroups<levels>;
  using Scale = detail::LevelScale;

  // Required by KvTileElement
  static std::size_t key_tile_bytes(std::size_t head_dim) noexcept {
    return round_up<std::size_t>(groups(head_dim) * (key_code_bytes + group_size + tile_tokens), 32);
  }
  static std::size_t value_tile_bytes(std::size_t head_dim) noexcept {
    const std::size_t scales = ceil_div(groups(head_dim), groups_per_value_scale);
    return round_up<std::size_t>((groups(head_dim) * value_code_bytes + scales) * tile_tokens, 32);
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
    std::uint8_t codes[Groups::max_size];
    for (std::size_t slot = 0; slot < tile_tokens; ++slot) {
      if (finite.is[slot]) rotate(heads + slot * head_dim, head_dim, turned);
      for (std::size_t g = 0; g < groups(head_dim); g += groups_per_value_scale) {
        auto& scale = const_cast<std::uint8_t&>(value_scales(tile, head_dim, g)[slot]);
        scale = Scale::no_number;
        if (!finite.is[slot]) continue;
        const std::size_t first = g * group_size, count = std::min(Groups::max_size, head_dim - first);
        scale = Groups::encode(turned + first, count, codes);
        for (std::size_t i = 0; i < round_up<std::size_t>(count, group_size); ++i)
          set_value_code(tile, slot, first + i, codes[i]);
      }
    }
  }
  static void load_key(const std::byte* tile, std::size_t slot, std::size_t head_dim, float* out) noexcept {
    for (std::size_t i = 0; i < head_dim; ++i) {
      const std::size_t g = i / group_size;
      const KvarnChannels channel = channels(tile, head_dim, g);
      const float factor = Scale::of(key_scales(tile, head_dim, g)[slot]);
      out[i] =
          channel.mean(i % group_size) + factor * key_level(tile, slot, i) * channel.scale(i % group_size);
    }
  }
  static void load_value(const std::byte* tile, std::size_t slot, std::size_t head_dim, float* out) noexcept {
    for (std::size_t i = 0; i < head_dim; ++i)
      out[i] = Scale::of(value_scales(tile, head_dim, i / group_size)[slot]) * value_level(tile, slot, i);
    rotate(out, head_dim, out);
  }

  // Specific to Kvarn: where what lies
  static constexpr std::size_t key_code_bytes = group_size * tile_tokens * bits / 8;  // of a group
  static constexpr std::size_t value_code_bytes = group_size * bits / 8;              // of a group of a token
  [[nodiscard]] static constexpr std::size_t groups(std::size_t head_dim) noexcept {
    return ceil_div(head_dim, group_size);
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
  /// Codes of a group of the values of one token.
  [[nodiscard]] static const std::byte* value_codes(const std::byte* tile, std::size_t g,
                                                    std::size_t slot) noexcept {
    return tile + (g * tile_tokens + slot) * value_code_bytes;
  }
  [[nodiscard]] static const std::uint8_t* value_scales(const std::byte* tile, std::size_t head_dim,
                                                        std::size_t g) noexcept {
    return reinterpret_cast<const std::uint8_t*>(tile + groups(head_dim) * tile_tokens * value_code_bytes) +
           g / groups_per_value_scale * tile_tokens;
  }
  [[nodiscard]] static float key_level(const std::byte* tile, std::size_t slot, std::size_t i) noexcept {
    detail::TrellisPath path;
    for (std::size_t octet = 0; octet < 4; ++octet) {
      const std::byte* const plane = key_plane(tile, i / group_size * group_size + octet * 8, bits - 1);
      path.bits |= std::to_integer<std::uint32_t>(plane[slot]) << (8 * octet);
    }
    return Codes::level(key_code(tile, slot, i), path, i % group_size);
  }
  [[nodiscard]] static float value_level(const std::byte* tile, std::size_t slot, std::size_t i) noexcept {
    const std::byte* const bytes = value_codes(tile, i / group_size, slot);
    detail::TrellisPath path;
    for (std::size_t j = 0; j < 4; ++j)
      path.bits |= std::to_integer<std::uint32_t>(bytes[path_at + j]) << (8 * j);
    return Codes::level(value_code(tile, slot, i), path, i % group_size);
  }

  /// Codes of keys, in planes of an octet of channels. The last plane has the paths of its eight channels. If
  /// codes have three or four bits, the first two have the low two upper bits of four channels each. If they
  /// have an even number of bits, the plane before the last has the highest bits of eight channels.
  [[nodiscard]] static unsigned key_code(const std::byte* tile, std::size_t slot, std::size_t i) noexcept {
    const auto part = [&](std::size_t plane, std::size_t shift, unsigned mask) {
      return std::to_integer<unsigned>(key_plane(tile, i, plane)[slot]) >> shift & mask;
    };
    unsigned code = part(bits - 1, i % 8, 1);
    if constexpr (bits >= 3) code |= part(i % 8 / 4, i % 4 * 2, 3) << 1;
    if constexpr (bits % 2 == 0) code |= part(bits - 2, i % 8, 1) << (bits - 1);
    return code;
  }
  /// Codes of 32 values of a token. The last four bytes have the paths, a bit each. If codes have three or
  /// four bits, byte c of the first eight has the low two upper bits of values c, c + 16, c + 8 and c + 24,
  /// as in Q6_0. If they have an even number of bits, the four bytes before the last have the highest bits.
  [[nodiscard]] static unsigned value_code(const std::byte* tile, std::size_t slot, std::size_t i) noexcept {
    const std::byte* const bytes = value_codes(tile, i / group_size, slot);
    const std::size_t at = i % group_size;
    const auto part = [&](std::size_t byte, std::size_t shift, unsigned mask) {
      return std::to_integer<unsigned>(bytes[byte]) >> shift & mask;
    };
    unsigned code = part(path_at + at / 8, at % 8, 1);
    if constexpr (bits >= 3) code |= part(at % 8, pair_shift(at), 3) << 1;
    if constexpr (bits % 2 == 0) code |= part(top_at + at / 8, at % 8, 1) << (bits - 1);
    return code;
  }
  /// Bytes of the paths of 32 values, and of their highest bits.
  static constexpr std::size_t path_at = value_code_bytes - 4, top_at = path_at - 4;

  static void set_key_code(std::byte* tile, std::size_t slot, std::size_t i, unsigned code) noexcept {
    const auto set = [&](std::size_t plane, std::size_t shift, unsigned value) {
      const_cast<std::byte*>(key_plane(tile, i, plane))[slot] |= static_cast<std::byte>(value << shift);
    };
    set(bits - 1, i % 8, code & 1);
    if constexpr (bits >= 3) set(i % 8 / 4, i % 4 * 2, code >> 1 & 3);
    if constexpr (bits % 2 == 0) set(bits - 2, i % 8, code >> (bits - 1));
  }
  static void set_value_code(std::byte* tile, std::size_t slot, std::size_t i, unsigned code) noexcept {
    auto* const bytes = const_cast<std::byte*>(value_codes(tile, i / group_size, slot));
    const std::size_t at = i % group_size;
    bytes[path_at + at / 8] |= static_cast<std::byte>((code & 1) << at % 8);
    if constexpr (bits >= 3) bytes[at % 8] |= static_cast<std::byte>((code >> 1 & 3) << pair_shift(at));
    if constexpr (bits % 2 == 0)
      bytes[top_at + at / 8] |= static_cast<std::byte>(code >> (bits - 1) << at % 8);
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
  /// The sixteen bytes of a plane of the octet of channel i.
  [[nodiscard]] static const std::byte* key_plane(const std::byte* tile, std::size_t i,
                                                  std::size_t plane) noexcept {
    return tile + (i / 8 * bits + plane) * tile_tokens;
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
      std::uint8_t codes[Groups::max_size];
      float scaled[group_size];
      for (std::size_t slot = 0; slot < tile_tokens; ++slot) {
        auto& scale = const_cast<std::uint8_t&>(key_scales(tile, head_dim, g)[slot]);
        scale = Scale::no_number;
        if (!finite_.is[slot]) continue;
        for (std::size_t i = 0; i < width_; ++i)
          scaled[i] = rest_[slot][i] / KvarnChannels(channels_).scale(i);
        scale = Groups::encode(scaled, width_, codes);
        for (std::size_t i = 0; i < group_size; ++i) set_key_code(tile, slot, g * group_size + i, codes[i]);
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

// Bits of a number of keys and of one of values, if head_dim is a multiple of 128:
using KVARN4 = Kvarn<4>;  // 4.75 and 4.125
using KVARN3 = Kvarn<3>;  // 3.75 and 3.125
using KVARN2 = Kvarn<2>;  // 2.75 and 2.125

/// Whether E is one of them.
template <class E>
inline constexpr bool is_kvarn = false;
template <int bits>
inline constexpr bool is_kvarn<Kvarn<bits>> = true;

static_assert(KvTileElement<KVARN4> && KvTileElement<KVARN3> && KvTileElement<KVARN2> && !KvElement<KVARN4>);

}  // namespace mica::format
