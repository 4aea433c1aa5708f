#include "launch/slurm/job_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "domain/limits.hpp"
#include "launch/slurm/command_line.hpp"
#include "os/files.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::launch {
namespace {

SlurmJobSettings job_settings() {
  SlurmJobSettings settings;
  settings.mark = "3fa91c";
  settings.program_directory = "/opt/trainyard's";
  settings.pool = *networks::parse_subnet("10.201.0.0/16");
  settings.placement.partition = "train";
  return settings;
}

std::vector<SlurmNode> three_nodes() {
  std::vector<SlurmNode> nodes(3);
  for (size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].name = "n" + std::to_string(i + 1);
    nodes[i].address = "10.0.0." + std::to_string(i + 1);
    nodes[i].cpus = 16;
    nodes[i].memory_mib = 1000;
    nodes[i].gpus = 4;
  }
  return nodes;
}

Gang gang_on(const std::vector<std::string>& machines) {
  Gang gang;
  gang.attempt = {17, 1};
  gang.token = "secret";
  for (const auto& machine : machines)
    gang.members.push_back({{machine, {1.5, 100 << 20, 1}}, R"({"token":"secret's"})"});
  return gang;
}

std::string seal(const std::string&) { return "SEAL"; }

const networks::Subnet kSubnet = *networks::parse_subnet("10.201.0.16/28");

// The orders that the script passes to its steps, in their order.
std::vector<HostOrder> orders_of(const std::string& script) {
  std::vector<HostOrder> orders;
  for (size_t at = script.find("<<'ORDER'\n"); at != std::string::npos;
       at = script.find("<<'ORDER'\n", at + 1)) {
    const size_t begin = at + 10, end = script.find("\nORDER\n", begin);
    auto order = read_host_order(script.substr(begin, end - begin));
    EXPECT_TRUE(order) << order.error().message;
    orders.push_back(*std::move(order));
  }
  return orders;
}

TEST(SlurmJobPlan, RequestsTheNodesThatThePlannerChose) {
  Gang two = gang_on({"n1", "n3"});
  two.run_time_max = 90min;
  const auto request = plan_job(job_settings(), two, three_nodes(), kSubnet, seal);
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->name, "trainyard-3fa91c-j17a1");
  EXPECT_EQ(request->nodes, (std::vector<std::string>{"n1", "n3"}));
  EXPECT_EQ(request->per_node.cpus, 2) << "a share of a processor is a whole one for Slurm";
  EXPECT_EQ(request->per_node.memory_mib, 100);
  EXPECT_EQ(request->per_node.gpus, 1);
  EXPECT_EQ(request->time_limit_minutes, 120) << "with the margin";
  const auto comment = read_job_comment(request->comment);
  ASSERT_TRUE(comment) << comment.error().message;
  EXPECT_EQ(comment->hosts, 2u);
  EXPECT_EQ(comment->seal, "SEAL");
  EXPECT_EQ(request->comment.find("secret"), std::string::npos);
}

TEST(SlurmJobPlan, OrdersAChildWithoutATimeout) {
  SlurmJobSettings settings = job_settings();
  settings.time_margin = 7 * 24h;
  Gang child = gang_on({"n1"});
  child.of_array = true;
  child.run_time_max = domain::kSecondsMax * 1s + 1h;
  const auto request = plan_job(settings, child, three_nodes(), kSubnet, seal);
  ASSERT_TRUE(request) << request.error().message;
  const auto orders = orders_of(request->script);
  ASSERT_EQ(orders.size(), 1u);
  EXPECT_GE(orders[0].time_limit, child.run_time_max);
}

TEST(SlurmJobPlan, GivesEachNodeAGatewayAndEachHostAnAddress) {
  const Gang three = gang_on({"n1", "n3", "n1"});
  EXPECT_EQ(choose_gang_subnet(job_settings(), three, {}, 0)->prefix, 28);
  const auto request = plan_job(job_settings(), three, three_nodes(), kSubnet, seal);
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->per_node.memory_mib, 200);
  const auto orders = orders_of(request->script);
  ASSERT_EQ(orders.size(), 3u);
  const auto address = [](networks::Address address) { return networks::to_text(address); };
  EXPECT_EQ(orders[0].host, 0u);
  EXPECT_EQ(orders[1].host, 2u);
  EXPECT_EQ(orders[2].host, 1u);
  EXPECT_EQ(address(orders[0].record.network.gateway), "10.201.0.17");
  EXPECT_EQ(address(orders[2].record.network.gateway), "10.201.0.21");
  ASSERT_EQ(orders[1].record.network.hosts.size(), 2u);
  EXPECT_EQ(orders[1].member, 1u);
  EXPECT_EQ(address(orders[1].record.network.hosts[1].address), "10.201.0.20");
  EXPECT_EQ(address(orders[2].record.network.hosts[0].address), "10.201.0.19");
  EXPECT_EQ(orders[0].peers, std::vector<std::string>{"10.0.0.3"});
  EXPECT_EQ(orders[2].peers, std::vector<std::string>{"10.0.0.1"});
  EXPECT_EQ(orders[2].host_table,
            "127.0.0.1 localhost\n10.201.0.18 algo-1\n10.201.0.19 algo-2\n10.201.0.20 algo-3\n");
  EXPECT_EQ(orders[0].order, R"({"token":"secret's"})");
}

// One host on n1 and two on n3, without GPUs.
Gang uneven_gang() {
  Gang uneven = gang_on({"n1", "n3", "n3"});
  for (auto& member : uneven.members) member.share.gpus = 0;
  return uneven;
}

TEST(SlurmJobPlan, RequestsTheNeedOfTheFullestNodeWhereItIsFree) {
  const auto request = plan_job(job_settings(), uneven_gang(), three_nodes(), kSubnet, seal);
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_TRUE(request->others.empty());
  EXPECT_EQ(request->nodes, (std::vector<std::string>{"n1", "n3"}));
  EXPECT_EQ(request->per_node, (NodeAmounts{4, 200, 0}));
  EXPECT_EQ(request->script.find("--het-group"), std::string::npos);
}

TEST(SlurmJobPlan, RequestsTheNeedOfEachNodeWhereLessIsFree) {
  struct Case {
    const char* what;
    void (*change)(std::vector<SlurmNode>&, Gang&);
    NodeAmounts second;
  };
  for (const Case& each : {
           Case{"fewer processors", [](auto&nodes, auto&) { nodes[0].cpus = 3; }, {4, 200, 0}},
           Case{"busy processors",
                [](auto&nodes, auto&) { nodes[0].cpus_allocated = 13; },
                {4, 200, 0}},
           Case{"less memory", [](auto&nodes, auto&) { nodes[0].memory_mib = 199; }, {4, 200, 0}},
           Case{"busy memory",
                [](auto&nodes, auto&) { nodes[0].memory_allocated_mib = 801; },
                {4, 200, 0}},
           Case{
               "other GPUs", [](auto&, auto&gang) { gang.members[1].share.gpus = 4; }, {4, 200, 4}},
       }) {
    auto nodes = three_nodes();
    Gang gang = uneven_gang();
    each.change(nodes, gang);
    const auto request = plan_job(job_settings(), gang, nodes, kSubnet, seal);
    ASSERT_TRUE(request) << each.what << ": " << request.error().message;
    EXPECT_EQ(request->nodes, std::vector<std::string>{"n1"}) << each.what;
    EXPECT_EQ(request->per_node, (NodeAmounts{2, 100, 0})) << each.what;
    ASSERT_EQ(request->others.size(), 1u) << each.what;
    EXPECT_EQ(request->others[0].nodes, std::vector<std::string>{"n3"}) << each.what;
    EXPECT_EQ(request->others[0].per_node, each.second) << each.what;
    EXPECT_EQ(read_job_comment(request->comment)->amounts,
              (std::vector<NodeAmounts>{{2, 100, 0}, each.second}));
    const size_t n1 = request->script.find("--het-group=0 --nodes=1 --ntasks=1 --nodelist='n1'");
    const size_t n3 = request->script.find("--het-group=1 --nodes=1 --ntasks=1 --nodelist='n3'");
    EXPECT_NE(n1, std::string::npos) << request->script;
    EXPECT_NE(n3, std::string::npos) << request->script;
  }
}

TEST(SlurmJobPlan, HasOneComponentForNodesWithEqualNeeds) {
  Gang gang = gang_on({"n1", "n2", "n3", "n3"});
  for (size_t i : {0u, 1u}) gang.members[i].share.gpus = 0;
  const auto request = plan_job(job_settings(), gang, three_nodes(), kSubnet, seal);
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->nodes, (std::vector<std::string>{"n1", "n2"}));
  ASSERT_EQ(request->others.size(), 1u);
  EXPECT_EQ(request->others[0].per_node, (NodeAmounts{4, 200, 2}));
}

