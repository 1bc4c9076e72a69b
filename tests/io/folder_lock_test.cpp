// SPDX-License-Identifier: Apache-2.0

#include "io/temporary_folder.hpp"
#include "mica_tools/write/disk.hpp"

#include <doctest/doctest.h>

#include <memory>

namespace mica::test::folder_lock_test {

TEST_CASE("one writer holds a folder until it goes, and a folder that is not there is an error") {
  const TemporaryFolder folder;
  const auto lock = [&] { return io::FolderLock(folder.path("")); };
  auto first = std::make_unique<io::FolderLock>(lock());
  const Error second = refusal(lock);
  CHECK(second.code() == ErrorCode::failed);
  CHECK(mentions(second, "another process is writing there"));
  first.reset();
  first = std::make_unique<io::FolderLock>(lock());
  CHECK(folder.entries() == 0);
  const Error missing = refusal([&] { return io::FolderLock(folder.path("none")); });
  CHECK(missing.code() == ErrorCode::file);
  CHECK(mentions(missing, "none"));
}

}  // namespace mica::test::folder_lock_test
