#include "containers/cgroup.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "os/files.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::containers {
namespace {

// Makes a tree of cgroup files on a disk, as in the kernel's documentation (cgroup-v2.rst,
// cgroup-v1/). It does not react to writes, so tests compare the steps of plans.
using Files = std::map<std::string, std::string>;
class Tree {
 public:
  explicit Tree(const Files& files) {
    for (const auto& [name, content] : files) {
      const std::string path = directory_.path() + "/" + name;
      EXPECT_TRUE(os::make_directories(path.substr(0, path.rfind('/'))));
      EXPECT_TRUE(os::write_file(path, content));
    }
  }
  const std::string& path() const { return directory_.path(); }
  std::string mountinfo_of_v2() const {
    return "30 23 0:26 / " + path() + " rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
  }

 private:
  os::TemporaryDirectory directory_;
};

// Returns one line for each step, without the path of the tree.
std::string text_of(const std::vector<CgroupStep>& steps, const std::string& root) {
  static constexpr const char* kWhat[] = {"make", "write", "write if there", "write if we may"};
  std::string text;
  for (const auto& step : steps)
    text += std::string(kWhat[size_t(step.what)]) + " " + step.path.substr(root.size()) +
            (step.value.empty() ? "" : " = " + step.value) + "\n";
  return text;
}

const CgroupLimits kLimits{1.5, 512 << 20, 4096, {}};

TEST(CgroupLayout, ReadsV1HybridAndV2) {
  const auto hybrid = parse_cgroup_layout(
      "35 31 0:31 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
      "33 31 0:31 / /sys/fs/cgroup/cpu,cpuacct rw shared:3 - cgroup cgroup rw,cpu,cpuacct\n"
      "40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd\n"
      "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n");
  EXPECT_EQ(hybrid.mode, CgroupMode::hybrid);
  EXPECT_EQ(hybrid.hybrid_unified, "/sys/fs/cgroup/unified");
  ASSERT_TRUE(hybrid.with("cpuacct"));
  EXPECT_EQ(hybrid.with("cpuacct")->path, "/sys/fs/cgroup/cpu,cpuacct");
  EXPECT_FALSE(hybrid.with("pids"));
  const auto v2 = parse_cgroup_layout(
      "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
  EXPECT_EQ(v2.mode, CgroupMode::v2);
  EXPECT_EQ(v2.hybrid_unified, "");
  EXPECT_EQ(parse_cgroup_layout("22 27 0:21 / /proc rw - proc proc rw\n").mode, CgroupMode::none);
}

TEST(CgroupLayout, ReadsTheControllersOfAV2Tree) {
  struct Case {
    const char* controllers;
    std::vector<std::string> expected;
  } const cases[] = {
      {"cpuset cpu io memory hugetlb pids rdma misc\n",
       {"cpuset", "cpu", "io", "memory", "hugetlb", "pids", "rdma", "misc"}},
      {"memory pids\n", {"memory", "pids"}},
      {"\n", {}},
  };
  for (const auto& each : cases) {
    const Tree tree(Files{{"cgroup.controllers", each.controllers}});
    const auto layout = with_offered_controllers(parse_cgroup_layout(tree.mountinfo_of_v2()));
    ASSERT_EQ(layout.hierarchies.size(), 1u);
    EXPECT_EQ(layout.hierarchies[0].controllers, each.expected);
  }
}

struct DelegationCase {
  const char* what;
  std::string mountinfo, own;
  std::vector<std::string> writable;
  std::vector<std::string> expected;  // directories in which the server's groups are made
};

void expect_delegated(const std::vector<DelegationCase>& cases) {
  for (const auto& each : cases) {
    const auto delegated = delegated_layout(
        parse_cgroup_layout(each.mountinfo), each.own, [&](const std::string& directory) {
          return std::find(each.writable.begin(), each.writable.end(), directory) !=
                 each.writable.end();
        });
    std::vector<std::string> found;
    for (const auto& hierarchy : delegated.hierarchies)
      found.push_back(hierarchy.path + hierarchy.base);
    EXPECT_EQ(found, each.expected) << each.what;
  }
}

// Tests the cgroup that systemd delegates to a user, and that of a login without systemd.
TEST(CgroupLayout, FindsTheDelegatedPartOfV2) {
  const std::string v2 =
      "30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
  const std::string part = "30 23 0:26 /docker/x /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n";
  const std::string scope = "/user.slice/user-1000.slice/user@1000.service/app.slice/run-1.scope";
  expect_delegated({
      {"v2, delegated",
       v2,
       "0::" + scope + "\n",
       {"/sys/fs/cgroup" + scope},
       {"/sys/fs/cgroup" + scope}},
      {"v2, not delegated", v2, "0::/user.slice/user-1000.slice/session-2.scope\n", {}, {}},
      {"v2, moved aside before",
       v2,
       "0::" + scope + "/trainyard.server\n",
       {"/sys/fs/cgroup" + scope},
       {"/sys/fs/cgroup" + scope}},
      {"v2, in the root", v2, "0::/\n", {}, {}},
      {"v2, in the root of a namespace of groups",
       v2,
       "0::/\n",
       {"/sys/fs/cgroup"},
       {"/sys/fs/cgroup"}},
      {"v2, in another's container",
       part,
       "0::/docker/x/init\n",
       {"/sys/fs/cgroup/init"},
       {"/sys/fs/cgroup/init"}},
      {"v2, a part that we are not in", part, "0::/docker/xy\n", {"/sys/fs/cgroup/docker/xy"}, {}},
  });
}

TEST(CgroupLayout, FindsTheDelegatedPartOfV1) {
  const std::string v1 =
      "35 31 0:31 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
      "36 31 0:32 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
      "37 31 0:33 / /sys/fs/cgroup/devices rw - cgroup cgroup rw,devices\n";
  expect_delegated({
      {"v1, all",
       v1,
       "4:memory:/u\n3:cpu,cpuacct:/u\n2:devices:/u\n0::/\n",
       {"/sys/fs/cgroup/memory/u", "/sys/fs/cgroup/cpu,cpuacct/u", "/sys/fs/cgroup/devices/u"},
       {"/sys/fs/cgroup/memory/u", "/sys/fs/cgroup/cpu,cpuacct/u"}},
      {"v1, memory alone",
       v1,
       "4:memory:/u\n3:cpu,cpuacct:/\n",
       {"/sys/fs/cgroup/memory/u"},
       {"/sys/fs/cgroup/memory/u"}},
      {"a name with a colon",
       v1,
       "4:memory:/u:1\n",
       {"/sys/fs/cgroup/memory/u:1"},
       {"/sys/fs/cgroup/memory/u:1"}},
      {"nothing known", v1, "", {}, {}},
  });
}

TEST(CgroupPlan, PlansV2) {
  const Tree tree(Files{{"cgroup.controllers", "cpuset cpu io memory pids\n"}});
  const auto layout = with_offered_controllers(parse_cgroup_layout(tree.mountinfo_of_v2()));
  const auto steps = plan_cgroup(layout, "j1a1-0.1f", kLimits, 8, {"c 195:0 rwm"});
  ASSERT_TRUE(steps) << steps.error().message;
  EXPECT_EQ(text_of(*steps, tree.path()),
            "make /trainyard\n"
            "write /cgroup.subtree_control = +cpu\n"
            "write /trainyard/cgroup.subtree_control = +cpu\n"
            "write /cgroup.subtree_control = +memory\n"
            "write /trainyard/cgroup.subtree_control = +memory\n"
            "write /cgroup.subtree_control = +pids\n"
            "write /trainyard/cgroup.subtree_control = +pids\n"
            "make /trainyard/j1a1-0.1f\n"
            "write if we may /trainyard/cpu.weight = 800\n"
            "write if we may /trainyard/j1a1-0.1f/cpu.weight = 150\n"
            "write /trainyard/j1a1-0.1f/memory.max = 536870912\n"
            "write if there /trainyard/j1a1-0.1f/memory.swap.max = 0\n"
            "write /trainyard/j1a1-0.1f/pids.max = 4096\n");
  EXPECT_EQ(text_of(plan_cpu_limit(layout, "j1a1-0.1f", 1.5), tree.path()),
            "write /trainyard/j1a1-0.1f/cpu.max = 150000 100000\n");
  EXPECT_TRUE(plan_cpu_limit(layout, "j1a1-0.1f", 0).empty());
  EXPECT_EQ(Cgroup::named("j1a1-0.1f", layout).entrances(),
            std::vector<std::string>{tree.path() + "/trainyard/j1a1-0.1f/cgroup.procs"});
}

TEST(CgroupPlan, PlansV2BelowADelegatedGroup) {
  const Tree tree({{"user/me/cgroup.controllers", "memory pids\n"},
                   {"cgroup.controllers", "cpu memory pids\n"}});
  const auto layout = with_offered_controllers(
      delegated_layout(parse_cgroup_layout(tree.mountinfo_of_v2()), "0::/user/me\n",
                       [](const std::string&) { return true; }));
  const auto refused = plan_cgroup(layout, "x.1", kLimits, 8, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Kind::denied);
  EXPECT_NE(refused.error().message.find("'cpu'"), std::string::npos)
      << "the root offers it, and he has it not";
  const auto steps = plan_cgroup(layout, "x.1", {0, 1 << 30, 100, {}}, 8, {});
  ASSERT_TRUE(steps) << steps.error().message;
  EXPECT_EQ(text_of(*steps, tree.path()),
            "make /user/me/trainyard\n"
            "write /user/me/cgroup.subtree_control = +memory\n"
            "write /user/me/trainyard/cgroup.subtree_control = +memory\n"
            "write /user/me/cgroup.subtree_control = +pids\n"
            "write /user/me/trainyard/cgroup.subtree_control = +pids\n"
            "make /user/me/trainyard/x.1\n"
            "write /user/me/trainyard/x.1/memory.max = 1073741824\n"
            "write if there /user/me/trainyard/x.1/memory.swap.max = 0\n"
            "write /user/me/trainyard/x.1/pids.max = 100\n");
}

TEST(CgroupPlan, PlansV1) {
  const auto layout = parse_cgroup_layout(
      "35 31 0:31 / /c/memory rw,relatime - cgroup cgroup rw,memory\n"
      "36 31 0:32 / /c/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
      "37 31 0:33 / /c/devices rw - cgroup cgroup rw,devices\n"
      "38 31 0:34 / /c/pids rw - cgroup cgroup rw,pids\n"
      "39 31 0:35 / /c/blkio rw - cgroup cgroup rw,blkio\n");
  const auto steps = plan_cgroup(layout, "x.1", kLimits, 2, {"c 195:0 rwm"});
  ASSERT_TRUE(steps) << steps.error().message;
  EXPECT_EQ(text_of(*steps, "/c"),
            "make /memory/trainyard/x.1\n"
            "make /cpu,cpuacct/trainyard/x.1\n"
            "make /devices/trainyard/x.1\n"
            "make /pids/trainyard/x.1\n"
            "write if we may /cpu,cpuacct/trainyard/cpu.shares = 2048\n"
            "write if we may /cpu,cpuacct/trainyard/x.1/cpu.shares = 1536\n"
            "write /memory/trainyard/x.1/memory.limit_in_bytes = 536870912\n"
            "write if there /memory/trainyard/x.1/memory.memsw.limit_in_bytes = 536870912\n"
            "write /pids/trainyard/x.1/pids.max = 4096\n"
            "write /devices/trainyard/x.1/devices.deny = a\n"
            "write /devices/trainyard/x.1/devices.allow = c 195:0 rwm\n");
  EXPECT_EQ(text_of(plan_cpu_limit(layout, "x.1", 0.5), "/c"),
            "write /cpu,cpuacct/trainyard/x.1/cpu.cfs_period_us = 100000\n"
            "write /cpu,cpuacct/trainyard/x.1/cpu.cfs_quota_us = 50000\n");
}

TEST(CgroupPlan, NamesAMissingController) {
  struct Case {
    const char* offered;
    CgroupLimits limits;
    const char* missing;  // "": none
  } const cases[] = {
      {"cpu memory pids", kLimits, ""},  {"memory pids", kLimits, "'cpu'"},
      {"cpu pids", kLimits, "'memory'"}, {"cpu memory", kLimits, "'pids'"},
      {"", {0, 0, 0, {}}, ""},
  };
  for (const auto& each : cases) {
    const Tree tree(Files{{"cgroup.controllers", each.offered}});
    const auto steps =
        plan_cgroup(with_offered_controllers(parse_cgroup_layout(tree.mountinfo_of_v2())), "x.1",
                    each.limits, 1, {});
    EXPECT_EQ(bool(steps), *each.missing == 0) << each.offered;
    const std::string message = steps ? "" : steps.error().message;
    EXPECT_NE(message.find(each.missing), std::string::npos) << message;
  }
}

// Reads the files of a v2 group after a job that reached its memory limit.
TEST(CgroupUse, IsReadFromV2) {
  const std::string group = "trainyard/x.1/";
  const Tree tree(
      {{"cgroup.controllers", "cpu memory pids\n"},
       {group + "cgroup.procs", "812\n7\n813\n"},
       {group + "cpu.stat",
        "usage_usec 2500000\nuser_usec 2000000\nsystem_usec 500000\nnr_periods 12\nnr_throttled 3\n"
        "throttled_usec 90000\n"},
       {group + "memory.current", "52428800\n"},
       {group + "memory.stat",
        "anon 31457280\nfile 20971520\ninactive_anon 0\ninactive_file 10485760\n"},
       {group + "memory.events", "low 0\nhigh 0\nmax 41\noom 1\noom_kill 1\noom_group_kill 0\n"},
       {"trainyard/well.1/memory.events", "low 0\nhigh 0\nmax 3\noom 1\noom_kill 0\n"},
       {"trainyard/well.1/memory.current", "max\n"},
       {"trainyard/well.1/cpu.stat", "user_usec 1\n"}});
  const auto layout = with_offered_controllers(parse_cgroup_layout(tree.mountinfo_of_v2()));
  const Cgroup full = Cgroup::named("x.1", layout), well = Cgroup::named("well.1", layout);
  EXPECT_TRUE(full.exists());
  EXPECT_EQ(full.processes(), (std::vector<int>{7, 812, 813}));
  EXPECT_TRUE(full.out_of_memory());
  EXPECT_EQ(full.cpu_used(),
            std::optional<std::chrono::nanoseconds>(std::chrono::milliseconds(2500)));
  EXPECT_EQ(full.memory_used(), std::optional<int64_t>(40 << 20))
      << "without the cache that can be given back";
  EXPECT_FALSE(well.out_of_memory()) << "it reached the limit, and no process was killed";
  EXPECT_FALSE(well.memory_used());
  EXPECT_FALSE(well.cpu_used());
  const Cgroup none = Cgroup::named("gone.1", layout);
  EXPECT_FALSE(none.exists());
  EXPECT_FALSE(none.out_of_memory());
  EXPECT_TRUE(none.processes().empty());
}

TEST(CgroupUse, IsReadFromV1) {
  const Tree tree(
      {{"memory/trainyard/x.1/memory.usage_in_bytes", "4096000\n"},
       {"memory/trainyard/x.1/memory.stat",
        "cache 5\ninactive_file 1\ntotal_inactive_file 96000\n"},
       {"memory/trainyard/x.1/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"},
       {"memory/trainyard/x.1/cgroup.procs", "5\n"},
       {"cpu/trainyard/x.1/cpuacct.usage", "1234567890\n"},
       {"cpu/trainyard/x.1/cgroup.procs", "5\n6\n"}});
  const auto layout = parse_cgroup_layout("35 31 0:31 / " + tree.path() +
                                          "/memory rw - cgroup cgroup rw,memory\n36 31 0:32 / " +
                                          tree.path() + "/cpu rw - cgroup cgroup rw,cpu,cpuacct\n");
  const Cgroup group = Cgroup::named("x.1", layout);
  EXPECT_TRUE(group.out_of_memory());
  EXPECT_EQ(group.cpu_used(), std::optional(std::chrono::nanoseconds(1234567890)));
  EXPECT_EQ(group.memory_used(), std::optional<int64_t>(4'000'000));
  EXPECT_EQ(group.processes(), (std::vector<int>{5, 6}));
}

TEST(CgroupUse, IsUnknownWithoutAGroup) {
  const CgroupLayout none;
  const Cgroup group = Cgroup::named("x.1", none);
  EXPECT_FALSE(group.exists() || group.out_of_memory() || group.cpu_used() || group.memory_used());
  EXPECT_TRUE(group.entrances().empty());
  EXPECT_TRUE(group.kill(1s));
  EXPECT_TRUE(group.remove());
}

TEST(CgroupLayout, NamesDifferByDirectory) {
  EXPECT_EQ(cgroup_name("j1a1-0", "/a/b"), cgroup_name("j1a1-0", "/a/b/"));
  EXPECT_NE(cgroup_name("j1a1-0", "/a/b"), cgroup_name("j1a1-0", "/a/c"));
}

}  // namespace
}  // namespace trainyard::containers
