#include "containers/oci_bundle.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

namespace trainyard::containers {
namespace {

ContainerSpec a_bundle_spec() {
  ContainerSpec spec;
  spec.id = "j1a1-0";
  spec.directory = "/data/attempts/j1a1/0/bundle";
  spec.arguments = {"train"};
  spec.hostname = "algo-1";
  spec.network_namespace = "/run/netns/x";
  return spec;
}

const std::vector<SystemEntry> kSystem = {{"/usr", SystemEntry::Kind::directory, ""},
                                          {"/bin", SystemEntry::Kind::link, "usr/bin"},
                                          {"/etc/passwd", SystemEntry::Kind::file, ""},
                                          {"/etc/ssl/certs", SystemEntry::Kind::directory, ""}};

const IdRange kIds{kFirstRange, kIdsOfRange};

Result<Bundle> bundle_of(const ContainerSpec& spec, const std::optional<IdRange>& ids) {
  TRY(check_container(spec, kSystem));
  return make_bundle(spec, kSystem, {"/stage"}, ids, Json::object());
}

Json mount_at(const Json& config, const std::string& destination) {
  for (const auto& mount : config["mounts"])
    if (mount["destination"] == destination) return mount;
  return {};
}

TEST(Bundle, GivesRootRightsOnlyOverItsOwnIds) {
  const auto bundle = bundle_of(a_bundle_spec(), kIds);
  ASSERT_TRUE(bundle) << bundle.error().message;
  const Json& process = bundle->config["process"];
  EXPECT_EQ(process["noNewPrivileges"], true);
  EXPECT_TRUE(process["rlimits"].empty());
  EXPECT_TRUE(process["capabilities"]["ambient"].empty());
  EXPECT_TRUE(process["capabilities"]["inheritable"].empty());
  for (const char* set : {"bounding", "effective", "permitted"}) {
    const auto names = process["capabilities"][set].get<std::set<std::string>>();
    for (const char* given :
         {"CAP_CHOWN", "CAP_SETUID", "CAP_SETGID", "CAP_SYS_CHROOT", "CAP_DAC_OVERRIDE"})
      EXPECT_TRUE(names.contains(given)) << set << given;
    for (const char* kept :
         {"CAP_SYS_ADMIN", "CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_MKNOD", "CAP_SYS_PTRACE",
          "CAP_SYS_MODULE", "CAP_SYS_RAWIO", "CAP_SYS_TIME", "CAP_SYS_RESOURCE", "CAP_BPF"})
      EXPECT_FALSE(names.contains(kept)) << set << kept;
  }
  for (const char* map : {"uidMappings", "gidMappings"})
    EXPECT_EQ(bundle->config["linux"][map],
              Json::array({{{"containerID", 0}, {"hostID", kFirstRange}, {"size", kIdsOfRange}}}));
}

TEST(Bundle, MapsIdsInThePiecesOfItsOwnNamespace) {
  const IdRange ids{0, 1001, {1, 65535}, {1, 999, 500}};
  const auto bundle = bundle_of(a_bundle_spec(), ids);
  ASSERT_TRUE(bundle) << bundle.error().message;
  const auto text_of = [&](const char* map) {
    std::string text;
    for (const auto& each : bundle->config["linux"][map])
      text += std::to_string(each["containerID"].get<int>()) + "=" +
              std::to_string(each["hostID"].get<int>()) + "+" +
              std::to_string(each["size"].get<int>()) + " ";
    return text;
  };
  EXPECT_EQ(text_of("uidMappings"), "0=0+1 1=1+1000 ");
  EXPECT_EQ(text_of("gidMappings"), "0=0+1 1=1+999 1000=1000+1 ");
}

TEST(Bundle, LimitsProcessesByUserWhenConfigured) {
  auto spec = a_bundle_spec();
  EXPECT_TRUE(bundle_of(spec, kIds)->config["process"]["rlimits"].empty());
  spec.pids_max = 5000;
  spec.pids_max_by_user = true;
  const Json expected = Json::array({{{"type", "RLIMIT_NPROC"}, {"hard", 5000}, {"soft", 5000}}});
  EXPECT_EQ(bundle_of(spec, kIds)->config["process"]["rlimits"], expected);
}

TEST(Bundle, GivesOtherUsersNoCapabilities) {
  auto spec = a_bundle_spec();
  spec.user_id = 1000;
  const auto bundle = bundle_of(spec, kIds);
  ASSERT_TRUE(bundle);
  EXPECT_TRUE(bundle->config["process"]["capabilities"]["effective"].empty());
  EXPECT_TRUE(bundle->config["process"]["capabilities"]["permitted"].empty());
}

TEST(Bundle, GivesNoCapabilityWithoutAUserNamespace) {
  const auto bundle = bundle_of(a_bundle_spec(), {});
  ASSERT_TRUE(bundle);
  const Json& capabilities = bundle->config["process"]["capabilities"];
  for (const auto& [set, names] : capabilities.items()) EXPECT_TRUE(names.empty()) << set;
  EXPECT_EQ(capabilities.size(), 5u);
  EXPECT_FALSE(bundle->config["linux"].contains("uidMappings"));
}

TEST(Bundle, MakesNamespacesThatAreNotGiven) {
  const auto made = [](const ContainerSpec& spec, const std::optional<IdRange>& ids) {
    std::set<std::string> types;
    const auto bundle = bundle_of(spec, ids);
    if (bundle)
      for (const auto& each : bundle->config["linux"]["namespaces"]) {
        types.insert(each["type"].get<std::string>());
        EXPECT_FALSE(each.contains("path"));
      }
    return types;
  };
  auto spec = a_bundle_spec();
  EXPECT_EQ(made(spec, kIds), (std::set<std::string>{"mount", "uts", "pid", "ipc", "user"}));
  EXPECT_EQ(made(spec, {}), (std::set<std::string>{"mount", "uts", "pid", "ipc"}));
  spec.network_namespace = "";
  EXPECT_EQ(made(spec, kIds),
            (std::set<std::string>{"mount", "uts", "pid", "ipc", "user", "network"}));
}

TEST(Bundle, BindsTheMachinesSystemAndKeepsLinks) {
  const auto bundle = bundle_of(a_bundle_spec(), kIds);
  ASSERT_TRUE(bundle);
  std::map<std::string, std::string> bound, linked;
  for (const auto& step : bundle->root) {
    if (step.kind == RootStep::Kind::bind) bound[step.path] = step.target;
    if (step.kind == RootStep::Kind::link) linked[step.path] = step.target;
  }
  const std::map<std::string, std::string> expected = {
      {"usr", "/usr"}, {"etc/passwd", "/etc/passwd"}, {"etc/ssl/certs", "/etc/ssl/certs"}};
  EXPECT_EQ(bound, expected);
  EXPECT_EQ(linked["bin"], "usr/bin");
  EXPECT_TRUE(mount_at(bundle->config, "/usr").is_null());
}

TEST(Bundle, MountsSourcesFromTheStageByIndex) {
  auto spec = a_bundle_spec();
  spec.mounts = {{"/data/ml", "/opt/ml", false},
                 {"", "/scratch", false, 1 << 20},
                 {"/data/hosts", "/etc/hosts"}};
  spec.devices = {"/dev/nvidia0"};
  const auto bundle = bundle_of(spec, kIds);
  ASSERT_TRUE(bundle);
  EXPECT_EQ(mount_at(bundle->config, "/opt/ml")["source"], "/stage/mount-0");
  EXPECT_EQ(mount_at(bundle->config, "/scratch")["type"], "tmpfs");
  EXPECT_EQ(mount_at(bundle->config, "/etc/hosts")["source"], "/stage/mount-2");
  EXPECT_EQ(mount_at(bundle->config, "/dev/nvidia0")["source"], "/stage/device-0");
  EXPECT_EQ(mount_at(bundle->config, "/sys")["source"], "/stage/sys");
}

TEST(Bundle, LimitsBytesAndFilesInMemory) {
  auto spec = a_bundle_spec();
  spec.memory_bytes = 8ll << 30;
  spec.shared_memory_bytes = 1 << 30;
  spec.mounts = {{"", "/scratch", false, 1 << 20}};
  const auto options_of = [&](const char* destination) {
    const auto bundle = bundle_of(spec, kIds);
    const auto found = mount_at(bundle->config, destination);
    std::set<std::string> options;
    for (const auto& option : found["options"]) options.insert(option);
    return options;
  };
  const auto expect = [&](const char* destination, const char* size, const char* files) {
    const auto options = options_of(destination);
    EXPECT_TRUE(options.contains(size)) << destination;
    EXPECT_TRUE(options.contains(files)) << destination;
  };
  expect("/tmp", "size=4294967296", "nr_inodes=1048576");
  expect("/dev/shm", "size=1073741824", "nr_inodes=262144");
  expect("/scratch", "size=1048576", "nr_inodes=1024");
  expect("/dev", "size=65536", "nr_inodes=1024");
  spec.scratch_bytes_max = 1 << 30;
  expect("/tmp", "size=536870912", "nr_inodes=131072");
  EXPECT_EQ(bundle_of(spec, kIds)->root_bytes, uint64_t{1} << 29);
  EXPECT_EQ(tmpfs_limits(1 << 30), "size=1073741824,nr_inodes=262144");
}

TEST(Mounts, IncludeTheMountsBelow) {
  const auto all =
      with_mounts_below({{"/data/ml", "/opt/ml", false}, {"/data/hosts", "/etc/hosts"}},
                        "30 1 8:1 / / rw - ext4 /dev/vda rw\n"
                        "40 30 0:9 / /data/ml/input/data/train ro - fuse hydrate ro\n"
                        "41 30 0:9 / /data/mlx rw - tmpfs t rw\n"
                        "42 40 0:9 / /data/ml/input/data/train ro - fuse hydrate ro\n");
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[1].source, "/data/ml/input/data/train");
  EXPECT_EQ(all[1].destination, "/opt/ml/input/data/train");
  EXPECT_FALSE(all[1].read_only);
  EXPECT_EQ(all[2].destination, "/etc/hosts");
}

TEST(Bundle, NeverShowsSecrets) {
  for (const auto& path : system_allow_list())
    for (const char* secret : {"shadow", "ssh", "sudoers", "/etc/hosts", "resolv.conf", "private",
                               "/root", "/home", "/var"})
      EXPECT_EQ(path.find(secret), std::string::npos) << path;
}

TEST(Bundle, RejectsAMountBelowTheMachinesSystem) {
  auto spec = a_bundle_spec();
  spec.mounts = {{"/somewhere", "/usr/lib/mine"}};
  const auto bundle = bundle_of(spec, kIds);
  ASSERT_FALSE(bundle);
  EXPECT_EQ(bundle.error().kind, Kind::invalid);
}

TEST(Bundle, RejectsInvalidSpecs) {
  const std::pair<const char*, std::function<void(ContainerSpec&)>> cases[] = {
      {"id", [](ContainerSpec& s) { s.id = "../x"; }},
      {"relative directory", [](ContainerSpec& s) { s.directory = "x"; }},
      {"no program", [](ContainerSpec& s) { s.arguments.clear(); }},
      {"dots in a mount",
       [](ContainerSpec& s) {
         s.mounts = {{"/a", "/opt/../etc"}};
       }},
      {"mount over the root",
       [](ContainerSpec& s) {
         s.mounts = {{"/a", "/"}};
       }},
      {"zero byte", [](ContainerSpec& s) { s.arguments = {std::string("a\0b", 3)}; }},
      {"variable's name",
       [](ContainerSpec& s) {
         s.environment = {{"A=B", "c"}};
       }},
      {"comma in an overlay's path", [](ContainerSpec& s) { s.image_root = "/a,b"; }},
      {"memory", [](ContainerSpec& s) { s.memory_bytes = 4096; }},
      {"cpus", [](ContainerSpec& s) { s.cpus = 0.001; }},
      {"device", [](ContainerSpec& s) { s.devices = {"/etc/passwd"}; }}};
  for (const auto& [what, change] : cases) {
    auto spec = a_bundle_spec();
    change(spec);
    EXPECT_FALSE(bundle_of(spec, kIds)) << what;
  }
}

}  // namespace
}  // namespace trainyard::containers
