#include "host/late_library.hpp"

#include <gtest/gtest.h>

namespace trainyard::host {
namespace {

TEST(LateLibrary, FindsFunctionsByName) {
  const LateLibrary file("libm.so.6");
  double (*cosine)(double) = nullptr;
  file.find(cosine, "cos");
  EXPECT_EQ(cosine(0), 1);
}

TEST(LateLibraryDeathTest, SaysWhatIsMissing) {
  EXPECT_DEATH(LateLibrary("libnobody.so.1"), "libnobody.so.1");
  EXPECT_DEATH(
      {
        void (*function)() = nullptr;
        LateLibrary("libm.so.6").find(function, "nobodys_function");
      },
      "nobodys_function");
}

}  // namespace
}  // namespace trainyard::host
