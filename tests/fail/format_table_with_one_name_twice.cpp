// SPDX-License-Identifier: Apache-2.0
//
// expect: mica::format::table: two formats of the list have the same id or the same name

#include "mica/format/lists.hpp"

struct Mine {
  static constexpr mica::format::Id id{0x4D494E45};
#ifdef MICA_FAIL
  static constexpr std::string_view name = "Q8_0";
#else
  static constexpr std::string_view name = "MINE";
#endif
  static constexpr std::size_t block_size = 32;
  struct Block {
    std::byte bytes[20];
  };
};

static_assert(mica::format::table<mica::Append<mica::format::All, Mine>>().find(Mine::id) != nullptr);
