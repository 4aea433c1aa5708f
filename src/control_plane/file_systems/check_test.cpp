// Tests which requests are allowed.
#include "file_systems/check.hpp"

#include <gtest/gtest.h>

namespace trainyard::file_systems {
namespace {

LustreFileSystem file_system(Deployment deployment, int64_t gib, int64_t throughput = 0,
                             const std::string& storage = "SSD", const std::string& cache = "") {
  LustreFileSystem made;
  made.id = "fs-01";
  made.deployment = deployment;
  made.capacity_gib = gib;
  made.throughput_per_tib = throughput;
  made.storage_type = storage;
  made.drive_cache = cache;
  made.mount_name = "fsx";
  made.lifecycle = Lifecycle::available;
  return made;
}

TEST(Size, HasTheStepsOfItsDeployment) {
  struct Row {
    Deployment deployment;
    int64_t throughput;
    std::string storage, cache;
    std::vector<int64_t> allowed, rejected;
  };
  const Row rows[] = {
      {Deployment::scratch_1, 0, "SSD", "", {1200, 2400, 3600, 7200}, {0, -1200, 1, 4800, 6000}},
      {Deployment::scratch_2, 0, "SSD", "", {1200, 2400, 4800}, {3600, 1201, 6000}},
      {Deployment::persistent_1, 50, "SSD", "", {1200, 2400, 7200}, {3600}},
      {Deployment::persistent_1, 12, "HDD", "NONE", {6000, 12000}, {1200, 1800}},
      {Deployment::persistent_1, 40, "HDD", "READ", {1800, 3600}, {1200, 6001}},
      {Deployment::persistent_2, 125, "SSD", "", {1200, 2400}, {3600}},
  };
  for (const Row& row : rows) {
    for (const int64_t gib : row.allowed)
      EXPECT_TRUE(
          check_size(file_system(row.deployment, gib, row.throughput, row.storage, row.cache)))
          << gib;
    for (const int64_t gib : row.rejected) {
      const auto checked =
          check_size(file_system(row.deployment, gib, row.throughput, row.storage, row.cache));
      ASSERT_FALSE(checked) << gib;
      EXPECT_TRUE(checked.error().is(Fault::bad_request));
    }
  }
  EXPECT_EQ(check_size(file_system(Deployment::scratch_2, 3600)).error().message,
            "Invalid Lustre FS storage capacity: 3600. Must be 1200 or a multiple of 2400.");
}

TEST(Size, HasTheThroughputOfItsDeployment) {
  const auto fault = [](Deployment deployment, int64_t throughput, const std::string& storage,
                        const std::string& cache, int64_t gib) {
    const auto checked = check_size(file_system(deployment, gib, throughput, storage, cache));
    return checked ? std::optional<Fault>() : checked.error().detail.as<Fault>();
  };
  EXPECT_EQ(fault(Deployment::scratch_2, 50, "SSD", "", 1200), Fault::incompatible_parameter);
  EXPECT_EQ(fault(Deployment::persistent_1, 0, "SSD", "", 1200), Fault::invalid_throughput);
  EXPECT_EQ(fault(Deployment::persistent_1, 125, "SSD", "", 1200), Fault::invalid_throughput);
  EXPECT_EQ(fault(Deployment::persistent_2, 50, "SSD", "", 1200), Fault::invalid_throughput);
  EXPECT_EQ(fault(Deployment::persistent_2, 1000, "SSD", "", 1200), std::nullopt);
  EXPECT_EQ(fault(Deployment::scratch_1, 0, "HDD", "NONE", 6000), Fault::incompatible_parameter);
  EXPECT_EQ(fault(Deployment::persistent_1, 12, "HDD", "", 6000), Fault::incompatible_parameter);
  EXPECT_EQ(fault(Deployment::scratch_1, 0, "SSD", "READ", 1200), Fault::incompatible_parameter);
  EXPECT_EQ(fault(Deployment::scratch_1, 0, "INTELLIGENT_TIERING", "", 1200), Fault::unsupported);
}

TEST(Size, OnlyGrows) {
  const auto present = file_system(Deployment::scratch_2, 2400);
  EXPECT_TRUE(check_growth(present, 4800));
  EXPECT_FALSE(check_growth(present, 2400));
  EXPECT_FALSE(check_growth(present, 1200));
  EXPECT_FALSE(check_growth(present, 3600));
  EXPECT_TRUE(
      check_growth(file_system(Deployment::scratch_1, 1200), 2400).error().is(Fault::unsupported));
}

TEST(Paths, AreOfOneBucket) {
  auto requested = file_system(Deployment::scratch_1, 1200);
  requested.created = Instant{Duration{1'795'167'900'000}};
  EXPECT_EQ(*check_paths(requested), "");
  requested.import_path = "s3://data/train";
  EXPECT_EQ(*check_paths(requested), "s3://data/FSxLustre20261120T094500Z");
  requested.export_path = "s3://data/out";
  EXPECT_EQ(*check_paths(requested), "s3://data/out");
  requested.export_path = "s3://other/out";
  EXPECT_TRUE(check_paths(requested).error().is(Fault::invalid_export_path));
  requested.import_path = "http://data/train";
  EXPECT_TRUE(check_paths(requested).error().is(Fault::invalid_import_path));
  requested.import_path = "s3:///train";
  EXPECT_TRUE(check_paths(requested).error().is(Fault::invalid_import_path));
  requested.import_path = "";
  EXPECT_TRUE(check_paths(requested).error().is(Fault::incompatible_parameter));
  requested.export_path = "";
  requested.auto_import = AutoImport::added;
  EXPECT_TRUE(check_paths(requested).error().is(Fault::incompatible_parameter));
  auto newest = file_system(Deployment::persistent_2, 1200, 125);
  newest.import_path = "s3://data/train";
  EXPECT_TRUE(check_paths(newest).error().is(Fault::incompatible_parameter));
}

TEST(Paths, RepositoryPathsEndWithASlash) {
  EXPECT_EQ(parse_repository("s3://bucket")->key, "");
  EXPECT_EQ(parse_repository("s3://bucket/")->key, "");
  EXPECT_EQ(parse_repository("s3://bucket/a/b")->key, "a/b/");
  EXPECT_EQ(parse_repository("s3://bucket/a/b/")->bucket, "bucket");
  EXPECT_FALSE(parse_repository("s3://bucket/" + std::string(2000, 'x')));
}

TEST(Directories, AreBelowTheRoot) {
  EXPECT_EQ(*parse_directory("/"), "");
  EXPECT_EQ(*parse_directory("/a//b/"), "a/b");
  EXPECT_EQ(*parse_directory("a"), "a");
  for (const char* path : {"/..", "/a/../b", "/./a", "a/.."})
    EXPECT_FALSE(parse_directory(path)) << path;
  EXPECT_FALSE(parse_directory(std::string("/a\0b", 4)));
  EXPECT_TRUE(overlap("a", "a/b") && overlap("", "x") && overlap("a", "a"));
  EXPECT_FALSE(overlap("a", "ab") || overlap("a/b", "a/c"));
}

struct SnapshotWorld {
  Snapshot snapshot;
  SnapshotWorld() { snapshot.file_systems["r/fs-01"] = file_system(Deployment::scratch_2, 1200); }
  Association association(const std::string& path, const std::string& repository) {
    Association requested;
    requested.id = "dra-01";
    requested.file_system = "fs-01";
    requested.path = path;
    requested.repository = repository;
    requested.lifecycle = Lifecycle::available;
    return requested;
  }
};

TEST(Associations, DoNotOverlap) {
  SnapshotWorld world;
  world.snapshot.associations["r/dra-01"] = world.association("a", "s3://data/x");
  const auto check = [&](const std::string& path, const std::string& repository) {
    return bool(check_association(world.snapshot, "r", world.association(path, repository)));
  };
  EXPECT_TRUE(check("b", "s3://data/y"));
  EXPECT_TRUE(check("ab", "s3://data/xy"));
  EXPECT_FALSE(check("a/b", "s3://data/y"));
  EXPECT_FALSE(check("", "s3://data/y"));
  EXPECT_FALSE(check("b", "s3://data/x/y"));
  EXPECT_FALSE(check("b", "s3://data"));
  EXPECT_TRUE(check_association(world.snapshot, "elsewhere", world.association("b", "s3://data/y"))
                  .error()
                  .is(Fault::file_system_missing));
}

TEST(Associations, HaveALimitAndAFileSystemWithoutImportPath) {
  SnapshotWorld world;
  auto& owner = world.snapshot.file_systems["r/fs-01"];
  for (size_t i = 0; i < kAssociationsOfFileSystemMax; ++i)
    world.snapshot.associations["r/dra-" + std::to_string(i)] =
        world.association("d" + std::to_string(i), "s3://data/d" + std::to_string(i));
  const auto requested = world.association("new", "s3://data/new");
  EXPECT_TRUE(check_association(world.snapshot, "r", requested).error().is(Fault::limit_exceeded));
  world.snapshot.associations.clear();
  owner.import_path = "s3://data/in";
  EXPECT_TRUE(check_association(world.snapshot, "r", requested).error().is(Fault::unsupported));
  owner.import_path = "";
  owner.lifecycle = Lifecycle::creating;
  EXPECT_TRUE(check_association(world.snapshot, "r", requested).error().is(Fault::bad_request));
}

TEST(Tasks, RunOneAtATimeOnLinkedPaths) {
  SnapshotWorld world;
  RepositoryTask requested;
  requested.id = "task-02";
  requested.file_system = "fs-01";
  requested.kind = TaskKind::export_files;
  EXPECT_TRUE(
      check_task(world.snapshot, "r", requested).error().is(Fault::bad_request));  // no link
  world.snapshot.associations["r/dra-01"] = world.association("a", "s3://data/x");
  EXPECT_TRUE(check_task(world.snapshot, "r", requested));
  requested.paths = {"a/b"};
  EXPECT_TRUE(check_task(world.snapshot, "r", requested));
  requested.paths = {"b"};
  EXPECT_FALSE(check_task(world.snapshot, "r", requested));
  requested.paths.clear();
  auto& other = world.snapshot.tasks["r/task-01"];
  other.file_system = "fs-01";
  for (const TaskState state : enumerators<TaskState>()) {
    other.state = state;
    EXPECT_EQ(bool(check_task(world.snapshot, "r", requested)), is_over(state));
  }
}

TEST(Tasks, FinishedTasksAreDroppedOldestFirst) {
  SnapshotWorld world;
  for (size_t i = 0; i < kTasksKeptMax + 5; ++i) {
    auto& task = world.snapshot.tasks["r/task-" + std::to_string(i)];
    task.created = Instant{Duration{int64_t(i)}};
    task.state = i == 0 ? TaskState::executing : TaskState::succeeded;
  }
  drop_old_tasks(world.snapshot, "r");
  EXPECT_EQ(world.snapshot.tasks.size(), kTasksKeptMax);
  EXPECT_TRUE(world.snapshot.tasks.contains("r/task-0"));
  EXPECT_FALSE(world.snapshot.tasks.contains("r/task-5"));
  EXPECT_TRUE(world.snapshot.tasks.contains("r/task-6"));
}

TEST(Deletion, WaitsForJobsAndTasks) {
  SnapshotWorld world;
  EXPECT_TRUE(check_deletion(world.snapshot, "r", "fs-01", 0));
  EXPECT_EQ(check_deletion(world.snapshot, "r", "fs-01", 2).error().message,
            "The file system is in use by 2 jobs that wait or run: stop them first, or delete it "
            "after they have ended");
  EXPECT_TRUE(
      check_deletion(world.snapshot, "r", "fs-02", 0).error().is(Fault::file_system_missing));
  world.snapshot.tasks["r/task-01"].file_system = "fs-01";
  EXPECT_FALSE(check_deletion(world.snapshot, "r", "fs-01", 0));
  world.snapshot.file_systems["r/fs-01"].lifecycle = Lifecycle::deleting;
  EXPECT_TRUE(check_deletion(world.snapshot, "r", "fs-01", 2));
}

TEST(Records, AreReadAsTheyWereWritten) {
  SnapshotWorld world;
  auto& owner = world.snapshot.file_systems["r/fs-01"];
  owner.tags = {{"Name", "ImageNet"}};
  owner.subnets = {"subnet-1"};
  owner.created = Instant{Duration{7}};
  world.snapshot.associations["r/dra-01"] = world.association("a", "s3://data/x");
  auto& task = world.snapshot.tasks["r/task-01"];
  task.id = "task-01";
  task.paths = {"a"};
  task.started = Instant{Duration{9}};
  Snapshot read;
  for (const auto& write : difference({}, world.snapshot))
    ASSERT_TRUE(add_record(read, write.key, *write.document)) << dump(*write.document);
  EXPECT_EQ(read.file_systems, world.snapshot.file_systems);
  EXPECT_EQ(read.associations, world.snapshot.associations);
  EXPECT_EQ(read.tasks, world.snapshot.tasks);
  EXPECT_TRUE(difference(read, world.snapshot).empty());
  EXPECT_EQ(difference(world.snapshot, {}).size(), 3u);
  EXPECT_FALSE(add_record(read, {"fsx_file_system", "r/fs-02"}, Json::object()));
  EXPECT_FALSE(add_record(read, {"fsx_file_system", "fs-02"}, Json::object()));
}

}  // namespace
}  // namespace trainyard::file_systems
