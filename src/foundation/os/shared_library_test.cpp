#include "os/shared_library.hpp"

#include <gtest/gtest.h>

namespace trainyard::os {
namespace {

TEST(SharedLibrary, FindsFunctionsByName) {
  const SharedLibrary file("libm.so.6");
  double (*cosine)(double) = nullptr;
  file.find(cosine, "cos");
  EXPECT_EQ(cosine(0), 1);
}

TEST(SharedLibrary, IsAvailableReportsAMissingLibrary) {
  EXPECT_TRUE(SharedLibrary::is_available("libm.so.6"));
  EXPECT_FALSE(SharedLibrary::is_available("libabsent.so.1"));
}

TEST(LateLibraryDeathTest, NamesTheMissingLibrary) {
  EXPECT_DEATH(SharedLibrary("libnobody.so.1"), "libnobody.so.1");
  EXPECT_DEATH(
      {
        void (*function)() = nullptr;
        SharedLibrary("libm.so.6").find(function, "nobodys_function");
      },
      "nobodys_function");
}

}  // namespace
}  // namespace trainyard::os
