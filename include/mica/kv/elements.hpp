// SPDX-License-Identifier: Apache-2.0
//
// The elements of keys and values: fixed by types, or chosen at run time. An element that is chosen at run
// time is looked up once for each call of a kernel, for keys and for values separately. So a kernel is
// compiled once for each element, and not for each pair of them. Elements that change with age: kv/aging.hpp.
//
// Each element has a full name, such as Q8_0, Q4_0_ROTATED, Q4_0_PLAIN. The name of a block format alone,
// such as Q4_0, means one of its two forms. Files contain full names, so files stay valid if the short name
// gets the other form.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/visit.hpp"
#include "mica/format/concept.hpp"
#include "mica/format/lists.hpp"
#include "mica/kv/choice.hpp"

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace mica {

namespace detail {
struct AnyVisitor {
  template <class T>
  void operator()(T) const noexcept {}
};
}  // namespace detail

/// A choice of elements. visit_keys(f), visit_values(f): call f(Type<E>) with the element of keys, of values.
// clang-format off
template <class E>
concept KvElements = requires(const E& elements, detail::AnyVisitor f) {
  { elements.visit_keys(f) } noexcept;
  { elements.visit_values(f) } noexcept;
};

/// Elements of which old tokens have others (kv/aging.hpp).
/// old(): their elements, visited in the same way. recent(): the minimum of tokens at the end that are not
/// old; 0: all tokens.
template <class E>
concept AgingElements = KvElements<E> && requires(const E& elements, detail::AnyVisitor f) {
  { elements.old().visit_keys(f) } noexcept;
  { elements.old().visit_values(f) } noexcept;
  { elements.recent() } noexcept -> std::same_as<std::size_t>;
};
// clang-format on

namespace kv {

/// Default number of tokens that stay in the recent element: the window that KIVI was measured with.
inline constexpr std::size_t default_recent = 128;

/// Elements of old tokens as types: those of Fixed, and those that encode whole tiles.
template <KvOldElement K, KvOldElement V = K>
struct FixedOld {
  // Required by KvElements
  template <class F>
  void visit_keys(F&& f) const noexcept {
    f(Type<K>{});
  }
  template <class F>
  void visit_values(F&& f) const noexcept {
    f(Type<V>{});
  }
};

/// Elements as types.
template <KvElement K, KvElement V = K>
struct Fixed : FixedOld<K, V> {};

namespace detail {

[[nodiscard]] inline bool same_name(std::string_view a, std::string_view b) noexcept {
  const auto upper = [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char c, char d) { return upper(c) == upper(d); });
}

/// Whether the bare name of F means rotated heads. A bare name means the form that loses less on a real
/// model, if the difference is outside the interval of the measurement; else rotated heads (docs/kv.md,
/// bench/results/kv-rotation.json).
template <class F>
inline constexpr bool rotated_by_name = !TypeList<format::Q5_1, format::Q4_1, format::IQ4_NL>::contains<F>;

/// The shortest name of an element: the bare name of its format if that means it, else its full name.
template <class E>
[[nodiscard]] constexpr std::string_view short_name() noexcept {
  if constexpr (format::is_block_element<E>) {
    if (E::rotated == rotated_by_name<typename E::Format>) return E::Format::name;
  }
  return E::name;
}

template <class... Es>
[[nodiscard]] constexpr std::array<std::string_view, sizeof...(Es)> short_names(TypeList<Es...>) noexcept {
  return {short_name<Es>()...};
}

/// "F16 Q8_0", for messages.
[[nodiscard]] inline std::string listed(std::span<const std::string_view> names) {
  std::string out;
  for (const std::string_view name : names) out += join(out.empty() ? "" : " ", name);
  return out;
}

}  // namespace detail

/// Every element, in the order of Element.
using AllElements = Concat<format::AllKv, format::TileKv>;

namespace detail {

inline constexpr auto element_names = short_names(AllElements{});
static_assert(static_cast<std::size_t>(Element::kivi4) == format::AllKv::size);

}  // namespace detail

/// The short name of an element.
[[nodiscard]] constexpr std::string_view name(Element element) noexcept {
  return detail::element_names[static_cast<std::size_t>(element)];
}
/// "Q8_0"; "F16:Q4_0" where old tokens have another element.
[[nodiscard]] inline std::string name(const ElementChoice& choice) {
  const std::string_view recent = name(choice.recent), old = name(choice.old);
  return recent == old ? std::string(recent) : join(recent, ":", old);
}

/// The elements that a program's user names, in upper or lower case:
///
///   "Q8_0"         for all tokens
///   "F16:Q4_0"     F16 for recent tokens, Q4_0 for old ones
///   "KIVI2"        encodes whole tiles: "F16:KIVI2"
///   "Q4_0_PLAIN"   heads as they are; "Q4_0_ROTATED" rotated; "Q4_0" is one of the two
///
/// Raises ErrorCode::usage for others, with `what` they are for and the known ones.
[[nodiscard]] inline ElementChoice parse_elements(std::string_view text,
                                                  std::string_view what = "keys and values") {
  static constexpr auto full_names = names_of(AllElements{});
  const auto find = [](std::string_view one) {
    std::size_t i = 0;
    while (i < AllElements::size && !detail::same_name(full_names[i], one) &&
           !detail::same_name(detail::element_names[i], one)) {
      ++i;
    }
    return i;
  };
  const std::size_t colon = text.find(':');
  const bool ages = colon != text.npos;
  const std::size_t old = find(ages ? text.substr(colon + 1) : text);
  const std::size_t recent = ages ? find(text.substr(0, colon)) : 0;
  const auto& all = detail::element_names;
  constexpr std::size_t n_recent = format::AllKv::size;
  MICA_CHECK(old < all.size() && recent < n_recent, usage, "KV element '", escaped(text), "' for ", what,
             ": not known; choose one of ", detail::listed({all.data(), n_recent}),
             ", RECENT:OLD with two of them, or for old tokens one of ",
             detail::listed({all.data() + n_recent, all.size() - n_recent}));
  const auto old_tokens = static_cast<Element>(old);
  return ages ? ElementChoice(static_cast<Element>(recent), old_tokens) : ElementChoice(old_tokens);
}

namespace detail {

/// Two elements of a list, by their places.
template <class List>
struct ElementPair {
  std::size_t key = 0;
  std::size_t value = 0;

  template <class F>
  void visit_keys(F&& f) const noexcept {
    visit_at(List{}, key, f);
  }
  template <class F>
  void visit_values(F&& f) const noexcept {
    visit_at(List{}, value, f);
  }

  /// Those of a choice; raises ErrorCode::usage for one that the list does not have.
  template <KvElements E>
  [[nodiscard]] static ElementPair of(const E& elements) {
    ElementPair out{List::size, List::size};
    std::string_view keys, values;
    elements.visit_keys([&](auto type) { out.key = place_of(type), keys = decltype(type)::type::name; });
    elements.visit_values(
        [&](auto type) { out.value = place_of(type), values = decltype(type)::type::name; });
    MICA_CHECK(out.key < List::size && out.value < List::size, usage, "KV elements ", keys, " and ", values,
               ": choose one of ", listed(short_names(List{})));
    return out;
  }

 private:
  template <class E>
  [[nodiscard]] static constexpr std::size_t place_of(Type<E>) noexcept {
    return List::template place_of<E>;
  }
};

}  // namespace detail

/// Elements of a closed list, chosen at run time, and others of Tiles that old tokens can have too.
template <class List = format::AllKv, class Tiles = format::TileKv>
class AnyElements : detail::ElementPair<List> {
  using Recent = detail::ElementPair<List>;

 public:
  // Required by KvElements
  using Recent::visit_keys;
  using Recent::visit_values;

  /// F16 for both.
  AnyElements() : AnyElements(Element::f16, Element::f16) {}
  /// recent: min tokens at the end that are not old. Raises ErrorCode::usage for an element of no list.
  AnyElements(ElementChoice keys, ElementChoice values, std::size_t recent = default_recent) {
    const auto pair = [](Element k, Element v) {
      return detail::ElementPair<AllElements>{static_cast<std::size_t>(k), static_cast<std::size_t>(v)};
    };
    const bool ages = keys.recent != keys.old || values.recent != values.old;
    set(pair(keys.recent, values.recent), pair(keys.old, values.old),
        ages ? std::max<std::size_t>(recent, 1) : 0);
  }
  /// Elements as types, such as those of your own in lists of your own.
  template <KvElements E>
  explicit AnyElements(const E& elements) {
    if constexpr (AgingElements<E>) {
      set(elements, elements.old(), elements.recent());
    } else {
      set(elements, elements, 0);
    }
  }

  // Required by AgingElements
  [[nodiscard]] const auto& old() const noexcept { return old_; }
  [[nodiscard]] std::size_t recent() const noexcept { return recent_; }

 private:
  template <class Now, class Old>
  void set(const Now& now, const Old& old, std::size_t recent) {
    static_cast<Recent&>(*this) = Recent::of(now);
    old_ = old_.of(old);
    recent_ = recent;
  }

  detail::ElementPair<Concat<List, Tiles>> old_;
  std::size_t recent_ = 0;
};

namespace detail {

template <class E>
struct ElementsOf {
  using type = E;
};
template <KvElement E>
struct ElementsOf<E> {
  using type = Fixed<E>;
};

}  // namespace detail

/// What WithKvElement<E> means: E for keys and values both, or E itself when it already is a choice.
template <class E>
using ElementsOf = typename detail::ElementsOf<E>::type;

/// Bytes of the key part of one tile of a head; the value part starts there.
template <KvElements E>
[[nodiscard]] std::size_t key_bytes(const E& elements, std::size_t head_dim) noexcept {
  std::size_t bytes = 0;
  elements.visit_keys([&](auto type) { bytes = decltype(type)::type::key_tile_bytes(head_dim); });
  return bytes;
}

/// Bytes of the tile: both parts, and up to a multiple of 64.
template <KvElements E>
[[nodiscard]] std::size_t tile_bytes(const E& elements, std::size_t head_dim) noexcept {
  std::size_t bytes = key_bytes(elements, head_dim);
  elements.visit_values([&](auto type) { bytes += decltype(type)::type::value_tile_bytes(head_dim); });
  return round_up<std::size_t>(bytes, 64);
}

namespace detail {

/// Visits the element of keys, or that of values.
template <bool keys, KvElements E, class F>
void visit_part(const E& elements, F&& f) noexcept {
  if constexpr (keys) {
    elements.visit_keys(f);
  } else {
    elements.visit_values(f);
  }
}

template <bool keys, KvElements E>
[[nodiscard]] std::string part_name(const E& elements) {
  std::string now, old;
  visit_part<keys>(elements, [&](auto type) { now = decltype(type)::type::name; });
  if constexpr (AgingElements<E>) {
    visit_part<keys>(elements.old(), [&](auto type) { old = decltype(type)::type::name; });
  }
  return old.empty() || now == old ? now : now + ":" + old;
}

}  // namespace detail

/// Full names of the elements, as in files of sessions: "F16", or "F16:KIVI2" if old tokens have another one.
template <KvElements E>
[[nodiscard]] std::string key_name(const E& elements) {
  return detail::part_name<true>(elements);
}
template <KvElements E>
[[nodiscard]] std::string value_name(const E& elements) {
  return detail::part_name<false>(elements);
}

/// The full names of the elements that a file of a session names: "F16:Q4_0_ROTATED" for "F16:Q4_0". There a
/// bare name of a block format means rotated heads, whatever it means on a command line.
[[nodiscard]] inline std::string saved_name(std::string_view name) {
  const auto full = [](std::string_view one) {
    std::string out(one);
    format::AllKv::for_each([&](auto type) {
      using E = typename decltype(type)::type;
      if constexpr (format::is_block_element<E>) {
        if (E::rotated && E::Format::name == one) out = E::name;
      }
    });
    return out;
  };
  const std::size_t colon = name.find(':');
  return colon == name.npos ? full(name)
                            : join(full(name.substr(0, colon)), ":", full(name.substr(colon + 1)));
}

static_assert(KvElements<Fixed<format::F16>> && AgingElements<AnyElements<>>);

}  // namespace kv
}  // namespace mica
