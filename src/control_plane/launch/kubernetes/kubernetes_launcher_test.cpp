#include "launch/kubernetes/kubernetes_launcher.hpp"

#include <gtest/gtest.h>

#include "base/testing/test_clock.hpp"
#include "base/text.hpp"
#include "launch/testing/locked_random.hpp"
#include "launch/testing/memory_kubernetes.hpp"

namespace trainyard::launch {
namespace {

class KubernetesLauncherTest : public testing::Test {
 protected:
  KubernetesLauncherTest() {
    settings_.jobs.mark = "3fa91c";
    settings_.jobs.image = "trainyard";
    settings_.jobs.program_directory = "/opt/trainyard";
    settings_.jobs.pool = *networks::parse_subnet("10.201.0.0/16");
    settings_.seal = [](const std::string& token, const std::string&) { return "own/" + token; };
    settings_.unseal = [](const std::string& sealed, const std::string&) -> Result<std::string> {
      if (!sealed.starts_with("own/")) return corrupt("of another key");
      return sealed.substr(4);
    };
    settings_.why_not = [this] { return why_not_; };
    for (const char* name : {"n1", "n2"}) {
      KubernetesNode node;
      node.name = name;
      node.ready = true;
      node.allocatable = {8000, int64_t{1} << 30};
      cluster_.nodes.push_back(node);
    }
  }

  Result<std::unique_ptr<Launcher>> make() {
    return make_kubernetes(settings_, cluster_.client(), clock_, random_, KubernetesThreads::none);
  }

  std::unique_ptr<Launcher> server() {
    auto made = make();
    EXPECT_TRUE(made) << made.error().message;
    return std::move(*made);
  }

  static Gang gang_of(size_t hosts) {
    Gang gang;
    gang.attempt = {1, 1};
    gang.token = "t1";
    for (size_t host = 0; host < hosts; ++host) gang.members.push_back({{"n1", {}}, "order"});
    return gang;
  }

  KubernetesPod& pod_of(domain::HostIndex host) {
    for (auto& [name, pod] : cluster_.pods)
      if (pod.host == host) return pod;
    ADD_FAILURE() << "host " << host << " has no pod";
    return cluster_.pods["none"];
  }

  static std::string note_of(Launcher& launcher, domain::HostIndex host) {
    for (const Agent& agent : launcher.list())
      if (agent.host == host) return (agent.alive ? "alive: " : "dead: ") + agent.note;
    return "not listed";
  }

