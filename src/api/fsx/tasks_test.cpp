// Tests FSx's operations on tasks, associations and tags.
#include <gtest/gtest.h>

#include <cstdio>

#include "fsx/testing/fsx_world.hpp"

namespace trainyard::api::fsx {
namespace {

TEST(Tasks, ExportNewAndChangedFiles) {
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

// A file that no job has changed must not replace an object that was put there later.
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
  // An exported file is unchanged, too, until a job writes to it.
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
