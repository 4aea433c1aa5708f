#include "cluster_setup/slurm_files.hpp"

#include <gtest/gtest.h>

namespace trainyard::cluster_setup {
namespace {

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

ClusterRecord two_machines() {
  ClusterRecord record;
  record.name = "lab", record.system = "debian 12";
  record.machines = {{"", "ws1", "10.0.0.1", 8, 30'000, {}, true},
                     {"bob@ws2", "ws2", "10.0.0.2", 16, 60'000, {{0, "t4"}, {2, "t4"}}, true}};
  return record;
}

TEST(SlurmConf, NamesTheControllerAndEachNode) {
  const std::string text = slurm_conf(two_machines());
  EXPECT_TRUE(has_line(text, "ClusterName=lab"));
  EXPECT_TRUE(has_line(text, "SlurmctldHost=ws1(10.0.0.1)"));
  EXPECT_TRUE(
      has_line(text, "NodeName=ws1 NodeAddr=10.0.0.1 CPUs=8 RealMemory=30000 State=UNKNOWN"));
  EXPECT_TRUE(has_line(text,
                       "NodeName=ws2 NodeAddr=10.0.0.2 CPUs=16 RealMemory=60000 "
                       "Gres=gpu:t4:2 State=UNKNOWN"));
  EXPECT_TRUE(has_line(
      text, "PartitionName=trainyard Nodes=ws1,ws2 Default=YES MaxTime=INFINITE State=UP"));
}

TEST(SlurmConf, LeavesOutAControllerThatRunsNoJobs) {
  ClusterRecord record = two_machines();
  record.machines[0].runs_jobs = false;
  const std::string text = slurm_conf(record);
  EXPECT_EQ(text.find("NodeName=ws1"), std::string::npos);
  EXPECT_NE(text.find("Nodes=ws2 "), std::string::npos);
  record.machines.pop_back();
  EXPECT_EQ(slurm_conf(record).find("PartitionName"), std::string::npos);
}

TEST(GresConf, HasEachDeviceFile) {
  const std::string text = gres_conf(two_machines());
  EXPECT_TRUE(has_line(text, "NodeName=ws2 Name=gpu Type=t4 File=/dev/nvidia0"));
  EXPECT_TRUE(has_line(text, "NodeName=ws2 Name=gpu Type=t4 File=/dev/nvidia2"));
  EXPECT_EQ(text.find("ws1"), std::string::npos);
}

TEST(GresConf, HasNoTypesIfOneIsUnknown) {
  ClusterRecord record = two_machines();
  record.machines[1].gpus = {{0, "t4"}, {1, ""}};
  EXPECT_EQ(gres_conf(record).find("Type="), std::string::npos);
  EXPECT_NE(slurm_conf(record).find("Gres=gpu:2 "), std::string::npos);
}

TEST(SlurmConf, CountsEachTypeOfGpu) {
  ClusterRecord record = two_machines();
  record.machines[1].gpus = {{0, "t4"}, {1, "a100"}, {2, "t4"}};
  EXPECT_NE(slurm_conf(record).find("Gres=gpu:a100:1,gpu:t4:2 "), std::string::npos);
}

// Another kernel reports a little more or less memory; the cluster is still the same.
TEST(Memory, KeepsItsNumberWhileItFits) {
  EXPECT_EQ(memory_for_jobs(64'300), 61'056);
  EXPECT_EQ(memory_for_jobs(1), 1);
  EXPECT_TRUE(memory_still_fits(61'056, 64'300));
  EXPECT_TRUE(memory_still_fits(61'056, 64'200));
  EXPECT_FALSE(memory_still_fits(61'056, 61'100)) << "too much";
  EXPECT_FALSE(memory_still_fits(61'056, 128'000)) << "memory was added";
  for (const int64_t memory : {1'000, 4'000, 64'300, 2'000'000})
    EXPECT_TRUE(memory_still_fits(memory_for_jobs(memory), memory)) << memory;
}

}  // namespace
}  // namespace trainyard::cluster_setup