  TestClock clock_;
  SeededRandom random_{1};
  KubernetesSettings settings_;
  MemoryKubernetes cluster_;
  std::string why_not_;
};

TEST_F(KubernetesLauncherTest, ShowsTheReasonOfTheFirstPendingPodOfAGang) {
  cluster_.phase_of_new_pods = "Pending";
  const auto launcher = server();
  ASSERT_TRUE(launcher->ensure(gang_of(2)));
  pod_of(0).phase = "Running";
  pod_of(1).reason = "Unschedulable: 0/2 nodes are available: 2 Insufficient cpu.";
  for (const domain::HostIndex host : {0u, 1u})
    EXPECT_EQ(note_of(*launcher, host),
              "alive: Kubernetes pod trainyard-3fa91c-j1a1-1-x is Pending (Unschedulable: 0/2 "
              "nodes are available: 2 Insufficient cpu.)");
  pod_of(1).phase = "Running";
  pod_of(1).reason = "";
  EXPECT_EQ(note_of(*launcher, 0), "alive: ");
}

TEST_F(KubernetesLauncherTest, CountsAHostWithoutAPodYetAsAlive) {
  const auto launcher = server();
  ASSERT_TRUE(launcher->ensure(gang_of(1)));
  cluster_.pods.clear();
  EXPECT_EQ(note_of(*launcher, 0), "alive: Kubernetes Job trainyard-3fa91c-j1a1 has no pod for it");
}

TEST_F(KubernetesLauncherTest, ShowsWhyAHostHasNoPod) {
  const auto launcher = server();
  ASSERT_TRUE(launcher->ensure(gang_of(2)));
  cluster_.pods.clear();
  cluster_.no_pods_reason = "FailedCreate: exceeded quota";
  const std::string without = "alive: Kubernetes Job trainyard-3fa91c-j1a1 has no pod for it";
  EXPECT_EQ(note_of(*launcher, 0), without) << "it may be created soon";
  clock_.advance(2s);
  EXPECT_EQ(note_of(*launcher, 0), without + " (FailedCreate: exceeded quota)");
  cluster_.no_pods_reason = "FailedCreate: denied by a webhook";
  EXPECT_EQ(note_of(*launcher, 1), without + " (FailedCreate: exceeded quota)");
  EXPECT_EQ(cluster_.event_requests, 1);
  clock_.advance(10s);
  EXPECT_EQ(note_of(*launcher, 1), without + " (FailedCreate: denied by a webhook)");
  cluster_.away = "no route to host";
  clock_.advance(10s);
  EXPECT_EQ(note_of(*launcher, 1), without + " (FailedCreate: denied by a webhook)");
  cluster_.away = "";
  clock_.advance(5s);
  (void)launcher->list();
  EXPECT_EQ(cluster_.event_requests, 2) << "soon after a failure";
  clock_.advance(5s);
  (void)launcher->list();
  EXPECT_EQ(cluster_.event_requests, 3);
}

TEST_F(KubernetesLauncherTest, ShowsWhyAHostHasNoPodAfterTheEndOfAnother) {
  const auto launcher = server();
  ASSERT_TRUE(launcher->ensure(gang_of(2)));
  pod_of(0).phase = "Succeeded";
  cluster_.jobs.begin()->second.ended_hosts = {0};
  std::erase_if(cluster_.pods, [](const auto& pod) { return pod.second.host == 1; });
  cluster_.no_pods_reason = "FailedCreate: exceeded quota";
  (void)launcher->list();
  clock_.advance(2s);
  EXPECT_EQ(note_of(*launcher, 1),
            "alive: Kubernetes Job trainyard-3fa91c-j1a1 has no pod for it (FailedCreate: exceeded "
            "quota)");
}

TEST_F(KubernetesLauncherTest, CountsAHostWithoutAPodAsDeadOnceTheJobHasCountedIt) {
  const auto launcher = server();
  ASSERT_TRUE(launcher->ensure(gang_of(2)));
  cluster_.pods.clear();
  KubernetesJob& job = cluster_.jobs.begin()->second;
  job.ended_hosts = {1};
  EXPECT_EQ(note_of(*launcher, 0).substr(0, 5), "alive");
  EXPECT_EQ(note_of(*launcher, 1).substr(0, 4), "dead");
  job.ended = true;
  job.reason = "FailedIndexes: Job has failed indexes";
  EXPECT_EQ(note_of(*launcher, 0),
            "dead: Kubernetes Job trainyard-3fa91c-j1a1 has failed (FailedIndexes: Job has failed "
            "indexes)");
}

TEST_F(KubernetesLauncherTest, CountsADeletedPodAsAliveUntilItsNodeHasEndedIt) {
  const auto launcher = server();
  ASSERT_TRUE(launcher->ensure(gang_of(1)));
  pod_of(0).deleting = true;
  EXPECT_EQ(note_of(*launcher, 0), "alive: ");
  cluster_.nodes[0].ready = false;
  cluster_.nodes[0].reason = "NodeStatusUnknown: Kubelet stopped posting node status.";
  (void)launcher->machines();
  EXPECT_EQ(note_of(*launcher, 0),
            "dead: Kubernetes pod trainyard-3fa91c-j1a1-0-x is Running and was deleted; node n1 is "
            "not ready (NodeStatusUnknown: Kubelet stopped posting node status.)");
}

TEST_F(KubernetesLauncherTest, RemembersThatAPodWasPreemptedAfterItHasVanished) {
  const auto launcher = server();
  ASSERT_TRUE(launcher->ensure(gang_of(2)));
  KubernetesPod& pod = pod_of(1);
  pod.deleting = pod.preempted = true;
  pod.reason = "PreemptionByScheduler: preempting to accommodate a higher priority pod";
  const std::string note =
      "Kubernetes pod trainyard-3fa91c-j1a1-1-x is Running and was deleted "
      "(PreemptionByScheduler: preempting to accommodate a higher priority pod)";
  EXPECT_EQ(note_of(*launcher, 1), "alive: " + note) << "its node has not ended it";
  EXPECT_TRUE(launcher->list().at(1).preempted);
  cluster_.pods.erase(pod.name);
  cluster_.jobs.begin()->second.ended_hosts = {1};
  const auto agents = launcher->list();
  ASSERT_EQ(agents.size(), 2u);
  EXPECT_FALSE(agents[0].preempted);
  EXPECT_FALSE(agents[1].alive);
  EXPECT_TRUE(agents[1].preempted);
  EXPECT_EQ(agents[1].note, note);
}

TEST_F(KubernetesLauncherTest, UsesTheLaterOfTwoPodsOfAHost) {
  const auto launcher = server();
  ASSERT_TRUE(launcher->ensure(gang_of(1)));
  KubernetesPod second = pod_of(0);
  pod_of(0).phase = "Failed";
  second.name += "y";
  second.created = "2026-11-24T12:00:00Z";
  cluster_.pods[second.name] = second;
  EXPECT_EQ(note_of(*launcher, 0), "alive: ");
}

TEST_F(KubernetesLauncherTest, OffersUsableNodesLessTheUseOfOthers) {
  cluster_.used_by_others["n1"] = {1500, 1 << 20};
  const auto launcher = server();
  auto machines = launcher->machines();
  ASSERT_EQ(machines.size(), 2u);
  EXPECT_EQ(machines[0].cpus, 6.5);
  EXPECT_EQ(machines[0].memory_bytes, (int64_t{1} << 30) - (1 << 20));
  EXPECT_EQ(machines[1].cpus, 8);
  cluster_.nodes[0].schedulable = false;
  cluster_.nodes[1].ready = false;
  EXPECT_TRUE(launcher->machines().empty());
  cluster_.nodes[0].schedulable = true;
  cluster_.used_by_others["n1"].cpus_milli = 9000;
  EXPECT_TRUE(launcher->machines().empty());
}

TEST_F(KubernetesLauncherTest, WaitsForThePodsEventOfAHostThatTheJobHasCounted) {
  const auto launcher = server();
  ASSERT_TRUE(launcher->ensure(gang_of(2)));
  cluster_.jobs.begin()->second.ended_hosts = {1};
  EXPECT_EQ(note_of(*launcher, 1), "alive: ") << "its pod's watch is behind";
  cluster_.end_host({1, 1}, 1, "OOMKilled, exit code 137");
  EXPECT_EQ(note_of(*launcher, 1),
            "dead: Kubernetes pod trainyard-3fa91c-j1a1-1-x is Failed (OOMKilled, exit code 137)");
}

TEST_F(KubernetesLauncherTest, SeesAPreemptionWhosePodVanishesBeforeTheNextLook) {
  const auto launcher = server();
  ASSERT_TRUE(launcher->ensure(gang_of(2)));
  KubernetesPod pod = pod_of(1);
  pod.deleting = pod.preempted = true;
  pod.reason = "PreemptionByScheduler: by another";
  cluster_.change([&] { cluster_.pods[pod.name] = pod; });
  cluster_.change([&] {
    cluster_.pods.erase(pod.name);
    cluster_.jobs.begin()->second.ended_hosts = {1};
  });
  const auto agents = launcher->list();
  ASSERT_EQ(agents.size(), 2u);
  EXPECT_FALSE(agents[1].alive);
  EXPECT_TRUE(agents[1].preempted);
}

TEST_F(KubernetesLauncherTest, MakesNoRequestForALook) {
  cluster_.stream = true;
  LockedRandom random;
  const auto launcher = make_kubernetes(settings_, cluster_.client(), clock_, random);
  ASSERT_TRUE(launcher) << launcher.error().message;
  ASSERT_TRUE((*launcher)->ensure(gang_of(2)));
  for (int look = 0; look < 100; ++look) {
    EXPECT_EQ((*launcher)->list().size(), 2u);
    EXPECT_TRUE((*launcher)->ensure(gang_of(2)));
    (void)(*launcher)->machines();
  }
  cluster_.change([&] {
    EXPECT_EQ(cluster_.lists, (std::array<int, kKubernetesResources>{1, 1, 1, 1, 0}))
        << "without Kueue";
  });
  ASSERT_TRUE((*launcher)->remove({1, 1}));
  EXPECT_TRUE((*launcher)->list().empty());
}

// A cluster with Kueue, whose LocalQueue "team" gets all jobs.
class KueueTest : public KubernetesLauncherTest {
 protected:
  KueueTest() {
    settings_.jobs.placement.local_queue = "team";
    cluster_.has_kueue = true;
  }
  KubernetesJob& job() { return cluster_.jobs.begin()->second; }
  KubernetesWorkload& workload() { return cluster_.workloads["job-of-j1a1"]; }
  // Does what Kueue does when it has read a submitted Job.
  void make_workload(const std::string& reason) { workload() = {job().uid, false, false, reason}; }
  // Shows that the Job runs.
  std::unique_ptr<Launcher> with_running_gang() {
    auto launcher = server();
    EXPECT_TRUE(launcher->ensure(gang_of(2)));
    make_workload("");
    cluster_.resume(job());
    EXPECT_EQ(note_of(*launcher, 1), "alive: ");
    return launcher;
  }
};

TEST_F(KueueTest, AJobWaitsUntilKueueAdmitsIt) {
  const auto launcher = server();
  ASSERT_TRUE(launcher->ensure(gang_of(2)));
  EXPECT_EQ(job().local_queue, "team");
  EXPECT_TRUE(job().suspended) << "Kueue resumes it";
  const std::string waits =
      "alive: Kubernetes Job trainyard-3fa91c-j1a1 waits in Kueue's "
      "LocalQueue team";
  EXPECT_EQ(note_of(*launcher, 0), waits);
  make_workload("Pending: insufficient unused quota for cpu");
  EXPECT_EQ(note_of(*launcher, 1), waits + " (Pending: insufficient unused quota for cpu)");
  ASSERT_TRUE(launcher->ensure(gang_of(2)));
  clock_.advance(1h);
  EXPECT_EQ(server()->list().size(), 2u) << "a restarted server finds it";
  EXPECT_TRUE(job().suspended);
  workload().reason = "";
  cluster_.resume(job());
  EXPECT_EQ(note_of(*launcher, 0), "alive: ");
  ASSERT_TRUE(launcher->remove({1, 1}));
  EXPECT_TRUE(cluster_.jobs.empty());
}

TEST_F(KueueTest, AnEvictedJobIsPreempted) {
  const auto launcher = with_running_gang();
  workload().evicted = true;
  workload().reason = "Preempted: by a workload of higher priority";
  const std::string note =
      "Kubernetes Job trainyard-3fa91c-j1a1 was evicted from Kueue's "
      "LocalQueue team (Preempted: by a workload of higher priority)";
  for (const Agent& agent : launcher->list())
    EXPECT_TRUE(agent.alive && agent.preempted && agent.note == note)
        << "its pods end: " << agent.note;
  job().suspended = true;
  cluster_.pods.clear();
  for (const Agent& agent : launcher->list())
    EXPECT_TRUE(!agent.alive && agent.preempted && agent.note == note) << agent.note;
  cluster_.resume(job());
  for (const Agent& agent : server()->list())
    EXPECT_TRUE(agent.preempted) << "Kueue has admitted it again, without the server";
}

TEST_F(KueueTest, ADeactivatedJobIsNotStartedAgain) {
  const auto launcher = with_running_gang();
  workload() = {job().uid, true, true, "Deactivated: The workload is deactivated"};
  job().suspended = true;
  cluster_.pods.clear();
  const auto agents = launcher->list();
  ASSERT_EQ(agents.size(), 2u);
  EXPECT_FALSE(agents[0].alive || agents[0].preempted);
  EXPECT_EQ(agents[0].note,
            "Kubernetes Job trainyard-3fa91c-j1a1 was deactivated in Kueue's LocalQueue team "
            "(Deactivated: The workload is deactivated)");
}

TEST_F(KueueTest, ADeletedPodIsLostWhenItsJobHasCountedIt) {
  const auto launcher = with_running_gang();
  pod_of(1).deleting = true;
  cluster_.end_host({1, 1}, 1, "Error, exit code 143");
  EXPECT_EQ(note_of(*launcher, 1).substr(0, 5), "alive") << "it may have been evicted";
  job().ended_hosts = {1};
  EXPECT_EQ(note_of(*launcher, 1).substr(0, 4), "dead");
  EXPECT_FALSE(launcher->list().at(1).preempted);
}

TEST_F(KueueTest, APodThatFailsItselfIsLostAtOnce) {
  const auto launcher = with_running_gang();
  cluster_.end_host({1, 1}, 1, "OOMKilled, exit code 137");
  EXPECT_EQ(note_of(*launcher, 1),
            "dead: Kubernetes pod trainyard-3fa91c-j1a1-1-x is Failed (OOMKilled, exit code 137)");
  EXPECT_FALSE(launcher->list().at(1).preempted);
}

TEST_F(KueueTest, AnInterruptedSubmissionIsContinued) {
  cluster_.after_create = [](const KubernetesJob&) -> Result<void> { throw Kind::internal; };
  EXPECT_THROW((void)server()->ensure(gang_of(1)), Kind);
  cluster_.after_create = nullptr;
  EXPECT_EQ(job().local_queue, "") << "Kueue does not know it";
  const auto launcher = server();
  EXPECT_TRUE(launcher->list().empty());
  ASSERT_TRUE(launcher->ensure(gang_of(1)));
  EXPECT_EQ(job().local_queue, "team");
  EXPECT_EQ(launcher->list().size(), 1u);
}

TEST_F(KueueTest, IsNeededForALocalQueue) {
  cluster_.has_kueue = false;
  EXPECT_EQ(make().error().kind, Kind::not_found);
}

TEST_F(KubernetesLauncherTest, IgnoresJobsOfOtherServers) {
  const auto launcher = server();
  ASSERT_TRUE(launcher->ensure(gang_of(1)));
  cluster_.jobs.begin()->second.seal = "other/t1";
  EXPECT_TRUE(launcher->list().empty());
  ASSERT_TRUE(launcher->remove({1, 1}));
  EXPECT_EQ(cluster_.jobs.size(), 1u);
  const auto started = launcher->ensure(gang_of(1));
  ASSERT_FALSE(started);
  EXPECT_NE(started.error().message.find("already exists"), std::string::npos);
  EXPECT_EQ(cluster_.jobs.size(), 1u);
}

TEST_F(KubernetesLauncherTest, StartsNoAttemptWhileItsPreviousPodsEnd) {
  const auto launcher = server();
  ASSERT_TRUE(launcher->ensure(gang_of(1)));
  cluster_.jobs.begin()->second.deleting = true;
  EXPECT_TRUE(launcher->list().empty());
  const auto started = launcher->ensure(gang_of(1));
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().kind, Kind::unavailable);
}

TEST_F(KubernetesLauncherTest, ListsAnAbandonedStartAfterSomeTime) {
  cluster_.after_create = [](const KubernetesJob&) -> Result<void> { throw Kind::internal; };
  EXPECT_THROW((void)server()->ensure(gang_of(1)), Kind);
  const auto launcher = server();
  size_t queries = 1;
  while (launcher->list().empty() && queries < 1000) {
    clock_.advance(1s);
    ++queries;
  }
  EXPECT_GT(queries, 10u);
  const auto agents = launcher->list();
  ASSERT_EQ(agents.size(), 1u);
  EXPECT_FALSE(agents[0].alive);
  ASSERT_TRUE(launcher->remove({1, 1}));
  EXPECT_TRUE(cluster_.jobs.empty());
}

TEST_F(KubernetesLauncherTest, CreatesAndDeletesOnlyAsTheWriter) {
  const auto launcher = server();
  ASSERT_TRUE(launcher->ensure(gang_of(1)));
  why_not_ = "another server writes";
  EXPECT_EQ(launcher->remove({1, 1}).error().message, why_not_);
  Gang other = gang_of(1);
  other.attempt = {2, 1};
  EXPECT_FALSE(launcher->ensure(other));
  EXPECT_EQ(cluster_.jobs.size(), 1u);
}

TEST_F(KubernetesLauncherTest, KeepsItsLastAnswerWhileTheApiServerDoesNotAnswer) {
  const auto launcher = server();
  ASSERT_TRUE(launcher->ensure(gang_of(2)));
  ASSERT_EQ(launcher->list().size(), 2u);
  cluster_.away = "connection refused";
  EXPECT_EQ(launcher->list().size(), 2u);
  EXPECT_EQ(launcher->machines().size(), 2u);
  EXPECT_TRUE(launcher->ensure(gang_of(2))) << "it runs";
  Gang other = gang_of(1);
  other.attempt = {2, 1};
  EXPECT_EQ(launcher->ensure(other).error().kind, Kind::unavailable);
  EXPECT_FALSE(make());
}

TEST_F(KubernetesLauncherTest, TriesAgainWhileTheApiServerDeniesItsRequests) {
  const auto launcher = server();
  cluster_.forbidden = "cannot list resource \"jobs\"";
  const auto denied = launcher->ensure(gang_of(2));
  ASSERT_FALSE(denied);
  EXPECT_EQ(denied.error().kind, Kind::unavailable);
  EXPECT_NE(denied.error().message.find(cluster_.forbidden), std::string::npos);
  const auto made = make();
  ASSERT_FALSE(made) << "its rights must be there when the server starts";
  EXPECT_EQ(made.error().kind, Kind::denied);
  cluster_.forbidden = "";
  EXPECT_TRUE(launcher->ensure(gang_of(2)));
}

TEST_F(KubernetesLauncherTest, RejectsASelectorThatNoNodeMatches) {
  settings_.jobs.of_queues["urgent"].node_selector = {{"pool", "fast"}};
  const auto made = make();
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message.find("'pool=fast'"), std::string::npos) << made.error().message;
}

}  // namespace
}  // namespace trainyard::launch
