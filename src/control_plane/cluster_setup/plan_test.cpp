#include "cluster_setup/plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "cluster_setup/slurm_files.hpp"
#include "cluster_setup/testing/facts.hpp"

namespace trainyard::cluster_setup {
namespace {

Candidate candidate(const MachineFacts& facts, const std::string& destination) {
  Candidate machine;
  machine.destination = destination;
  machine.facts = facts;
  return machine;
}

// Returns what an inspection finds after a plan for these machines was carried out.
std::vector<Candidate> after(const Plan& plan, std::vector<Candidate> machines) {
  for (size_t i = 0; i < machines.size(); ++i) {
    MachineFacts& facts = *machines[i].facts;
    for (const std::string& name : node_packages()) facts.packages[name] = "1";
    facts.packages[kControllerPackage] = "1";
    for (const auto& [path, content] :
         std::map<std::string, std::string>{{kSlurmConf, slurm_conf(plan.record)},
                                            {kCgroupConf, cgroup_conf()},
                                            {kGresConf, gres_conf(plan.record)},
                                            {kMungeKey, "the key"}}) {
      facts.files[path] = digest_of(content);
      facts.written[path] = {digest_of(content), ""};
    }
    facts.services = {{"munge", ServiceState::running}, {"slurmd", ServiceState::running}};
    if (i == 0) facts.services["slurmctld"] = ServiceState::running;
    facts.member = plan.record.name + " " + machines[0].facts->hostname;
    if (i == 0) facts.record = to_text(plan.record);
    machines[i].known = plan.record.machines[i];
  }
  return machines;
}

struct Made {
  std::optional<ClusterRecord> record;
  std::vector<Candidate> machines;
};

// A cluster of ws1 (the controller) and ws2.
Made cluster_of_two() {
  const std::vector<Candidate> machines{candidate(plain_machine("ws1", 1), ""),
                                        candidate(plain_machine("ws2", 2), "bob@ws2")};
  const auto first = plan(std::nullopt, machines, {});
  return {first->record, after(*first, machines)};
}

std::vector<std::string> texts(const Plan& plan, const std::string& machine) {
  std::vector<std::string> found;
  for (const Step& step : plan.steps)
    if (plan.machines[step.machine].name == machine) found.push_back(step.text);
  return found;
}

TEST(ClusterPlan, OfANewMachineInstallsConfiguresAndStarts) {
  const auto made = plan(
      std::nullopt,
      {candidate(plain_machine("ws1", 1), ""), candidate(plain_machine("ws2", 2), "bob@ws2")}, {});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(texts(*made, "ws2"),
            (std::vector<std::string>{
                "make /var/lib/trainyard-cluster, with notes for undoing",
                "install munge, slurmd, slurm-client, crun, nftables, iproute2",
                "copy the controller's /etc/munge/munge.key", "write /etc/slurm/slurm.conf",
                "write /etc/slurm/cgroup.conf", "write /etc/slurm/gres.conf", "start munge",
                "start slurmd", "wait until Slurm can use the node"}));
  EXPECT_EQ(made->record.machines[1].destination, "bob@ws2");
  EXPECT_EQ(made->record.machines[1].address, "10.0.0.2");
}

TEST(ClusterPlan, HasItsStepsInOrder) {
  const auto made =
      plan(std::nullopt,
           {candidate(plain_machine("ws1", 1), ""), candidate(plain_machine("ws2", 2), "ws2")}, {});
  ASSERT_TRUE(made);
  EXPECT_TRUE(std::is_sorted(made->steps.begin(), made->steps.end(),
                             [](const Step& a, const Step& b) { return a.phase < b.phase; }));
}

TEST(ClusterPlan, IsEmptyWhenEverythingIsAsWanted) {
  const Made cluster = cluster_of_two();
  const auto again = plan(cluster.record, cluster.machines, {});
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE(again->steps.empty()) << again->steps.front().text;
  EXPECT_EQ(again->record, *cluster.record);
}

// The key is a secret: no script that a plan shows has it.
TEST(ClusterPlan, HasNoKey) {
  const auto made =
      plan(std::nullopt,
           {candidate(plain_machine("ws1", 1), ""), candidate(plain_machine("ws2", 2), "ws2")}, {});
  ASSERT_TRUE(made);
  for (const Step& step : made->steps)
    EXPECT_TRUE(step.content != Content::munge_key || step.script.empty());
}

TEST(ClusterPlan, StartsADaemonThatEnded) {
  Made cluster = cluster_of_two();
  cluster.machines[1].facts->services["slurmd"] = ServiceState::stopped;
  const auto made = plan(cluster.record, cluster.machines, {});
  ASSERT_TRUE(made);
  EXPECT_EQ(texts(*made, "ws2"),
            (std::vector<std::string>{"start slurmd", "wait until Slurm can use the node"}));
  EXPECT_TRUE(texts(*made, "ws1").empty());
}

// A former run was interrupted between writing a file and the restart.
TEST(ClusterPlan, RestartsADaemonWhoseFilesChanged) {
  Made cluster = cluster_of_two();
  cluster.machines[0].facts->pending = {"slurmctld"};
  const auto made = plan(cluster.record, cluster.machines, {});
  ASSERT_TRUE(made);
  EXPECT_EQ(texts(*made, "ws1"),
            (std::vector<std::string>{"restart slurmctld", "wait until Slurm can use the node"}));
}

TEST(ClusterPlan, WritesTheNewListOfNodesToAll) {
  Made cluster = cluster_of_two();
  cluster.machines.push_back(candidate(plain_machine("ws3", 3), "ws3"));
  const auto made = plan(cluster.record, cluster.machines, {});
  ASSERT_TRUE(made);
  EXPECT_EQ(texts(*made, "ws2"),
            (std::vector<std::string>{"write /etc/slurm/slurm.conf", "restart slurmd",
                                      "wait until Slurm can use the node"}));
  EXPECT_EQ(texts(*made, "ws1").front(), "note the machines of the cluster");
}

TEST(ClusterPlan, LeavesOutAMachineThatCannotJoin) {
  Made cluster = cluster_of_two();
  Candidate gone;
  gone.destination = "ws3", gone.problem = "ssh: No route to host";
  MachineFacts other_release = plain_machine("ws4", 4);
  other_release.system = "debian 13";
  MachineFacts foreign = plain_machine("ws5", 5);
  foreign.files[kSlurmConf] = digest_of("ClusterName=other");
  Candidate late = candidate(plain_machine("ws6", 6), "ws6");
  late.clock_seconds = -400;
  MachineFacts elsewhere = plain_machine("ws7", 7);
  elsewhere.member = "other head";
  for (const Candidate& each :
       {gone, candidate(other_release, "ws4"), candidate(foreign, "ws5"), late,
        candidate(elsewhere, "ws7"), candidate(plain_machine("ws2", 2), "alias-of-ws2"),
        candidate(plain_machine("localhost", 8), "ws8")})
    cluster.machines.push_back(each);
  const auto made = plan(cluster.record, cluster.machines, {});
  ASSERT_TRUE(made);
  EXPECT_TRUE(made->steps.empty()) << made->steps.front().text;
  const char* const problems[] = {"No route to host",           "the controller debian 12",
                                  "belongs to another cluster", "400 s behind",
                                  "remove it there first",      "is named already",
                                  "cannot be that of a node"};
  for (size_t i = 0; i < std::size(problems); ++i)
    EXPECT_NE(made->machines[i + 2].problem.find(problems[i]), std::string::npos)
        << made->machines[i + 2].problem;
}

TEST(ClusterPlan, KeepsANodeThatDoesNotAnswer) {
  Made cluster = cluster_of_two();
  cluster.machines[1].facts.reset();
  cluster.machines[1].problem = "ssh: connection timed out";
  cluster.machines.push_back(candidate(plain_machine("ws3", 3), "ws3"));
  const auto made = plan(cluster.record, cluster.machines, {});
  ASSERT_TRUE(made);
  EXPECT_EQ(made->record.machines.size(), 3u);
  EXPECT_EQ(made->record.machines[1], cluster.record->machines[1]);
  EXPECT_TRUE(texts(*made, "ws2").empty());
}

TEST(ClusterPlan, NamesAFileThatWasChangedByHand) {
  Made cluster = cluster_of_two();
  cluster.machines[1].facts->files[kGresConf] = digest_of("mine");
  const auto refused = plan(cluster.record, cluster.machines, {});
  ASSERT_TRUE(refused);
  EXPECT_TRUE(refused->steps.empty());
  EXPECT_NE(refused->machines[1].problem.find("/etc/slurm/gres.conf was changed by hand"),
            std::string::npos);
  Wish force;
  force.force = true;
  const auto forced = plan(cluster.record, cluster.machines, force);
  ASSERT_TRUE(forced);
  EXPECT_EQ(texts(*forced, "ws2").front(), "write /etc/slurm/gres.conf");
}

TEST(ClusterPlan, WithoutItsControllerIsAnError) {
  Candidate controller;
  controller.problem = "ssh: No route to host";
  EXPECT_EQ(plan(std::nullopt, {controller}, {}).error().message,
            "the controller cannot be used: ssh: No route to host");
  Wish wish;
  wish.controller_address = "10.9.9.9";
  const auto other = plan(std::nullopt, {candidate(plain_machine("ws1", 1), "")}, wish);
  EXPECT_EQ(other.error().kind, Kind::invalid);
  MachineFacts arch = plain_machine("ws1", 1);
  arch.system = "arch 1";
  EXPECT_FALSE(plan(std::nullopt, {candidate(arch, "")}, {}));
}

TEST(ClusterPlan, DrainsAndUndoesALeavingNodeFirst) {
  Made cluster = cluster_of_two();
  cluster.machines[1].leaves = true;
  const auto made = plan(cluster.record, cluster.machines, {});
  ASSERT_TRUE(made);
  ASSERT_EQ(texts(*made, "ws2").size(), 2u);
  EXPECT_EQ(made->steps[0].phase, Phase::drain);
  EXPECT_TRUE(made->steps[0].on_controller);
  EXPECT_EQ(made->steps[1].phase, Phase::undo);
  EXPECT_EQ(made->record.machines.size(), 1u);
  EXPECT_EQ(texts(*made, "ws1").front(), "note the machines of the cluster");
}

TEST(ClusterPlan, LetsADeadMachineLeaveOnlyIfItIsForgotten) {
  Made cluster = cluster_of_two();
  cluster.machines[1].facts.reset();
  cluster.machines[1].problem = "ssh: No route to host";
  cluster.machines[1].leaves = true;
  const auto refused = plan(cluster.record, cluster.machines, {});
  ASSERT_TRUE(refused);
  EXPECT_TRUE(refused->steps.empty());
  EXPECT_EQ(refused->record.machines.size(), 2u);
  Wish wish;
  wish.forget = true;
  const auto forgotten = plan(cluster.record, cluster.machines, wish);
  ASSERT_TRUE(forgotten);
  EXPECT_EQ(forgotten->record.machines.size(), 1u);
  EXPECT_EQ(texts(*forgotten, "ws2"),
            std::vector<std::string>{"drain the node, and see that no job runs there"});
  EXPECT_EQ(forgotten->machines[1].forgotten, "ssh: No route to host");
}

TEST(ClusterPlan, DissolvesTheControllerLast) {
  const Made cluster = cluster_of_two();
  Wish wish;
  wish.dissolve = true;
  const auto made = plan(cluster.record, cluster.machines, wish);
  ASSERT_TRUE(made);
  EXPECT_TRUE(made->record.machines.empty());
  EXPECT_EQ(made->steps.back().phase, Phase::dissolve);
  EXPECT_EQ(made->steps.back().machine, 0u);
  EXPECT_EQ(made->steps.size(), 4u) << "two drains, two undos";
}

TEST(ClusterPlan, ChoosesAddressesAtWhichOthersReachAMachine) {
  MachineFacts controller = plain_machine("ws1", 1);
  controller.addresses = {"192.168.7.1", "10.0.0.1"};
  MachineFacts node = plain_machine("ws2", 2);
  node.addresses = {"192.168.7.2", "10.0.0.2"};
  node.reached_at = "10.0.0.2", node.reached_from = "10.0.0.1";
  std::vector<Candidate> machines{candidate(controller, ""), candidate(node, "ws2")};
  const auto made = plan(std::nullopt, machines, {});
  ASSERT_TRUE(made);
  EXPECT_EQ(made->record.machines[0].address, "10.0.0.1");
  EXPECT_EQ(made->record.machines[1].address, "10.0.0.2");
  Wish wish;
  wish.controller_address = "192.168.7.1";
  EXPECT_EQ(plan(std::nullopt, machines, wish)->record.machines[0].address, "192.168.7.1");
  // Later it stays, though the machine is reached at another one.
  std::vector<Candidate> later = after(*made, machines);
  later[1].facts->reached_at = "192.168.7.2";
  EXPECT_TRUE(plan(made->record, later, {})->steps.empty());
}

TEST(ClusterPlan, OfAControllerWithoutJobsHasNoSlurmdThere) {
  Wish wish;
  wish.controller_runs_jobs = false;
  const auto made = plan(std::nullopt, {candidate(plain_machine("ws1", 1), "")}, wish);
  ASSERT_TRUE(made);
  for (const std::string& text : texts(*made, "ws1"))
    EXPECT_EQ(text.find("slurmd,"), std::string::npos) << text;
  EXPECT_EQ(texts(*made, "ws1").back(), "start slurmctld");
}

TEST(ClusterPlan, CopiesProgramsThatDiffer) {
  Made cluster = cluster_of_two();
  Wish wish;
  wish.programs = {{"trainyard-agent", digest_of("new")}};
  for (Candidate& machine : cluster.machines)
    machine.facts->files["/opt/trainyard/bin/trainyard-agent"] = digest_of("new");
  EXPECT_TRUE(plan(cluster.record, cluster.machines, wish)->steps.empty());
  cluster.machines[1].facts->files["/opt/trainyard/bin/trainyard-agent"] = digest_of("old");
  EXPECT_EQ(texts(*plan(cluster.record, cluster.machines, wish), "ws2"),
            std::vector<std::string>{"copy trainyard-agent to /opt/trainyard/bin"});
}

}  // namespace
}  // namespace trainyard::cluster_setup
