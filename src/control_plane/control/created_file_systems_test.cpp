// Tests jobs on file systems that requests have created, and may have deleted when a job starts.
#include <gtest/gtest.h>

#include "control/gang.hpp"
#include "control/testing/test_cluster.hpp"
#include "wire/codec.hpp"

namespace trainyard::control {
namespace {

struct FileSystemCluster : test::TestCluster {
  domain::FileSystems created;
  std::string queried_region;

  FileSystemCluster() {
    settings.file_systems["fs-1"] = {"/srv/configured", "", "", false};
    settings.created_file_systems = [this](const std::string& region) {
      queried_region = region;
      return created;
    };
    restart();
  }
  // Returns the directories in the order of a job with a channel of each file system.
  Result<std::map<std::string, std::string>> directories(const std::vector<std::string>& ids) {
    domain::Job of = *find("n");
    for (const auto& id : ids) {
      domain::Channel channel;
      channel.name = "c-" + id;
      channel.file_system = domain::FileSystemSource{id, "FSxLustre", "", false};
      of.spec.channels.push_back(std::move(channel));
    }
    ImageResolver images(settings.images);
    const auto gang = TRY(gang_of(settings, images, of, {of.number, 1}, clock.now()));
    return TRY(wire::decode_order(gang.members.front().order)).file_systems;
  }
};

TEST(CreatedFileSystems, AreOfTheJobsRegion) {
  FileSystemCluster cluster;
  ASSERT_TRUE(cluster.create(cluster.job("n")));
  cluster.created["fs-1"] = {"/srv/other", "", "", false};
  cluster.created["fs-2"] = {"/srv/created", "FSxLustre", "fsx", false};
  const std::map<std::string, std::string> wanted{{"fs-1", "/srv/configured"},
                                                  {"fs-2", "/srv/created"}};
  EXPECT_EQ(*cluster.directories({"fs-1", "fs-2"}), wanted);
  EXPECT_EQ(cluster.queried_region, "us-east-1");
}

TEST(CreatedFileSystems, AMissingFileSystemFailsTheJobWithAnExplanation) {
  FileSystemCluster cluster;
  ASSERT_TRUE(cluster.create(cluster.job("n")));
  EXPECT_EQ(cluster.directories({"fs-2"}).error().message,
            "the file system fs-2 of channel c-fs-2 is no longer in the config, or was deleted");
  cluster.created["fs-2"].not_available = "deleting";
  EXPECT_EQ(cluster.directories({"fs-2"}).error().message,
            "the file system fs-2 of channel c-fs-2 is deleting");
}

}  // namespace
}  // namespace trainyard::control
