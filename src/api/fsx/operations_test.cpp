// Tests FSx's operations on file systems, and the work that follows.
#include <gtest/gtest.h>

#include "fsx/testing/fsx_world.hpp"

namespace trainyard::api::fsx {
namespace {

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

TEST(FileSystems, AreRemovedOnceNoHostMountsThem) {
  FsxWorld world;
  const auto id = world.create(world.request());
  const auto other = world.create(world.request());
  world.settled(id);
  world.settled(other);
  domain::Job job;
  job.key = {.region = "eu-west-1", .name = "train"};
  job.state = domain::JobState::active;
  job.spec.channels.resize(1);
  job.spec.channels[0].file_system = domain::FileSystemSource{id, "FSxLustre", "", true};
  world.records.set_job(job);
  EXPECT_EQ(world.refusal<aws::DeleteFileSystem>({.file_system_id = id}),
            "BadRequest: The file system is in use by 1 job that waits or runs: stop them first, "
            "or delete it after they have ended");
  // The job has ended, and still has its hosts.
  job.state = domain::JobState::completed;
  job.warm_pool.emplace().state = domain::WarmPoolState::available;
  world.records.set_job(job);
  ASSERT_EQ(world.records.live_jobs().size(), 1u);
  world.made<aws::DeleteFileSystem>({.file_system_id = id});
  world.made<aws::DeleteFileSystem>({.file_system_id = other});
  const auto count = [&] { return world.made<aws::DescribeFileSystems>({}).file_systems->size(); };
  world.wait_for([&] { return count() == 1; });
  EXPECT_EQ(world.describe(id).lifecycle, "DELETING");
  EXPECT_TRUE(os::exists(world.directory.path() + "/fsx/" + id));
  job.warm_pool.reset();
  world.records.set_job(job);
  ASSERT_TRUE(world.records.live_jobs().empty());
  world.wait_for([&] { return count() == 0; });
  EXPECT_FALSE(os::exists(world.directory.path() + "/fsx/" + id));
}

TEST(FileSystems, WaitBeforeTheyAreRemovedAgain) {
  FsxWorld world;
  const auto id = world.create(world.request());
  world.settled(id);
  world.records.rejects_removals = true;
  world.made<aws::DeleteFileSystem>({.file_system_id = id});
  world.wait_for([&] { return world.records.rejected == 1; });
  for (int i = 0; i < 20; ++i) {
    world.all.wake();
    std::this_thread::sleep_for(2ms);
  }
  EXPECT_EQ(world.records.rejected, 1) << "the clock stands still";
  world.records.rejects_removals = false;
  world.clock.advance(10s);
  world.all.wake();
  world.wait_for([&] { return world.made<aws::DescribeFileSystems>({}).file_systems->empty(); });
}

TEST(FileSystems, AreCreatedOnceByARepeatedRequest) {
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

TEST(FileSystems, LeaveOutAndReportUnusableKeys) {
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

TEST(FileSystems, FailWithTheirImportWithoutDelayingOthers) {
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

TEST(FileSystems, ContinueImportsAfterARestart) {
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

TEST(FileSystems, FetchADamagedObjectOnceMore) {
  FsxWorld world;
  world.put("fine", "text");
  world.put("damaged/1", "longer text");
  const auto created_with = [&](int damaged) {
    world.store_of_objects.damaged = damaged;
    const auto id = world.create(world.request("s3://data"));
    world.wait_for([&] {
      world.clock.advance(10s);
      world.all.wake();
      return world.describe(id).lifecycle != "CREATING";
    });
    return id;
  };
  const auto again = created_with(1);
  EXPECT_EQ(world.describe(again).lifecycle, "AVAILABLE");
  EXPECT_EQ(world.file(again, "damaged/1"), "longer text");
  const auto failed = world.describe(created_with(1'000'000));
  EXPECT_EQ(failed.lifecycle, "FAILED");
  EXPECT_NE(failed.failure_details->message->find("the bytes do not match the object's checksum"),
            std::string::npos)
      << *failed.failure_details->message;
}

TEST(FileSystems, FailIfAnObjectIsAlwaysTruncated) {
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

TEST(FileSystems, AreRejectedWithAwssErrors) {
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

}  // namespace
}  // namespace trainyard::api::fsx
