#include "config/config.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "os/temporary_directory.hpp"

namespace trainyard::config {
namespace {

Config read(const std::string& text) {
  auto config = parse_config(text, "server.toml");
  EXPECT_TRUE(config) << config.error().message;
  return config ? *config : Config();
}

TEST(Config, AcceptsDeprecatedKeys) {
  const Config present = read(
      "[[machine]]\nname = 'a'\ncpus = 1.0\nmemory_gib = 1.0\ntopology = 'rack-1'\n"
      "[[quota]]\nuser = 'ana'\ninstance_type = 'ml.m5.large'\ncount = 1");
  const Config former = read(
      "[[machine]]\nname = 'a'\ncpus = 1.0\nmemory_gib = 1.0\nplace = 'rack-1'\n"
      "[[quota]]\nwho = 'ana'\ninstance_type = 'ml.m5.large'\ncount = 1");
  for (const Config& config : {present, former}) {
    ASSERT_EQ(config.machines.size(), 1u);
    EXPECT_EQ(config.machines[0].topology, "rack-1");
    ASSERT_EQ(config.quotas.size(), 1u);
    EXPECT_EQ(config.quotas[0].user, "ana");
  }
  const auto both =
      parse_config("[[quota]]\nuser = 'ana'\nwho = 'bob'\ncount = 1\ninstance_type = 'ml.m5.large'",
                   "server.toml");
  ASSERT_FALSE(both);
  EXPECT_NE(both.error().message.find("unknown key 'who'"), std::string::npos);
}

TEST(Config, HasDefaultsForAnEmptyFile) {
  const Config config = read("");
  EXPECT_EQ(config.listen, "127.0.0.1:4566");
  EXPECT_EQ(config.region, "us-east-1");
  EXPECT_EQ(config.stop_grace, 120s);
  EXPECT_FALSE(config.open_roles);
  EXPECT_FALSE(config.log_retention);
  EXPECT_TRUE(config.clear_gpus);
}

constexpr const char* kPods = R"(
    [kubernetes]
    image = "i"
    agents_listen = "10.0.0.1:4570"
)";

TEST(Config, HasDirectoriesOfPodsForWhatJobsShare) {
  const Config config = read(std::string(kPods) + R"(
    [kubernetes.mounts."/srv/a"]
    claim = "shared"
    [kubernetes.mounts."/srv/b"]
    [kubernetes.mounts."/srv/c"]
    directory = "/mnt/c"
    [volumes."/fsx"]
    directory = "/srv/b/fsx"
    [volumes."/scratch"]
    [file_systems.fs-1]
    directory = "/srv/a"
  )");
  const auto& mounts = config.kubernetes->mounts;
  EXPECT_EQ(mounts.at("/srv/a"), (launch::KubernetesMount{"shared", ""}));
  EXPECT_EQ(mounts.at("/srv/b"), (launch::KubernetesMount{"", "/srv/b"}));
  EXPECT_EQ(mounts.at("/srv/c"), (launch::KubernetesMount{"", "/mnt/c"}));
}

TEST(Config, RejectsDirectoriesThatPodsDoNotHaveOrCannotHave) {
  for (const auto& [text, reason] :
       {std::pair("[volumes.\"/f\"]\ndirectory = \"/srv/f\"", "add a table [kubernetes.mounts."),
        {"[kubernetes.mounts.\"/srv/f\"]\n[file_systems.fs-1]\ndirectory = \"/srv/f2\"",
         "file_systems.\"fs-1\".directory = \"/srv/f2\" is not in the pods"},
        {"[kubernetes.mounts.\"/\"]", "absolute paths"},
        {"[kubernetes.mounts.\"srv\"]", "absolute paths"},
        {"[kubernetes.mounts.\"/srv/../etc\"]", "absolute paths"},
        {"[kubernetes.mounts.\"/srv/a\"]\ndirectory = \"a\"", "absolute paths"},
        {"[kubernetes.mounts.\"/usr/share/a\"]", "would hide /usr"},
        {"[kubernetes.mounts.\"/opt\"]", "would hide /opt/trainyard/bin"},
        {"[kubernetes.mounts.\"/var/lib/trainyard-node/a\"]", "would hide /var/lib/trainyard-node"},
        {"[kubernetes.mounts.\"/srv/a\"]\nclaim = \"b\"\ndirectory = \"/b\"",
         "in addition to a claim"}}) {
    const auto config = parse_config(std::string(kPods) + text, "/");
    ASSERT_FALSE(config) << text;
    EXPECT_NE(config.error().message.find(reason), std::string::npos) << config.error().message;
  }
}

TEST(Config, HasSlurmPlacementsByQueueAndInstanceType) {
  EXPECT_FALSE(read("").slurm);
  const Config config = read(R"(
    [slurm]
    partition = "gpu"
    server_address = "10.0.0.1"
    agents_listen = "10.0.0.1:4570"
    rest_url = "https://slurm.lan:6820"
    rest_token_file = "/etc/token"
    time_margin_minutes = 5
    idle_seconds = 20
    require_user = true
    [slurm.users]
    alice = { account = "physics" }
    "*" = { qos = "low" }
    [slurm.queues."urgent"]
    qos = "high"
    [slurm.instance_types."ml.p4d.24xlarge"]
    exclusive = true
  )");
  ASSERT_TRUE(config.slurm);
  EXPECT_EQ(config.slurm->placement.partition, "gpu");
  EXPECT_EQ(config.slurm->of_queues.at("urgent").qos, "high");
  EXPECT_TRUE(config.slurm->of_instance_types.at("ml.p4d.24xlarge").exclusive);
  EXPECT_EQ(config.slurm->of_users.at("alice").account, "physics");
  EXPECT_EQ(config.slurm->of_users.at("*").qos, "low");
  EXPECT_TRUE(config.slurm->require_user);
  EXPECT_EQ(config.slurm->time_margin, 5min);
  EXPECT_EQ(config.slurm->idle_max, 20s);
  EXPECT_EQ(config.slurm->rest_version, "v0.0.38");
}

TEST(Config, HasKindsOfNodesThatSlurmPowersUp) {
  EXPECT_TRUE(read("[slurm]").slurm->node_kinds.empty());
  EXPECT_EQ(read("[slurm]").slurm->node_idle_max, 60s);
  const Config config = read(R"(
    [slurm]
    node_idle_seconds = 300
    [slurm.node_kinds."c5.4xlarge"]
    [slurm.node_kinds."c5.9xlarge"]
    feature = "large"
    nodes_max = 10
  )");
  ASSERT_EQ(config.slurm->node_kinds.size(), 2u);
  EXPECT_EQ(config.slurm->node_idle_max, 300s);
  const launch::SlurmNodeKind &small = config.slurm->node_kinds[0],
                              &large = config.slurm->node_kinds[1];
  EXPECT_EQ(small.name, "c5.4xlarge");
  EXPECT_EQ(small.feature, "c5.4xlarge");
  EXPECT_EQ(small.nodes_max, 0u);
  EXPECT_EQ(large.feature, "large");
  EXPECT_EQ(large.nodes_max, 10u);
  const auto refused =
      parse_config("[slurm]\nrest_url = 'http://s'\nrest_token_file = '/t'\n[slurm.node_kinds.c5]",
                   "server.toml");
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().message.find(
                  "slurm.node_kinds: slurmrestd's API v0.0.38 cannot power nodes") !=
              std::string::npos)
      << refused.error().message;
}

