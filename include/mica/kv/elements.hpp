// SPDX-License-Identifier: Apache-2.0
//
// The elements of keys and values: fixed by types, or chosen by name at run time. Kernels are visited once
// per call, for keys and for values separately, so that the number of instances is a sum and not a product.
// Elements that change with age: kv/aging.hpp.
//
// Names: an element's own, such as Q8_0, Q4_0_ROTATED, Q4_0_PLAIN; and the bare name of a block format, Q4_0,
// for one of its two forms. Files contain full names, so another choice here changes no file.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/visit.hpp"
#include "mica/format/concept.hpp"
#include "mica/format/lists.hpp"

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>

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
// clang-format on

/// Elements of which old tokens have others (kv/aging.hpp).
/// old(): their elements, visited in the same way. recent(): the minimum of tokens at the end that are not
/// old; 0: all tokens.
// clang-format off
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

namespace detail {

template <class K, class V>
struct FixedPair {
  template <class F>
  void visit_keys(F&& f) const noexcept {
    f(Type<K>{});
  }
  template <class F>
  void visit_values(F&& f) const noexcept {
    f(Type<V>{});
  }
};

}  // namespace detail

/// Elements as types.
template <KvElement K, KvElement V = K>
struct Fixed : detail::FixedPair<K, V> {};

namespace detail {

[[nodiscard]] inline bool same_name(std::string_view a, std::string_view b) noexcept {
  const auto upper = [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return upper(x) == upper(y); });
}

/// Whether the bare name of F means rotated heads. A bare name means the form that loses less on a real
/// model, if the difference is outside the interval of the measurement; else rotated heads (docs/kv.md,
/// bench/results/kv-rotation.json).
template <class F>
inline constexpr bool rotated_by_name = true;
template <>
inline constexpr bool rotated_by_name<format::Q5_1> = false;
template <>
inline constexpr bool rotated_by_name<format::Q4_1> = false;
template <>
inline constexpr bool rotated_by_name<format::IQ4_NL> = false;

/// Whether the bare name of a format means this element.
template <class E>
inline constexpr bool has_bare_name = false;
template <class F, bool rotates>
inline constexpr bool has_bare_name<format::BlockElement<F, rotates>> = rotates == rotated_by_name<F>;

/// The shortest name of an element: the bare name of its format if that means it, else its full name.
template <class E>
[[nodiscard]] constexpr std::string_view short_name() noexcept {
  if constexpr (has_bare_name<E>) {
    return E::Format::name;
  } else {
    return E::name;
  }
}

/// The short names of a list, for messages.
template <class List>
[[nodiscard]] std::string short_names() {
  std::string out;
  List::for_each([&](auto type) {
    if (!out.empty()) out += ' ';
    out += short_name<typename decltype(type)::type>();
  });
  return out;
}

/// The place of an element in a list, by its full name or its short one; the size of the list when none has
/// it.
template <class List>
[[nodiscard]] std::size_t place_of(std::string_view name) noexcept {
  std::size_t place = 0;
  bool found = false;
  List::for_each([&](auto type) {
    using E = typename decltype(type)::type;
    found = found || same_name(E::name, name) || same_name(short_name<E>(), name);
    place += found ? 0 : 1;
  });
  return place;
}

/// Two elements of a list.
template <class List>
struct ElementPair {
  std::size_t keys = 0;
  std::size_t values = 0;

  template <class F>
  void visit_keys(F&& f) const noexcept {
    visit(keys, f);
  }
  template <class F>
  void visit_values(F&& f) const noexcept {
    visit(values, f);
  }

 private:
  template <class F>
  static void visit(std::size_t place, F&& f) noexcept {
    visit_if(
        List{}, [i = std::size_t{0}, place](auto) mutable { return i++ == place; }, f);
  }
};

}  // namespace detail

/// Elements of a closed list, chosen by name, and others of Tiles that old tokens can have too:
///
///   "Q8_0"         for all tokens
///   "F16:Q4_0"     F16 for recent tokens, Q4_0 for old ones
///   "KIVI2"        of Tiles: "F16:KIVI2"
///   "Q4_0_PLAIN"   heads as they are; "Q4_0_ROTATED" rotated; "Q4_0" is one of the two
template <class List = format::AllKv, class Tiles = format::TileKv>
class AnyElements {
 public:
  /// F16 for both.
  AnyElements() : AnyElements("F16", "F16") {}

