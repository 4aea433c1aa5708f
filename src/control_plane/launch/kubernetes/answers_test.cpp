#include "launch/kubernetes/answers.hpp"

#include <gtest/gtest.h>

#include "os/files.hpp"

namespace trainyard::launch {
namespace {

// Recorded from Kubernetes 1.34.4, without managedFields.
std::string recorded_answer(const std::string& name) {
  const auto text = os::read_file("kubernetes/testdata/" + name);
  EXPECT_TRUE(text) << name;
  return text ? *text : "";
}

TEST(KubernetesAnswers, ReadsTheJobsOfTheServer) {
  std::vector<KubernetesJob> jobs;
  const auto next = read_job_page(recorded_answer("jobs.json"), "3fa91c", jobs);
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_EQ(*next, "");
  ASSERT_EQ(jobs.size(), 3u);
  EXPECT_EQ(jobs[0].name, "trainyard-3fa91c-j17a1");
  EXPECT_EQ(jobs[0].attempt, (domain::AttemptId{17, 1}));
  EXPECT_EQ(jobs[0].hosts, 3u);
  EXPECT_EQ(jobs[0].seal, "AbC+/=");
  EXPECT_EQ(jobs[0].uid.size(), 36u);
  EXPECT_EQ(jobs[0].ended_hosts, (std::set<domain::HostIndex>{0}));
  EXPECT_FALSE(jobs[0].suspended || jobs[0].ended || jobs[0].deleting);
  EXPECT_TRUE(jobs[1].suspended);
  jobs.clear();
  ASSERT_TRUE(read_job_page(recorded_answer("jobs.json"), "another", jobs));
  EXPECT_TRUE(jobs.empty());
}

TEST(KubernetesAnswers, ReadsPodsWithKubernetesMessages) {
  std::vector<KubernetesPod> pods;
  ASSERT_TRUE(read_pod_page(recorded_answer("pods.json"), "3fa91c", pods));
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
    std::vector<KubernetesPod> pods;
    const auto read = read_pod_page(
        R"({"metadata":{},"items":[{"metadata":{"name":"a","labels":{"trainyard/server":"m",
            "trainyard/attempt":"j1a1","batch.kubernetes.io/job-completion-index":"0"}},
            "status":)" +
            status + "}]}",
        "m", pods);
    if (!read || pods.size() != 1) return std::string("not read");
    preempted = pods[0].preempted;
    return pods[0].reason;
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
  std::vector<KubernetesNode> nodes;
  const auto next = read_node_page(recorded_answer("nodes.json"), nodes);
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_FALSE(next->empty());
  ASSERT_EQ(nodes.size(), 1u);
  EXPECT_EQ(nodes[0].name, "n1");
  EXPECT_TRUE(nodes[0].ready && nodes[0].schedulable);
  EXPECT_EQ(nodes[0].labels.at("disk"), "of-n1");
  EXPECT_EQ(nodes[0].allocatable.cpus_milli, 15'900);
  EXPECT_EQ(nodes[0].allocatable.memory_bytes, int64_t{60} << 30);
}

TEST(KubernetesAnswers, SumsTheRequestsOfPodsOfOthers) {
  std::map<std::string, KubernetesAmounts> used;
  size_t pods = 0;
  ASSERT_TRUE(read_use_page(recorded_answer("all_pods.json"), "3fa91c", used, pods));
  EXPECT_EQ(pods, 5u);
  ASSERT_EQ(used.size(), 1u);
  EXPECT_EQ(used["n1"].cpus_milli, 250);
  EXPECT_EQ(used["n1"].memory_bytes, int64_t{1} << 30);
}

TEST(KubernetesAnswers, CountTheLargestInitContainerAndAllSidecars) {
  std::map<std::string, KubernetesAmounts> used;
  size_t pods = 0;
  ASSERT_TRUE(read_use_page(
      R"({"metadata":{},"items":[{"metadata":{},"status":{"phase":"Running"},"spec":{
          "nodeName":"n1","overhead":{"cpu":"10m"},
          "containers":[{"resources":{"requests":{"cpu":"1"}}},{}],
          "initContainers":[{"resources":{"requests":{"cpu":"3","memory":"1Ki"}}},
            {"restartPolicy":"Always","resources":{"requests":{"cpu":"100m"}}}]}}]})",
      "m", used, pods));
  EXPECT_EQ(used["n1"].cpus_milli, 3010);
  EXPECT_EQ(used["n1"].memory_bytes, 1024);
}

TEST(KubernetesAnswers, RejectsAnswersWithoutAList) {
  std::vector<KubernetesJob> jobs;
  for (const char* wrong : {"", "[]", "{}", R"({"metadata":{},"items":{}})", R"({"items":[]})"})
    EXPECT_FALSE(read_job_page(wrong, "m", jobs)) << wrong;
  EXPECT_TRUE(read_job_page(R"({"metadata":{},"items":null})", "m", jobs));
  EXPECT_TRUE(read_job_page(R"({"metadata":{},"items":[1,"a",{"metadata":7}]})", "m", jobs));
  EXPECT_TRUE(jobs.empty());
  EXPECT_FALSE(read_uid("{}"));
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
