#include "reconcile/guarded_text.hpp"

#include <gtest/gtest.h>

namespace trainyard::reconcile {
namespace {

bool everything(domain::JobNumber) { return true; }
bool nothing(domain::JobNumber) { return false; }
bool odd(domain::JobNumber job) { return job % 2 == 1; }

TEST(GuardedText, ShowsOnlyNamesThatTheCallerMaySee) {
  const std::string text = "held by " + guard(1, "training-job/a", "another job") + " (2), " +
                           guard(2, "training-job/b", "another job") + " (4)";
  EXPECT_EQ(reveal(text, everything), "held by training-job/a (2), training-job/b (4)");
  EXPECT_EQ(reveal(text, nothing), "held by another job (2), another job (4)");
  EXPECT_EQ(reveal(text, odd), "held by training-job/a (2), another job (4)");
}

TEST(GuardedText, KeepsTextWithoutGuards) {
  EXPECT_EQ(reveal("", nothing), "");
  EXPECT_EQ(reveal("waits for 2 more vCPU", nothing), "waits for 2 more vCPU");
}

TEST(GuardedText, RemovesIncompleteGuards) {
  const std::string whole = guard(1, "training-job/secret", "another job");
  for (size_t bytes = 1; bytes < whole.size(); ++bytes) {
    const std::string shown = reveal("held by " + whole.substr(0, bytes), everything);
    EXPECT_EQ(shown, "held by ") << bytes;
  }
  EXPECT_EQ(reveal("a\x01zz\x1f x\x1f y\x02z", everything), "az") << "not the number of a job";
}

}  // namespace
}  // namespace trainyard::reconcile
