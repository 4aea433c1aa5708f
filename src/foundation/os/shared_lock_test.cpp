#include "os/shared_lock.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "os/temporary_directory.hpp"

namespace trainyard::os {
namespace {

TEST(SharedLock, ConflictsOnlyWithExclusiveLocks) {
  TemporaryDirectory directory;
  const std::string path = directory.path() + "/lock";
  {
    auto first = SharedLock::take(path), second = SharedLock::take(path);
    ASSERT_TRUE(first && second) << first.error().message;
    EXPECT_EQ(FileLock::take(path).error().kind, Kind::conflict);
  }
  const auto alone = FileLock::take(path);
  ASSERT_TRUE(alone) << alone.error().message;
  EXPECT_EQ(SharedLock::take(path).error().kind, Kind::conflict);
}

}  // namespace
}  // namespace trainyard::os
