// Provides helpers for the tests of this module: temporary directories in memory, and ASSERT_OK.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include "os/temporary_directory.hpp"

namespace trainyard::observe {

using os::TemporaryDirectory;

// A TemporaryDirectory is in memory if /dev/shm exists: the tests sync thousands of times, and do
// not depend on the behaviour of a real disk.
inline const bool kInMemory =
    ::access("/dev/shm", W_OK) == 0 && ::setenv("TMPDIR", "/dev/shm", 1) == 0;

#define ASSERT_OK(expression)                                               \
  do {                                                                      \
    const auto& result_ = (expression);                                     \
    ASSERT_TRUE(bool(result_)) << (result_ ? "" : result_.error().message); \
  } while (false)

}  // namespace trainyard::observe
