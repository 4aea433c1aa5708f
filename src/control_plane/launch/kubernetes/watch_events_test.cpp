#include "launch/kubernetes/watch_events.hpp"

#include <gtest/gtest.h>

#include "base/text.hpp"
#include "launch/kubernetes/watch_lines.hpp"
#include "os/files.hpp"

namespace trainyard::launch {
namespace {

constexpr const char* kMark = "3fa91c";

// Reads a watch that was recorded from Kubernetes 1.34.4, without managedFields: while a Job was
// created, resumed, lost its pod and was deleted.
template <class T>
std::vector<KubernetesEvent<T>> recorded_watch(const std::string& name) {
  const auto text = os::read_file("kubernetes/testdata/" + name);
  EXPECT_TRUE(text) << name;
  std::vector<KubernetesEvent<T>> events;
  WatchLines lines;
  const auto read = lines.append(*text, [&](std::string_view line) -> Result<void> {
    events.push_back(TRY(read_event<T>(line, kMark)));
    return {};
  });
  EXPECT_TRUE(read) << name << ": " << read.error().message;
  return events;
}

template <class T>
std::string types_of(const std::vector<KubernetesEvent<T>>& events) {
  std::string types;
  for (const auto& event : events) types += "cdb"[size_t(event.type)];
  return types;
}

TEST(KubernetesEvents, ReadsARecordedWatchOfJobs) {
  const auto events = recorded_watch<KubernetesJob>("watch_jobs.jsonl");
  ASSERT_EQ(types_of(events), "cccccccdb");
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(events[i].identity.name, "trainyard-3fa91c-j17a1");
    EXPECT_EQ(events[i].identity.uid, events[0].identity.uid);
    ASSERT_TRUE(events[i].object);
    EXPECT_EQ(events[i].object->attempt, (domain::AttemptId{17, 1}));
    EXPECT_EQ(events[i].object->version, events[i].identity.version);
    if (i > 0) {
      EXPECT_NE(events[i].identity.version, events[i - 1].identity.version);
    }
  }
  EXPECT_TRUE(events[0].object->suspended);
  EXPECT_FALSE(events[2].object->suspended);
  EXPECT_TRUE(events[5].object->ended);
  EXPECT_EQ(events[5].object->ended_hosts, std::set<domain::HostIndex>{0});
  EXPECT_FALSE(events[5].object->deleting);
  EXPECT_TRUE(events[6].object->deleting);
  EXPECT_EQ(events[8].identity.version, events[7].identity.version) << "the bookmark";
}

TEST(KubernetesEvents, ReadsARecordedWatchOfPods) {
  const auto events = recorded_watch<KubernetesPod>("watch_pods.jsonl");
  ASSERT_TRUE(types_of(events).starts_with("cccccc")) << types_of(events);
  EXPECT_EQ(events[0].object->node, "");
  EXPECT_EQ(events[1].object->node, "n1");
  EXPECT_EQ(events[2].object->phase, "Running");
  EXPECT_EQ(events[3].object->phase, "Failed");
  EXPECT_EQ(events[3].object->reason, "OOMKilled, exit code 137: the last line");
}

TEST(KubernetesEvents, ReadsARecordedWatchOfNodes) {
  const auto events = recorded_watch<KubernetesNode>("watch_nodes.jsonl");
  ASSERT_TRUE(types_of(events).starts_with("cccb")) << types_of(events);
  EXPECT_TRUE(events[0].object->ready);
  EXPECT_EQ(events[0].object->allocatable.cpus_milli, 15'900);
  EXPECT_EQ(events[0].object->taints.size(), 1u);
}

TEST(KubernetesEvents, ReadsARecordedWatchOfPodsOfOthers) {
  const auto events = recorded_watch<KubernetesUse>("watch_all_pods.jsonl");
  ASSERT_TRUE(types_of(events).starts_with("ccdb")) << types_of(events);
  EXPECT_EQ(events[0].identity.name, "default/other");
  EXPECT_FALSE(events[0].object) << "it has no node yet";
  ASSERT_TRUE(events[1].object);
  EXPECT_EQ(*events[1].object, (KubernetesUse{"n1", {250, int64_t{1} << 30}}));
}

TEST(KubernetesEvents, HaveTheErrorOfARecordedExpiredWatch) {
  const auto text = os::read_file("kubernetes/testdata/watch_expired.jsonl");
  ASSERT_TRUE(text);
  const auto event = read_event<KubernetesJob>(trim(*text), kMark);
  ASSERT_FALSE(event);
  EXPECT_TRUE(event.error().is(KubernetesFault::expired));
  EXPECT_NE(event.error().message.find("too old resource version"), std::string::npos);
}

TEST(KubernetesEvents, HaveTheErrorsOfOtherStatuses) {
  const auto kind_of = [](const std::string& status) {
    const auto event =
        read_event<KubernetesJob>(R"({"type":"ERROR","object":)" + status + "}", kMark);
    EXPECT_FALSE(event || event.error().is(KubernetesFault::expired)) << status;
    return event ? Kind::internal : event.error().kind;
  };
  EXPECT_EQ(kind_of(R"({"code":500,"message":"etcd has no leader"})"), Kind::unavailable);
  EXPECT_EQ(kind_of(R"({"code":403,"message":"forbidden"})"), Kind::denied);
  // Neither a status of success nor another value makes it an event.
  for (const char* status : {"{}", R"({"code":200})", R"({"code":"410"})", R"({"code":-1})"})
    EXPECT_EQ(kind_of(status), Kind::unavailable) << status;
}

TEST(KubernetesEvents, AreRejectedUnlessWhole) {
  for (const char* wrong :
       {"", "[]", "{}", R"({"type":"ADDED"})", R"({"type":"ADDED","object":[]})",
        R"({"type":"ADDED","object":{"metadata":{"name":"a"}}})",
        R"({"type":"ADDED","object":{"metadata":{"resourceVersion":"1"}}})",
        R"({"type":"ADDED","object":{"metadata":{"name":"A/b","resourceVersion":"1"}}})",
        R"({"type":"MOVED","object":{"metadata":{"name":"a","resourceVersion":"1"}}})",
        R"({"type":"BOOKMARK","object":{"metadata":{}}})",
        R"({"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"1"}})"})
    EXPECT_FALSE(read_event<KubernetesNode>(wrong, kMark)) << wrong;
  const auto node = read_event<KubernetesNode>(
      R"({"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"1"}}})", kMark);
  EXPECT_TRUE(node);
}

TEST(KubernetesEvents, HaveNoObjectForOthers) {
  const auto event = read_event<KubernetesJob>(
      R"({"type":"MODIFIED","object":{"metadata":{"name":"a","resourceVersion":"1"}}})", kMark);
  ASSERT_TRUE(event) << event.error().message;
  EXPECT_EQ(event->type, KubernetesEvent<KubernetesJob>::Type::changed);
  EXPECT_FALSE(event->object);
}

}  // namespace
}  // namespace trainyard::launch
