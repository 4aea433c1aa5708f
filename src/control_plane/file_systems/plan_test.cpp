// Tests which work begins.
#include "file_systems/plan.hpp"

#include <gtest/gtest.h>

namespace trainyard::file_systems {
namespace {

constexpr Instant kNow{Duration{1'000'000}};

struct PlanWorld {
  Snapshot snapshot;
  std::set<std::string> busy;
  std::map<std::string, Instant> imported;

  LustreFileSystem& file_system(const std::string& id, Lifecycle lifecycle) {
    auto& made = snapshot.file_systems["r/" + id];
    made.id = id;
    made.lifecycle = lifecycle;
    return made;
  }
  std::vector<Work> plan() const { return plan_work(snapshot, busy, imported, kNow); }
};

TEST(Plan, FollowsTheLifeCycle) {
  const std::pair<Lifecycle, std::optional<WorkKind>> rows[] = {
      {Lifecycle::creating, WorkKind::fill},
      {Lifecycle::available, std::nullopt},
      {Lifecycle::failed, std::nullopt},
      {Lifecycle::deleting, WorkKind::remove}};
  for (const auto& [lifecycle, kind] : rows) {
    PlanWorld world;
    world.file_system("fs-1", lifecycle);
    const auto work = world.plan();
    ASSERT_EQ(work.size(), kind ? 1u : 0u);
    if (kind) {
      EXPECT_EQ(work[0], (Work{*kind, "r/fs-1"}));
    }
    world.busy = {"r/fs-1"};
    EXPECT_TRUE(world.plan().empty());
  }
}

TEST(Plan, GivesAFileSystemOnePieceOfWork) {
  PlanWorld world;
  world.file_system("fs-1", Lifecycle::available).auto_import = AutoImport::added;
  world.file_system("fs-2", Lifecycle::creating);
  world.snapshot.associations["r/dra-1"].file_system = "fs-1";
  world.snapshot.tasks["r/task-1"].file_system = "fs-1";
  world.snapshot.tasks["s/task-2"].file_system = "fs-1";  // in another region
  EXPECT_EQ(world.plan(),
            (std::vector<Work>{{WorkKind::link, "r/fs-1", "r/dra-1"}, {WorkKind::fill, "r/fs-2"}}));
  world.snapshot.associations["r/dra-1"].lifecycle = Lifecycle::deleting;
  EXPECT_EQ(world.plan()[0], (Work{WorkKind::unlink, "r/fs-1", "r/dra-1"}));
  world.snapshot.associations.clear();
  EXPECT_EQ(world.plan()[0], (Work{WorkKind::run_task, "r/fs-1", "r/task-1"}));
  world.snapshot.tasks["r/task-1"].state = TaskState::succeeded;
  EXPECT_EQ(world.plan()[0], (Work{WorkKind::import_changes, "r/fs-1"}));
}

TEST(Plan, ImportsChangesAtIntervals) {
  PlanWorld world;
  world.file_system("fs-1", Lifecycle::available).auto_import = AutoImport::added_changed;
  EXPECT_EQ(world.plan().size(), 1u);
  world.imported["r/fs-1"] = kNow - kAutoImportInterval + 1ms;
  EXPECT_TRUE(world.plan().empty());
  world.imported["r/fs-1"] = kNow - kAutoImportInterval;
  EXPECT_EQ(world.plan().size(), 1u);
  world.imported["r/fs-1"] = kNow + 1h;  // the clock was set back
  EXPECT_EQ(world.plan().size(), 1u);
}

TEST(Plan, CancelsWorkThatIsNoLongerNeeded) {
  PlanWorld world;
  const Work fill{WorkKind::fill, "r/fs-1"}, task{WorkKind::run_task, "r/fs-1", "r/task-1"},
      remove{WorkKind::remove, "r/fs-1"};
  EXPECT_TRUE(is_cancelled(world.snapshot, fill));
  world.file_system("fs-1", Lifecycle::creating);
  EXPECT_FALSE(is_cancelled(world.snapshot, fill));
  EXPECT_TRUE(is_cancelled(world.snapshot, task));
  world.snapshot.tasks["r/task-1"].file_system = "fs-1";
  EXPECT_FALSE(is_cancelled(world.snapshot, task));
  world.snapshot.tasks["r/task-1"].state = TaskState::canceling;
  EXPECT_TRUE(is_cancelled(world.snapshot, task));
  world.file_system("fs-1", Lifecycle::deleting);
  EXPECT_TRUE(is_cancelled(world.snapshot, fill));
  EXPECT_FALSE(is_cancelled(world.snapshot, remove));
}

}  // namespace
}  // namespace trainyard::file_systems
