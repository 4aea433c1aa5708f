#include "launch/kubernetes/answers.hpp"

#include <gtest/gtest.h>

#include <tuple>

#include "os/files.hpp"

namespace trainyard::launch {
namespace {

// Recorded from Kubernetes 1.34.4, without managedFields.
std::string recorded_answer(const std::string& name) {
  const auto text = os::read_file("kubernetes/testdata/" + name);
  EXPECT_TRUE(text) << name;
  return text ? *text : "";
}

template <class T>
std::vector<T> contents(const KubernetesPage<T>& page) {
  std::vector<T> objects;
  for (const auto& [name, object] : page.objects) objects.push_back(object);
  return objects;
}

TEST(KubernetesAnswers, ReadsTheJobsOfTheServer) {
  const auto page = read_page<KubernetesJob>(recorded_answer("jobs.json"), "3fa91c");
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_EQ(page->next, "");
  EXPECT_NE(page->version, "");
  const auto jobs = contents(*page);
  ASSERT_EQ(jobs.size(), 3u);
  EXPECT_EQ(jobs[0].name, "trainyard-3fa91c-j17a1");
  EXPECT_EQ(jobs[0].attempt, (domain::AttemptId{17, 1}));
  EXPECT_EQ(jobs[0].hosts, 3u);
  EXPECT_EQ(jobs[0].seal, "AbC+/=");
  EXPECT_EQ(jobs[0].uid.size(), 36u);
  EXPECT_EQ(jobs[0].ended_hosts, (std::set<domain::HostIndex>{0}));
  EXPECT_FALSE(jobs[0].suspended || jobs[0].ended || jobs[0].deleting);
  EXPECT_TRUE(jobs[1].suspended);
  const auto others = read_page<KubernetesJob>(recorded_answer("jobs.json"), "another");
  ASSERT_TRUE(others);
  EXPECT_TRUE(others->objects.empty());
}

TEST(KubernetesAnswers, ReadsWhyKueueDoesNotAdmitOrHasEvictedAJob) {
  // Recorded from Kueue 0.15.0, with a part of the spec only.
  const auto page = read_page<KubernetesWorkload>(recorded_answer("workloads.json"), "3fa91c");
  ASSERT_TRUE(page) << page.error().message;
  const auto workloads = contents(*page);
  ASSERT_EQ(workloads.size(), 3u);
  const auto& [admitted, pending, evicted] = std::tie(workloads[0], workloads[1], workloads[2]);
  EXPECT_EQ(admitted.job_uid, "2e661b04-64b9-4390-86c7-277cdd88f691");
  EXPECT_EQ(admitted.reason, "");
  EXPECT_FALSE(admitted.evicted || admitted.deactivated);
  EXPECT_EQ(pending.reason,
            "Pending: couldn't assign flavors to pod set main: insufficient unused quota for cpu "
            "in flavor default, 1 more needed");
  EXPECT_FALSE(pending.evicted);
  EXPECT_TRUE(evicted.evicted);
  EXPECT_FALSE(evicted.deactivated);
  EXPECT_TRUE(evicted.reason.starts_with("Preempted: Preempted to accommodate a workload"))
      << evicted.reason;
}

TEST(KubernetesAnswers, ReadsPodsWithKubernetesMessages) {
  const auto page = read_page<KubernetesPod>(recorded_answer("pods.json"), "3fa91c");
  ASSERT_TRUE(page) << page.error().message;
  const auto pods = contents(*page);
  ASSERT_EQ(pods.size(), 4u);
  EXPECT_EQ(pods[0].host, 0u);
  EXPECT_EQ(pods[0].node, "n1");
  EXPECT_EQ(pods[0].phase, "Failed");
  EXPECT_EQ(pods[0].reason, "OOMKilled, exit code 137: the last line");
  EXPECT_EQ(pods[1].reason, R"(ImagePullBackOff: Back-off pulling image "trainyard")");
  EXPECT_EQ(pods[2].phase, "Running");
  EXPECT_EQ(pods[2].reason, "");
  EXPECT_EQ(pods[3].node, "");
  EXPECT_TRUE(pods[3].reason.starts_with("Unschedulable: 0/2 nodes are available: 1 Insufficient"))
      << pods[3].reason;
}

TEST(KubernetesAnswers, ShowPreemptionAndEvictionRatherThanTheExitCode) {
  bool preempted = false;
  const auto reason_of = [&](const std::string& status) {
    const auto object = parse_json(
        R"({"metadata":{"name":"a","labels":{"trainyard/server":"m",
            "trainyard/attempt":"j1a1","batch.kubernetes.io/job-completion-index":"0"}},
            "status":)" +
        status + "}");
    const auto pod = read_object<KubernetesPod>(*object, "m");
    if (!pod) return std::string("not read");
    preempted = pod->preempted;
    return pod->reason;
  };
  EXPECT_EQ(reason_of(R"({"phase":"Failed","reason":"Evicted","message":"low on memory"})"),
            "Evicted: low on memory");
  EXPECT_FALSE(preempted);
  EXPECT_EQ(reason_of(R"({"phase":"Failed","conditions":[{"type":"DisruptionTarget",
                "status":"True","reason":"PreemptionByScheduler","message":"by another"}],
                "containerStatuses":[{"state":{"terminated":{"exitCode":143}}}]})"),
            "PreemptionByScheduler: by another");
  EXPECT_TRUE(preempted);
  EXPECT_EQ(reason_of(R"({"phase":"Failed","conditions":[{"type":"DisruptionTarget",
                "status":"True","reason":"DeletionByTaintManager","message":"no node"}]})"),
            "DeletionByTaintManager: no node");
  EXPECT_FALSE(preempted) << "its node is lost";
  EXPECT_EQ(reason_of(R"({"phase":"Failed","containerStatuses":[{"state":{"terminated":
                {"exitCode":1,"reason":"Error"}}}]})"),
            "Error, exit code 1");
  EXPECT_EQ(reason_of("[]"), "");
}

