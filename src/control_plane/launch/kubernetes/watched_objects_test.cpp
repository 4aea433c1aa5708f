#include "launch/kubernetes/watched_objects.hpp"

#include <gtest/gtest.h>

namespace trainyard::launch {
namespace {

using NodeEvent = KubernetesEvent<KubernetesNode>;
using PodEvent = KubernetesEvent<KubernetesPod>;
using JobEvent = KubernetesEvent<KubernetesJob>;

NodeEvent node_event(NodeEvent::Type type, const std::string& name, bool ready = true) {
  KubernetesNode node;
  node.name = name;
  node.ready = ready;
  return {type, {name, "uid", "1"}, node};
}

TEST(WatchedObjects, ApplyChangesOnceAlthoughTheyArriveTwice) {
  WatchedObjects<KubernetesNode> nodes;
  const auto apply = [&](const NodeEvent& event) { return *nodes.apply(event); };
  EXPECT_TRUE(apply(node_event(NodeEvent::Type::changed, "n1")));
  EXPECT_FALSE(apply(node_event(NodeEvent::Type::changed, "n1"))) << "a heartbeat";
  EXPECT_TRUE(apply(node_event(NodeEvent::Type::changed, "n1", false)));
  EXPECT_FALSE(apply({NodeEvent::Type::bookmark, {"", "", "9"}, {}}));
  EXPECT_EQ(nodes.objects().size(), 1u);
  EXPECT_TRUE(apply(node_event(NodeEvent::Type::deleted, "n1")));
  EXPECT_FALSE(apply(node_event(NodeEvent::Type::deleted, "n1")));
  EXPECT_TRUE(nodes.objects().empty());
}

TEST(WatchedObjects, DropAnObjectThatIsNoLongerUsed) {
  WatchedObjects<KubernetesNode> nodes;
  ASSERT_TRUE(nodes.apply(node_event(NodeEvent::Type::changed, "n1")));
  EXPECT_TRUE(*nodes.apply({NodeEvent::Type::changed, {"n1", "uid", "2"}, {}}));
  EXPECT_TRUE(nodes.objects().empty());
}

TEST(WatchedObjects, DropWhatANewListLacks) {
  WatchedObjects<KubernetesNode> nodes;
  for (const char* name : {"n1", "n2"})
    ASSERT_TRUE(nodes.apply(node_event(NodeEvent::Type::changed, name)));
  auto listed = nodes.objects();
  EXPECT_FALSE(nodes.replace(listed)) << "nothing differs";
  listed.erase("n1");
  EXPECT_TRUE(nodes.replace(listed));
  EXPECT_EQ(nodes.objects().count("n1"), 0u);
  EXPECT_EQ(nodes.objects().count("n2"), 1u);
}

TEST(WatchedObjects, AreLimited) {
  WatchedObjects<KubernetesNode> nodes;
  WatchedObjects<KubernetesNode>::Objects listed;
  for (size_t i = 0; i < kKubernetesNodesMax; ++i) listed["n" + std::to_string(i)] = {};
  (void)nodes.replace(std::move(listed));
  EXPECT_EQ(nodes.apply(node_event(NodeEvent::Type::changed, "more")).error().kind,
            Kind::exhausted);
  EXPECT_TRUE(nodes.apply(node_event(NodeEvent::Type::changed, "n1")));
}

TEST(WatchedPods, RememberThePreemptedThatVanish) {
  WatchedPods pods;
  const auto pod = [](const std::string& name, bool preempted) {
    KubernetesPod pod;
    pod.name = name;
    pod.preempted = preempted;
    return pod;
  };
  const auto apply = [&](PodEvent::Type type, const KubernetesPod& pod) {
    ASSERT_TRUE(pods.apply({type, {pod.name, "", "1"}, pod}));
  };
  apply(PodEvent::Type::changed, pod("a", false));
  apply(PodEvent::Type::deleted, pod("a", true));
  apply(PodEvent::Type::changed, pod("b", false));
  apply(PodEvent::Type::deleted, pod("b", false));
  apply(PodEvent::Type::changed, pod("c", true));
  (void)pods.replace({});
  const auto vanished = pods.take_vanished();
  ASSERT_EQ(vanished.size(), 2u);
  EXPECT_EQ(vanished[0].name, "a");
  EXPECT_EQ(vanished[1].name, "c");
  EXPECT_TRUE(pods.take_vanished().empty());
}

// A Job of this server, which it creates with version 10 and resumes with version 20.
class WatchedJobsTest : public testing::Test {
 protected:
  static KubernetesJob job(const std::string& version, bool suspended = true,
                           const std::string& uid = "u1") {
    KubernetesJob job;
    job.name = "gang";
    job.uid = uid;
    job.version = version;
    job.suspended = suspended;
    return job;
  }
  void event(const KubernetesJob& job, JobEvent::Type type = JobEvent::Type::changed) {
    ASSERT_TRUE(jobs_.apply({type, {job.name, job.uid, job.version}, job}));
  }
  void deleted(const KubernetesJob& job) { event(job, JobEvent::Type::deleted); }
  // Creates the Job.
  void create() {
    jobs_.begin_write("gang");
    jobs_.end_write(job("10"));
  }
  void resume() {
    jobs_.begin_write("gang");
    jobs_.end_write(job("20", false));
  }
  void list(const std::vector<KubernetesJob>& listed) {
    jobs_.begin_list();
    finish_list(listed);
  }
  void finish_list(const std::vector<KubernetesJob>& listed) {
    WatchedJobs::Objects objects;
    for (const KubernetesJob& each : listed) objects[each.name] = each;
    (void)jobs_.replace(std::move(objects));
  }
  // Returns the version of the shown Job; "": none.
  std::string shown() const {
    const auto found = jobs_.objects().find("gang");
    return found == jobs_.objects().end() ? "" : found->second.version;
  }

