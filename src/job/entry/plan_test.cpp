#include "entry/plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace trainyard::entry {
namespace {

// A job of hosts algo-1 .. algo-n in one group, as algo-k sees it.
struct Job {
  int hosts = 2, host = 1;
  std::vector<std::vector<int>> gpus = {};  // the processors near each GPU
  Json hyperparameters = Json::object();
  Image image = {
      .python = "/usr/bin/python3", .mpirun = "/usr/bin/mpirun", .entry = "/opt/trainyard/entry"};
  Variables variables = {};
  std::string program = "train.py";

  Settings settings() const {
    Json names = Json::array();
    for (int k = 1; k <= hosts; ++k) names.push_back("algo-" + std::to_string(k));
    Json all = hyperparameters;
    all["sagemaker_program"] = program;
    Found found;
    found.hyperparameters = dump(all);
    found.resource_config =
        dump(Json{{"current_host", "algo-" + std::to_string(host)},
                  {"current_instance_type", "ml.m5.large"},
                  {"current_group_name", "homogeneousCluster"},
                  {"hosts", names},
                  {"instance_groups", Json::array({{{"instance_group_name", "homogeneousCluster"},
                                                    {"instance_type", "ml.m5.large"},
                                                    {"hosts", names}}})},
                  {"network_interface_name", "eth0"}});
    found.input_data_config = "{}";
    found.variables = {{"TRAINING_JOB_NAME", "job"}};
    found.gpus = gpus;
    return *read_settings(found);
  }
  Result<Plan> plan() const { return make_plan(settings(), image, variables); }
};

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

TEST(Plan, RunsAScriptAlone) {
  const auto plan = Job{.hosts = 1, .hyperparameters = {{"epochs", "3"}}}.plan();
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->starts.size(), 1u);
  EXPECT_EQ(joined(plan->starts[0].arguments), "/usr/bin/python3 train.py --epochs 3");
  EXPECT_EQ(plan->hosts, std::vector<std::string>{"algo-1"});
  EXPECT_TRUE(plan->remarks.empty());
}

TEST(Plan, WarnsWhenHostsTrainIndependently) {
  const auto plan = Job{.hosts = 3, .host = 2}.plan();
  EXPECT_EQ(plan->hosts, std::vector<std::string>{"algo-2"});
  ASSERT_EQ(plan->remarks.size(), 1u);
  EXPECT_NE(plan->remarks[0].find("3 hosts and no distribution"), std::string::npos);
}

TEST(Plan, RecognisesKindsOfPrograms) {
  EXPECT_EQ(program_kind("go.sh", true), Program::command);
  EXPECT_EQ(program_kind("train.py", true), Program::package);
  EXPECT_EQ(program_kind("train.py", false), Program::script);
  EXPECT_EQ(program_kind("train", false), Program::command);
  Job job{.hosts = 1, .hyperparameters = {{"say", "it's"}}, .program = "bin/go.sh"};
  EXPECT_EQ(job.plan()->starts[0].arguments,
            (std::vector<std::string>{"/bin/sh", "-c", "./bin/go.sh --say 'it'\"'\"'s'"}));
  EXPECT_TRUE(job.plan()->starts[0].signal_group);
  job.program = "ours/train.py";
  job.image.has_setup = true;
  EXPECT_EQ(joined(job.plan()->starts[0].arguments), "/usr/bin/python3 -m ours.train --say it's");
  job.image.python = "";
  EXPECT_FALSE(job.plan());
}

TEST(Plan, StartsTorchRanksOnEveryHost) {
  const Job job{.hosts = 2,
                .host = 2,
                .hyperparameters = {{"sagemaker_torch_distributed_enabled", "true"},
                                    {"sagemaker_mpi_num_of_processes_per_host", "2"}}};
  const auto plan = job.plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->hosts.size(), 2u);
  ASSERT_EQ(plan->starts.size(), 2u);
  const auto& last = plan->starts[1];
  EXPECT_EQ(last.rank, 3);
  const std::map<std::string, std::string> expected = {{"MASTER_ADDR", "algo-1"},
                                                       {"MASTER_PORT", "7777"},
                                                       {"RANK", "3"},
                                                       {"LOCAL_RANK", "1"},
                                                       {"WORLD_SIZE", "4"},
                                                       {"GROUP_RANK", "1"},
                                                       {"ROLE_RANK", "3"},
                                                       {"LOCAL_WORLD_SIZE", "2"},
                                                       {"OMP_NUM_THREADS", "1"},
                                                       {"TORCHELASTIC_RUN_ID", "job"}};
  for (const auto& [name, value] : expected) EXPECT_EQ(last.variables.at(name), value) << name;
  EXPECT_FALSE(last.variables.contains("CUDA_VISIBLE_DEVICES"));
}

