#include "collectives/launch.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <thread>

namespace trainyard::collectives {
namespace {

Variables from(std::map<std::string, std::string> values) {
  return [values = std::move(values)](std::string_view name) -> std::optional<std::string> {
    const auto found = values.find(std::string(name));
    if (found == values.end()) return std::nullopt;
    return found->second;
  };
}

Result<Launch> launch_of(std::map<std::string, std::string> values, std::string_view resourceconfig,
                         Ports ports = kCollectivesPorts) {
  std::optional<Hosts> hosts;
  if (!resourceconfig.empty()) hosts = TRY(read_hosts(resourceconfig));
  return read_launch(from(std::move(values)), hosts, ports);
}

const char* const kTwoHosts =
    R"({"current_host": "algo-2", "hosts": ["algo-1", "algo-2"], "network_interface_name": "eth0"})";

struct Row {
  const char* about;
  std::map<std::string, std::string> variables;
  const char* config;
  int rank;
  int ranks;
  const char* rendezvous;
  const char* secret;
};

TEST(ReadLaunch, CountsActivityUnderTheRankFromTheLauncher) {
  const std::map<std::string, std::string> table = {{"TRAINYARD_ACTIVITY", "/table"}};
  auto variables = table;
  variables.insert({{"RANK", "3"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "a"}});
  EXPECT_EQ(read_launch(from(variables))->activity.path, "/table");
  EXPECT_EQ(read_launch(from(variables))->activity.rank, 3);
  EXPECT_EQ(read_connection(from(variables))->activity.rank, 3) << "also in a group of some ranks";
  EXPECT_EQ(launch_of(table, kTwoHosts)->activity.rank, 1);
  EXPECT_EQ(launch_of(table, kTwoHosts)->activity.path, "/table");
  EXPECT_EQ(read_connection(from(table))->activity.path, "") << "without a rank nothing is counted";
  variables.erase("TRAINYARD_ACTIVITY");
  EXPECT_EQ(read_launch(from(variables))->activity.path, "");
}

TEST(ReadLaunch, EncryptionRequiresASecret) {
  const std::map<std::string, std::string> torchrun = {
      {"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"TORCHELASTIC_RUN_ID", "known"}};
  auto variables = torchrun;
  for (const char* off : {"", "0", "false", "False", "NO", "off"}) {
    variables["TRAINYARD_ENCRYPT"] = off;
    const auto launch = read_launch(from(variables));
    ASSERT_TRUE(launch) << off;
    EXPECT_FALSE(launch->encrypt) << off;
  }
  for (const char* on : {"ture", "yes", "2", "1"}) {
    variables["TRAINYARD_ENCRYPT"] = on;
    EXPECT_EQ(read_launch(from(variables)).error().kind, Kind::invalid) << on;
  }
  variables["TRAINYARD_SECRET"] = "s";
  variables["TRAINYARD_SOCKETS"] = "4";
  const auto launch = read_launch(from(variables));
  ASSERT_TRUE(launch) << launch.error().message;
  EXPECT_TRUE(launch->encrypt);
  EXPECT_EQ(launch->sockets_per_peer, 4);
  EXPECT_EQ(launch->secret, "s");
}

const Row kLaunchers[] = {
    {"no launcher", {}, "", 0, 1, "", ""},
    {"torchrun",
     {{"RANK", "3"},
      {"WORLD_SIZE", "4"},
      {"MASTER_ADDR", "algo-1"},
      {"MASTER_PORT", "7777"},
      {"TORCHELASTIC_RUN_ID", "r"}},
     "",
     3,
     4,
     "algo-1:7778",
     "r"},
    {"Open MPI on one machine",
     {{"OMPI_COMM_WORLD_RANK", "1"},
      {"OMPI_COMM_WORLD_SIZE", "2"},
      {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
      {"PMIX_NAMESPACE", "n"}},
     "",
     1,
     2,
     "127.0.0.1:*",
     "n"},
    {"Open MPI on hosts that SageMaker names",
     {{"OMPI_COMM_WORLD_RANK", "5"},
      {"OMPI_COMM_WORLD_SIZE", "8"},
      {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}},
     kTwoHosts,
     5,
     8,
     "algo-1:7829",
     ""},
    {"MPICH",
     {{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"MASTER_ADDR", "::1"}, {"MASTER_PORT", "5"}},
     "",
     0,
     2,
     "::1:6",
     ""},
    {"PMIx alone does not say how many ranks there are", {{"PMIX_RANK", "1"}}, "", 0, 1, "", ""},
    {"torchrun on a task of PMIx",
     {{"PMIX_RANK", "0"}, {"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}},
     "",
     1,
     2,
     "a:7829",
     ""},
    {"SageMaker", {{"TRAINING_JOB_ARN", "arn"}}, kTwoHosts, 1, 2, "algo-1:7829", "arn"},
    {"our own come first",
     {{"TRAINYARD_RANK", "0"},
      {"TRAINYARD_RANKS", "2"},
      {"TRAINYARD_RENDEZVOUS", "[fe80::1]:99"},
      {"TRAINYARD_SECRET", "s"},
      {"RANK", "9"},
      {"TRAINING_JOB_ARN", "arn"}},
     "",
     0,
     2,
     "fe80::1:99",
     "s"},
    {"a folder",
     {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"TRAINYARD_RENDEZVOUS", "/shared/run"}},
     "",
     0,
     2,
     "/shared/run",
     ""},
    {"a deprecated variable",
     {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"TRAINYARD_MEETING", "h:1"}},
     "",
     0,
     2,
     "h:1",
     ""},
    {"one rank needs no rendezvous", {{"RANK", "0"}, {"WORLD_SIZE", "1"}}, "", 0, 1, "", ""},
};

TEST(ReadLaunch, RecognisesLaunchersByTheirVariables) {
  for (const Row& row : kLaunchers) {
    const auto launch = launch_of(row.variables, row.config);
    ASSERT_TRUE(launch) << row.about << ": " << launch.error().message;
    EXPECT_EQ(launch->rank, row.rank) << row.about;
    EXPECT_EQ(launch->ranks, row.ranks) << row.about;
    EXPECT_EQ(launch->secret, row.secret) << row.about;
    std::string rendezvous = launch->folder;
    if (launch->rendezvous)
      rendezvous = launch->rendezvous->host + ":" + std::to_string(launch->rendezvous->port);
    if (std::string_view(row.rendezvous).ends_with('*'))
      rendezvous.replace(rendezvous.rfind(':'), std::string::npos, ":*");
    EXPECT_EQ(rendezvous, row.rendezvous) << row.about;
  }
}

TEST(ReadLaunch, ReadsTheHostsOfAJobFromAFileOrFromVariables) {
  const char* const whole =
      R"( { "current_instance_type" : "ml.c5.xlarge", "instance_groups": [{"hosts": ["x"], "n": -1.5e3,
      "none": null}, [], {}], "hosts": ["algo-1", "a\u006cgo-2\/"], "current_host": "algo-2\/"} )";
  const auto hosts = read_hosts(whole);
  ASSERT_TRUE(hosts) << hosts.error().message;
  EXPECT_EQ(hosts->names, (std::vector<std::string>{"algo-1", "algo-2/"}));
  EXPECT_EQ(hosts->current, 1);
  const std::string deep = R"({"hosts": [], "x": )" + std::string(100'000, '[');
  EXPECT_EQ(read_hosts(deep).error().kind, Kind::invalid);

  const std::map<std::string, std::string> variables = {{"SM_HOSTS", R"(["a", "b"])"},
                                                        {"SM_CURRENT_HOST", "b"}};
  auto launch = read_launch(from(variables));
  ASSERT_TRUE(launch) << launch.error().message;
  EXPECT_EQ(launch->rank, 1);
  EXPECT_EQ(launch->ranks, 2);
  EXPECT_EQ(launch->rendezvous->host, "a");
  launch = launch_of(variables, kTwoHosts);
  ASSERT_TRUE(launch) << launch.error().message;
  EXPECT_EQ(launch->rendezvous->host, "algo-1");
}

TEST(ReadLaunch, ReadsTheSameConnectionVariablesWithEveryLauncher) {
  const std::map<std::string, std::string> variables = {{"TRAINYARD_PLANS", "allreduce=ring:0-"},
                                                        {"TRAINYARD_DETERMINISTIC", "1"},
                                                        {"TRAINYARD_ADDRESS", "10.0.0.1"},
                                                        {"TRAINYARD_IN_PLACE", "No"},
                                                        {"TRAINYARD_SOCKETS", ""},
                                                        {"TRAINING_JOB_ARN", "arn"}};
  for (const auto& read : {read_connection(from(variables)), read_launch(from(variables))}) {
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->plans, "allreduce=ring:0-");
    EXPECT_TRUE(read->deterministic);
    EXPECT_EQ(read->address, "10.0.0.1");
    EXPECT_FALSE(read->register_in_place);
    EXPECT_EQ(read->sockets_per_peer, std::nullopt);
  }
  // The name of a run tells groups of different runs apart; it is not a secret.
  EXPECT_EQ(read_connection(from(variables))->secret, "");
  EXPECT_EQ(read_launch(from(variables))->secret, "arn");
  EXPECT_TRUE(read_connection(from({}))->register_in_place);
  EXPECT_FALSE(read_connection(from({{"TRAINYARD_ADOPT", "0"}}))->register_in_place)
      << "the former name";
}

TEST(ReadLaunch, ReadsTheSettingsThatHorovodNeeds) {
  const std::map<std::string, std::string> open_mpi = {{"OMPI_COMM_WORLD_RANK", "3"},
                                                       {"OMPI_COMM_WORLD_SIZE", "4"},
                                                       {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                                       {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
  auto variables = open_mpi;
  auto launch = launch_of(variables, kTwoHosts, kHorovodPorts);
  ASSERT_TRUE(launch) << launch.error().message;
  EXPECT_EQ(launch->local_rank, 1);
  EXPECT_EQ(launch->local_ranks, 2);
  EXPECT_EQ(launch->rendezvous->port, 7828);
  variables.insert(
      {{"MASTER_ADDR", "one"}, {"MASTER_PORT", "7777"}, {"OMPI_MCA_ess_base_jobid", "run"}});
  launch = launch_of(variables, kTwoHosts, kHorovodPorts);
  ASSERT_TRUE(launch) << launch.error().message;
  EXPECT_EQ(launch->rendezvous->port, 7780);
  EXPECT_EQ(launch->secret, "run");
  // horovodrun overrides all others.
  variables.insert({{"HOROVOD_GLOO_RENDEZVOUS_ADDR", "head"},
                    {"HOROVOD_GLOO_RENDEZVOUS_PORT", "99"},
                    {"HOROVOD_RANK", "0"},
                    {"HOROVOD_SIZE", "2"},
                    {"HOROVOD_LOCAL_RANK", "0"},
                    {"HOROVOD_LOCAL_SIZE", "1"}});
  launch = launch_of(variables, "", kHorovodPorts);
  ASSERT_TRUE(launch) << launch.error().message;
  EXPECT_EQ(launch->service->host + ":" + std::to_string(launch->service->port), "head:99");
  EXPECT_EQ(launch->ranks, 2);
  EXPECT_EQ(launch->local_ranks, 1);
  EXPECT_EQ(launch->secret, "");
  EXPECT_EQ(launch->member, "localhost/0");
  EXPECT_EQ(join(*launch).error().kind, Kind::invalid);
  variables["HOROVOD_ELASTIC"] = "1";
  launch = launch_of(variables, "", kHorovodPorts);
  ASSERT_TRUE(launch) << launch.error().message;
  EXPECT_TRUE(launch->elastic);
  EXPECT_EQ(launch->rank, -1);
}

TEST(ReadLaunch, RanksThatShareAMachineNeedNoAddress) {
  const auto launch = launch_of(
      {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "2"}}, "");
  ASSERT_TRUE(launch) << launch.error().message;
  EXPECT_EQ(launch->rendezvous->host, "127.0.0.1");
}

TEST(ReadLaunch, ErrorsNameTheInvalidVariable) {
  const struct {
    std::map<std::string, std::string> variables;
    const char* config;
    const char* why;
  } rows[] = {
      {{{"RANK", "4"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "a"}}, "", "rank 4 of 4"},
      {{{"RANK", "x"}, {"WORLD_SIZE", "4"}}, "", "RANK"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}}, "", "TRAINYARD_RENDEZVOUS"},
      {{{"TRAINYARD_RANK", "0"}}, "", "TRAINYARD_RANKS is not set"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"TRAINYARD_RENDEZVOUS", "here"}}, "", "HOST:PORT"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"TRAINYARD_RENDEZVOUS", "here:0"}}, "", "no port"},
      {{}, "{", "resourceconfig.json"},
      {{}, R"({"current_host": "algo-9", "hosts": ["algo-1"]})", "is not in hosts"},
      {{}, R"({"current_host": "algo-1", "hosts": "algo-1"})", "hosts: a list is missing"},
      {{}, R"({"current_host": "algo-1"})", "hosts or current_host is missing"},
      {{}, R"({"current_host": "algo-1", "hosts": ["algo-1"]} x)", "text after the JSON object"},
      {{{"SM_HOSTS", R"(["algo-1"])"}, {"SM_CURRENT_HOST", "algo-2"}}, "", "SM_HOSTS"},
  };
  for (const auto& row : rows) {
    const auto launch = launch_of(row.variables, row.config);
    ASSERT_FALSE(launch) << row.why;
    EXPECT_EQ(launch.error().kind, Kind::invalid) << launch.error().message;
    EXPECT_NE(launch.error().message.find(row.why), std::string::npos) << launch.error().message;
  }
}

