#include "domain/file_system.hpp"

#include <gtest/gtest.h>

namespace trainyard::domain {
namespace {

TEST(FileSystem, PathsStayBelowTheRoot) {
  const FileSystems all = {{"fs-1", {"/srv/a", "", "", false}},
                           {"fs-2", {"/srv/b", "FSxLustre", "fsx", true}},
                           {"fs-3", {"/srv/c", "EFS", "", false}}};
  const auto resolved = [&](const std::string& id, const std::string& path, bool writable = false) {
    const auto source = resolve_source(all, {id, "FSxLustre", path, writable});
    return source ? source->path : source.error().message;
  };
  EXPECT_EQ(resolved("fs-1", "/"), "");
  EXPECT_EQ(resolved("fs-1", "/a//b/./c/"), "a/b/c");
  EXPECT_EQ(resolved("fs-2", "/fsx/data/fsx"), "data/fsx");
  EXPECT_EQ(resolved("fs-2", "/data"), "data");
  EXPECT_EQ(resolved("fs-2", "/fsx"), "");
  EXPECT_EQ(resolved("fs-1", "a"), "DirectoryPath 'a' must start with /");
  EXPECT_EQ(resolved("fs-1", "/a/../b"),
            "DirectoryPath '/a/../b' must not contain '..' or a zero byte");
  EXPECT_EQ(resolved("fs-2", "/data", true), "fs-2 is read-only here: use FileSystemAccessMode ro");
  EXPECT_EQ(resolved("fs-1", "/data", true), "data");
  EXPECT_EQ(resolved("fs-3", "/"), "fs-3 is of type EFS, not FSxLustre");
  EXPECT_EQ(resolved("fs-9", "/"), "unknown file system fs-9: use one of fs-1, fs-2, fs-3");
  EXPECT_NE(resolve_source({}, {"fs-1", "EFS", "/", false}).error().message.find("[file_systems."),
            std::string::npos);
}

TEST(FileSystem, IsUsedOnceItIsAvailable) {
  FileSystem filling{"/srv/a", "FSxLustre", "fsx", false};
  filling.not_available = "creating";
  EXPECT_EQ(resolve_source({{"fs-1", filling}}, {"fs-1", "FSxLustre", "/", false}).error().message,
            "file system fs-1 is creating: a job can use it once it is available");
}

TEST(FileSystem, MayBeUsedByPrincipalsOnItsLists) {
  FileSystem open, of_users, of_roles;
  of_users.users = {"ada"};
  of_roles.roles = {"training", "arn:aws:iam::123456789012:role/audit"};
  const std::string training = "arn:aws:iam::123456789012:role/training";
  EXPECT_TRUE(may_use(open, {"", {}}));
  EXPECT_TRUE(may_use(of_users, {"ada", {""}}));
  EXPECT_FALSE(may_use(of_users, {"eve", {"", training}}));
  EXPECT_FALSE(may_use(of_users, {"", {"arn:aws:iam::123456789012:role/ada"}}))
      << "a role is not a user";
  EXPECT_TRUE(may_use(of_roles, {"eve", {"", training}}));
  EXPECT_TRUE(may_use(of_roles, {"eve", {"arn:aws:iam::123456789012:role/audit"}}));
  EXPECT_FALSE(may_use(of_roles, {"training", {"", ""}})) << "a user is not a role";
  EXPECT_TRUE(may_use(of_roles, {"eve", {"arn:aws:iam::999999999999:role/audit"}}))
      << "the account of an ARN is not compared";
}

TEST(FileSystem, ListsApplyToChannelsAndVolumes) {
  FileSystem closed;
  closed.users = {"ada"};
  JobSpec spec;
  spec.groups.push_back({"default", "1 vCPU", 1});
  Volume volume;
  volume.kind = VolumeKind::shared;
  volume.name = "/fsx";
  spec.groups[0].container_options.volumes = {volume};
  EXPECT_TRUE(check_shared_directories({}, {{"/fsx", closed}}, spec, {"ada", {}}));
  const auto refused = check_shared_directories({}, {{"/fsx", closed}}, spec, {"eve", {}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Kind::denied);
  EXPECT_TRUE(refused.error().message.starts_with("user eve may not use /fsx"))
      << refused.error().message;
  spec.groups[0].container_options.volumes.clear();
  Channel channel;
  channel.file_system = FileSystemSource{"fs-1", "EFS", "", false};
  spec.channels = {channel};
  EXPECT_FALSE(check_shared_directories({{"fs-1", closed}}, {}, spec, {"eve", {}}));
  EXPECT_TRUE(check_shared_directories({{"fs-1", {}}}, {}, spec, {"eve", {}}));
}

TEST(FileSystem, PosixUsersAreNeverRoot) {
  const auto user = parse_posix_user("1000:100");
  ASSERT_TRUE(user);
  EXPECT_EQ(*user, (PosixUser{1000, 100}));
  for (const char* text :
       {"0:0", "0:100", "1000:0", "1000", "", ":", "-1:1", "4294967295:1", "1:4294967296", "a:b"})
    EXPECT_FALSE(parse_posix_user(text)) << text;
  EXPECT_EQ(posix_user_of({}, "ada"), (PosixUser{65534, 65534}));
  EXPECT_EQ(posix_user_of({{"*", {7, 7}}, {"ada", {8, 8}}}, "ada"), (PosixUser{8, 8}));
  EXPECT_EQ(posix_user_of({{"*", {7, 7}}, {"ada", {8, 8}}}, "eve"), (PosixUser{7, 7}));
}

}  // namespace
}  // namespace trainyard::domain
