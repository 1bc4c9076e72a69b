// SPDX-License-Identifier: Apache-2.0

#include "mica/budget/account.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>

namespace account_test {

using mica::budget::Account;
using mica::budget::Accounts;

TEST_CASE("every account has a name of its own") {
  std::set<std::string_view> names;
  Accounts{}.for_each([&](Account account, std::uint64_t) { names.insert(mica::budget::name(account)); });
  CHECK(names.size() == mica::budget::account_count);
  CHECK(names.count("") == 0);
  CHECK(mica::budget::name(Account::io_buffers) == "io_buffers");
}

TEST_CASE("accounts add up") {
  Accounts accounts;
  accounts[Account::weights] = 7;
  accounts[Account::process] = 5;
  CHECK(accounts.total() == 12);
  CHECK(accounts != Accounts{});
}

}  // namespace account_test
