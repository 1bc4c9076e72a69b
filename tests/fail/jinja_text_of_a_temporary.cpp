// SPDX-License-Identifier: Apache-2.0
//
// expect: deleted

#include "mica_jinja/value.hpp"

using mica::jinja::Value;

Value printed();

std::size_t spaces() {
  std::size_t count = 0;
#ifdef MICA_FAIL
  for (const char c : printed().text()) count += c == ' ' ? 1 : 0;
#else
  const Value value = printed();
  for (const char c : value.text()) count += c == ' ' ? 1 : 0;
#endif
  return count;
}
