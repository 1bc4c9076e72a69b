// SPDX-License-Identifier: Apache-2.0
//
// The number by which a file names the format of a tensor, and tables of formats, which are made from type
// lists.
// Every format owns its number, its name and its sizes; GGUF's own numbers stand in the structs of this room.
#pragma once

#include "mica/base/type_list.hpp"

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <string_view>

namespace mica::format {

/// The number of a format in files. ggml counts from 0; formats that are not ggml's have numbers far from it.
struct Id {
  std::uint32_t value = 0;  // 0 is F32

  /// As errors say it: "39", and what is far from ggml's numbers as "0x33530001".
  [[nodiscard]] std::string text() const {
    char out[16];
    std::snprintf(out, sizeof out, value < 0x10000 ? "%u" : "0x%08X", static_cast<unsigned>(value));
    return out;
  }
  friend constexpr auto operator<=>(const Id&, const Id&) noexcept = default;
};

/// What a reader needs to know of a format.
struct Info {
  Id id;
  std::string_view name;
  std::uint16_t block_size = 1;   // values in a block
  std::uint16_t block_bytes = 0;  // bytes of a block

  /// Bytes of a row of `width` values, which are whole blocks.
  [[nodiscard]] constexpr std::size_t row_bytes(std::size_t width) const noexcept {
    return width / block_size * block_bytes;
  }
};

/// The formats that a file may have: a view of n constants. table<List>() makes one.
class Table {
 public:
  constexpr Table(const Info* infos, std::size_t n) noexcept : infos_(infos), size_(n) {}  // infos outlive it

  /// Whether there is an entry with that number; also where gcc 12 takes no find() for a constant (-fsanitize).
  [[nodiscard]] constexpr bool contains(Id id) const noexcept {
    for (const Info& info : *this) {
      if (info.id == id) return true;
    }
    return false;
  }
  /// The entry with that number, or whose name equals `text` in upper or lower case; null when there is none.
  [[nodiscard]] constexpr const Info* find(Id id) const noexcept {
    for (const Info& info : *this) {
      if (info.id == id) return &info;
    }
    return nullptr;
  }
  [[nodiscard]] constexpr const Info* find(std::string_view text) const noexcept {
    const auto upper = [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; };
    for (const Info& info : *this) {
      bool equal = info.name.size() == text.size();
      for (std::size_t k = 0; equal && k < text.size(); ++k) equal = upper(text[k]) == upper(info.name[k]);
      if (equal) return &info;
    }
    return nullptr;
  }
  /// For messages: a name, or the number of a format that is not here; and "Q4_K Q6_K ...".
  [[nodiscard]] std::string name(Id id) const {
    const Info* const info = find(id);
    return info == nullptr ? id.text() : std::string(info->name);
  }
  [[nodiscard]] std::string names() const {
    std::string out;
    for (const Info& info : *this) out.append(out.empty() ? "" : " ").append(info.name);
    return out;
  }

  [[nodiscard]] constexpr const Info* begin() const noexcept { return infos_; }
  [[nodiscard]] constexpr const Info* end() const noexcept { return infos_ + size_; }
  [[nodiscard]] constexpr std::size_t size() const noexcept { return size_; }

 private:
  const Info* infos_;
  std::size_t size_;
};

namespace detail {

template <class F>
inline constexpr Info info_of = [] {
  static_assert(F::block_size <= std::numeric_limits<std::uint16_t>::max());
  static_assert(sizeof(typename F::Block) <= std::numeric_limits<std::uint16_t>::max());
  return Info{F::id, F::name, F::block_size, sizeof(typename F::Block)};
}();

template <class List>
struct Infos;
template <class... F>
struct Infos<TypeList<F...>> {
  static constexpr std::array<Info, sizeof...(F)> value = {info_of<F>...};
};

}  // namespace detail

/// Whether each format of a list has a number and a name that no other has.
template <class List>
inline constexpr bool are_distinct = [] {
  const auto& infos = detail::Infos<List>::value;
  for (std::size_t i = 0; i < infos.size(); ++i) {
    const Table before(infos.data(), i);
    if (before.find(infos[i].id) != nullptr || before.find(infos[i].name) != nullptr) return false;
  }
  return true;
}();

/// The table of a list of formats. A member needs id, name, block_size and Block, and nothing else.
template <class List>
[[nodiscard]] constexpr Table table() noexcept {
  static_assert(are_distinct<List>,
                "mica::format::table: two formats of the list have the same id or the same name; each format "
                "needs its own (docs/policies/weights.md)");
  const auto& infos = detail::Infos<List>::value;
  return {infos.data(), infos.size()};
}

}  // namespace mica::format