TEST(Plan, StartsOneRankPerGpuPinnedByItsLocalRank) {
  const std::vector<int> near = {0, 1, 2, 3}, far = {4, 5, 6, 7};
  Job job{.hosts = 2,
          .host = 2,
          .gpus = {near, near, far, far},
          .hyperparameters = {{"sagemaker_pytorch_ddp_enabled", "true"}}};
  const auto plan = job.plan();
  ASSERT_EQ(plan->starts.size(), 4u);
  for (size_t local_rank = 0; local_rank < 4; ++local_rank) {
    const auto& start = plan->starts[local_rank];
    EXPECT_EQ(start.rank, 4 + int(local_rank));
    EXPECT_EQ(start.variables.at("LOCAL_RANK"), std::to_string(local_rank));
    EXPECT_EQ(start.cpus, job.gpus[local_rank]) << "its GPU's side of the machine";
    EXPECT_EQ(start.variables.at("CUDA_DEVICE_ORDER"), "PCI_BUS_ID")
        << "the number is one GPU for all";
    EXPECT_FALSE(start.variables.contains("CUDA_VISIBLE_DEVICES")) << "cuda:LOCAL_RANK is there";
  }
  job.variables = {{kPinVariable, "1"}};
  EXPECT_EQ(job.plan()->starts[3].variables.at("CUDA_VISIBLE_DEVICES"), "3");
}

TEST(Plan, PinsARankToAVisibleGpu) {
  const std::vector<std::vector<int>> gpus = {{0}, {1}, {2}, {3}};
  struct Row {
    int local_rank;
    Variables variables;
    std::vector<int> cpus;
    std::string visible;  // "" = as before
  };
  const std::vector<Row> rows = {
      {1, {}, {1}, ""},
      {5, {}, {1}, ""},
      {5, {{kPinVariable, "1"}}, {1}, "1"},
      {0, {{"CUDA_VISIBLE_DEVICES", "3, 2"}}, {3}, ""},
      {1, {{"CUDA_VISIBLE_DEVICES", "3, 2"}, {kPinVariable, "1"}}, {2}, "2"},
      {0, {{"CUDA_VISIBLE_DEVICES", "GPU-7"}, {kPinVariable, "1"}}, {}, "GPU-7"},
      {0, {{"CUDA_VISIBLE_DEVICES", "9"}}, {}, ""},
      {1, {{"CUDA_DEVICE_ORDER", "FASTEST_FIRST"}}, {}, ""},
      {1, {{"CUDA_DEVICE_ORDER", "PCI_BUS_ID"}}, {1}, ""},
  };
  for (const auto& row : rows) {
    const Pin pin = pin_of_rank(row.local_rank, gpus, row.variables);
    const auto& line = &row - rows.data();
    EXPECT_EQ(pin.cpus, row.cpus) << line;
    EXPECT_EQ(pin.variables.contains("CUDA_VISIBLE_DEVICES"), !row.visible.empty()) << line;
    if (!row.visible.empty()) {
      EXPECT_EQ(pin.variables.at("CUDA_VISIBLE_DEVICES"), row.visible) << line;
    }
    EXPECT_EQ(pin.variables.contains("CUDA_DEVICE_ORDER"),
              !row.variables.contains("CUDA_DEVICE_ORDER"))
        << line;
  }
  EXPECT_TRUE(pin_of_rank(0, {}, {{kPinVariable, "1"}}).variables.empty())
      << "a machine without GPUs";
}

TEST(Plan, StartsRanksOfDataParallelUnlessTheScriptNeedsItsLibrary) {
  Job job{.hyperparameters = {{"sagemaker_distributed_dataparallel_enabled", "true"},
                              {"sagemaker_instance_type", "\"ml.p4d.24xlarge\""}}};
  EXPECT_EQ(job.plan()->starts[0].variables.at("SMDATAPARALLEL_USE_HOMOGENEOUS"), "1");
  EXPECT_EQ(job.plan()->starts[0].variables.at("SAGEMAKER_INSTANCE_TYPE"), "ml.p4d.24xlarge");
  job.image.code_names_smdistributed = true;
  const auto refused = job.plan();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("torch.distributed"), std::string::npos);
  job.image.smdistributed = true;
  EXPECT_TRUE(job.plan());
}

