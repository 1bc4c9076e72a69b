// SPDX-License-Identifier: Apache-2.0
//
// Elements that change with age: recent tokens in one element, older ones in another.
//
//   a query at pos   | old | old | old | old | recent | recent | recent |    tiles of 16 tokens; at least the
//                                                            pos ^           last `recent` are not old
//
// When the last token of a tile is stored, the tile is stored a second time, as an old one. Which of the two
// forms a query sees depends on positions alone. Old tiles are in their own layer of the storage. Recent
// tiles are in a layer with a window, so a storage may drop those that no query sees any more.
#pragma once

#include "mica/format/kivi.hpp"
#include "mica/kv/elements.hpp"

#include <algorithm>

namespace mica::kv {

namespace detail {

template <class E>
struct OldElementsOf {
  using type = E;
};
template <KvOldElement E>
struct OldElementsOf<E> {
  using type = FixedOld<E>;
};

}  // namespace detail

/// Recent, Old: one element for keys and values, or Fixed and FixedOld for one each.
template <class Recent, class Old>
class Aging : public ElementsOf<Recent> {
 public:
  using RecentElements = ElementsOf<Recent>;                      // of recent tokens
  using OldElements = typename detail::OldElementsOf<Old>::type;  // of old ones
  static_assert(KvElements<RecentElements>,
                "mica::kv::Aging: Recent needs to be a mica::KvElement (format/concept.hpp)");
  static_assert(
      KvElements<OldElements>,
      "mica::kv::Aging: Old needs to be a mica::KvElement or a mica::KvTileElement (format/concept.hpp)");

  /// At least the last `recent` tokens, 1 or more, are in Recent.
  explicit Aging(std::size_t recent = default_recent) : recent_(std::max<std::size_t>(recent, 1)) {}

  // Required by AgingElements, beside visits of recent elements
  [[nodiscard]] const OldElements& old() const noexcept { return old_; }
  [[nodiscard]] std::size_t recent() const noexcept { return recent_; }

 private:
  OldElements old_;
  std::size_t recent_;
};

/// Tokens before which a query at `pos` sees old tiles; a multiple of 16.
[[nodiscard]] constexpr std::size_t aged_tokens(std::size_t pos, std::size_t recent) noexcept {
  return pos + 1 < recent ? 0 : (pos + 1 - recent) / format::tile_tokens * format::tile_tokens;
}

/// The maximum of tokens that the last query sees in the recent element.
[[nodiscard]] constexpr std::size_t recent_window(std::size_t recent) noexcept {
  return recent + format::tile_tokens - 1;
}

namespace detail {

/// Stores sixteen heads, (16, head_dim), as keys or as values.
template <bool keys, KvOldElement E>
void store_tile(std::byte* tile, std::size_t head_dim, const float* heads) noexcept {
  if constexpr (KvTileElement<E>) {
    keys ? E::store_keys(tile, head_dim, heads) : E::store_values(tile, head_dim, heads);
  } else {
    for (std::size_t slot = 0; slot < format::tile_tokens; ++slot) {
      const float* const head = heads + slot * head_dim;
      keys ? E::store_key(tile, slot, head_dim, head) : E::store_value(tile, slot, head_dim, head);
    }
  }
}

/// The key part or the value part of a tile. The same element keeps its bytes.
template <bool keys, AgingElements E>
void store_old_part(const E& elements, std::size_t head_dim, const std::byte* recent,
                    std::byte* old) noexcept {
  float heads[format::tile_tokens * format::max_rotated];
  std::string_view name;
  visit_part<keys>(elements, [&](auto type) {
    using R = typename decltype(type)::type;
    name = R::name;
    for (std::size_t slot = 0; slot < format::tile_tokens; ++slot) {
      float* const head = heads + slot * head_dim;
      keys ? R::load_key(recent, slot, head_dim, head) : R::load_value(recent, slot, head_dim, head);
    }
  });
  visit_part<keys>(elements.old(), [&](auto type) {
    using O = typename decltype(type)::type;
    if (O::name == name) {
      std::copy_n(recent, keys ? O::key_tile_bytes(head_dim) : O::value_tile_bytes(head_dim), old);
    } else {
      store_tile<keys, O>(old, head_dim, heads);
    }
  });
}

}  // namespace detail

/// Stores a full tile as an old one: its tokens are read from the recent element, the one copy that there is.
template <AgingElements E>
void store_old_tile(const E& elements, std::size_t head_dim, const std::byte* recent,
                    std::byte* old) noexcept {
  detail::store_old_part<true>(elements, head_dim, recent, old);
  detail::store_old_part<false>(elements, head_dim, recent + key_bytes(elements, head_dim),
                                old + key_bytes(elements.old(), head_dim));
}

static_assert(AgingElements<Aging<format::F16, format::KIVI2>> && AgingElements<AnyElements<>> &&
              !AgingElements<Fixed<format::F16>>);
static_assert(aged_tokens(14, 16) == 0 && aged_tokens(31, 16) == 16 && aged_tokens(30, 16) == 0);

}  // namespace mica::kv
