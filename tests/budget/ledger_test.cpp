// SPDX-License-Identifier: Apache-2.0

#include "mica/budget/ledger.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace ledger_test {

using mica::budget::Account;
using mica::budget::Accounts;
using mica::budget::Ledger;

TEST_CASE("a booking that would pass the ceiling is refused and changes nothing") {
  Ledger ledger(100);
  CHECK(ledger.book(Account::weights, 60));
  CHECK_FALSE(ledger.book(Account::kv, 41));
  CHECK(ledger.used() == 60);
  CHECK(ledger.used(Account::kv) == 0);
  CHECK(ledger.peak(Account::kv) == 0);
  CHECK(ledger.book(Account::kv, 40));
  CHECK(ledger.left() == 0);
  CHECK(ledger.book(Account::kv, 0));
  CHECK_FALSE(ledger.book(Account::kv, 1));
}

TEST_CASE("a booking of any size cannot wrap the ledger") {
  Ledger bounded(1000);
  CHECK(bounded.book(Account::kv, 999));
  CHECK_FALSE(bounded.book(Account::kv, UINT64_MAX));
  CHECK_FALSE(bounded.book(Account::kv, UINT64_MAX - 998));

  Ledger open;
  CHECK(open.limit() == Ledger::unlimited);
  CHECK(open.book(Account::weights, UINT64_MAX - 1));
  CHECK(open.book(Account::weights, 1));
  CHECK_FALSE(open.book(Account::weights, 1));
}

TEST_CASE("the bytes of the process are booked by the first model and released with the last one") {
  Ledger ledger(100);
  CHECK_FALSE(ledger.enter_process(101));
  CHECK(ledger.used() == 0);
  CHECK(ledger.enter_process(60));
  CHECK(ledger.enter_process(60));
  ledger.leave_process();
  CHECK(ledger.used(Account::process) == 60);
  ledger.leave_process();
  CHECK(ledger.used() == 0);

  CHECK(ledger.book(Account::process, 40));  // by the program itself
  CHECK(ledger.enter_process(70));
  CHECK(ledger.used() == 40);
  ledger.leave_process();
  CHECK(ledger.used() == 40);
}

TEST_CASE("released bytes can be booked again, and peaks remember") {
  Ledger ledger(100);
  REQUIRE(ledger.book(Account::activations, 80));
  ledger.release(Account::activations, 80);
  REQUIRE(ledger.book(Account::kv, 50));
  CHECK(ledger.used() == 50);
  CHECK(ledger.peak() == 80);
  CHECK(ledger.peak(Account::activations) == 80);
  CHECK(ledger.peak(Account::kv) == 50);
  CHECK(ledger.peaks().total() == 130);
  CHECK(ledger.accounts()[Account::kv] == 50);
  CHECK(ledger.accounts().total() == 50);
}

TEST_CASE("threads that compete never pass the ceiling together") {
  constexpr std::uint64_t limit = 1000;
  Ledger ledger(limit);
  std::atomic<bool> passed{false};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const auto account = static_cast<Account>(t);
      for (std::uint64_t i = 0; i < 5000; ++i) {
        const std::uint64_t bytes = 1 + (i * 37 + t * 101) % 400;
        if (!ledger.book(account, bytes)) continue;
        if (ledger.used() > limit) passed = true;
        ledger.release(account, bytes);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_FALSE(passed.load());
  CHECK(ledger.used() == 0);
  CHECK(ledger.accounts() == Accounts{});
  CHECK(ledger.peak() <= limit);
  CHECK(ledger.peak() > 0);
}

TEST_CASE("exactly as many units are granted to competing threads as there are") {
  Ledger ledger(1000);
  std::atomic<int> granted{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        if (ledger.book(Account::kv, 1)) granted.fetch_add(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(granted.load() == 1000);
  CHECK(ledger.used(Account::kv) == 1000);
}

}  // namespace ledger_test