  WatchedJobs jobs_;
};

TEST_F(WatchedJobsTest, ShowAWriteBeforeItsEvent) {
  create();
  EXPECT_EQ(shown(), "10");
  resume();
  EXPECT_EQ(shown(), "20");
  EXPECT_EQ(jobs_.pending(), 1u);
  EXPECT_FALSE(jobs_.wants_list());
}

TEST_F(WatchedJobsTest, IgnoreEventsThatAreOlderThanAWrite) {
  create();
  resume();
  event(job("10"));
  event(job("15"));
  EXPECT_EQ(shown(), "20") << "it must not seem suspended again";
  event(job("20", false));
  EXPECT_EQ(jobs_.pending(), 0u);
  event(job("30", false));
  EXPECT_EQ(shown(), "30");
}

TEST_F(WatchedJobsTest, ShowEventsThatOvertakeTheAnswer) {
  create();
  event(job("10"));
  jobs_.begin_write("gang");
  event(job("20", false));
  event(job("30", false));
  jobs_.end_write(job("20", false));
  EXPECT_EQ(shown(), "30") << "the answer is older";
  EXPECT_EQ(jobs_.pending(), 0u);
}

TEST_F(WatchedJobsTest, IgnoreTheAnswerForAJobThatIsDeletedMeanwhile) {
  create();
  event(job("10"));
  jobs_.begin_write("gang");
  deleted(job("25"));
  jobs_.end_write(job("20", false));
  EXPECT_EQ(shown(), "");
  EXPECT_EQ(jobs_.pending(), 0u);
}

TEST_F(WatchedJobsTest, NoticeTheDeletionOfAPendingJob) {
  create();
  deleted(job("8", true, "former"));
  EXPECT_EQ(shown(), "10") << "an earlier Job of that name";
  deleted(job("12"));
  EXPECT_EQ(shown(), "");
  EXPECT_EQ(jobs_.pending(), 0u);
}

TEST_F(WatchedJobsTest, KeepAWriteThatAListCannotShow) {
  jobs_.begin_list();
  create();
  finish_list({});
  EXPECT_EQ(shown(), "10") << "the gang is not lost";
  EXPECT_TRUE(jobs_.wants_list()) << "the watch after the list may never show it";
  list({});
  EXPECT_EQ(shown(), "") << "it was deleted, which this list shows";
  EXPECT_FALSE(jobs_.wants_list());
  EXPECT_EQ(jobs_.pending(), 0u);
}

TEST_F(WatchedJobsTest, WantAListAfterOneThatRanDuringAWrite) {
  jobs_.begin_write("gang");
  list({job("15")});
  jobs_.end_write(job("10"));
  EXPECT_TRUE(jobs_.wants_list()) << "nothing tells which of both is older";
  list({job("15")});
  EXPECT_EQ(shown(), "15");
  EXPECT_EQ(jobs_.pending(), 0u);
}

TEST_F(WatchedJobsTest, TakeAListThatShowsTheWrite) {
  jobs_.begin_write("gang");
  list({job("10")});
  jobs_.end_write(job("10"));
  EXPECT_EQ(shown(), "10");
  EXPECT_EQ(jobs_.pending(), 0u);
  EXPECT_FALSE(jobs_.wants_list());
}

TEST_F(WatchedJobsTest, TakeEveryListThatIsRequestedAfterAWrite) {
  create();
  list({job("17")});
  EXPECT_EQ(shown(), "17");
  EXPECT_EQ(jobs_.pending(), 0u);
}

TEST_F(WatchedJobsTest, ShowADeletedJobAsGone) {
  create();
  event(job("10"));
  jobs_.begin_write("gang");
  jobs_.end_write_without("u1");
  EXPECT_EQ(shown(), "");
  event(job("15"));
  EXPECT_EQ(shown(), "") << "an event before the deletion";
  deleted(job("20"));
  event(job("30", true, "u2"));
  EXPECT_EQ(shown(), "30") << "another Job of that name";
}

TEST_F(WatchedJobsTest, KeepTheJobWhenAWriteFails) {
  create();
  event(job("10"));
  jobs_.begin_write("gang");
  jobs_.cancel_write();
  EXPECT_EQ(shown(), "10");
  event(job("11"));
  EXPECT_EQ(shown(), "11");
}

TEST_F(WatchedJobsTest, AcceptAWriteWithoutEffect) {
  create();
  event(job("10"));
  jobs_.begin_write("gang");
  jobs_.end_write(job("10"));  // it was resumed already
  EXPECT_EQ(jobs_.pending(), 0u);
}

}  // namespace
}  // namespace trainyard::launch
