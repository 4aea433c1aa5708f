// Tests which files an import creates from which objects.
#include "file_systems/import_plan.hpp"

#include <gtest/gtest.h>

namespace trainyard::file_systems {
namespace {

Instant at(int64_t milliseconds) { return Instant{Duration{milliseconds}}; }

objects::ObjectInfo object(const std::string& key, uint64_t bytes = 1, int64_t modified = 5) {
  objects::ObjectInfo info;
  info.key = key;
  info.bytes = bytes;
  info.modified = at(modified);
  return info;
}

std::vector<std::string> paths_of(const ImportPlan& plan) {
  std::vector<std::string> paths;
  for (const Fetch& each : plan.fetches) paths.push_back(each.path + (each.directory ? "/" : ""));
  return paths;
}
using Paths = std::vector<std::string>;

TEST(ImportPlan, PlacesKeysBelowTheDirectory) {
  const auto plan =
      plan_import({object("in/"), object("in/a"), object("in/b/c", 10), object("in/empty/")}, "in/",
                  "ns", {}, {}, ImportMode::all);
  EXPECT_EQ(paths_of(plan), (Paths{"ns/a", "ns/b/c", "ns/empty/"}));
  EXPECT_EQ(plan.bytes, 11u);
  EXPECT_TRUE(plan.failures.empty());
}

TEST(ImportPlan, RejectsKeysThatEscapeTheDirectory) {
  const std::string hostile[] = {"in/../../etc/passwd",
                                 "in/a/../b",
                                 "in/..",
                                 "in/./a",
                                 std::string("in/a\0b", 6),
                                 "in//",
                                 "in/" + std::string(300, 'x')};
  for (const std::string& key : hostile) {
    const auto plan =
        plan_import({object(key), object("in/good")}, "in/", "", {}, {}, ImportMode::all);
    EXPECT_EQ(paths_of(plan), Paths{"good"}) << key;
    ASSERT_EQ(plan.failures.size(), 1u) << key;
    EXPECT_EQ(plan.failures[0].code, "S3ObjectPathNotPosixCompliant");
  }
  // A leading slash does not make the path absolute.
  EXPECT_EQ(*path_of_key("in//etc/passwd", "in/", ""), "etc/passwd");
  EXPECT_EQ(*path_of_key("/etc/passwd", "", ""), "etc/passwd");
}

TEST(ImportPlan, KeepsOneOfTwoKeysForOneFile) {
  const auto plan =
      plan_import({object("a//b"), object("a/b"), object("c")}, "", "", {}, {}, ImportMode::all);
  EXPECT_EQ(paths_of(plan), (Paths{"a/b", "c"}));
  ASSERT_EQ(plan.failures.size(), 1u);
  EXPECT_EQ(plan.failures[0].why, "the keys 'a//b' and 'a/b' would be the same file");
}

TEST(ImportPlan, KeepsAFileWhereAnotherKeyNeedsADirectory) {
  const auto plan = plan_import({object("a"), object("a/"), object("a/b"), object("a/b/c")}, "",
                                "ns", {}, {}, ImportMode::all);
  EXPECT_EQ(paths_of(plan), Paths{"ns/a"});
  EXPECT_EQ(plan.failures.size(), 3u);
}

TEST(ImportPlan, KeepsFilesThatAreUpToDate) {
  const Files present{{"same", {1, at(5)}},
                      {"newer-file", {9, at(6)}},
                      {"older-file", {1, at(4)}},
                      {"other-size", {2, at(5)}}};
  const std::vector<objects::ObjectInfo> listed{object("newer-file"), object("older-file"),
                                                object("other-size"), object("same"), object("x")};
  const auto all = plan_import(listed, "", "", {}, present, ImportMode::all);
  EXPECT_EQ(paths_of(all), (Paths{"older-file", "other-size", "x"}));
  EXPECT_EQ(all.present, 2u);
  EXPECT_EQ(paths_of(plan_import(listed, "", "", {}, present, ImportMode::added)), Paths{"x"});
}

TEST(ImportPlan, ImportsOnlyTheNamedPaths) {
  const auto plan = plan_import({object("a/b"), object("a/c"), object("ab"), object("d/..")}, "",
                                "", {"a"}, {}, ImportMode::all);
  EXPECT_EQ(paths_of(plan), (Paths{"a/b", "a/c"}));
  EXPECT_TRUE(plan.failures.empty());
}

TEST(ImportPlan, SumsSizesWithoutOverflow) {
  EXPECT_EQ(plan_import({object("a", UINT64_MAX), object("b", UINT64_MAX)}, "", "", {}, {},
                        ImportMode::all)
                .bytes,
            UINT64_MAX);
}

TEST(Report, HasAwsEncoding) {
  const auto line = [](const std::string& path) {
    return report_line({path, "S3AccessDenied", "why"});
  };
  EXPECT_EQ(line("dir/file"), "dir/file,failed,S3AccessDenied\n");
  EXPECT_EQ(line("@filename.txt"), "\"\"\"@filename.txt\"\"\",failed,S3AccessDenied\n");
  EXPECT_EQ(line("+filename.txt"), "\"\"\"+filename.txt\"\"\",failed,S3AccessDenied\n");
  EXPECT_EQ(line("file,name.txt"), "\"file,name.txt\",failed,S3AccessDenied\n");
  EXPECT_EQ(line("file\"name.txt"), "\"file\"\"name.txt\",failed,S3AccessDenied\n");
  EXPECT_EQ(line("two\nlines"), "two lines,failed,S3AccessDenied\n");
}

}  // namespace
}  // namespace trainyard::file_systems
