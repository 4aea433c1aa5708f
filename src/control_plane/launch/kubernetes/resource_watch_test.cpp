#include "launch/kubernetes/resource_watch.hpp"

#include <gtest/gtest.h>

#include "base/testing/test_clock.hpp"
#include "launch/testing/memory_kubernetes.hpp"

namespace trainyard::launch {
namespace {

// Watches the nodes of a cluster in memory. refresh() is one watch, after a list if necessary.
class ResourceWatchTest : public testing::Test {
 protected:
  ResourceWatchTest() {
    add_node("n1");
    EXPECT_TRUE(watch_.read_first());
  }

  void add_node(const std::string& name) {
    KubernetesNode node;
    node.name = name;
    node.ready = true;
    cluster_.nodes.push_back(node);
  }
  std::string names() {
    std::string names;
    for (const auto& [name, node] : *watch_.objects()) names += name + " ";
    return names;
  }
  int lists() const { return cluster_.lists[size_t(KubernetesResource::nodes)]; }
  int watches() const { return cluster_.watches[size_t(KubernetesResource::nodes)]; }

  TestClock clock_;
  SeededRandom random_{1};
  MemoryKubernetes cluster_;
  std::unique_ptr<Kubernetes> client_ = cluster_.client();
  int changes_ = 0;
  std::string failure_;
  ResourceWatch<WatchedObjects<KubernetesNode>> watch_{
      *client_,
      "3fa91c",
      clock_,
      random_,
      {[this] { ++changes_; }, [] {}, [this](const Error& error) { failure_ = error.message; }}};
};

TEST_F(ResourceWatchTest, ListsPageByPageOnce) {
  for (const char* name : {"n2", "n3", "n4", "n5"}) add_node(name);
  ASSERT_TRUE(watch_.refresh());
  EXPECT_EQ(names(), "n1 n2 n3 n4 n5 ");
  EXPECT_EQ(lists(), 1);
  cluster_.nodes.clear();
  ASSERT_TRUE(watch_.refresh());
  EXPECT_EQ(names(), "");
  EXPECT_EQ(lists(), 1) << "events tell it";
  ResourceWatch<WatchedObjects<KubernetesNode>> other(*client_, "3fa91c", clock_, random_,
                                                      {[] {}, [] {}, [](const Error&) {}});
  for (const char* name : {"n1", "n2", "n3", "n4", "n5"}) add_node(name);
  ASSERT_TRUE(other.read_first());
  EXPECT_EQ(other.objects()->size(), 5u) << "of three pages";
}

TEST_F(ResourceWatchTest, ResumesWithoutAList) {
  for (int round = 2; round < 50; ++round) {
    add_node("n" + std::to_string(round));
    ASSERT_TRUE(watch_.refresh());
    EXPECT_EQ(watch_.objects()->size(), size_t(round));
  }
  EXPECT_EQ(lists(), 1);
}

TEST_F(ResourceWatchTest, ReportsOnlyWhatDiffers) {
  ASSERT_TRUE(watch_.refresh());
  const int before = changes_;
  const auto shown = watch_.objects();
  ASSERT_TRUE(watch_.refresh());
  EXPECT_EQ(changes_, before);
  EXPECT_EQ(watch_.objects(), shown);
  add_node("n2");
  ASSERT_TRUE(watch_.refresh());
  EXPECT_EQ(changes_, before + 1);
}

TEST_F(ResourceWatchTest, ResumesAfterABookmark) {
  ASSERT_TRUE(watch_.refresh());
  cluster_.used_by_others["n1"] = {100, 100};  // the version of the nodes' watch grows by it
  ASSERT_TRUE(watch_.refresh());
  cluster_.forget_events();
  add_node("n2");
  ASSERT_TRUE(watch_.refresh());
  EXPECT_EQ(names(), "n1 n2 ");
  EXPECT_EQ(lists(), 1) << "the bookmark was after all that was forgotten";
}

TEST_F(ResourceWatchTest, ListsAgainWhenItsVersionIsForgotten) {
  for (const bool as_event : {true, false}) {
    cluster_.expired_as_event = as_event;
    const int before = lists();
    cluster_.nodes.clear();  // while the watch is interrupted
    add_node(as_event ? "n2" : "n3");
    cluster_.forget_events();
    ASSERT_TRUE(watch_.refresh());
    EXPECT_EQ(names(), as_event ? "n2 " : "n3 ") << "a vanished node is dropped";
    EXPECT_EQ(lists(), before + 1);
    EXPECT_EQ(failure_, "") << "this is usual";
  }
}

TEST_F(ResourceWatchTest, ResumesAfterAConnectionThatBreaksWithinALine) {
  ASSERT_TRUE(watch_.refresh());
  add_node("n2");
  add_node("n3");
  int sent = 0;
  cluster_.alter = [&](const std::string& line) {
    if (++sent == 1) return line;
    cluster_.away = "the connection broke";
    return line.substr(0, line.size() / 2);
  };
  EXPECT_FALSE(watch_.refresh());
  EXPECT_EQ(names(), "n1 n2 ");
  cluster_.away = "";
  cluster_.alter = {};
  ASSERT_TRUE(watch_.refresh());
  EXPECT_EQ(names(), "n1 n2 n3 ");
  EXPECT_EQ(lists(), 1);
}

TEST_F(ResourceWatchTest, ListsAgainAfterLinesThatCannotBeRead) {
  struct Line {
    const char* name;
    std::string text;
    bool is_usual = false;  // it is reported only if it is repeated
  };
  const Line wrong[] = {
      {"no JSON", "{\n"},
      {"an unknown type", R"({"type":"MOVED","object":{}})"
                          "\n"},
      {"an error",
       R"({"type":"ERROR","object":{"code":500,"message":"no leader"}})"
       "\n",
       true},
      {"too long", std::string(kWatchLineBytesMax + 1, ' ')},
  };
  int number = 1;
  for (const Line& line : wrong) {
    const int before = lists();
    bool sent = false;
    cluster_.alter = [&](const std::string& whole) {
      return std::exchange(sent, true) ? whole : line.text;
    };
    add_node("n" + std::to_string(++number));
    ASSERT_TRUE(watch_.refresh()) << line.name;
    EXPECT_EQ(watch_.objects()->size(), size_t(number)) << line.name;
    EXPECT_EQ(lists(), before + 1) << line.name;
    EXPECT_EQ(failure_.empty(), line.is_usual) << line.name;
    failure_ = "";
  }
}

TEST_F(ResourceWatchTest, TakesEventsThatArriveTwice) {
  cluster_.alter = [](const std::string& line) { return line + line; };
  add_node("n2");
  ASSERT_TRUE(watch_.refresh());
  cluster_.nodes.pop_back();
  ASSERT_TRUE(watch_.refresh());
  EXPECT_EQ(names(), "n1 ");
  EXPECT_EQ(lists(), 1);
}

TEST_F(ResourceWatchTest, KeepsItsObjectsWhileTheApiServerIsAway) {
  cluster_.away = "connection refused";
  for (int round = 0; round < 3; ++round) EXPECT_FALSE(watch_.refresh());
  EXPECT_EQ(names(), "n1 ");
  EXPECT_NE(failure_.find("watching nodes: connection refused"), std::string::npos) << failure_;
  cluster_.away = "";
  add_node("n2");
  ASSERT_TRUE(watch_.refresh());
  EXPECT_EQ(names(), "n1 n2 ");
  EXPECT_EQ(lists(), 1) << "its version is still known";
}

TEST_F(ResourceWatchTest, PollsWhileOnlyTheWatchIsDenied) {
  cluster_.watch_forbidden = "cannot watch resource \"nodes\"";
  add_node("n2");
  (void)watch_.refresh();
  EXPECT_EQ(names(), "n1 n2 ");
  EXPECT_NE(failure_.find("cannot watch"), std::string::npos) << failure_;
}

}  // namespace
}  // namespace trainyard::launch
