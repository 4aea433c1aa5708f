#include "containers/system_call_filter.hpp"

#include <gtest/gtest.h>

#include <set>

namespace trainyard::containers {
namespace {

Json profile(std::initializer_list<Json> rules) {
  return {{"defaultAction", "SCMP_ACT_ERRNO"}, {"syscalls", Json(rules)}};
}

Json allow(std::initializer_list<const char*> names, Json includes = Json::object(),
           Json excludes = Json::object()) {
  return {{"names", Json(std::vector<std::string>(names.begin(), names.end()))},
          {"action", "SCMP_ACT_ALLOW"},
          {"args", Json::array()},
          {"includes", std::move(includes)},
          {"excludes", std::move(excludes)}};
}

std::set<std::string> allowed_names(const Json& filter) {
  std::set<std::string> names;
  for (const auto& rule : filter["syscalls"])
    if (rule["action"] == "SCMP_ACT_ALLOW")
      for (const auto& name : rule["names"]) names.insert(name.get<std::string>());
  return names;
}

TEST(SystemCallFilter, DeniesCallsThatTheProfileDoesNotList) {
  const auto filter = make_system_call_filter(profile({allow({"read", "write"})}), "x86_64", {});
  ASSERT_TRUE(filter) << filter.error().message;
  EXPECT_EQ((*filter)["defaultAction"], "SCMP_ACT_ERRNO");
  EXPECT_EQ((*filter)["defaultErrnoRet"], 38);
  EXPECT_EQ(allowed_names(*filter), (std::set<std::string>{"read", "write", "clone", "socket"}));
}

TEST(SystemCallFilter, RemovesCallsThatJobsDoNotNeed) {
  const auto filter =
      make_system_call_filter(profile({allow({"read", "mount", "fsopen", "ptrace", "keyctl",
                                              "io_uring_setup", "clone3", "unshare"})}),
                              "x86_64", {});
  ASSERT_TRUE(filter);
  EXPECT_EQ(allowed_names(*filter), (std::set<std::string>{"read", "clone", "socket"}));
}

TEST(SystemCallFilter, DependsOnArchitectureAndCapabilities) {
  const Json rules = profile({allow({"arch_prctl"}, {{"arches", {"amd64"}}}),
                              allow({"breakpoint"}, {{"arches", {"arm64"}}}),
                              allow({"chroot"}, {{"caps", {"CAP_SYS_CHROOT"}}}),
                              allow({"vserver"}, {{"caps", {"CAP_SYS_ADMIN"}}}),
                              allow({"nice"}, Json::object(), {{"caps", {"CAP_SYS_CHROOT"}}})});
  const auto filter = make_system_call_filter(rules, "x86_64", {"CAP_SYS_CHROOT"});
  ASSERT_TRUE(filter);
  EXPECT_EQ(allowed_names(*filter),
            (std::set<std::string>{"arch_prctl", "chroot", "clone", "socket"}));
  EXPECT_EQ((*filter)["architectures"], Json::array({"SCMP_ARCH_X86_64"}));
}

TEST(SystemCallFilter, RejectsAProfileThatIsNotAnAllowList) {
  Json open = profile({allow({"read"})});
  open["defaultAction"] = "SCMP_ACT_ALLOW";
  EXPECT_FALSE(make_system_call_filter(open, "x86_64", {}));
  EXPECT_FALSE(make_system_call_filter(Json::array(), "x86_64", {}));
  EXPECT_FALSE(make_system_call_filter({{"defaultAction", "SCMP_ACT_ERRNO"}}, "x86_64", {}));
  EXPECT_FALSE(make_system_call_filter(profile({Json{{"names", 3}, {"action", "SCMP_ACT_ALLOW"}}}),
                                       "x86_64", {}));
}

TEST(SystemCallFilter, DeniesEveryNamespaceFlagOfClone) {
  const auto filter = make_system_call_filter(profile({allow({"clone"})}), "x86_64", {});
  ASSERT_TRUE(filter);
  uint64_t flags = 0;
  for (const auto& rule : (*filter)["syscalls"])
    if (rule["names"] == Json::array({"clone"})) {
      ASSERT_TRUE(rule.contains("args")) << "clone is never allowed whole";
      if (rule["action"] == "SCMP_ACT_ERRNO") flags |= rule["args"][0]["value"].get<uint64_t>();
    }
  EXPECT_EQ(flags, 0x7E020000u);
}

TEST(SystemCallFilter, IsMadeFromTheProfileOfThisMachine) {
  const auto profile = system_call_profile();
  ASSERT_TRUE(profile) << profile.error().message;
  const auto filter = make_system_call_filter(*profile, "x86_64", {"CAP_SYS_CHROOT"});
  ASSERT_TRUE(filter) << filter.error().message;
  const auto names = allowed_names(*filter);
  for (const char* needed :
       {"read", "futex", "execve", "mmap", "epoll_wait", "chroot", "setuid", "memfd_create"})
    EXPECT_TRUE(names.contains(needed)) << needed;
  for (const char* refused : {"io_uring_setup", "bpf", "userfaultfd", "keyctl", "mount", "unshare"})
    EXPECT_FALSE(names.contains(refused)) << refused;
}

}  // namespace
}  // namespace trainyard::containers
