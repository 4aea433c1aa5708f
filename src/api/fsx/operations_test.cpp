// Tests of FSx's operations over real directories and a store in memory.
#include "fsx/operations.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <span>
#include <thread>
#include <utility>

#include "file_systems/loop.hpp"
#include "objects/forwarding.hpp"
#include "operations/testing/operation_caller.hpp"
#include "os/files.hpp"
#include "shapes/fsx.hpp"

namespace trainyard::api::fsx {
namespace {

namespace aws = shapes::fsx;
using Texts = std::vector<std::string>;

// Ends after the first byte of each body.
class CutReader final : public objects::Reader {
 public:
  explicit CutReader(std::unique_ptr<objects::Reader> whole) : whole_(std::move(whole)) {}
  const objects::ObjectInfo& info() const override { return whole_->info(); }
  objects::Range range() const override { return whole_->range(); }
  Result<size_t> read(std::span<char> buffer) override {
    if (std::exchange(cut_, true)) return unavailable("the connection was closed");
    return whole_->read(buffer.first(1));
  }

 private:
  std::unique_ptr<objects::Reader> whole_;
  bool cut_ = false;
};

// Fails every read of the keys of one prefix.
class BrokenObjects final : public objects::ForwardingObjects {
 public:
  using ForwardingObjects::ForwardingObjects;
  std::atomic<bool> broken{false};
  std::atomic<bool> held{false};
  Result<std::unique_ptr<objects::Reader>> get(const std::string& bucket, const std::string& key,
                                               std::optional<objects::Range> range) override {
    if (broken && key.starts_with("broken/")) return unavailable("503 Slow Down");
    while (held && key.starts_with("held/")) std::this_thread::sleep_for(1ms);
    if (key.find("denied/") != key.npos) return denied("Access Denied");
    if (key.starts_with("cut/"))
      return std::make_unique<CutReader>(TRY(ForwardingObjects::get(bucket, key, range)));
    return ForwardingObjects::get(bucket, key, range);
  }
};

// Control whose records are used from several threads.
class LockedControl final : public in_memory::PlainControl {
 public:
  using PlainControl::PlainControl;
  std::atomic<bool> keeps_all{false};  // fails changes that remove a record
  std::atomic<int> kept{0};
  void change_records(control::RecordsRequest requested, control::RecordsAnswer answer) override {
    const MutexLock lock(mutex_);
    if (keeps_all && std::ranges::any_of(requested.writes, [](const auto& each) {
          return !each.document.has_value();
        })) {
      ++kept;
      return answer(unavailable("the ledger does not answer"));
    }
    PlainControl::change_records(std::move(requested), std::move(answer));
  }
  std::shared_ptr<const domain::Records> records() override {
    const MutexLock lock(mutex_);
    return PlainControl::records();
  }

 private:
  Mutex mutex_;
};

struct FsxWorld : OperationsWorld {
  LockedControl records{clock};
  BrokenObjects store_of_objects{*objects};
  file_systems::FileSystems all;
  std::optional<file_systems::FileSystemLoop> loop;

  FsxWorld()
      : OperationsWorld(add_operations),
        all({.root = directory.path() + "/fsx", .boot = "boot"}, records) {
    services.file_systems = &all;
    EXPECT_TRUE(objects->create_bucket("data", "eu-west-1"));
    restart();
  }
  void restart() {
    loop.reset();
    loop.emplace(all, store_of_objects, clock);
  }
  void put(const std::string& key, const std::string& text = "x") {
    EXPECT_TRUE(objects::write_all(*objects, "data", key, text));
  }
  std::string object(const std::string& key) {
    const auto text = objects::read_all(*objects, "data", key, 1 << 20);
    return text ? *text : "absent";
  }