TEST(SlurmJobPlan, FillsANodeWithUnequalHosts) {
  Gang gang = gang_on({"n1", "n1", "n1"});
  gang.members[0].share = {3, (1000 << 20) / 3, 0};
  gang.members[1].share = gang.members[2].share = {1, (1000 << 20) / 3, 0};
  auto nodes = three_nodes();
  nodes[0].cpus = 5;
  nodes[0].memory_mib = 1000;
  const auto request = plan_job(job_settings(), gang, nodes, kSubnet, seal);
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->per_node.cpus, 5);
  EXPECT_LE(request->per_node.memory_mib, 1000);
  // Three hosts of one and two thirds: rounded up, they need six processors.
  for (auto& member : gang.members) member.share.cpus = 5.0 / 3;
  const auto rounded = plan_job(job_settings(), gang, nodes, kSubnet, seal);
  ASSERT_TRUE(rounded) << rounded.error().message;
  EXPECT_EQ(rounded->per_node.cpus, 3);
  EXPECT_NE(rounded->script.find("--cpus-per-task=1 "), std::string::npos);
}

TEST(SlurmJobPlan, NamesTheNodeThatIsTooSmall) {
  const Gang uneven = gang_on({"n1", "n3", "n3"});
  struct Case {
    int64_t SlurmNode::*amount;
    int64_t has;
    const char* message;
  };
  for (const Case& each : {Case{&SlurmNode::cpus, 1, "n3 has 1 processors"},
                           Case{&SlurmNode::memory_mib, 199, "n3 has 199 MiB of memory"},
                           Case{&SlurmNode::gpus, 1, "n3 has 1 GPUs"}}) {
    auto nodes = three_nodes();
    nodes[2].*each.amount = each.has;
    const auto request = plan_job(job_settings(), uneven, nodes, kSubnet, seal);
    ASSERT_FALSE(request) << each.message;
    EXPECT_EQ(request.error().kind, Kind::unavailable);
    EXPECT_NE(request.error().message.find(each.message), std::string::npos)
        << request.error().message;
    nodes[2].*each.amount = each.has + 1;
    EXPECT_TRUE(plan_job(job_settings(), uneven, nodes, kSubnet, seal)) << each.message;
  }
}

