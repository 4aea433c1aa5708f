#include "domain/file_system.hpp"

#include <gtest/gtest.h>

namespace trainyard::domain {
namespace {

TEST(FileSystem, PathsStayBelowTheRoot) {
  const FileSystems all = {{"fs-1", {"/srv/a", "", "", false}},
                           {"fs-2", {"/srv/b", "FSxLustre", "fsx", true}},
                           {"fs-3", {"/srv/c", "EFS", "", false}}};
  const auto told = [&](const std::string& id, const std::string& path, bool writable = false) {
    const auto source = resolve_source(all, {id, "FSxLustre", path, writable});
    return source ? source->path : source.error().message;
  };
  EXPECT_EQ(told("fs-1", "/"), "");
  EXPECT_EQ(told("fs-1", "/a//b/./c/"), "a/b/c");
  EXPECT_EQ(told("fs-2", "/fsx/data/fsx"), "data/fsx");
  EXPECT_EQ(told("fs-2", "/data"), "data");
  EXPECT_EQ(told("fs-2", "/fsx"), "");
  EXPECT_EQ(told("fs-1", "a"), "DirectoryPath 'a' must begin with /");
  EXPECT_EQ(told("fs-1", "/a/../b"), "DirectoryPath '/a/../b' must not leave the file system");
  EXPECT_EQ(told("fs-2", "/data", true), "fs-2 is read-only here: use FileSystemAccessMode ro");
  EXPECT_EQ(told("fs-1", "/data", true), "data");
  EXPECT_EQ(told("fs-3", "/"), "fs-3 is of type EFS, not FSxLustre");
  EXPECT_EQ(told("fs-9", "/"), "there is no file system fs-9: there is fs-1, fs-2, fs-3");
  EXPECT_NE(resolve_source({}, {"fs-1", "EFS", "/", false}).error().message.find("[file_systems."),
            std::string::npos);
}

}  // namespace
}  // namespace trainyard::domain
