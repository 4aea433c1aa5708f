#include "launch/slurm/unconfirmed_submissions.hpp"

#include <gtest/gtest.h>

namespace trainyard::launch {
namespace {

TEST(UnconfirmedSubmissions, AreForgottenAfterTheSecondAnswerWithoutTheirJob) {
  const domain::AttemptId attempt{7, 1};
  uint64_t changes = 3;
  const auto listed = [](const domain::AttemptId&) { return true; };
  const auto absent = [](const domain::AttemptId&) { return false; };
  const auto note_change = [&] { return ++changes; };
  UnconfirmedSubmissions submissions;
  EXPECT_FALSE(submissions.contains(attempt));
  submissions.add(attempt, 3);
  submissions.apply(2, absent, note_change);
  EXPECT_TRUE(submissions.contains(attempt)) << "the answer to an earlier query";
  submissions.apply(3, absent, note_change);
  submissions.apply(3, absent, note_change);
  EXPECT_TRUE(submissions.contains(attempt)) << "the first answer without the job";
  EXPECT_EQ(changes, 4u);
  submissions.apply(4, absent, note_change);
  EXPECT_FALSE(submissions.contains(attempt));
  submissions.add(attempt, 5);
  submissions.apply(4, listed, note_change);
  EXPECT_FALSE(submissions.contains(attempt)) << "Slurm lists its job";
}

}  // namespace
}  // namespace trainyard::launch