void expect_all_join(int ranks, const std::function<Launch(int rank)>& launch_of) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      TcpOptions options;
      options.join_deadline = 60s;
      options.peer_timeout = 60s;
      options.group.deterministic = true;
      auto group = join(launch_of(rank), options);
      ASSERT_TRUE(group) << group.error().message;
      std::vector<float> values{float(rank)};
      const auto summed = (*group)->allreduce(values);
      ASSERT_TRUE(summed) << summed.error().message;
      EXPECT_EQ(values[0], float(ranks * (ranks - 1) / 2));
    });
  }
  for (auto& thread : threads) thread.join();
}

std::string own_loopback() {
  const auto process = unsigned(getpid());
  return "127." + std::to_string(1 + process / 250 % 250) + "." +
         std::to_string(1 + process % 250) + ".77";
}

TEST(Join, RanksThatKnowOneEndpointJoinOverIpv4AndIpv6) {
  for (const Endpoint& rendezvous :
       {Endpoint{own_loopback(), 7829}, Endpoint{"::1", uint16_t(20000 + getpid() % 20000)}}) {
    expect_all_join(5, [&](int rank) {
      Launch launch;
      launch.rank = rank;
      launch.ranks = 5;
      launch.rendezvous = rendezvous;
      launch.secret = "launch_test";
      return launch;
    });
  }
}