TEST(KubernetesAnswers, ReadsNodesPageByPage) {
  const auto page = read_page<KubernetesNode>(recorded_answer("nodes.json"), "3fa91c");
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_FALSE(page->next.empty());
  const auto nodes = contents(*page);
  ASSERT_EQ(nodes.size(), 1u);
  EXPECT_EQ(nodes[0].name, "n1");
  EXPECT_TRUE(nodes[0].ready && nodes[0].schedulable);
  EXPECT_EQ(nodes[0].labels.at("disk"), "of-n1");
  EXPECT_EQ(nodes[0].allocatable.cpus_milli, 15'900);
  EXPECT_EQ(nodes[0].allocatable.memory_bytes, int64_t{60} << 30);
}

TEST(KubernetesAnswers, HaveTheRequestsOfPodsOfOthers) {
  const auto page = read_page<KubernetesUse>(recorded_answer("all_pods.json"), "3fa91c");
  ASSERT_TRUE(page) << page.error().message;
  ASSERT_EQ(page->objects.size(), 1u);
  EXPECT_EQ(page->objects[0].second, (KubernetesUse{"n1", {250, int64_t{1} << 30}}));
  EXPECT_NE(page->objects[0].first.find('/'), std::string::npos) << page->objects[0].first;
}

TEST(KubernetesAnswers, CountTheLargestInitContainerAndAllSidecars) {
  const auto pod = parse_json(
      R"({"metadata":{},"status":{"phase":"Running"},"spec":{
          "nodeName":"n1","overhead":{"cpu":"10m"},
          "containers":[{"resources":{"requests":{"cpu":"1","nvidia.com/gpu":"2"}}},{}],
          "initContainers":[{"resources":{"requests":{"cpu":"3","memory":"1Ki"}}},
            {"restartPolicy":"Always","resources":{"requests":{"cpu":"100m"}}}]}})");
  const auto use = read_object<KubernetesUse>(*pod, "m");
  ASSERT_TRUE(use);
  EXPECT_EQ(use->amounts, (KubernetesAmounts{3010, 1024, 2}));
}