TEST(SlurmJobPlan, KeepsSecretsOutOfArguments) {
  const auto request = plan_job(job_settings(), gang_on({"n1"}), three_nodes(), kSubnet, seal);
  ASSERT_TRUE(request);
  for (const auto& argument : sbatch_arguments(*request))
    EXPECT_EQ(argument.find("secret"), std::string::npos) << argument;
  const size_t step = request->script.find("srun"), order = request->script.find("<<'ORDER'");
  EXPECT_EQ(request->script.substr(step, order - step).find("secret"), std::string::npos);
  EXPECT_NE(request->script.find("'/opt/trainyard'\\''s/trainyard-slurm-host'"), std::string::npos);
}

TEST(SlurmJobPlan, RejectsGangsThatTheNodesCannotServe) {
  EXPECT_EQ(plan_job(job_settings(), gang_on({}), three_nodes(), kSubnet, seal).error().kind,
            Kind::invalid);
  EXPECT_EQ(plan_job(job_settings(), gang_on({"n9"}), three_nodes(), kSubnet, seal).error().kind,
            Kind::unavailable);
  auto alike = three_nodes();
  alike[1].address = alike[0].address;
  EXPECT_EQ(plan_job(job_settings(), gang_on({"n1", "n2"}), alike, kSubnet, seal).error().kind,
            Kind::denied);
}