TEST(Config, HasUnixAccountsForSlurm) {
  const Config config = read(R"(
    [slurm]
    agents_listen = "10.0.0.1:4570"
    user_directory = "/scratch/trainyard"
    user_ports = "30000-30999"
    system_accounts = ["trainer"]
    [slurm.users]
    ana = { unix_user = "alice", account = "physics" }
    "*" = { unix_user = "guest" }
  )");
  ASSERT_TRUE(config.slurm);
  const launch::UnixUserRules& rules = config.slurm->unix_users;
  EXPECT_EQ(rules.names, (std::map<std::string, std::string>{{"ana", "alice"}, {"*", "guest"}}));
  EXPECT_EQ(rules.system_accounts, std::set<std::string>{"trainer"});
  EXPECT_EQ(config.slurm->user_directory, "/scratch/trainyard");
  EXPECT_EQ(config.slurm->first_port, 30'000);
  EXPECT_EQ(config.slurm->last_port, 30'999);
  EXPECT_TRUE(read("[slurm]").slurm->unix_users.names.empty());
  const std::string listen = "[slurm]\nagents_listen = '10.0.0.1:4570'\n";
  for (const std::string& wrong :
       {listen + "[slurm.users]\nana = {unix_user = 'alice'}\nbob = {}",
        std::string("[slurm]\n[slurm.users]\nana = {unix_user = 'alice'}"),
        listen + "system_accounts = ['-u']", listen + "user_ports = '80-90'",
        listen + "user_ports = '30000'", listen + "user_ports = '3000-70000'",
        listen + "user_directory = 'relative'", listen + "[slurm.users]\nana = {unix_user = '-u'}"})
    EXPECT_FALSE(parse_config(wrong, "server.toml")) << wrong;
}

TEST(Config, RejectsInvalidAndUnknownSettingsOfSlurm) {
  for (const char* wrong : {"partition = 'a b'",
                            "qos = '--uid=0'",
                            "agents_listen = '10.0.0.1:0'",
                            "agents_listen = '10.0.0.1'",
                            "rest_url = 'slurm.lan'",
                            "rest_url = 'http://slurm.lan'",
                            "node_directory = 'relative'",
                            "time_margin_minutes = -1",
                            "idle_seconds = -1",
                            "idle_seconds = 3601",
                            "node_idle_seconds = 0",
                            "[slurm.node_kinds]\nc5 = 'c5'",
                            "[slurm.node_kinds.c5]\nfeature = ''",
                            "[slurm.node_kinds.c5]\nnodes_max = -1",
                            "[slurm.node_kinds.c5]\nnodes = 3",
                            "partitions = 'gpu'",
                            "[slurm.queues.a]\nnodes = 3",
                            "[slurm.users]\nana = 'physics'",
                            "[slurm.users]\nana = {unix = 'ana'}",
                            "[[machine]]\nname = 'box'\ncpus = 1\nmemory_gib = 1"})
    EXPECT_FALSE(parse_config(std::string("[slurm]\n") + wrong, "server.toml")) << wrong;
}

TEST(Config, HasKubernetesPlacementsByQueueAndInstanceType) {
  EXPECT_FALSE(read("").kubernetes);
  const Config config = read(R"(
    [kubernetes]
    kubeconfig = "/etc/trainyard/kubeconfig.json"
    namespace = "training"
    image = "registry.lan/trainyard:1"
    agents_listen = "10.0.0.1:4570"
    tolerations = ["dedicated=training:NoSchedule", "spot"]
    time_margin_minutes = 5
    [kubernetes.node_selector]
    "lan/pool" = "training"
    [kubernetes.queues."urgent"]
    priority_class = "high"
    [kubernetes.instance_types."ml.c5.4xlarge"]
    node_selector = { "lan/pool" = "large" }
  )");
  ASSERT_TRUE(config.kubernetes);
  const Kubernetes& kubernetes = *config.kubernetes;
  EXPECT_EQ(kubernetes.name_space, "training");
  EXPECT_EQ(kubernetes.placement.node_selector.at("lan/pool"), "training");
  ASSERT_EQ(kubernetes.placement.tolerations.size(), 2u);
  EXPECT_EQ(kubernetes.placement.tolerations[0],
            (launch::KubernetesToleration{"dedicated", "training", "NoSchedule"}));
  EXPECT_EQ(kubernetes.placement.tolerations[1], (launch::KubernetesToleration{"spot", "", ""}));
  EXPECT_EQ(kubernetes.of_queues.at("urgent").priority_class, "high");
  EXPECT_EQ(kubernetes.of_instance_types.at("ml.c5.4xlarge").node_selector.at("lan/pool"), "large");
  EXPECT_EQ(kubernetes.time_margin, 5min);
}

TEST(Config, RejectsInvalidAndMissingSettingsOfKubernetes) {
  const std::string least = "[kubernetes]\nimage = 'a'\nagents_listen = '10.0.0.1:4570'\n";
  ASSERT_TRUE(parse_config(least, "server.toml"));
  for (const char* wrong :
       {"namespace = '../kube-system'", "namespace = '..'", "priority_class = 'High'",
        "tolerations = [':NoSchedule']", "tolerations = ['a:Never']",
        "node_selector = { a = 'b c' }", "time_margin_minutes = -1", "node_directory = 'relative'",
        "program_directory = '/'", "server_address = 'a b'", "partition = 'gpu'",
        "[kubernetes.queues.a]\nimage = 'b'", "[slurm]",
        "[[machine]]\nname = 'box'\ncpus = 1\nmemory_gib = 1"})
    EXPECT_FALSE(parse_config(least + wrong, "server.toml")) << wrong;
  for (const char* wrong :
       {"", "image = 'a'", "agents_listen = '10.0.0.1:4570'",
        "image = 'a'\nagents_listen = '10.0.0.1'", "image = 'a'\nagents_listen = '10.0.0.1:0'"})
    EXPECT_FALSE(parse_config("[kubernetes]\n" + std::string(wrong), "server.toml")) << wrong;
}

constexpr const char* kEachSubject = R"(
    account_id = "210987654321"
    region = "eu-west-1"
    roles = "open"
    isolation = "best-effort"
    [posix_users]
    ana = "1001:1002"
    [[access_key]]
    id = "AKIA1"
    secret = "s"
    [[user]]
    name = "ana"
    [[peer]]
    access_key_id = "AKIAPEER"
    [rate_limits]
    reads_per_second = 20.0
    [server]
    listen = "0.0.0.0:4566"
    log_file = "/var/log/trainyard.log"
    log_bytes_max = 1048576
    log_files = 3
    [network]
    deny = ["10.0.0.0/8"]
    allow = ["10.0.0.7"]
    name_servers = ["10.0.0.53"]
    [regions.eu-central-1]
    [regions.us-west-2]
    endpoint = "https://other.lan:4566"
    access_key_id = "AKIA2"
    secret_access_key = "t"
    [storage]
    disk_reserve_mib = 512
    [[storage_quota]]
    bucket = "*"
    gib = 1.5
    [logs]
    retention_days = 7
    [metrics]
    all_points_days = 2
    hour_days = 70
    series_of_job_max = 50
    [fsx]
    directory = "/srv/fsx"

    [notifications]
    allow_networks = ["10.20.0.0/16", "fd00::/8"]
    [notifications.mail]
    url = "smtps://mail.lan:465"
    from = "yard@example.org"
    [notifications.commands.page]
    command = ["/usr/bin/page", "--urgent"]
    topics = ["alerts"]
    timeout_seconds = 5

    [file_systems.fs-1]
    directory = "/srv/data"
    users = ["ana"]
    [jobs]
    stop_grace_seconds = 30
    gpu_memory = "keep"
    file_mode = "copy"
    [ulimits]
    memlock = -1
    [spot]
    notice_seconds = 5
    [images.mine]
    runtime = "machine"
    entrypoint = ["/bin/true"]
    [catalogue]
    url = "postgresql:///jobs"
    [ledger]
    url = "postgresql://ledger@db.lan/ledger"
    lease_seconds = 4.5
)";

TEST(Config, ReadsAllTables) {
  const Config config = read(kEachSubject);
  EXPECT_EQ(config.account_id, "210987654321");
  EXPECT_TRUE(config.open_roles && config.best_effort_isolation && config.copy_channels);
  ASSERT_EQ(config.access_keys.size(), 1u);
  EXPECT_EQ(config.access_keys[0].user, "owner");
  EXPECT_EQ(config.posix_users.count("ana"), 1u);
  EXPECT_EQ(config.identities.users.at(0).name, "ana");
  EXPECT_EQ(config.peers.at(0).access_key_id, "AKIAPEER");
  EXPECT_EQ(config.rate_limits.reads_per_second, 20);
  EXPECT_EQ(config.listen, "0.0.0.0:4566");
  EXPECT_EQ(config.log.path, "/var/log/trainyard.log");
  EXPECT_EQ(config.log.bytes_max, uint64_t{1} << 20);
  EXPECT_EQ(config.log.files_max, 3);
  EXPECT_EQ(config.egress.rules.size(), 2u);
  EXPECT_EQ(config.egress.services.size(), 1u) << "the name server is reached by its address";
  EXPECT_EQ(config.regions, std::vector<std::string>{"eu-central-1"});
  EXPECT_EQ(config.remote_regions.at("us-west-2").endpoint, "https://other.lan:4566");
  EXPECT_EQ(config.disk_reserve_bytes, uint64_t{512} << 20);
  EXPECT_EQ(config.storage_quotas.buckets.at("*").bytes, uint64_t{3} << 29);
  EXPECT_EQ(config.log_retention, 7 * 24h);
  EXPECT_EQ(config.metrics.raw_time, 2 * 24h);
  EXPECT_EQ(config.metrics.five_minutes_time, 63 * 24h);
  EXPECT_EQ(config.metrics.hours_time, 70 * 24h);
  EXPECT_EQ(config.metrics.group_series_max, 50);
  EXPECT_EQ(config.file_systems.at("fs-1").directory, "/srv/data");
  EXPECT_EQ(config.fsx_directory, "/srv/fsx");
  EXPECT_EQ(config.notifications.allow_networks.size(), 2u);
  EXPECT_EQ(config.notifications.mail->from, "yard@example.org");
  EXPECT_TRUE(config.notifications.mail->require_tls);
  EXPECT_EQ(config.notifications.commands.at("page").arguments.size(), 2u);
  EXPECT_EQ(config.notifications.commands.at("page").at_most, 5s);
  EXPECT_EQ(config.stop_grace, 30s);
  EXPECT_FALSE(config.clear_gpus);
  EXPECT_EQ(config.limits_max.at("memlock"), uint64_t(-1));
  EXPECT_EQ(config.spot_notice, 5s);
  EXPECT_EQ(config.images.at("mine").entrypoint, std::vector<std::string>{"/bin/true"});
  EXPECT_EQ(config.catalogue_url, "postgresql:///jobs");
  ASSERT_TRUE(config.ledger);
  EXPECT_EQ(config.ledger->url, "postgresql://ledger@db.lan/ledger");
  EXPECT_EQ(config.ledger->lease, 4'500ms);
}

TEST(Config, AcceptsWholeNumbersForAnyNumber) {
  const Config config = read(R"(
      [[machine]]
      name = "box"
      cpus = 2
      memory_gib = 4
      [rate_limits]
      reads_per_second = 100
      [[storage_quota]]
      user = "ana"
      gib = 500
      [[prices.instance]]
      type = "ml.m5.large"
      on_demand = 1
  )");
  ASSERT_EQ(config.machines.size(), 1u);
  EXPECT_EQ(config.machines[0].cpus, 2);
  EXPECT_EQ(config.machines[0].memory_bytes, int64_t{4} << 30);
  EXPECT_EQ(config.rate_limits.reads_per_second, 100);
  EXPECT_EQ(config.storage_quotas.users.at("ana").bytes, uint64_t{500} << 30);
  EXPECT_EQ(config.prices.find("us-east-1", "ml.m5.large")->on_demand, 1);
}

TEST(Config, ResolvesRelativePathsNextToTheFile) {
  const os::TemporaryDirectory directory;
  const std::string document = R"({"Version":"2012-10-17","Statement":[]})";
  std::ofstream(directory.path() + "/read.json") << document;
  std::ofstream(directory.path() + "/server.toml")
      << "[[policy]]\nname = \"read\"\ndocument_file = \"read.json\"\n"
      << "[server]\nlog_file = \"server.log\"\n";
  const auto config = read_config(directory.path() + "/server.toml");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->identities.policies.at(0).document, document);
  EXPECT_EQ(config->log.path, directory.path() + "/server.log");
}

struct Refused {
  const char* text;
  const char* message;  // a part of the error
};

constexpr Refused kRefused[] = {
    {"accunt_id = '1'",
     "unknown key 'accunt_id'; did you mean account_id?; known keys: access_key, account_id"},
    {"account_id = '12'", "account_id must be twelve digits, not \"12\" (line 1 of the file)"},
    {"region = 7", "region must be a string"},
    {"roles = 'some'", "roles must be \"closed\""},
    {"isolation = 'none'", "isolation must be \"strict\" or \"best-effort\", not \"none\""},
    {"[jobs]\nfile_mode = 'link'", "jobs.file_mode must be \"mount\""},
    {"server = 7", "server must be a table"},
    {"[server]\nlog_bytes_max = 7", "server.log_bytes_max must be between 65536 and"},
    {"[server]\nlog_files = 0", "server.log_files must be between 1 and"},
    {"[server]\nlissten = 'x'", "unknown key 'lissten' in server"},
    {"[[access_key]]\nid = 'a'", "access_key[0].id and secret must both be given"},
    {"[[access_key]]\nid = 'a'\nsecret = 'b'\nuser = 'a b'",
     "access_key[0].user must be 1 to 64 letters"},
    {"[[peer]]", "peer[0].access_key_id is missing"},
    {"[posix_users]\nana = 'root'", "posix_users.\"ana\""},
    {"[rate_limits]\nreads_per_second = -1.0", "rate_limits.reads_per_second"},
    {"[rate_limits]\nburst_seconds = 0.0", "rate_limits.burst_seconds must be greater than 0"},
    {"[rate_limits]\nreads_per_second = nan", "rate_limits.reads_per_second"},
    {"[rate_limits]\nreads_per_second = '7'", "rate_limits.reads_per_second must be a number"},
    {"[[machine]]\nname = 'a'\ncpus = '2'", "machine[0].cpus must be a number"},
    {"[[quota]]\nwho = 'a b'\ninstance_type = 'ml.m5.large'\ncount = 1",
     "quota[0].user: \"a b\" must be the name of a user or a role"},
    {"[[storage_quota]]\nuser = 'a b'\ngib = 1",
     "storage_quota[0].user must be \"*\", or the name of a user: 1 to 64 letters"},
    {"[network]\nallow = ['x']", "network.allow"},
    {"[network]\nconnections_per_job_max = 0",
     "network.connections_per_job_max must be between 1 and"},
    {"[regions.us-east-1]\nendpoint = 'https://a'\naccess_key_id = 'a'\nsecret_access_key = 'b'",
     "regions.\"us-east-1\" is this server's own region"},
    {"[regions.eu]\nendpoint = 'ftp://a'", "must be a URL, http:// or https://"},
    {"[regions.eu]\nendpoint = 'https://a'", "secret_access_key must be given"},
    {"[objects]\nendpoint = 'minio'", "objects.endpoint must be a URL"},
    {"[storage]\ndisk_reserve_mib = -1", "storage.disk_reserve_mib must be between 0 (none) and"},
    {"[storage]\nupload_expiry_days = 0", "storage.upload_expiry_days must be between 1 and"},
    {"[[storage_quota]]\ngib = 1.0", "storage_quota[0].bucket or user must be given"},
    {"[[storage_quota]]\nuser = 'a'\ngib = 1.0\n[[storage_quota]]\nuser = 'a'\ngib = 2.0",
     "duplicate quota for the same name"},
    {"[audit]\nretention_days = 0", "audit.retention_days must be between 1 and"},
    {"[logs]\nretention_days = -1", "logs.retention_days must be between 0"},
    {"[metrics]\nall_points_days = 0", "metrics.all_points_days must be between 1 and 3650"},
    {"[metrics]\nhour_days = 60", "must be in ascending order, not 15, 63 and 60"},
    {"[metrics]\nseries_of_job_max = 0", "metrics.series_of_job_max must be between 1 and"},
    {"[fsx]\ndirectory = 'here'", "fsx.directory must be an absolute path, and not /"},
    {"[fsx]\nsize = 1", "size"},
    {"[notifications]\nallow_networks = ['10.0.0.0/40']", "notifications.allow_networks"},
    {"[notifications.mail]\nurl = 'http://x'\nfrom = 'a@b'", "smtp://HOST:PORT"},
    {"[notifications.mail]\nurl = 'smtp://x'\nfrom = 'a'", "must be a mail address"},
    {"[notifications.mail]\nurl = 'smtp://x'\nfrom = 'a@b'\nuser = 'u'", "given together"},
    {"[notifications.commands.x]\ncommand = ['sh']\ntopics = ['*']", "absolute path"},
    {"[notifications.commands.x]\ncommand = ['/bin/sh']", "topics"},
    {"[notifications.commands.x]\ncommand = ['/a']\ntopics = ['*']\ntimeout_seconds = 0",
     "between 1 and"},
    {"[file_systems.fs]\ndirectory = '/'", "must be an absolute path, and not /"},
    {"[file_systems.fs]\ndirectory = '/a'\ntype = 'NFS'", "must be \"EFS\" or \"FSxLustre\""},
    {"[volumes.fsx]\ndirectory = '/a'", "must be named by an absolute path"},
    {"[jobs]\nstop_grace_seconds = 3601", "jobs.stop_grace_seconds must be between 0 and 3600"},
    {"[jobs]\ngpu_memory = 'x'", "jobs.gpu_memory must be \"clear\""},
    {"[jobs]\ndevices = ['/etc/passwd']", "must be a device file below /dev"},
    {"[jobs]\ndevices = ['/dev/nvidia0']", "\"/dev/nvidia0\" is a GPU"},
    {"[spot]\ninterruptions_per_host_hour = -0.5",
     "spot.interruptions_per_host_hour must be between 0 and"},
    {"[ulimits]\nnofile = -2", "ulimits"},
    {"[images.a]\n", "images.\"a\" needs either runtime"},
    {"[images.a]\nruntime = 'x'", "runtime must be"},
    {"[[image_policy.allow]]\n", "pattern is missing"},
    {"[[registry]]\nhost = 'a/b'", "host must be a registry's name"},
    {"[[registry]]\nhost = 'a'\nusername = 'u'", "password or password_file must be given"},
    {"[[policy]]\nname = 'a'", "document or document_file must be given"},
    {"a = ", "reading the config server.toml"},
};

TEST(Config, NamesTheKeyAndTheExpectedValueInErrors) {
  for (const auto& row : kRefused) {
    const auto config = parse_config(row.text, "server.toml");
    ASSERT_FALSE(config) << row.text;
    EXPECT_NE(config.error().message.find(row.message), std::string::npos)
        << row.text << "\n"
        << config.error().message;
  }
}

}  // namespace
}  // namespace trainyard::config