TEST(KubernetesAnswers, RejectAnswersWithoutAList) {
  const auto read = [](const char* body) { return read_page<KubernetesJob>(body, "m"); };
  for (const char* wrong : {"", "[]", "{}", R"({"metadata":{"resourceVersion":"1"},"items":{}})",
                            R"({"items":[]})", R"({"metadata":{},"items":[]})"})
    EXPECT_FALSE(read(wrong)) << wrong;
  EXPECT_TRUE(read(R"({"metadata":{"resourceVersion":"1"},"items":null})"));
  const auto others =
      read(R"({"metadata":{"resourceVersion":"1"},"items":[1,"a",{"metadata":7}]})");
  ASSERT_TRUE(others) << others.error().message;
  EXPECT_TRUE(others->objects.empty());
  EXPECT_FALSE(read_job_answer("{}", "m"));
}

TEST(KubernetesAnswers, HaveKindsAndMessagesOfErrors) {
  const auto error_of = [](int status, const std::string& body) {
    const auto checked = check_kubernetes_answer(status, body);
    return checked ? Error{} : checked.error();
  };
  EXPECT_EQ(error_of(404, recorded_answer("not_found.json")).kind, Kind::not_found);
  EXPECT_EQ(error_of(404, recorded_answer("not_found.json")).message,
            "Kubernetes: nodes \"none\" not found");
  EXPECT_EQ(error_of(422, recorded_answer("invalid.json")).kind, Kind::invalid);
  EXPECT_EQ(error_of(401, R"({"message":"Unauthorized"})").kind, Kind::denied);
  EXPECT_EQ(error_of(403, R"({"message":"jobs is forbidden"})").kind, Kind::denied);
  EXPECT_EQ(error_of(403, R"({"message":"exceeded quota: a"})").kind, Kind::exhausted);
  EXPECT_EQ(error_of(409, "").kind, Kind::conflict);
  EXPECT_FALSE(error_of(409, "").is(KubernetesFault::expired));
  EXPECT_TRUE(error_of(410, "").is(KubernetesFault::expired));
  EXPECT_EQ(error_of(503, "<html>").message, "Kubernetes reports: HTTP status 503");
  EXPECT_TRUE(check_kubernetes_answer(201, "{}"));
}

TEST(KubernetesAnswers, HaveQuantitiesWithUnits) {
  for (const auto& [text, milli] : {std::pair("2", int64_t{2000}),
                                    {"1500m", 1500},
                                    {"0.5", 500},
                                    {"1Ki", 1'024'000},
                                    {"1k", 1'000'000},
                                    {"1e3", 1'000'000},
                                    {"1G", int64_t{1'000'000'000'000}},
                                    {"5u", 0}})
    EXPECT_EQ(*parse_quantity_milli(text), milli) << text;
  EXPECT_EQ(*parse_quantity_milli("99999999E"), int64_t{1} << 60);
  for (const char* wrong : {"", "m", "-1", "1Xi", "1 Gi", "nan", "inf", "0x10", "1KiB"})
    EXPECT_FALSE(parse_quantity_milli(wrong)) << wrong;
}

TEST(KubernetesAnswers, HaveAscendingIndexesBelowTheGangsSize) {
  EXPECT_EQ(*parse_indexes("0,2-4", 10), (std::set<domain::HostIndex>{0, 2, 3, 4}));
  EXPECT_EQ(*parse_indexes("2-4000000000", 4), (std::set<domain::HostIndex>{2, 3}));
  EXPECT_TRUE(parse_indexes("", 4)->empty());
  for (const char* wrong : {"a", "3-1", "3,1", "-1", "1-2-3", ","})
    EXPECT_FALSE(parse_indexes(wrong, 10)) << wrong;
}

}  // namespace
}  // namespace trainyard::launch
