#include "os/process_identity.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "os/process.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::os {
namespace {

TEST(ProcessIdentity, IdentifiesThisProcess) {
  const auto ours = identify(::getpid());
  ASSERT_TRUE(ours);
  EXPECT_TRUE(is_alive(*ours));
  EXPECT_FALSE(is_alive({ours->process, ours->started + 1}))
      << "another process with the same number";
  EXPECT_FALSE(identify(-1));
}

TEST(ProcessIdentity, FindsMarkedProcessesAndTheirChildren) {
  TemporaryDirectory directory;
  const auto ours = [&] {
    std::vector<ProcessIdentity> found;
    for (const auto& [identity, value] : find_marked("PROCESS_IDENTITY_TEST"))
      if (value == directory.path()) found.push_back(identity);
    return found;
  };
  const auto started =
      start_detached({"sh", "-c", "sleep 1000 & sleep 1000 & wait"},
                     {{"PROCESS_IDENTITY_TEST", directory.path()}}, directory.path() + "/log");
  ASSERT_TRUE(started);
  const auto identity = identify(*started);
  ASSERT_TRUE(identity);
  ASSERT_TRUE(kill_and_wait(*identity, 10s));
  EXPECT_FALSE(is_alive(*identity));
  for (const auto& child : ours()) EXPECT_TRUE(kill_and_wait(child, 10s));
  EXPECT_TRUE(ours().empty());
  EXPECT_TRUE(kill_and_wait(*identity, 10s)) << "again";
}

TEST(ProcessIdentity, ADetachedProcessLeadsASessionAndItsChildrenDoNot) {
  TemporaryDirectory directory;
  const auto started =
      start_detached({"sh", "-c", "sleep 1000 & wait"},
                     {{"PROCESS_SESSION_TEST", directory.path()}}, directory.path() + "/log");
  ASSERT_TRUE(started);
  const auto identity = identify(*started);
  ASSERT_TRUE(identity);
  EXPECT_TRUE(leads_session(*identity));
  EXPECT_FALSE(leads_session({identity->process, identity->started + 1}));
  std::vector<ProcessIdentity> children;
  for (int i = 0; i < 2000 && children.empty(); ++i) {
    std::this_thread::sleep_for(5ms);
    for (const auto& [each, value] : find_marked("PROCESS_SESSION_TEST"))
      if (value == directory.path() && each != *identity) children.push_back(each);
  }
  ASSERT_EQ(children.size(), 1u);
  EXPECT_FALSE(leads_session(children[0]));
  for (const auto& each : {*identity, children[0]}) EXPECT_TRUE(kill_and_wait(each, 10s));
  EXPECT_FALSE(leads_session(*identity)) << "it has ended";
}

TEST(ProcessIdentity, IgnoresMarksInOtherUserNamespaces) {
  TemporaryDirectory directory;
  const std::string ready = directory.path() + "/ready";
  const auto started = start_detached(
      {"unshare", "--user", "--map-root-user", "sh", "-c", ": > \"$0\"; exec sleep 1000", ready},
      {{"PROCESS_NAMESPACE_TEST", directory.path()}}, directory.path() + "/log");
  ASSERT_TRUE(started);
  const auto identity = identify(*started);
  ASSERT_TRUE(identity);
  for (int i = 0; i < 12'000 && !exists(ready) && is_alive(*identity); ++i)
    std::this_thread::sleep_for(5ms);
  if (!exists(ready)) GTEST_SKIP() << "this machine permits no user namespaces";
  for (const auto& marked : find_marked("PROCESS_NAMESPACE_TEST"))
    EXPECT_NE(marked.value, directory.path());
  EXPECT_TRUE(kill_and_wait(*identity, 10s));
}

TEST(ProcessIdentity, KillsNoOtherProcess) {
  auto ours = *identify(::getpid());
  ours.started += 1;
  EXPECT_TRUE(kill_and_wait(ours, 10s)) << "this process survives";
}

TEST(ProcessWatch, DetectsTheEndOfAProcess) {
  const TemporaryDirectory directory;
  const auto process = start_detached({"sleep", "1000"}, {}, directory.path() + "/log");
  ASSERT_TRUE(process);
  const auto identity = identify(*process);
  ASSERT_TRUE(identity);
  const ProcessWatch watch(*identity), same = watch;
  EXPECT_TRUE(watch.is_alive());
  ASSERT_TRUE(kill_and_wait(*identity, 10s));
  EXPECT_FALSE(watch.is_alive());
  EXPECT_FALSE(same.is_alive());
  EXPECT_FALSE(ProcessWatch(*identity).is_alive()) << "a process that had already ended";
  EXPECT_FALSE(ProcessWatch().is_alive());
  auto another = *own_identity();
  EXPECT_TRUE(ProcessWatch(another).is_alive());
  another.started++;
  EXPECT_FALSE(ProcessWatch(another).is_alive()) << "the same number with another start time";
}

}  // namespace
}  // namespace trainyard::os
