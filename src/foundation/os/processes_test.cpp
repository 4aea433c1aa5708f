#include "os/processes.hpp"

#include <gtest/gtest.h>

#include "os/temporary_directory.hpp"

namespace trainyard::os {
namespace {

TEST(Processes, StartsFindsAndEndsAProcess) {
  const TemporaryDirectory directory;
  MachineProcesses processes;
  const std::string variable = "TRAINYARD_PROCESSES_TEST";
  const auto started = processes.start(
      {{"sleep", "1000"}, {{variable, directory.path()}}, directory.path() + "/log"});
  ASSERT_TRUE(started) << started.error().message;
  const auto alive = processes.watch(*started);
  EXPECT_TRUE(processes.is_alive(*started));
  EXPECT_TRUE(alive());
  size_t found = 0;
  for (const auto& marked : processes.find_marked(variable))
    found += marked.value == directory.path() && marked.identity == *started;
  EXPECT_EQ(found, 1u);
  ASSERT_TRUE(processes.kill_and_wait(*started, 10s));
  EXPECT_FALSE(processes.is_alive(*started));
  EXPECT_FALSE(alive());
  EXPECT_TRUE(processes.kill_and_wait(*started, 10s)) << "again";
}

TEST(Processes, ReportsAProgramThatCannotBeStarted) {
  const TemporaryDirectory directory;
  const auto started = MachineProcesses().start(
      {{directory.path() + "/no-such-program"}, {}, directory.path() + "/log"});
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().kind, Kind::not_found);
}

}  // namespace
}  // namespace trainyard::os
