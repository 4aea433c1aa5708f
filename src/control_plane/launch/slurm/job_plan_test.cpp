#include "launch/slurm/job_plan.hpp"

#include <gtest/gtest.h>

#include "launch/slurm/command_line.hpp"

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

TEST(SlurmJobPlan, AsksForTheNodesThatThePlannerChose) {
  Gang two = gang_on({"n1", "n3"});
  two.run_time_max = 90min;
  const auto request = plan_job(job_settings(), two, three_nodes(), kSubnet, "SEAL");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->name, "trainyard-3fa91c-j17a1");
  EXPECT_EQ(request->nodes, (std::vector<std::string>{"n1", "n3"}));
  EXPECT_EQ(request->tasks_per_node, 1u);
  EXPECT_EQ(request->cpus_per_task, 2) << "a share of a processor is a whole one for Slurm";
  EXPECT_EQ(request->memory_mib_per_node, 100);
  EXPECT_EQ(request->gpus_per_node, 1);
  EXPECT_EQ(request->time_limit_minutes, 120) << "with the margin";
  const auto comment = read_job_comment(request->comment);
  ASSERT_TRUE(comment) << comment.error().message;
  EXPECT_EQ(comment->hosts, 2u);
  EXPECT_EQ(comment->seal, "SEAL");
  EXPECT_EQ(request->comment.find("secret"), std::string::npos);
}

TEST(SlurmJobPlan, GivesEachNodeAGatewayAndEachHostAnAddress) {
  const Gang three = gang_on({"n1", "n3", "n1"});
  EXPECT_EQ(addresses_of(three), 4u);
  const auto request = plan_job(job_settings(), three, three_nodes(), kSubnet, "SEAL");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->tasks_per_node, 2u);
  EXPECT_EQ(request->memory_mib_per_node, 200);
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

TEST(SlurmJobPlan, AsksEachNodeForWhatTheFullestOneNeeds) {
  Gang uneven = gang_on({"n1", "n3", "n3", "n3"});
  uneven.members[0].share = {4, 900 << 20, 4};
  const auto request = plan_job(job_settings(), uneven, three_nodes(), kSubnet, "SEAL");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->memory_mib_per_node, 900);
  EXPECT_EQ(request->gpus_per_node, 4);
  EXPECT_EQ(request->tasks_per_node * request->cpus_per_task, 12);
}

TEST(SlurmJobPlan, SaysWhichNodeIsTooSmallForItsJob) {
  const Gang uneven = gang_on({"n1", "n3", "n3"});
  struct Case {
    int64_t SlurmNode::*amount;
    int64_t has;
    const char* words;
  };
  for (const Case& each : {Case{&SlurmNode::cpus, 3, "n1 has 3 processors"},
                           Case{&SlurmNode::memory_mib, 199, "n1 has 199 MiB of memory"},
                           Case{&SlurmNode::gpus, 1, "n1 has 1 GPUs"}}) {
    auto nodes = three_nodes();
    nodes[0].*each.amount = each.has;
    const auto request = plan_job(job_settings(), uneven, nodes, kSubnet, "SEAL");
    ASSERT_FALSE(request) << each.words;
    EXPECT_EQ(request.error().kind, Kind::unavailable);
    EXPECT_NE(request.error().message.find(each.words), std::string::npos)
        << request.error().message;
    nodes[0].*each.amount = each.has + 1;
    EXPECT_TRUE(plan_job(job_settings(), uneven, nodes, kSubnet, "SEAL")) << each.words;
  }
}

TEST(SlurmJobPlan, KeepsSecretsOutOfArguments) {
  const auto request = plan_job(job_settings(), gang_on({"n1"}), three_nodes(), kSubnet, "SEAL");
  ASSERT_TRUE(request);
  for (const auto& argument : sbatch_arguments(*request))
    EXPECT_EQ(argument.find("secret"), std::string::npos) << argument;
  const size_t step = request->script.find("srun"), order = request->script.find("<<'ORDER'");
  EXPECT_EQ(request->script.substr(step, order - step).find("secret"), std::string::npos);
  EXPECT_NE(request->script.find("'/opt/trainyard'\\''s/trainyard-slurm-host'"), std::string::npos);
}

TEST(SlurmJobPlan, RejectsWhatNodesCannotDo) {
  EXPECT_EQ(plan_job(job_settings(), gang_on({}), three_nodes(), kSubnet, "").error().kind,
            Kind::invalid);
  EXPECT_EQ(plan_job(job_settings(), gang_on({"n9"}), three_nodes(), kSubnet, "").error().kind,
            Kind::unavailable);
  auto alike = three_nodes();
  alike[1].address = alike[0].address;
  EXPECT_EQ(plan_job(job_settings(), gang_on({"n1", "n2"}), alike, kSubnet, "").error().kind,
            Kind::denied);
  Gang encrypted = gang_on({"n1", "n2"});
  encrypted.encrypt_traffic = true;
  EXPECT_EQ(plan_job(job_settings(), encrypted, three_nodes(), kSubnet, "").error().kind,
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

TEST(SlurmCommandLine, HasAnOptionForEachMember) {
  SlurmJobRequest request;
  request.name = "a";
  request.comment = "b c";
  request.nodes = {"n1", "n2"};
  request.gpus_per_node = 2;
  request.memory_mib_per_node = 100;
  request.time_limit_minutes = 5;
  request.placement = {"p", "ac", "q", "rack1&ib", "maint", "matlab:1", "h100", true};
  EXPECT_EQ(sbatch_arguments(request), (std::vector<std::string>{"sbatch",
                                                                 "--parsable",
                                                                 "--job-name=a",
                                                                 "--comment=b c",
                                                                 "--nodes=2",
                                                                 "--nodelist=n1,n2",
                                                                 "--ntasks-per-node=1",
                                                                 "--cpus-per-task=1",
                                                                 "--mem=100",
                                                                 "--dependency=singleton",
                                                                 "--no-requeue",
                                                                 "--export=NIL",
                                                                 "--chdir=/",
                                                                 "--input=/dev/null",
                                                                 "--output=/dev/null",
                                                                 "--gres=gpu:h100:2",
                                                                 "--time=5",
                                                                 "--partition=p",
                                                                 "--account=ac",
                                                                 "--qos=q",
                                                                 "--constraint=rack1&ib",
                                                                 "--reservation=maint",
                                                                 "--licenses=matlab:1",
                                                                 "--exclusive"}));
}

TEST(SlurmCommandLine, RunsSlurmsProgramsAndReadsTheirAnswers) {
  std::vector<os::Command> commands;
  os::Outcome outcome;
  const auto slurm =
      slurm_by_programs({"/etc/far.conf"}, [&](const os::Command& command) -> Result<os::Outcome> {
        commands.push_back(command);
        return outcome;
      });
  outcome.output = "17\n";
  SlurmJobRequest request;
  request.nodes = {"n1"};
  request.script = "#!/bin/sh\n";
  EXPECT_EQ(*slurm->submit(request), 17u);
  EXPECT_EQ(commands.back().input, "#!/bin/sh\n");
  EXPECT_EQ(commands.back().environment.at("SLURM_CONF"), "/etc/far.conf");
  EXPECT_TRUE(slurm->cancel(17, "removed-x"));
  EXPECT_EQ(commands[1].arguments,
            (std::vector<std::string>{"scontrol", "update", "jobid=17", "name=removed-x"}));
  EXPECT_EQ(commands[2].arguments, (std::vector<std::string>{"scancel", "17"}));
  outcome.output = "17|RUNNING|None|N/A|n1|a|trainyard/1 3fa91c j17a1 hosts=1\n";
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