TEST(SlurmJobPlan, PlacesByQueueAndInstanceType) {
  SlurmJobSettings many = job_settings();
  many.placement = {.partition = "train", .account = "lab"};
  many.of_queues["urgent"] = {.partition = "fast", .qos = "high"};
  many.of_instance_types["ml.p4d.24xlarge"] = {.qos = "gpu", .exclusive = true};
  const auto placed = [&](const std::string& queue, const std::string& type,
                          const std::string& submitter = "") {
    Gang gang;
    gang.queue = queue;
    gang.instance_type = type;
    gang.submitter = submitter;
    return placement_of(many, gang);
  };
  EXPECT_EQ(*placed("", "ml.m5.large"), many.placement);
  EXPECT_EQ(*placed("urgent", "ml.m5.large"),
            (SlurmPlacement{.partition = "fast", .account = "lab", .qos = "high"}));
  EXPECT_EQ(
      *placed("urgent", "ml.p4d.24xlarge"),
      (SlurmPlacement{.partition = "fast", .account = "lab", .qos = "gpu", .exclusive = true}));
  many.of_users["ana"] = {.account = "physics"};
  many.require_user = true;
  EXPECT_EQ(*placed("urgent", "ml.m5.large", "ana"),
            (SlurmPlacement{.partition = "fast", .account = "physics", .qos = "high"}));
  EXPECT_EQ(placed("urgent", "ml.m5.large", "bob").error().kind, Kind::invalid);
  many.of_users["*"] = {.qos = "low"};
  EXPECT_EQ(*placed("urgent", "ml.m5.large", "bob"),
            (SlurmPlacement{.partition = "fast", .account = "lab", .qos = "low"}));
}

SlurmJobSettings settings_of_users() {
  SlurmJobSettings settings = job_settings();
  settings.unix_users = {{"ana", {"alice", 1001, 100}}, {"owner", {}}};
  settings.agent_environment = {{"TRAINYARD_IMAGE_SOURCES", "/data/image-sources.json"}};
  return settings;
}

TEST(SlurmJobPlan, RunsAJobForTheAccountOfItsSubmitter) {
  Gang gang = gang_on({"n1", "n1"});
  gang.submitter = "ana";
  std::string sealed;
  const auto request =
      plan_job(settings_of_users(), gang, three_nodes(), kSubnet, [&](const std::string& context) {
        sealed = context;
        return std::string("SEAL");
      });
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->user, (UnixUser{"alice", 1001, 100}));
  EXPECT_EQ(sealed, seal_context(*read_job_comment(request->comment), "alice"));
  EXPECT_NE(request->script.find("--cpus-per-task=4 --mem=200 --gres=gpu:2 "
                                 "'/opt/trainyard'\\''s/trainyard-slurm-host' --hosts"),
            std::string::npos)
      << request->script;
  const size_t begin = request->script.find("<<'ORDERS'\n") + 11;
  const size_t end = request->script.find("ORDERS\n", begin);
  const auto text = request->script.substr(begin, end - begin);
  const auto first = read_host_order(text.substr(0, text.find('\n')));
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(first->user, "alice");
  EXPECT_EQ(first->user_id, 1001u);
  EXPECT_EQ(first->node_directory, "/var/tmp/trainyard-node-1001");
  EXPECT_TRUE(first->environment.empty()) << "the server's file has the logins of others";
  gang.submitter = "owner";
  const auto own = plan_job(settings_of_users(), gang, three_nodes(), kSubnet, seal);
  ASSERT_TRUE(own) << own.error().message;
  EXPECT_EQ(own->user, UnixUser{});
  EXPECT_EQ(own->script.find("--hosts"), std::string::npos);
}