  static aws::CreateFileSystemRequest request(const std::string& import = "") {
    aws::CreateFileSystemRequest in;
    in.file_system_type = "LUSTRE";
    in.storage_capacity = 3600;
    in.subnet_ids = Texts{"subnet-0123456789abcdef0"};
    if (!import.empty()) in.lustre_configuration.emplace().import_path = import;
    return in;
  }
  template <class Operation>
  typename Operation::Output made(const typename Operation::Input& in) {
    auto out = call<Operation>(in);
    EXPECT_TRUE(out) << (out ? "" : out.failure(*Operation::shape().service).message);
    return out ? *std::move(out) : typename Operation::Output();
  }
  std::string create(const aws::CreateFileSystemRequest& in) {
    const auto out = made<aws::CreateFileSystem>(in);
    return out.file_system ? *out.file_system->file_system_id : "";
  }
  aws::FileSystem describe(const std::string& id) {
    return made<aws::DescribeFileSystems>({.file_system_ids = Texts{id}}).file_systems->front();
  }
  // Waits for a condition; the loop needs a moment.
  static void wait_for(const std::function<bool()>& reached) {
    for (int i = 0; i < 60'000 && !reached(); ++i) std::this_thread::sleep_for(1ms);
    EXPECT_TRUE(reached());
  }
  aws::FileSystem settled(const std::string& id) {
    wait_for([&] { return describe(id).lifecycle != "CREATING"; });
    return describe(id);
  }
  std::string file(const std::string& id, const std::string& path) {
    const auto text = os::read_file(directory.path() + "/fsx/" + id + "/files/" + path);
    return text ? *text : "absent";
  }
  aws::DataRepositoryTask run(const std::string& id, const std::string& type,
                              const std::string& report = "") {
    aws::CreateDataRepositoryTaskRequest in;
    in.file_system_id = id;
    in.type = type;
    in.report = {.enabled = !report.empty()};
    if (!report.empty())
      in.report = {.enabled = true,
                   .path = report,
                   .format = "REPORT_CSV_20191124",
                   .scope = "FAILED_FILES_ONLY"};
    const auto task = *made<aws::CreateDataRepositoryTask>(in).data_repository_task->task_id;
    const auto find = [&] {
      return made<aws::DescribeDataRepositoryTasks>({.task_ids = Texts{task}})
          .data_repository_tasks->front();
    };
    wait_for([&] { return find().end_time.has_value(); });
    return find();
  }
};

TEST(FileSystems, AreFilledFromS3) {
  FsxWorld world;
  world.put("train/a", "one");
  world.put("train/b/c", "two");
  world.put("other", "three");
  const auto id = world.create(world.request("s3://data/train"));
  const auto found = world.settled(id);
  EXPECT_EQ(found.lifecycle, "AVAILABLE");
  EXPECT_EQ(world.file(id, "a"), "one");
  EXPECT_EQ(world.file(id, "b/c"), "two");
  EXPECT_EQ(world.file(id, "other"), "absent");
  EXPECT_EQ(id.size(), 20u);
  EXPECT_EQ(found.dns_name, id + ".fsx.eu-west-1.amazonaws.com");
  EXPECT_EQ(found.resource_arn, "arn:aws:fsx:eu-west-1:123456789012:file-system/" + id);
  EXPECT_EQ(found.lustre_configuration->mount_name, "fsx");
  const auto& repository = *found.lustre_configuration->data_repository_configuration;
  EXPECT_EQ(repository.import_path, "s3://data/train");
  EXPECT_TRUE(repository.export_path->starts_with("s3://data/FSxLustre20261120T"));
}

TEST(FileSystems, AreRemovedWithTheirFiles) {
  FsxWorld world;
  const auto id = world.create(world.request());
  EXPECT_EQ(world.settled(id).lifecycle, "AVAILABLE");
  EXPECT_EQ(world.made<aws::DeleteFileSystem>({.file_system_id = id}).lifecycle, "DELETING");
  world.wait_for([&] { return world.made<aws::DescribeFileSystems>({}).file_systems->empty(); });
  EXPECT_FALSE(os::exists(world.directory.path() + "/fsx/" + id));
  EXPECT_EQ(world.refusal<aws::DeleteFileSystem>({.file_system_id = id}),
            "FileSystemNotFound: File system '" + id + "' does not exist.");
}

TEST(FileSystems, WaitBeforeTheyAreRemovedAgain) {
  FsxWorld world;
  const auto id = world.create(world.request());
  world.settled(id);
  world.records.keeps_all = true;
  world.made<aws::DeleteFileSystem>({.file_system_id = id});
  world.wait_for([&] { return world.records.kept == 1; });
  for (int i = 0; i < 20; ++i) {
    world.all.wake();
    std::this_thread::sleep_for(2ms);
  }
  EXPECT_EQ(world.records.kept, 1) << "the clock stands still";
  world.records.keeps_all = false;
  world.clock.advance(10s);
  world.all.wake();
  world.wait_for([&] { return world.made<aws::DescribeFileSystems>({}).file_systems->empty(); });
}

TEST(FileSystems, OfARepeatedRequestAreOne) {
  FsxWorld world;
  auto in = world.request();
  in.client_request_token = "token";
  const auto id = world.create(in);
  EXPECT_EQ(world.create(in), id);
  in.storage_capacity = 1200;
  EXPECT_EQ(world.refusal<aws::CreateFileSystem>(in),
            "IncompatibleParameterError: The client request token was used by a request with other "
            "parameters");
  EXPECT_EQ(world.made<aws::DescribeFileSystems>({}).file_systems->size(), 1u);
}

TEST(FileSystems, LeaveBadKeysOutAndSaySo) {
  FsxWorld world;
  world.put("bad/../../etc/passwd");
  world.put("bad/good", "fine");
  world.put("bad/both");
  world.put("bad/both/below");
  const auto id = world.create(world.request("s3://data/bad/"));
  const auto found = world.settled(id);
  EXPECT_EQ(found.lifecycle, "AVAILABLE");
  EXPECT_FALSE(found.failure_details);
  EXPECT_EQ(found.lustre_configuration->data_repository_configuration->failure_details->message,
            "2 of 4 objects were left out: the key 'bad/../../etc/passwd' contains '..', which "
            "would lead out of its directory (and 1 more)");
  EXPECT_EQ(world.file(id, "good"), "fine");
  EXPECT_EQ(world.file(id, "both"), "x");
}

TEST(FileSystems, ThatCannotReadAnObjectFailAndDelayNoOther) {
  FsxWorld world;
  world.put("bad/../x");
  world.put("bad/denied/1");
  world.put("good/file", "fine");
  const auto bad = world.create(world.request("s3://data/bad/"));
  const auto good = world.create(world.request("s3://data/good"));
  const auto failed = world.settled(bad);
  EXPECT_EQ(failed.lifecycle, "FAILED");
  EXPECT_EQ(failed.failure_details->message,
            "2 of 2 objects could not be imported: fetching s3://data/bad/denied/1: Access Denied");
  EXPECT_EQ(world.settled(good).lifecycle, "AVAILABLE");
  EXPECT_EQ(world.file(good, "file"), "fine");
}

TEST(FileSystems, ThatAreBeingFilledContinueAfterARestart) {
  FsxWorld world;
  world.put("held/1", "first");
  world.put("a", "second");
  world.store_of_objects.held = true;
  const auto id = world.create(world.request("s3://data"));
  world.wait_for([&] { return world.file(id, "a") == "second"; });
  EXPECT_EQ(world.describe(id).lifecycle, "CREATING");
  std::thread release([&] {
    std::this_thread::sleep_for(10ms);
    world.store_of_objects.held = false;
  });
  world.restart();
  release.join();
  world.clock.advance(10s);
  EXPECT_EQ(world.settled(id).lifecycle, "AVAILABLE");
  EXPECT_EQ(world.file(id, "held/1"), "first");
}

TEST(FileSystems, AreRemovedWhileOthersAreFilled) {
  FsxWorld world;
  world.put("held/1");
  world.put("a");
  const auto idle = world.create(world.request());
  world.settled(idle);
  world.store_of_objects.held = true;
  Texts filled;
  for (int i = 0; i < 17; ++i) filled.push_back(world.create(world.request("s3://data")));
  const auto begun = [&](const auto& id) { return world.file(id, "a") == "x"; };
  world.wait_for([&] { return std::ranges::count_if(filled, begun) == 16; });
  const auto waiting = *std::ranges::find_if_not(filled, begun);
  for (const auto& id : {idle, waiting}) world.made<aws::DeleteFileSystem>({.file_system_id = id});
  world.wait_for(
      [&] { return world.made<aws::DescribeFileSystems>({}).file_systems->size() == 16; });
  EXPECT_FALSE(begun(waiting));
  world.store_of_objects.held = false;
  world.wait_for([&] {
    return std::ranges::all_of(filled, [&](const auto& id) {
      return id == waiting || world.describe(id).lifecycle == "AVAILABLE";
    });
  });
}

TEST(FileSystems, WaitForAStoreThatDoesNotAnswer) {
  FsxWorld world;
  world.put("broken/1", "text");
  world.store_of_objects.broken = true;
  const auto id = world.create(world.request("s3://data"));
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(5ms);
    world.clock.advance(10s);
    EXPECT_EQ(world.describe(id).lifecycle, "CREATING");
  }
  world.store_of_objects.broken = false;
  world.wait_for([&] {
    world.clock.advance(10s);
    return world.describe(id).lifecycle == "AVAILABLE";
  });
  EXPECT_EQ(world.file(id, "broken/1"), "text");
}

TEST(FileSystems, FailWhenAnObjectBreaksOffEachTime) {
  FsxWorld world;
  world.put("fine", "text");
  world.put("cut/1", "longer text");
  const auto id = world.create(world.request("s3://data"));
  world.wait_for([&] {
    world.clock.advance(10s);
    world.all.wake();
    return world.describe(id).lifecycle != "CREATING";
  });
  const auto found = world.describe(id);
  EXPECT_EQ(found.lifecycle, "FAILED");
  EXPECT_NE(found.failure_details->message->find("the connection was closed"), std::string::npos)
      << *found.failure_details->message;
}

TEST(FileSystems, AreRefusedWithAwsNames) {
  FsxWorld world;
  const auto with = [&](const auto& edit) {
    auto in = world.request();
    in.lustre_configuration.emplace();
    edit(in);
    return world.refusal<aws::CreateFileSystem>(in);
  };
  EXPECT_EQ(with([](auto& in) { in.file_system_type = "WINDOWS"; }),
            "BadRequest: FileSystemType WINDOWS is not offered by this server: use LUSTRE");
  EXPECT_EQ(with([](auto& in) { in.storage_capacity = 5; }),
            "BadRequest: Invalid Lustre FS storage capacity: 5. Must be 1200 or 2400 or a multiple "
            "of 3600.");
  EXPECT_EQ(with([](auto& in) { in.storage_capacity.reset(); }),
            "BadRequest: StorageCapacity is required");
  EXPECT_EQ(with([](auto& in) { in.subnet_ids = Texts{}; }),
            "BadRequest: A LUSTRE file system is in exactly one subnet");
  EXPECT_EQ(with([](auto& in) { in.kms_key_id = "key"; }),
            "BadRequest: KmsKeyId is not offered by this server: encrypt the disk of the server");
  EXPECT_TRUE(with([](auto& in) { in.lustre_configuration->import_path = "s3://none/x"; })
                  .starts_with("InvalidImportPath: The path provided for data repository import "
                               "isn't valid"));
  EXPECT_TRUE(with([](auto& in) {
                in.lustre_configuration->import_path = "s3://data";
                in.lustre_configuration->export_path = "s3://none";
              }).starts_with("InvalidExportPath: "));
  EXPECT_TRUE(with([](auto& in) {
                in.lustre_configuration->per_unit_storage_throughput = 50;
              }).starts_with("IncompatibleParameterError: "));
  EXPECT_TRUE(with([](auto& in) {
                in.lustre_configuration->deployment_type = "PERSISTENT_1";
                in.storage_capacity = 1200;
              }).starts_with("InvalidPerUnitStorageThroughput: "));
  for (const auto& refusal :
       {with([](auto& in) { in.lustre_configuration->automatic_backup_retention_days = 7; }),
        with([](auto& in) { in.lustre_configuration->efa_enabled = true; }),
        with([](auto& in) { in.lustre_configuration->root_squash_configuration.emplace(); }),
        with([](auto& in) { in.lustre_configuration->metadata_configuration.emplace(); }),
        with([](auto& in) {
          in.lustre_configuration->import_path = "s3://data";
          in.lustre_configuration->auto_import_policy = "NEW_CHANGED_DELETED";
        })})
    EXPECT_NE(refusal.find("is not offered by this server"), refusal.npos) << refusal;
  EXPECT_TRUE(world.made<aws::DescribeFileSystems>({}).file_systems->empty());
  world.services.file_systems = nullptr;
  EXPECT_EQ(world.refusal<aws::DescribeFileSystems>({}),
            "BadRequest: FSx is not offered by this server");
}

TEST(FileSystems, AreUpdatedWhereAwsAllowsIt) {
  FsxWorld world;
  auto in = world.request();
  in.lustre_configuration.emplace().deployment_type = "SCRATCH_2";
  in.storage_capacity = 1200;
  const auto id = world.create(in);
  world.settled(id);
  aws::UpdateFileSystemRequest update;
  update.file_system_id = id;
  update.storage_capacity = 2400;
  update.lustre_configuration.emplace().weekly_maintenance_start_time = "2:03:00";
  const auto after = *world.made<aws::UpdateFileSystem>(update).file_system;
  EXPECT_EQ(after.storage_capacity, 2400);
  EXPECT_EQ(after.lustre_configuration->weekly_maintenance_start_time, "2:03:00");
  update.storage_capacity = 1200;
  EXPECT_TRUE(world.refusal<aws::UpdateFileSystem>(update).starts_with("BadRequest: "));
  update.storage_capacity.reset();
  update.lustre_configuration->auto_import_policy = "NEW";  // no import path
  EXPECT_TRUE(
      world.refusal<aws::UpdateFileSystem>(update).starts_with("IncompatibleParameterError: "));
  update.file_system_id = "fs-0000000000000000a";
  EXPECT_TRUE(world.refusal<aws::UpdateFileSystem>(update).starts_with("FileSystemNotFound: "));
}

TEST(FileSystems, AreListedInPagesOfTheirRegion) {
  FsxWorld world;
  for (int i = 0; i < 5; ++i) world.create(world.request());
  Texts ids;
  std::optional<std::string> token;
  do {
    const auto page = world.made<aws::DescribeFileSystems>({.max_results = 2, .next_token = token});
    for (const auto& each : *page.file_systems) ids.push_back(*each.file_system_id);
    token = page.next_token;
  } while (token);
  EXPECT_EQ(ids.size(), 5u);
  EXPECT_EQ(world.refusal<aws::DescribeFileSystems>({.next_token = "bm90aGluZw=="}),
            "BadRequest: The pagination token is not valid");
  world.context.region = "us-east-1";
  EXPECT_TRUE(world.made<aws::DescribeFileSystems>({}).file_systems->empty());
}

TEST(Tasks, ExportWhatIsNewOrChanged) {
  FsxWorld world;
  world.put("in/same", "same");
  world.put("in/changed", "before");
  auto in = world.request("s3://data/in");
  in.lustre_configuration->export_path = "s3://data/out";
  const auto id = world.create(in);
  world.settled(id);
  const std::string files = world.directory.path() + "/fsx/" + id + "/files";
  ASSERT_TRUE(os::write_file(files + "/changed", "after!"));
  ASSERT_TRUE(os::make_directories(files + "/model"));
  ASSERT_TRUE(os::write_file(files + "/model/weights", "w"));
  const auto task = world.run(id, "EXPORT_TO_REPOSITORY", "s3://data/out/reports");
  EXPECT_EQ(task.lifecycle, "SUCCEEDED");
  EXPECT_EQ(task.status->total_count, 3);
  EXPECT_EQ(task.status->succeeded_count, 3);
  EXPECT_EQ(world.object("out/changed"), "after!");
  EXPECT_EQ(world.object("out/model/weights"), "w");
  EXPECT_EQ(world.object("out/same"), "absent");
  EXPECT_EQ(world.object("in/changed"), "before");
  EXPECT_EQ(world.object("out/reports/" + *task.task_id + "/failures.csv"), "");
  const auto first = world.objects->head("data", "out/changed");
  EXPECT_TRUE(first->metadata.contains("file-permissions"));
  // A second export puts nothing.
  world.clock.advance(1h);
  world.run(id, "EXPORT_TO_REPOSITORY");
  EXPECT_EQ(world.objects->head("data", "out/changed")->modified, first->modified);
}

// A file that no job has changed must not replace what others put in its place since.
TEST(Tasks, ExportKeepsNewerObjectsOfUnchangedFiles) {
  FsxWorld world;
  for (const char* name : {"kept", "written", "moved", "gone"})
    world.put(std::string("in/") + name, "v1");
  auto in = world.request("s3://data/in");
  in.lustre_configuration->export_path = "s3://data/in";
  const auto id = world.create(in);
  world.settled(id);
  const std::string files = world.directory.path() + "/fsx/" + id + "/files";
  world.clock.advance(1h);
  for (const char* name : {"kept", "written"}) world.put(std::string("in/") + name, "v2 of others");
  ASSERT_TRUE(world.objects->remove("data", "in/gone"));
  ASSERT_TRUE(os::write_file(files + "/written", "v3 of a job"));
  ASSERT_EQ(std::rename((files + "/moved").c_str(), (files + "/elsewhere").c_str()), 0);
  EXPECT_EQ(world.run(id, "EXPORT_TO_REPOSITORY").lifecycle, "SUCCEEDED");
  EXPECT_EQ(world.object("in/kept"), "v2 of others");
  EXPECT_EQ(world.object("in/written"), "v3 of a job");
  EXPECT_EQ(world.object("in/elsewhere"), "v1");
  EXPECT_EQ(world.object("in/gone"), "v1");
  // What was exported is unchanged, too, until a job writes to it.
  world.clock.advance(1h);
  world.put("in/written", "v4 of others");
  EXPECT_EQ(world.run(id, "EXPORT_TO_REPOSITORY").lifecycle, "SUCCEEDED");
  EXPECT_EQ(world.object("in/written"), "v4 of others");
  ASSERT_TRUE(os::write_file(files + "/written", "v5, a longer one"));
  EXPECT_EQ(world.run(id, "EXPORT_TO_REPOSITORY").lifecycle, "SUCCEEDED");
  EXPECT_EQ(world.object("in/written"), "v5, a longer one");
}

TEST(Tasks, ReportEachFileThatFailed) {
  FsxWorld world;
  const auto id = world.create(world.request("s3://data/in"));
  world.settled(id);
  world.put("in/a..", "fine");
  world.put("in/x/../y");
  auto task = world.run(id, "IMPORT_METADATA_FROM_REPOSITORY");
  EXPECT_EQ(task.lifecycle, "FAILED");
  EXPECT_EQ(task.status->failed_count, 1);
  EXPECT_EQ(task.status->succeeded_count, 1);
  EXPECT_NE(task.failure_details->message->find("'..'"), std::string::npos);
  EXPECT_EQ(world.file(id, "a.."), "fine");
  const auto found = world.describe(id);
  const auto exports = *found.lustre_configuration->data_repository_configuration->export_path;
  task = world.run(id, "IMPORT_METADATA_FROM_REPOSITORY", exports + "/r");
  EXPECT_EQ(world.object(exports.substr(10) + "/r/" + *task.task_id + "/report.csv"),
            "x/../y,failed,S3ObjectPathNotPosixCompliant\n");
  EXPECT_EQ(world.refusal<aws::CancelDataRepositoryTask>({.task_id = task.task_id}),
            "DataRepositoryTaskEnded: The data repository task could not be canceled because the "
            "task has already ended.");
}

TEST(Tasks, AreCancelled) {
  FsxWorld world;
  const auto id = world.create(world.request("s3://data"));
  world.settled(id);
  world.put("held/1");
  world.store_of_objects.held = true;
  aws::CreateDataRepositoryTaskRequest in;
  in.file_system_id = id;
  in.type = "IMPORT_METADATA_FROM_REPOSITORY";
  in.report = {.enabled = false};
  const auto task = *world.made<aws::CreateDataRepositoryTask>(in).data_repository_task->task_id;
  EXPECT_TRUE(world.refusal<aws::CreateDataRepositoryTask>(in).starts_with(
      "DataRepositoryTaskExecuting: An existing data repository task is currently executing"));
  EXPECT_TRUE(world.refusal<aws::DeleteFileSystem>({.file_system_id = id})
                  .starts_with("BadRequest: The file system cannot be deleted while"));
  EXPECT_EQ(world.made<aws::CancelDataRepositoryTask>({.task_id = task}).lifecycle, "CANCELING");
  world.store_of_objects.held = false;
  const auto find = [&] {
    return world.made<aws::DescribeDataRepositoryTasks>({.task_ids = Texts{task}})
        .data_repository_tasks->front();
  };
  world.wait_for([&] { return find().end_time.has_value(); });
  EXPECT_EQ(find().lifecycle, "CANCELED");
  in.type = "RELEASE_DATA_FROM_FILESYSTEM";
  EXPECT_TRUE(
      world.refusal<aws::CreateDataRepositoryTask>(in).starts_with("UnsupportedOperation: "));
}

TEST(Associations, LinkDirectories) {
  FsxWorld world;
  world.put("in/a", "one");
  auto in = world.request();
  in.lustre_configuration.emplace().deployment_type = "PERSISTENT_2";
  in.lustre_configuration->per_unit_storage_throughput = 125;
  in.storage_capacity = 1200;
  const auto id = world.create(in);
  world.settled(id);
  aws::CreateDataRepositoryAssociationRequest link;
  link.file_system_id = id;
  link.file_system_path = "/ns";
  link.data_repository_path = "s3://data/in";
  link.batch_import_meta_data_on_create = true;
  link.s3.emplace().auto_import_policy.emplace().events = Texts{"NEW", "CHANGED"};
  const auto association =
      *world.made<aws::CreateDataRepositoryAssociation>(link).association->association_id;
  const auto find = [&] {
    return world
        .made<aws::DescribeDataRepositoryAssociations>({.association_ids = Texts{association}})
        .associations->front();
  };
  world.wait_for([&] { return find().lifecycle == "AVAILABLE"; });
  EXPECT_EQ(world.file(id, "ns/a"), "one");
  world.put("in/b", "two");
  world.wait_for([&] {
    world.clock.advance(60s);
    return world.file(id, "ns/b") == "two";
  });
  const std::string files = world.directory.path() + "/fsx/" + id + "/files";
  ASSERT_TRUE(os::write_file(files + "/ns/c", "three"));
  ASSERT_TRUE(os::write_file(files + "/unlinked", "four"));
  EXPECT_EQ(world.run(id, "EXPORT_TO_REPOSITORY").lifecycle, "SUCCEEDED");
  EXPECT_EQ(world.object("in/c"), "three");
  EXPECT_EQ(world.object("unlinked"), "absent");
  link.s3->auto_import_policy->events = Texts{"DELETED"};
  EXPECT_TRUE(
      world.refusal<aws::CreateDataRepositoryAssociation>(link).starts_with("BadRequest: "));
  link.s3.reset();
  EXPECT_TRUE(world.refusal<aws::CreateDataRepositoryAssociation>(link).starts_with(
      "BadRequest: FileSystemPath /ns overlaps"));
  world.made<aws::DeleteDataRepositoryAssociation>(
      {.association_id = association, .delete_data_in_file_system = true});
  world.wait_for([&] {
    return world.made<aws::DescribeDataRepositoryAssociations>({}).associations->empty();
  });
  EXPECT_EQ(world.file(id, "ns/a"), "absent");
  EXPECT_EQ(world.file(id, "unlinked"), "four");
}

TEST(Tags, AreOfAllResources) {
  FsxWorld world;
  auto in = world.request();
  in.tags = std::vector<aws::Tag>{{.key = "Name", .value = "ImageNet2012 dataset"}};
  const auto arn = *world.made<aws::CreateFileSystem>(in).file_system->resource_arn;
  world.made<aws::TagResource>(
      {.resource_arn = arn, .tags = std::vector<aws::Tag>{{.key = "a", .value = "b"}}});
  world.made<aws::UntagResource>({.resource_arn = arn, .tag_keys = Texts{"Name"}});
  const auto tags = *world.made<aws::ListTagsForResource>({.resource_arn = arn}).tags;
  ASSERT_EQ(tags.size(), 1u);
  EXPECT_EQ(tags[0].key, "a");
  EXPECT_TRUE(world.refusal<aws::ListTagsForResource>({.resource_arn = arn + "0"})
                  .starts_with("ResourceNotFound: "));
  EXPECT_TRUE(
      world
          .refusal<aws::TagResource>(
              {.resource_arn = arn, .tags = std::vector<aws::Tag>{{.key = "aws:x", .value = ""}}})
          .starts_with("BadRequest: "));
}

}  // namespace
}  // namespace trainyard::api::fsx
