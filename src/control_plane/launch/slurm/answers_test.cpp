#include "launch/slurm/answers.hpp"

#include <gtest/gtest.h>

#include "os/files.hpp"

namespace trainyard::launch {
namespace {

using Names = std::vector<std::string>;

// Recorded from Slurm 22.05.8.
std::string recorded(const std::string& name) {
  const auto text = os::read_file("slurm/testdata/" + name);
  EXPECT_TRUE(text) << name;
  return text ? *text : "";
}

TEST(SlurmAnswers, ReadsTheJobsOfSqueueThatAreOurs) {
  const auto jobs = read_jobs(recorded("squeue.txt"), "5eed", "root");
  ASSERT_TRUE(jobs) << jobs.error().message;
  ASSERT_EQ(jobs->size(), 4u) << "jobs of others are left out";
  const SlurmJob& first = jobs->front();
  EXPECT_EQ(first.id, 4u);
  EXPECT_EQ(first.state, "PENDING");
  EXPECT_EQ(first.reason, "Resources");
  EXPECT_EQ(first.expected_start, "2026-11-24T12:07:30");
  EXPECT_EQ(first.nodes, "");
  EXPECT_FALSE(first.preempted);
  EXPECT_EQ(jobs->at(2).nodes, "n[1-2]");
  EXPECT_TRUE(jobs->at(2).preempted);
  const SlurmJob& failed = jobs->back();
  EXPECT_EQ(failed.state, "NODE_FAIL");
  EXPECT_EQ(failed.nodes, "n[1-2]");
  EXPECT_TRUE(failed.comment.ends_with("why=a | b")) << failed.comment;
}

TEST(SlurmAnswers, ReadsNodesWithTheirCapacityAndState) {
  const auto nodes = read_nodes(recorded("nodes.txt"));
  ASSERT_TRUE(nodes) << nodes.error().message;
  ASSERT_EQ(nodes->size(), 3u);
  const SlurmNode& n1 = nodes->at(0);
  EXPECT_EQ(n1.name, "n1");
  EXPECT_EQ(n1.address, "10.219.77.11");
  EXPECT_EQ(n1.states, Names{"MIXED"});
  EXPECT_EQ(n1.partitions, (Names{"train", "short", "down"}));
  EXPECT_EQ(n1.cpus, 16);
  EXPECT_EQ(n1.cpus_allocated, 2);
  EXPECT_EQ(n1.memory_mib, 60'000);
  EXPECT_EQ(n1.memory_allocated_mib, 100);
  const SlurmNode& drained = nodes->at(1);
  EXPECT_EQ(drained.states, (Names{"IDLE", "DRAIN"}));
  EXPECT_EQ(drained.reason, "bad disk, see ticket=7 [root@2026-11-24T12:00:00]");
  EXPECT_TRUE(drained.responds);
  const SlurmNode& down = nodes->at(2);
  EXPECT_EQ(down.states, Names{"DOWN"});
  EXPECT_FALSE(down.responds);
  EXPECT_EQ(down.gpus, 4);
  EXPECT_EQ(down.gpus_allocated, 3);
}

TEST(SlurmAnswers, RejectsAnswersWithoutTheForm) {
  EXPECT_EQ(read_nodes("slurm_load_node error\n").error().kind, Kind::corrupt);
  EXPECT_TRUE(read_nodes("NodeName=n1 State=IDLE CPUTot=1"));
  EXPECT_EQ(read_nodes("NodeName=n1 State=IDLE CPUTot=many").error().kind, Kind::corrupt);
  EXPECT_EQ(read_nodes("NodeName=n1 State=IDLE CPUTot=-1").error().kind, Kind::corrupt);
  EXPECT_EQ(read_nodes("NodeName=n1 CPUTot=1").error().kind, Kind::corrupt)
      << "a line that was cut";
  EXPECT_TRUE(read_jobs("", "@", "root")->empty());
  EXPECT_TRUE(read_jobs("17|@|RUNNING\n|@||||||||\n", "@", "root")->empty());
}

TEST(SlurmAnswers, JoinsTheComponentsOfAJob) {
  const auto line = [](const char* id, const char* state, const char* nodes, const char* more) {
    return std::string(id) + "|@|" + state + "|None|N/A|" + nodes + "|root|" + more +
           "|a|trainyard/1 x\n";
  };
  const auto jobs =
      read_jobs(line("7+1", "RUNNING", "n2", "") + line("5", "RUNNING", "n9", "") +
                    line("7+0", "COMPLETED", "n1", "") +
                    line("7+2", "RUNNING", "n[3-4]", "2026-11-30T10:00:00") +
                    line("9+1", "RUNNING", "n5", "") + line("7+x", "RUNNING", "n5", "") +
                    line("7+999", "RUNNING", "n5", "") + line("8_1", "RUNNING", "n5", ""),
                "@", "root");
  ASSERT_TRUE(jobs) << jobs.error().message;
  ASSERT_EQ(jobs->size(), 2u);
  EXPECT_EQ(jobs->at(0).id, 5u);
  EXPECT_TRUE(jobs->at(0).component_nodes.empty());
  const SlurmJob& whole = jobs->at(1);
  EXPECT_EQ(whole.id, 7u);
  EXPECT_EQ(whole.nodes, "n1,n2,n[3-4]");
  EXPECT_EQ(whole.component_nodes, (Names{"n1", "n2", "n[3-4]"}));
  EXPECT_EQ(whole.state, "COMPLETING") << "its other components have not ended";
  EXPECT_TRUE(whole.preempted);
}

TEST(SlurmAnswers, ReadsTheIdOfASubmittedJob) {
  EXPECT_EQ(*read_submitted("17\n"), 17u);
  EXPECT_EQ(*read_submitted("17;far\n"), 17u);
  for (const char* wrong : {"", "0", "-3", "Submitted batch job 17"})
    EXPECT_EQ(read_submitted(wrong).error().kind, Kind::corrupt) << wrong;
}

TEST(SlurmAnswers, ExpandsHostLists) {
  EXPECT_EQ(*expand_host_list("n[1-3,07],login"), (Names{"n1", "n2", "n3", "n07", "login"}));
  EXPECT_EQ(*expand_host_list("n[09-11]-ib"), (Names{"n09-ib", "n10-ib", "n11-ib"}));
  EXPECT_EQ(*expand_host_list(""), Names{});
  for (const char* wrong : {"n[1-", "n[3-1]", "n[x]", "n[1][2]"})
    EXPECT_EQ(expand_host_list(wrong).error().kind, Kind::corrupt) << wrong;
  EXPECT_EQ(expand_host_list("n[0-4000000000]").error().kind, Kind::exhausted);
}

TEST(SlurmAnswers, CountsTheGpusOfAGresList) {
  EXPECT_EQ(gpus_of_gres("gpu:t4:4(S:0-1),gpu:2,nic:3"), 6);
  EXPECT_EQ(gpus_of_gres("gpu"), 1);
  EXPECT_EQ(gpus_of_gres("(null)"), 0);
  EXPECT_EQ(gpus_of_gres("gpus:4"), 0);
}

TEST(SlurmAnswers, TellsWhyAProgramFailed) {
  struct Case {
    const char* errors;
    Kind kind;
    const char* message;
  };
  const Case cases[] = {
      {"sbatch: error: invalid partition specified: nope\n"
       "sbatch: error: Batch job submission failed: Invalid partition name specified\n",
       Kind::invalid,
       "Slurm rejects the request: Batch job submission failed: Invalid partition name "
       "specified"},
      {"slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n",
       Kind::unavailable,
       "slurmctld does not answer: slurm_load_jobs error: Unable to contact slurm controller "
       "(connect failure)"},
      {"scancel: error: Kill job error on job id 4: Access/permission denied\n", Kind::denied,
       "Slurm denies access: Kill job error on job id 4: Access/permission denied"},
      {"sbatch: error: Batch job submission failed: Required node not available (down, drained or "
       "reserved)\n",
       Kind::exhausted,
       "Slurm rejects the request: Batch job submission failed: Required node not available (down, "
       "drained "
       "or reserved)"},
  };
  for (const Case& each : cases) {
    const Error error = error_of_slurm(each.errors);
    EXPECT_EQ(error.kind, each.kind) << each.errors;
    EXPECT_EQ(error.message, each.message);
  }
}

}  // namespace
}  // namespace trainyard::launch
