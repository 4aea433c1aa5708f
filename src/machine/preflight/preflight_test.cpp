#include "preflight/preflight.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <set>

#include "containers/cgroup.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::preflight {
namespace {

TEST(MachineCapacity, IsPositive) {
  const MachineCapacity capacity = machine_capacity();
  EXPECT_FALSE(capacity.name.empty());
  EXPECT_GE(capacity.cpus, 1);
  EXPECT_GT(capacity.memory_bytes, 16 << 20);
  EXPECT_GE(capacity.gpus, 0);
}

TEST(ExamineMachine, LeavesTheMachineUnchanged) {
  const os::TemporaryDirectory directory;
  std::set<std::string> names;
  for (const auto& finding : examine_machine(directory.path() + "/not/yet/there")) {
    std::printf("%-20s %d  %s%s%s\n", finding.name.c_str(), int(finding.state),
                finding.text.c_str(), finding.remedy.empty() ? "" : " -> ", finding.remedy.c_str());
    EXPECT_TRUE(names.insert(finding.name).second) << "duplicate finding: " << finding.name;
    EXPECT_FALSE(finding.text.empty()) << finding.name;
    const bool missing = finding.state == Examination::State::missing;
    EXPECT_TRUE(!missing || !finding.remedy.empty()) << finding.name;
  }
  for (const char* expected :
       {"OCI runtime", "namespaces", "cgroups", "FUSE", "GPUs", "disk", "nftables", "overlayfs"})
    EXPECT_TRUE(names.contains(expected)) << expected;
  for (const auto& name : containers::Cgroup::names())
    EXPECT_NE(name, "doctor." + std::to_string(::getpid()))
        << "it was created, and must be removed";
}

}  // namespace
}  // namespace trainyard::preflight
