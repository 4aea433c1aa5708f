#include <gtest/gtest.h>

#include "reconcile/state.hpp"

namespace trainyard::reconcile {
namespace {

StartAttempt start_of_job_7() {
  StartAttempt start;
  start.job = 7;
  start.hosts = {{"box", {}}};
  start.token = "t";
  return start;
}

Result<Command> read_back(const Command& command) {
  ledger::CommandRecord record;
  record.kind = kind_of(command);
  record.body = body_of(command);
  return command_of(record);
}

TEST(CommandRecords, StoreTheSelectedPreferenceOfAStart) {
  StartAttempt start = start_of_job_7();
  for (const uint32_t preference : {0u, 3u}) {
    start.preference = preference;
    const auto read = read_back(start);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(std::get<StartAttempt>(*read).preference, preference);
  }
}

TEST(CommandRecords, OfStartsWithoutPreferenceAreAsInEarlierVersions) {
  const Json body = body_of(start_of_job_7());
  EXPECT_FALSE(body.contains("preference")) << body.dump();
  const auto read = read_back(start_of_job_7());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(std::get<StartAttempt>(*read).preference, std::nullopt);
  EXPECT_EQ(std::get<StartAttempt>(*read).hosts.size(), 1u);
}

}  // namespace
}  // namespace trainyard::reconcile