TEST(Plan, StartsMpirunOnTheLeadingHostOnly) {
  Job job{.hyperparameters = {{"sagemaker_mpi_enabled", "true"},
                              {"sagemaker_mpi_num_of_processes_per_host", "2"},
                              {"sagemaker_mpi_custom_mpi_options",
                               "\"-verbose --NCCL_DEBUG WARN -x A=1\""},
                              {"epochs", "3"}},
          .variables = {{"SM_HPS", "{}"},
                        {"SM_CURRENT_HOST", "algo-1"},
                        {"HOME", "/root"},
                        {"LD_LIBRARY_PATH", "/opt/lib"}}};
  const auto plan = job.plan();
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->starts.size(), 1u);
  EXPECT_EQ(plan->starts[0].role, Start::Role::launcher);
  EXPECT_EQ(joined(plan->starts[0].arguments),
            "/usr/bin/mpirun --host algo-1:2,algo-2:2 -np 4 --allow-run-as-root --display-map "
            "--tag-output -mca btl_tcp_if_include eth0 -mca oob_tcp_if_include eth0 -mca "
            "plm_rsh_no_tree_spawn 1 -bind-to none -map-by slot -mca pml ob1 -mca btl ^openib -mca "
            "orte_abort_on_non_zero_status "
            "1 -mca btl_vader_single_copy_mechanism none -mca plm_rsh_agent /opt/trainyard/entry "
            "--start-on -mca orte_leave_session_attached 1 -x NCCL_MIN_NRINGS=4 -x "
            "NCCL_SOCKET_IFNAME=eth0 -x NCCL_DEBUG=WARN -x PATH -x LD_LIBRARY_PATH -verbose -x A=1 "
            "-x SM_HPS /opt/trainyard/entry --rank /usr/bin/python3 train.py --epochs 3");
  job.host = 2;
  EXPECT_TRUE(job.plan()->starts.empty());
  EXPECT_EQ(job.plan()->hosts.size(), 2u);
  job.host = 1;
  job.hyperparameters["sagemaker_mpi_num_processes"] = "3";
  job.hyperparameters["sagemaker_mpi_num_of_processes_per_host"] = "1";
  job.image.mpi4py = true;
  const auto command = joined(job.plan()->starts[0].arguments);
  EXPECT_NE(command.find("--host algo-1,algo-2 -np 3 "), std::string::npos) << command;
  EXPECT_NE(command.find("--rank /usr/bin/python3 -m mpi4py train.py"), std::string::npos)
      << command;
  job.image.mpirun = "";
  EXPECT_FALSE(job.plan());
}

TEST(Plan, MakesTfConfigWithParameterServers) {
  Job job{
      .hosts = 3, .host = 3, .hyperparameters = {{"sagemaker_parameter_server_enabled", "true"}}};
  auto plan = job.plan();
  ASSERT_EQ(plan->starts.size(), 1u);
  EXPECT_EQ(plan->remarks.size(), 1u) << "no TensorFlow, no server";
  const Json config = *parse_json(plan->starts[0].variables.at("TF_CONFIG"));
  EXPECT_EQ(config, *parse_json(R"({"cluster":{"master":["algo-1:2222"],
      "ps":["algo-1:2223","algo-2:2223","algo-3:2223"],"worker":["algo-2:2222","algo-3:2222"]},
      "environment":"cloud","task":{"index":1,"type":"worker"}})"));
  job.image.tensorflow = true;
  job.host = 1;
  plan = job.plan();
  ASSERT_EQ(plan->starts.size(), 2u);
  EXPECT_EQ(plan->starts[0].role, Start::Role::server);
  EXPECT_EQ((*parse_json(plan->starts[0].variables.at("TF_CONFIG")))["task"],
            Json({{"index", 0}, {"type", "ps"}}));
  EXPECT_EQ((*parse_json(plan->starts[1].variables.at("TF_CONFIG")))["task"],
            Json({{"index", 0}, {"type", "master"}}));
  job.hosts = 1;
  EXPECT_FALSE(job.plan()->starts[0].variables.contains("TF_CONFIG"))
      << "one host needs no servers";
}

TEST(Plan, MakesTfConfigForMirroredTraining) {
  const auto plan =
      Job{.host = 2,
          .hyperparameters = {{"sagemaker_multi_worker_mirrored_strategy_enabled", "true"}}}
          .plan();
  EXPECT_EQ(
      *parse_json(plan->starts[0].variables.at("TF_CONFIG")),
      *parse_json(R"({"cluster":{"worker":["algo-1:8890","algo-2:8890"]},"environment":"cloud",
                            "task":{"index":1,"type":"worker"}})"));
}

TEST(Plan, RejectsUnsupportedSettingsWithAnExplanation) {
  const struct {
    Json hyperparameters;
    const char* program;
    const char* word;
  } kTable[] = {
      {{{"sagemaker_pytorch_xla_multi_worker_enabled", "true"}}, "train.py", "pytorchxla"},
      {{{"sagemaker_torch_distributed_enabled", "true"}}, "go.sh", "Python script"},
      {{{"sagemaker_mpi_enabled", "true"}, {"sagemaker_mpi_num_of_processes_per_host", "\"many\""}},
       "train.py",
       "whole number"},
      {{{"sagemaker_mpi_enabled", "true"}, {"sagemaker_mpi_num_of_processes_per_host", "0"}},
       "train.py",
       "whole number"},
      {Json::object(), "../train.py", "leads out"},
  };
  for (const auto& row : kTable) {
    const auto plan = Job{.hyperparameters = row.hyperparameters, .program = row.program}.plan();
    ASSERT_FALSE(plan) << row.word;
    EXPECT_NE(plan.error().message.find(row.word), std::string::npos) << plan.error().message;
  }
}

}  // namespace
}  // namespace trainyard::entry
