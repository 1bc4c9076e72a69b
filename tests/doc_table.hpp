// SPDX-License-Identifier: Apache-2.0
//
// Tables of the documentation that a test measures. The test prints its table always, and with the environment variable
// MICA_WRITE_DOCS set it also puts the table into the page, between two comments that name it:
//
//   <!-- table: NAME -->
//   ...
//   <!-- end -->

#pragma once

#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace mica::test {

/// Prints `table`, which is lines of Markdown, and puts it into docs/`page` where that was asked for.
inline void publish_table(const std::string& page, const std::string& name, const std::string& table) {
  std::printf("%s", table.c_str());
  if (std::getenv("MICA_WRITE_DOCS") == nullptr) return;
  const std::string path = std::string(MICA_SOURCE) + "/docs/" + page;
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  std::string all = text.str();
  const std::string opening = "<!-- table: " + name + " -->\n";
  const std::size_t start = all.find(opening);
  const std::size_t end = start == all.npos ? start : all.find("<!-- end -->", start);
  REQUIRE_MESSAGE(end != all.npos, path << " has no place for the table " << name);
  all.replace(start + opening.size(), end - start - opening.size(), table);
  std::ofstream(path) << all;
}

}  // namespace mica::test
