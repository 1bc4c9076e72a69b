// SPDX-License-Identifier: Apache-2.0
//
// The threads of a program that has to end get another priority, but the one that is named.

#include "mica/runtime/detail/priority.hpp"

#include <doctest/doctest.h>

#include <future>
#include <thread>

#if defined(__linux__)

namespace mica::test::priority_test {

TEST_CASE("all threads get a priority, but the one that is named") {
  std::promise<int> number;
  std::promise<void> end;
  std::thread other([&] {
    number.set_value(mica::detail::thread_number());
    end.get_future().wait();
  });
  const int tid = number.get_future().get(), before = mica::detail::priority_of(0);
  CHECK(mica::detail::priority_of(tid) == before);
  if (before < 10) {
    mica::detail::set_priorities_but_of(mica::detail::thread_number(),
                                        before + 3);  // a lower one is allowed to anyone
    CHECK(mica::detail::priority_of(tid) == before + 3);
  }
  CHECK(mica::detail::priority_of(0) == before);
  end.set_value();
  other.join();
}

TEST_CASE("the priority of a session is a nice value, and stays if it is set to what it is") {
  const int nice = mica::detail::session_priority();
  CHECK(nice >= -20);
  CHECK(nice <= 19);
  mica::detail::set_session_priority(nice);
  CHECK(mica::detail::session_priority() == nice);
}

}  // namespace mica::test::priority_test

#endif