// Runs a job's script with an srun that prints the lines and fails. Returns the message that the
// script stores in the job's comment.
std::string stored_message(const std::string& script, const std::string& lines) {
  const os::TemporaryDirectory directory;
  const auto make_program = [&](const std::string& name, const std::string& text) {
    EXPECT_TRUE(os::write_file(directory.path() + "/" + name, "#!/bin/sh\n" + text, 0755));
  };
  make_program("srun", "cat >/dev/null\nprintf '" + lines + "' >&2\nexit 1\n");
  make_program("scontrol", "printf '%s\\n' \"$@\" >'" + directory.path() + "/comment'\n");
  os::Command command;
  command.arguments = {"/bin/sh", "-s"};
  command.environment = {{"PATH", directory.path() + ":/usr/bin:/bin"}, {"SLURM_JOB_ID", "7"}};
  command.input = script;
  EXPECT_TRUE(os::run(command));
  const auto comment = os::read_file(directory.path() + "/comment");
  if (!comment) return comment.error().message;
  const size_t why = comment->find(" why=");
  return why == std::string::npos ? *comment : comment->substr(why + 5);
}

TEST(SlurmJobPlan, StoresTheMessageOfTheProgramRatherThanThatOfSrun) {
  const std::string of_srun = "srun: error: n1: task 0: Exited with exit code 1";
  const std::string own = "trainyard-slurm-host: the directory belongs to user 1001";
  Gang gang = gang_on({"n1"});
  for (const char* submitter : {"owner", "ana"}) {
    gang.submitter = submitter;
    const auto request = plan_job(settings_of_users(), gang, three_nodes(), kSubnet, seal);
    ASSERT_TRUE(request) << request.error().message;
    EXPECT_EQ(stored_message(request->script, own + "\\n" + of_srun + "\\n"), own + "\n");
    EXPECT_EQ(stored_message(request->script, of_srun + "\\n" + own + "\\n"), own + "\n");
    EXPECT_EQ(stored_message(request->script, of_srun + "\\n"), of_srun + "\n");
  }
}

// Returns the orders in a job's script.
std::vector<HostOrder> orders_in(const std::string& script) {
  std::vector<HostOrder> orders;
  for (size_t at = script.find("\n{\""); at != std::string::npos;
       at = script.find("\n{\"", at + 1)) {
    orders.push_back(
        read_host_order(script.substr(at + 1, script.find('\n', at + 1) - at - 1)).value());
  }
  return orders;
}

// The nodes are joined by VXLAN, with the tunnels of the hosts in it.
TEST(SlurmJobPlan, EncryptsTheTrafficOfGangsThatRequestIt) {
  Gang gang = gang_on({"n1", "n3", "n1"});
  gang.encrypt_traffic = true;
  const SlurmJobSettings settings = job_settings();
  const auto subnet = choose_gang_subnet(settings, gang, {}, settings.pool.base);
  ASSERT_TRUE(subnet);
  const auto request = plan_job(settings, gang, three_nodes(), *subnet, seal);
  ASSERT_TRUE(request) << request.error().message;
  const auto orders = orders_in(request->script);
  ASSERT_EQ(orders.size(), 3u) << request->script;
  for (const HostOrder& order : orders) {
    const auto& network = order.record.network;
    EXPECT_TRUE(order.endpoints.empty());
    EXPECT_EQ(order.peers.size(), 1u);
    EXPECT_TRUE(network.encrypted);
    for (const auto& host : network.hosts) {
      EXPECT_NE(host.under, network.gateway);
      EXPECT_EQ(host.address - host.under, networks::Address(subnet->size() / 2));
      EXPECT_TRUE(subnet->contains(host.address));
    }
  }
  gang = gang_on({"n1"});
  gang.encrypt_traffic = true;
  const auto of_one = plan_job(settings, gang, three_nodes(), kSubnet, seal);
  EXPECT_FALSE(orders_in(of_one->script)[0].record.network.encrypted);
}

