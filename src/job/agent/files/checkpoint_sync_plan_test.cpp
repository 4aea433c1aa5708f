#include "agent/files/checkpoint_sync_plan.hpp"

#include <gtest/gtest.h>

namespace trainyard::agent {
namespace {

// "a1 b2": file a in its first version, file b in its second. Later letters changed earlier.
std::map<std::string, Stamp> files(const std::string& text) {
  std::map<std::string, Stamp> found;
  size_t at = 0;
  while (at < text.size()) {
    size_t end = text.find(' ', at);
    if (end == std::string::npos) end = text.size();
    const std::string path = text.substr(at, end - at - 1);
    const int64_t version = text[end - 1] - '0';
    found[path] = {1, 1, version * 200 - path[0], version * 200 - path[0]};
    at = end + 1;
  }
  return found;
}

std::string text_of(const SyncPlan& plan) {
  std::string text;
  for (const auto& path : plan.remove_first) text += "!" + path + " ";
  for (const auto& path : plan.upload) text += "+" + path + " ";
  for (const auto& path : plan.remove) text += "-" + path + " ";
  if (plan.waiting > 0) text += "~" + std::to_string(plan.waiting) + " ";
  if (!text.empty()) text.pop_back();
  return text;
}

TEST(PlanSync, Table) {
  struct Case {
    const char *before, *now, *stored;
    bool last;
    const char* plan;
    const char* why;
  };
  const Case cases[] = {
      {"", "", "", false, "", "nothing is nothing"},
      {"", "a1", "", false, "~1", "a new file may still be written"},
      {"a1", "a1", "", false, "+a", "it rests"},
      {"a1", "a1", "a1", false, "", "it is there"},
      {"a1", "a2", "a1", false, "~1", "it changes"},
      {"a2", "a2", "a1", false, "+a", "it changed and rests"},
      {"a1", "a2", "", true, "+a", "at the end everything goes"},
      {"", "a1", "", true, "+a", "what was created between the last two scans is uploaded too"},
      {"a1 b1", "a1 b1", "", false, "+b +a", "in the order of their last change"},
      {"a1 b1", "b1", "a1 b1", false, "", "it may come back in a moment"},
      {"b1", "b1", "a1 b1", false, "-a", "deletions propagate"},
      {"a1 b1", "b1", "a1 b1", true, "-a", "at the end at once"},
      {"a1", "b1", "a1", false, "~1", "a rename"},
      {"b1", "b1", "a1", false, "+b -a", "the new name is uploaded before the old one is removed"},
      {"a/b1", "a/b1", "a1", false, "!a +a/b", "a directory where a file was"},
      {"a1", "a1", "a/b1 a/c1 d1", false, "!a/b !a/c +a -d", "a file where a directory was"},
      {"ab1", "ab1", "a1", false, "+ab -a", "beginnings of names are not in the way"},
  };
  for (const auto& each : cases) {
    const auto plan = plan_sync({files(each.before), true}, {files(each.now), true},
                                files(each.stored), {}, each.last);
    EXPECT_EQ(text_of(plan), each.plan) << each.why;
  }
}

TEST(PlanSync, DeletionsNeedACompleteScan) {
  EXPECT_EQ(text_of(plan_sync({}, {{}, false}, files("a1"), {}, true)), "");
  EXPECT_EQ(text_of(plan_sync({}, {{}, true}, files("a1"), {.deletions = false}, true)), "");
}

// A checkpoint that is replaced more often than it is scanned is not delayed forever.
TEST(PlanSync, ARenamedFileIsComplete) {
  const DirectoryScan written{{{"a", {1, 1, 500, 500}}}, true},
      renamed{{{"a", {2, 1, 500, 501}}}, true};
  EXPECT_EQ(text_of(plan_sync(written, renamed, {}, {}, false)), "+a");
  EXPECT_EQ(text_of(plan_sync(renamed, written, {}, {}, false)), "~1");
}

TEST(PlanSync, CopiesEventFilesWhileTheyGrow) {
  const std::string event = "run/events.out.tfevents.1.algo-1.2.0";
  const DirectoryScan shorter{{{event, {1, 10, 500, 500}}, {"tfevents/a", {2, 10, 500, 500}}},
                              true};
  const DirectoryScan longer{{{event, {1, 20, 600, 600}}, {"tfevents/a", {2, 20, 600, 600}}}, true};
  const SyncRules rules{.deletions = false, .event_files = true};
  EXPECT_EQ(text_of(plan_sync(shorter, longer, shorter.files, rules, false)), "+" + event + " ~1");
  EXPECT_EQ(text_of(plan_sync(shorter, longer, shorter.files, {}, false)), "~2");
  EXPECT_EQ(text_of(plan_sync(longer, longer, longer.files, rules, false)), "");
}

// From any state, with writers that stop writing, the store ends up like the directory.
TEST(PlanSync, TheStoreEndsUpLikeTheDirectory) {
  const char* histories[][4] = {
      {"", "a1", "a2", "a2 b1"}, {"a1 b1", "b1", "c1", ""}, {"a1", "a/b1", "a1", "a2"}};
  for (const auto& history : histories) {
    std::map<std::string, Stamp> stored;
    DirectoryScan before;
    const auto iterate = [&](const char* now, bool last) {
      const DirectoryScan scan{files(now), true};
      const auto plan = plan_sync(before, scan, stored, {}, last);
      for (const auto& path : plan.remove_first) stored.erase(path);
      for (const auto& path : plan.upload) stored[path] = scan.files.at(path);
      for (const auto& path : plan.remove) stored.erase(path);
      before = scan;
    };
    for (const auto* now : history) iterate(now, false);
    iterate(history[3], true);
    EXPECT_EQ(stored, files(history[3]));
  }
}

TEST(PlanSync, PlatformNamesAreLeftOut) {
  EXPECT_FALSE(is_left_out("ckpt-1/model.pt"));
  EXPECT_FALSE(is_left_out("my.sagemaker-uploaded-list"));
  EXPECT_TRUE(is_left_out("ckpt-1.sagemaker-uploaded"));
  EXPECT_TRUE(is_left_out("d/tmpx1.sagemaker-ignore"));
  EXPECT_TRUE(is_left_out("d.sagemaker-ignore/part"));
  EXPECT_TRUE(is_left_out("a/b.sagemaker-uploading"));
}

}  // namespace
}  // namespace trainyard::agent