TEST(Join, SixteenRanksJoin) {
  expect_all_join(16, [&](int rank) {
    Launch launch;
    launch.rank = rank;
    launch.ranks = 16;
    launch.rendezvous = Endpoint{own_loopback(), 7830};
    launch.secret = "launch_test";
    return launch;
  });
}

TEST(Join, RanksThatShareAFolderJoin) {
  const std::string folder = ::testing::TempDir() + "rendezvous-" + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  expect_all_join(3, [&](int rank) {
    Launch launch;
    launch.rank = rank;
    launch.ranks = 3;
    launch.folder = folder;
    launch.secret = "launch_test";
    return launch;
  });
  std::filesystem::remove_all(folder);
}

TEST(Join, NamesARankThatNeverJoins) {
  Launch launch;
  launch.ranks = 2;
  launch.rendezvous = Endpoint{own_loopback(), 7831};
  TcpOptions options;
  options.join_deadline = 100ms;
  const auto group = join(launch, options);
  ASSERT_FALSE(group);
  EXPECT_NE(group.error().message.find("rank 1 did not join"), std::string::npos)
      << group.error().message;
}

TEST(Join, ASingleRankNeedsNoPeer) {
  const auto group = join(Launch{});
  ASSERT_TRUE(group) << group.error().message;
  EXPECT_EQ((*group)->size(), 1);
}

}  // namespace
}  // namespace trainyard::collectives