// An account cannot join nodes by VXLAN.
TEST(SlurmJobPlan, JoinsTheNodesOfAnAccountByEncryptedDatagrams) {
  Gang gang = gang_on({"n1", "n3", "n1"});
  gang.submitter = "ana";
  SlurmJobSettings settings = settings_of_users();
  const auto subnet = choose_gang_subnet(settings, gang, {}, settings.pool.base);
  ASSERT_TRUE(subnet);
  EXPECT_EQ(subnet->text(), "10.201.0.0/28")
      << "twice as many addresses as hosts and reserved ones";
  const auto request = plan_job(settings, gang, three_nodes(), *subnet, seal);
  ASSERT_TRUE(request) << request.error().message;
  const std::vector<HostOrder> orders = orders_in(request->script);
  ASSERT_EQ(orders.size(), 3u) << request->script;
  const std::vector<std::string> endpoints = {"10.0.0.1:20000", "10.0.0.3:20001", "10.0.0.1:20002"};
  for (const HostOrder& order : orders) {
    EXPECT_EQ(order.endpoints, endpoints);
    EXPECT_TRUE(order.record.network.encrypted);
    EXPECT_TRUE(order.peers.empty());
    EXPECT_EQ(networks::to_text(order.record.network.gateway), "10.201.0.1");
  }
}

TEST(SlurmJobPlan, RejectsJobsOfUsersWithoutAnAccount) {
  for (const char* submitter : {"bob", "", "alice"}) {
    Gang gang = gang_on({"n1"});
    gang.submitter = submitter;
    const auto refused = plan_job(settings_of_users(), gang, three_nodes(), kSubnet, seal);
    ASSERT_FALSE(refused) << submitter;
    EXPECT_EQ(refused.error().kind, Kind::invalid);
  }
  SlurmJobSettings all = settings_of_users();
  all.unix_users["*"] = {"guest", 1002, 1002};
  Gang gang = gang_on({"n1"});
  gang.submitter = "bob";
  EXPECT_EQ(plan_job(all, gang, three_nodes(), kSubnet, seal)->user.name, "guest");
  gang.submitter = "bob as=alice";
  EXPECT_FALSE(plan_job(all, gang, three_nodes(), kSubnet, seal));
}

TEST(SlurmCommandLine, HasAnOptionForEachMember) {
  SlurmJobRequest request;
  request.name = "a";
  request.comment = "b c";
  request.nodes = {"n1", "n2"};
  request.per_node.gpus = 2;
  request.per_node.memory_mib = 100;
  request.time_limit_minutes = 5;
  request.placement = {"p", "ac", "q", "rack1&ib", "maint", "matlab:1", "h100", true};
  const std::vector<std::string> common = {"sbatch",
                                           "--parsable",
                                           "--comment=b c",
                                           "--dependency=singleton",
                                           "--no-requeue",
                                           "--export=ALL",
                                           "--chdir=/",
                                           "--input=/dev/null",
                                           "--output=/dev/null",
                                           "--time=5",
                                           "--licenses=matlab:1"};
  const std::vector<std::string> placed = {
      "--partition=p",         "--account=ac",        "--qos=q",
      "--constraint=rack1&ib", "--reservation=maint", "--exclusive"};
  const auto joined = [](std::vector<std::vector<std::string>> lists) {
    std::vector<std::string> all;
    for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
    return all;
  };
  const std::vector<std::string> first = {
      "--job-name=a",      "--nodes=2", "--nodelist=n1,n2", "--ntasks-per-node=1",
      "--cpus-per-task=1", "--mem=100", "--gres=gpu:h100:2"};
  EXPECT_EQ(sbatch_arguments(request), joined({common, first, placed}));
  request.others = {{{"n7"}, {6, 50, 0}}};
  const std::vector<std::string> second = {":",
                                           "--job-name=a.1",
                                           "--nodes=1",
                                           "--nodelist=n7",
                                           "--ntasks-per-node=1",
                                           "--cpus-per-task=6",
                                           "--mem=50"};
  EXPECT_EQ(sbatch_arguments(request), joined({common, first, placed, second, placed}))
      << "licences are requested once";
}