  /// Names as command lines spell them, upper or lower case; an unknown one raises an error that lists the
  /// known ones. recent: the min number of tokens at the end that are not old.
  AnyElements(std::string_view keys, std::string_view values, std::size_t recent = default_recent) {
    const Ages k = find("keys", keys), v = find("values", values);
    now_ = {k.recent, v.recent};
    old_ = {k.old, v.old};
    if (k.recent != k.old || v.recent != v.old) recent_ = std::max<std::size_t>(recent, 1);
  }

  template <class F>
  void visit_keys(F&& f) const noexcept {
    now_.visit_keys(f);
  }
  template <class F>
  void visit_values(F&& f) const noexcept {
    now_.visit_values(f);
  }

  // Required by AgingElements
  [[nodiscard]] const auto& old() const noexcept { return old_; }
  [[nodiscard]] std::size_t recent() const noexcept { return recent_; }

 private:
  using Olds = Concat<List, Tiles>;
  struct Ages {
    std::size_t recent;
    std::size_t old;
  };

  [[nodiscard]] static Ages find(std::string_view what, std::string_view name) {
    const std::size_t colon = name.find(':');
    const bool aging = colon != name.npos;
    const std::size_t old = detail::place_of<Olds>(aging ? name.substr(colon + 1) : name);
    const bool alone = !aging && old >= List::size;  // of tiles: recent tokens are in F16
    const std::size_t recent = detail::place_of<List>(alone ? "F16" : name.substr(0, colon));
    MICA_CHECK(old < Olds::size && recent < List::size, usage, "KV element '", escaped(name), "' for ", what,
               ": not known; choose one of ", detail::short_names<List>(), ", RECENT:OLD with two of them",
               Tiles::size == 0 ? "" : ", or for old tokens one of ", detail::short_names<Tiles>());
    return {recent, old};
  }

  detail::ElementPair<List> now_;
  detail::ElementPair<Olds> old_;
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

/// Bytes of one tile of a head, key part and value part; the value part starts at key_bytes().
template <KvElements E>
[[nodiscard]] std::size_t key_bytes(const E& elements, std::size_t head_dim) noexcept {
  std::size_t bytes = 0;
  elements.visit_keys([&](auto type) { bytes = decltype(type)::type::key_tile_bytes(head_dim); });
  return bytes;
}

template <KvElements E>
[[nodiscard]] std::size_t tile_bytes(const E& elements, std::size_t head_dim) noexcept {
  std::size_t bytes = key_bytes(elements, head_dim);
  elements.visit_values([&](auto type) { bytes += decltype(type)::type::value_tile_bytes(head_dim); });
  return round_up<std::size_t>(bytes, 64);
}

namespace detail {

/// "F16", or "F16:KIVI2" where old tokens have another element. Full names.
template <class Visit, class VisitOld>
[[nodiscard]] std::string name_of(Visit&& visit, VisitOld&& visit_old) {
  std::string now, old;
  visit([&](auto type) { now = decltype(type)::type::name; });
  visit_old([&](auto type) { old = decltype(type)::type::name; });
  return now == old ? now : now + ":" + old;
}

}  // namespace detail

/// The full names of the elements of keys, as in files of sessions.
template <KvElements E>
[[nodiscard]] std::string key_name(const E& elements) {
  const auto now = [&](auto f) { elements.visit_keys(f); };
  if constexpr (AgingElements<E>) {
    return detail::name_of(now, [&](auto f) { elements.old().visit_keys(f); });
  } else {
    return detail::name_of(now, now);
  }
}
template <KvElements E>
[[nodiscard]] std::string value_name(const E& elements) {
  const auto now = [&](auto f) { elements.visit_values(f); };
  if constexpr (AgingElements<E>) {
    return detail::name_of(now, [&](auto f) { elements.old().visit_values(f); });
  } else {
    return detail::name_of(now, now);
  }
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
