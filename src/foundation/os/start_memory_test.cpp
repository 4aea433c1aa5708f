#include "os/start_memory.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "base/testing/sanitized.hpp"

namespace trainyard::os {
namespace {

long resident_kibibytes(const std::string& kind) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == kind + ":") {
      long number = 0;
      status >> number;
      return number;
    }
  return 0;
}

TEST(StartMemory, IsReleasedAndMappedAgain) {
#ifdef TRAINYARD_SANITIZED
  GTEST_SKIP() << "the heap of a sanitizer returns no memory";
#endif
  {
    // Small pieces, which the heap does not return by itself: the last piece keeps those before it.
    std::vector<std::string> pieces(20'000, std::string(1000, 'x'));
  }
  const long heap = resident_kibibytes("RssAnon"), files = resident_kibibytes("RssFile");
  release_start_memory();
  EXPECT_LE(resident_kibibytes("RssAnon"), heap);
  EXPECT_LT(resident_kibibytes("RssFile"), files);
  // All code still works, including relocated code.
  EXPECT_EQ(std::vector<std::string>(3, "again").back(), "again");
  EXPECT_THROW((void)std::string("short").at(9), std::out_of_range);
}

}  // namespace
}  // namespace trainyard::os