// The output of squeue, with its marker in the place of "@".
os::Outcome answer(const os::Command& command, os::Outcome outcome) {
  std::string marker;
  for (const auto& argument : command.arguments)
    if (const size_t at = argument.find("JobArrayID:|"); at != std::string::npos)
      marker = argument.substr(at + 12, argument.find('|', at + 12) - at - 12);
  std::string output;
  for (const char c : outcome.output) output += c == '@' ? marker : std::string(1, c);
  outcome.output = output;
  return outcome;
}

TEST(SlurmCommandLine, SubmitsForAnotherAccount) {
  SlurmJobRequest request;
  request.nodes = {"n1"};
  request.user = {"alice", 1001, 100};
  const auto arguments = sbatch_arguments(request);
  EXPECT_NE(std::ranges::find(arguments, "--uid=1001"), arguments.end());
  EXPECT_NE(std::ranges::find(arguments, "--gid=100"), arguments.end());
  SeededRandom random(7);
  const RunProgram none = [](const os::Command&) -> Result<os::Outcome> {
    return internal("no program");
  };
  EXPECT_TRUE(slurm_by_programs({"", "root"}, none, random)->check_user(request.user));
  const auto refused = slurm_by_programs({"", "trainyard"}, none, random)->check_user(request.user);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Kind::denied);
}

// An earlier server may have submitted for accounts that the configuration no longer names.
TEST(SlurmCommandLine, FindsTheJobsOfAllUsersFirst) {
  std::vector<std::vector<std::string>> calls;
  os::Outcome outcome;
  outcome.output =
      "17|@|RUNNING|None|N/A|n1|alice|N/A|a|trainyard/1 3fa91c j17a1 hosts=1\n"
      "18|@|RUNNING|None|N/A|n1|former|N/A|a|trainyard/1 3fa91c j18a1 hosts=1\n"
      "19|@|RUNNING|None|N/A|n1|eve|N/A|a|my "
      "job\n17|guess|COMPLETED|None|N/A|n1|alice|N/A|a|trainyard/1 forged\n"
      "20|@|RUNNING|None|N/A|n1|root|N/A|a|trainyard/1 3fa91c j20a1 hosts=1\n";
  SeededRandom random(7);
  const auto slurm = slurm_by_programs(
      {"", "root", {"alice"}},
      [&](const os::Command& command) -> Result<os::Outcome> {
        calls.push_back(command.arguments);
        return answer(command, outcome);
      },
      random);
  const auto jobs = slurm->jobs();
  ASSERT_TRUE(jobs) << jobs.error().message;
  ASSERT_EQ(jobs->size(), 3u) << "a line without the marker is a part of another user's comment";
  EXPECT_EQ(jobs->at(0).user, "alice");
  EXPECT_EQ(jobs->at(1).user, "former");
  EXPECT_EQ(jobs->at(2).user, "") << "the server's own account";
  EXPECT_TRUE(slurm->jobs());
  EXPECT_EQ(calls[0].size(), 5u);
  EXPECT_EQ(calls[1].back(), "--user=alice,former,root");
  EXPECT_NE(calls[0].back(), calls[1][4]) << "each call has a marker of its own";
}

