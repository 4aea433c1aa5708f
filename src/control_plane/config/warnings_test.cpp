#include "config/warnings.hpp"

#include <gtest/gtest.h>

#include "policy/identity_seed.hpp"

namespace trainyard::config {
namespace {

const launch::Machine kHere{"here", 2, int64_t{24} << 30, 0};

std::vector<std::string> warnings(const std::string& text) {
  const auto config = parse_config(text, "server.toml");
  EXPECT_TRUE(config) << config.error().message;
  policy::IdentitySeed seed = config->identities;
  seed.keys.push_back({"AKIAOWNER", "secret", "owner"});
  return warnings_of(*config, kHere, *policy::identities_of("123456789012", seed));
}

TEST(ConfigWarnings, NoneForAConfigThatFits) {
  EXPECT_EQ(warnings(""), std::vector<std::string>());
  EXPECT_EQ(warnings(R"(
      [[machine]]
      name = "box"
      cpus = 2
      memory_gib = 24
      [[user]]
      name = "ann"
      [[role]]
      name = "Sweep"
      [[quota]]
      user = "ann"
      instance_type = "ml.m5.large"
      count = 1
      [[quota]]
      user = "Sweep"
      instance_type = "ml.m5.large"
      count = 1
      [[quota]]
      instance_type = "ml.m5.large"
      count = 1
      [[storage_quota]]
      user = "owner"
      gib = 1
      [[storage_quota]]
      user = "*"
      gib = 1
      [posix_users]
      ann = "1000:1000"
      "*" = "65534:65534"
      [[peer]]
      access_key_id = "AKIAOWNER"
  )"),
            std::vector<std::string>());
}

TEST(ConfigWarnings, MachinesLargerThanThisOne) {
  const auto found = warnings("[[machine]]\nname = 'box'\ncpus = 64\nmemory_gib = 999\ngpus = 8\n");
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0],
            "machine[0].memory_gib: box offers 999 GiB of memory to jobs, but this machine has "
            "24.0 GiB: jobs that use what they get run out of memory");
  EXPECT_EQ(found[1],
            "machine[0].cpus: box offers 64 to jobs, but this machine has 2: jobs share them, and "
            "run slower");
  EXPECT_EQ(found[2],
            "machine[0].gpus: box offers 8 to jobs, but this machine has 0: jobs that need more do "
            "not start");
}

TEST(ConfigWarnings, MachinesThatTogetherAreLargerThanThisOne) {
  const auto found = warnings(
      "[[machine]]\nname = 'a'\ncpus = 1.5\nmemory_gib = 2\n"
      "[[machine]]\nname = 'b'\ncpus = 1\nmemory_gib = 2\n");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0],
            "machine.cpus: the machines together offer 2.5 to jobs, but this machine has 2: jobs "
            "share them, and run slower");
}

TEST(ConfigWarnings, ReportUnknownUsers) {
  const auto found = warnings(R"(
      [[quota]]
      user = "bob"
      instance_type = "ml.m5.large"
      count = 1
      [[storage_quota]]
      user = "bob"
      gib = 1
      [posix_users]
      bob = "1000:1000"
      [file_systems.fs-1]
      directory = "/srv/data"
      users = ["bob"]
      [volumes."/fsx"]
      users = ["bob"]
      [[registry]]
      host = "yard.lan:5000"
      username = "team"
      password = "secret"
      users = ["bob"]
      [[peer]]
      access_key_id = "AKIABOB"
  )");
  const std::vector<std::string> keys = {
      "quota[0].user",           "storage_quota.user",     "posix_users",
      "file_systems.fs-1.users", "volumes.\"/fsx\".users", "registry[0].users",
      "peer.access_key_id"};
  ASSERT_EQ(found.size(), keys.size());
  for (size_t i = 0; i < keys.size(); ++i) EXPECT_TRUE(found[i].starts_with(keys[i] + ": "));
  EXPECT_EQ(found[0],
            "quota[0].user: user or role 'bob' not found, so the quota limits nothing; correct the "
            "name, or make the user with `trainyard user add bob`");
}

TEST(ConfigWarnings, StorageQuotasOfAnExternalStore) {
  const auto found = warnings(
      "[objects]\nendpoint = 'https://minio.lan'\n[[storage_quota]]\nbucket = '*'\ngib = 1\n");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].find("storage_quota: limits nothing"), std::string::npos);
}

}  // namespace
}  // namespace trainyard::config