TEST(SlurmCommandLine, ReadsTheEndOfForgottenJobsFromTheAccounting) {
  std::vector<std::string> arguments;
  os::Outcome outcome;
  SeededRandom random(7);
  const auto slurm = slurm_by_programs(
      {},
      [&](const os::Command& command) -> Result<os::Outcome> {
        arguments = command.arguments;
        return outcome;
      },
      random);
  outcome.output =
      "17|root|FAILED|3:0\n18|alice|CANCELLED by 1001|0:15\n19|root|RUNNING|0:0\n"
      "20|root|COMPLETED|0:0\n21|root|NODE_FAIL|1:0\n";
  const auto jobs = slurm->ended({17, 18, 19, 20, 21});
  ASSERT_TRUE(jobs) << jobs.error().message;
  EXPECT_EQ(arguments[5], "--jobs=17,18,19,20,21");
  ASSERT_EQ(jobs->size(), 4u) << "one has not ended";
  EXPECT_EQ(jobs->at(0).state, "FAILED");
  EXPECT_EQ(jobs->at(0).reason, "exit code 3");
  EXPECT_EQ(jobs->at(1).state, "CANCELLED");
  EXPECT_EQ(jobs->at(1).reason, "by 1001");
  EXPECT_EQ(jobs->at(1).user, "alice");
  EXPECT_EQ(jobs->at(2).reason, "");
  outcome.output = "17|root\n";
  EXPECT_EQ(slurm->ended({17}).error().kind, Kind::corrupt);
  outcome = {1, "", "Slurm accounting storage is disabled\n"};
  EXPECT_EQ(slurm->ended({17}).error().kind, Kind::not_found);
  outcome = {1, "", "sacct: error: Problem talking to the database: Connection refused\n"};
  EXPECT_EQ(slurm->ended({17}).error().kind, Kind::unavailable);
}

TEST(SlurmCommandLine, RunsSlurmsProgramsAndReadsTheirAnswers) {
  std::vector<os::Command> commands;
  os::Outcome outcome;
  SeededRandom random(7);
  const auto slurm = slurm_by_programs(
      {"/etc/far.conf", "root", {"alice"}},
      [&](const os::Command& command) -> Result<os::Outcome> {
        commands.push_back(command);
        return answer(command, outcome);
      },
      random);
  outcome.output = "17\n";
  SlurmJobRequest request;
  request.nodes = {"n1"};
  request.script = "#!/bin/sh\n";
  EXPECT_EQ(*slurm->submit(request), 17u);
  EXPECT_EQ(commands.back().input, "#!/bin/sh\n");
  EXPECT_EQ(commands.back().environment.at("SLURM_CONF"), "/etc/far.conf");
  EXPECT_EQ(commands.back().inherited->size(), 3u) << "the job's script gets sbatch's environment";
  EXPECT_TRUE(slurm->cancel(17, "removed-x"));
  EXPECT_EQ(commands[1].arguments,
            (std::vector<std::string>{"scontrol", "update", "jobid=17", "name=removed-x"}));
  EXPECT_EQ(commands[2].arguments, (std::vector<std::string>{"scancel", "17"}));
  EXPECT_TRUE(slurm->power_up({"n1", "n2"}));
  EXPECT_EQ(commands[3].arguments,
            (std::vector<std::string>{"scontrol", "update", "nodename=n1,n2", "state=power_up"}));
  EXPECT_TRUE(slurm->power_down({"n1"}));
  EXPECT_EQ(commands[4].arguments,
            (std::vector<std::string>{"scontrol", "update", "nodename=n1", "state=power_down"}));
  outcome.output = "17|@|RUNNING|None|N/A|n1|root|N/A|a|trainyard/1 3fa91c j17a1 hosts=1\n";
  EXPECT_EQ(slurm->jobs()->size(), 1u);
  outcome.output_cut = true;
  EXPECT_EQ(slurm->jobs().error().kind, Kind::exhausted);
  EXPECT_EQ(slurm->jobs().error().message, "squeue printed more than 16 MiB");
  outcome = {1, "", "Job has already finished for job 17\n"};
  EXPECT_TRUE(slurm->cancel(17, "removed-x"));
  outcome = {1, "", "slurm_load_jobs error: Unable to contact slurm controller\n"};
  EXPECT_EQ(slurm->cancel(17, "removed-x").error().kind, Kind::unavailable);
  EXPECT_EQ(slurm->jobs().error().kind, Kind::unavailable);
}

}  // namespace
}  // namespace trainyard::launch
