#include "entry/plan.hpp"

#include <algorithm>

#include "base/enum_table.hpp"
#include "base/text.hpp"
#include "contract/contract.hpp"

namespace trainyard::entry {
namespace {

// The ports of the framework images.
constexpr const char* kTorchPort = "7777";
// The variable for the order in which CUDA numbers GPUs; by default the fastest GPU is the first.
constexpr const char* kOrderVariable = "CUDA_DEVICE_ORDER";
constexpr const char* kBusOrder = "PCI_BUS_ID";
constexpr int kTensorflowPort = 2222, kServerPort = 2223, kMirroredPort = 8890;
constexpr const char* kDataParallelPort = "7592";
// The limit of ranks on a host: no machine has as many cores.
constexpr int64_t kRanksOfHostMax = 4096;

// A parameter server like that of the TensorFlow image: it runs until it is killed.
constexpr const char* kParameterServer =
    "import json, os, tensorflow as tf; config = json.loads(os.environ['TF_CONFIG']); "
    "tf.distribute.Server(tf.train.ClusterSpec(config['cluster']), job_name='ps', "
    "task_index=config['task']['index'], "
    "config=tf.compat.v1.ConfigProto(device_count={'GPU': 0})).join()";

size_t location_of(const std::vector<std::string>& hosts, const std::string& host) {
  return static_cast<size_t>(std::ranges::find(hosts, host) - hosts.begin());
}

Result<std::optional<int>> whole_number_at(const Settings& settings, const std::string& name) {
  const auto found = settings.framework.find(name);
  if (found == settings.framework.end() || found->second.is_null()) return std::optional<int>();
  const auto number = parse_int(argument_text(found->second));
  if (!number || *number < 1 || *number > kRanksOfHostMax)
    return invalid("The hyperparameter " + name + " must be a whole number from 1 to " +
                   std::to_string(kRanksOfHostMax));
  return std::optional<int>(static_cast<int>(*number));
}

Result<int> ranks_of_host(const Settings& settings) {
  const auto configured = TRY(whole_number_at(settings, "sagemaker_mpi_num_of_processes_per_host"));
  return configured.value_or(std::max(settings.gpus, 1));
}

Start started_program(const Settings& settings, const Image& image, size_t place) {
  Start start;
  start.rank = static_cast<int>(place);
  start.arguments = program_command(settings, image, false);
  start.signal_group = program_kind(settings.program, image.has_setup) == Program::command;
  return start;
}

Result<void> need_python(const Image& image, const std::string& what) {
  if (!image.python.empty()) return {};
  return invalid(what + " needs Python, and this image has neither python3 nor python on its PATH");
}

// -- mpi

struct CustomOptions {
  std::string nccl_debug = "INFO";
  std::vector<std::string> others;
};

// Splits custom options at blanks, as the toolkit does. NCCL_DEBUG is the only option whose value
// may be a separate word.
CustomOptions custom_options(const std::string& text) {
  CustomOptions options;
  std::vector<std::string> words;
  std::string word;
  for (const char c : text + " ") {
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      if (!word.empty()) words.push_back(std::move(word));
      word.clear();
    } else {
      word += c;
    }
  }
  constexpr std::string_view debug = "--NCCL_DEBUG";
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == debug && i + 1 < words.size()) {
      options.nccl_debug = words[++i];
    } else if (words[i].starts_with(std::string(debug) + "=")) {
      options.nccl_debug = words[i].substr(debug.size() + 1);
    } else {
      options.others.push_back(std::move(words[i]));
    }
  }
  return options;
}

std::vector<std::string> mpirun_command(const Settings& settings, const Image& image,
                                        const Variables& variables, int ranks, int all_ranks) {
  std::string hosts;
  for (const auto& host : settings.distribution_hosts)
    hosts += (hosts.empty() ? "" : ",") + host + (ranks == 1 ? "" : ":" + std::to_string(ranks));
  const auto custom = settings.framework.find("sagemaker_mpi_custom_mpi_options");
  const auto options =
      custom_options(custom == settings.framework.end() ? "" : argument_text(custom->second));
  std::vector<std::string> command = {image.mpirun, "--host", hosts, "-np",
                                      std::to_string(all_ranks)};
  const auto add = [&](std::initializer_list<std::string> words) {
    command.insert(command.end(), words);
  };
  const auto parameter = [&](const char* name, const std::string& value) {
    add({"-mca", name, value});
  };
  add({"--allow-run-as-root", "--display-map", "--tag-output"});
  parameter("btl_tcp_if_include", settings.network_interface);
  parameter("oob_tcp_if_include", settings.network_interface);
  parameter("plm_rsh_no_tree_spawn", "1");
  add({"-bind-to", "none", "-map-by", "slot"});
  parameter("pml", "ob1");
  parameter("btl", "^openib");
  parameter("orte_abort_on_non_zero_status", "1");
  parameter("btl_vader_single_copy_mechanism", "none");
  // In addition to the toolkit's options: daemons are started through entry's links instead of ssh,
  // and stay children of entry.
  parameter("plm_rsh_agent", image.entry + " --start-on");
  parameter("orte_leave_session_attached", "1");
  add({"-x", "NCCL_MIN_NRINGS=4", "-x", "NCCL_SOCKET_IFNAME=" + settings.network_interface, "-x",
       "NCCL_DEBUG=" + options.nccl_debug, "-x", "PATH"});
  if (variables.contains("LD_LIBRARY_PATH"))
    add({"-x", "LD_LIBRARY_PATH"});  // mpirun warns about missing variables
  command.insert(command.end(), options.others.begin(), options.others.end());
  for (const char* name : {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"})
    if (variables.contains(name)) add({"-x", name});
  for (const auto& [name, value] : variables)
    if (name.starts_with("SM_") && !is_of_host(name)) add({"-x", name});
  add({image.entry, "--rank"});
  const auto program = program_command(settings, image, true);
  command.insert(command.end(), program.begin(), program.end());
  return command;
}

Result<Plan> plan_mpi(const Settings& settings, const Image& image, const Variables& variables,
                      Plan plan) {
  if (image.mpirun.empty())
    return invalid("The distribution mpi needs OpenMPI, and this image has no mpirun on its PATH");
  const int ranks = TRY(ranks_of_host(settings));
  const auto all = TRY(whole_number_at(settings, "sagemaker_mpi_num_processes"));
  plan.distribution = Distribution::mpi;
  if (settings.current_host != settings.master()) return plan;
  Start start;
  start.role = Start::Role::launcher;
  const int all_ranks = all.value_or(ranks * static_cast<int>(plan.hosts.size()));
  start.arguments = mpirun_command(settings, image, variables, ranks, all_ranks);
  plan.starts.push_back(std::move(start));
  return plan;
}

// -- torch

// The variables that torchrun sets for its ranks.
Variables torch_variables(const Settings& settings, size_t place, int local_rank, int ranks,
                          size_t hosts) {
  const auto text = [](auto number) { return std::to_string(number); };
  const size_t rank = place * static_cast<size_t>(ranks) + static_cast<size_t>(local_rank);
  const size_t world = hosts * static_cast<size_t>(ranks);
  return {{"MASTER_ADDR", settings.master()},
          {"MASTER_PORT", kTorchPort},
          {"RANK", text(rank)},
          {"LOCAL_RANK", text(local_rank)},
          {"WORLD_SIZE", text(world)},
          {"LOCAL_WORLD_SIZE", text(ranks)},
          {"GROUP_RANK", text(place)},
          {"GROUP_WORLD_SIZE", text(hosts)},
          {"ROLE_NAME", "default"},
          {"ROLE_RANK", text(rank)},
          {"ROLE_WORLD_SIZE", text(world)},
          {"TORCHELASTIC_RESTART_COUNT", "0"},
          {"TORCHELASTIC_MAX_RESTARTS", "0"},
          {"TORCHELASTIC_RUN_ID", settings.job_name},
          {"TORCHELASTIC_USE_AGENT_STORE", "False"},
          {"NCCL_SOCKET_IFNAME", settings.network_interface},
          {"NCCL_PROTO", "simple"}};
}

Variables data_parallel_variables(const Settings& settings) {
  if (settings.distribution_hosts.size() == 1) return {{"SMDATAPARALLEL_USE_SINGLENODE", "1"}};
  const auto configured = settings.framework.find("sagemaker_instance_type");
  return {{"SMDATAPARALLEL_USE_HOMOGENEOUS", "1"},
          {"SMDATAPARALLEL_SERVER_ADDR", settings.master()},
          {"SMDATAPARALLEL_SERVER_PORT", kDataParallelPort},
          {"SAGEMAKER_INSTANCE_TYPE", configured != settings.framework.end()
                                          ? argument_text(configured->second)
                                          : settings.current_instance_type}};
}

Result<Plan> plan_torch(const Settings& settings, const Image& image, const Variables& variables,
                        Plan plan, bool data_parallel) {
  TRY(need_python(image, "The distribution torch_distributed"));
  if (program_kind(settings.program, image.has_setup) != Program::script)
    return invalid("The distribution torch_distributed runs a Python script, and '" +
                   settings.program + "' is not one" +
                   (image.has_setup ? " (with a setup.py)" : ""));
  if (data_parallel && image.code_names_smdistributed && !image.smdistributed)
    return invalid(
        "The script names smdistributed, and neither its image nor this server has that library: "
        "use torch.distributed with the backend nccl or gloo, for which the same ranks are "
        "started");
  const int ranks = TRY(ranks_of_host(settings));
  plan.distribution = Distribution::torch;
  const size_t place = location_of(plan.hosts, settings.current_host);
  for (int local_rank = 0; local_rank < ranks; ++local_rank) {
    Start start;
    start.role = Start::Role::rank;
    start.rank = static_cast<int>(place) * ranks + local_rank;
    start.arguments = program_command(settings, image, false);
    start.variables = torch_variables(settings, place, local_rank, ranks, plan.hosts.size());
    // Otherwise the threads of all ranks would compete for the same cores.
    if (ranks > 1 && !variables.contains("OMP_NUM_THREADS"))
      start.variables["OMP_NUM_THREADS"] = "1";
    if (data_parallel) start.variables.merge(data_parallel_variables(settings));
    Pin pin = pin_of_rank(local_rank, settings.gpu_cpus, variables);
    start.variables.merge(pin.variables);
    start.cpus = std::move(pin.cpus);
    plan.starts.push_back(std::move(start));
  }
  return plan;
}

// -- TF_CONFIG

Json with_port(const std::vector<std::string>& hosts, size_t from, int port) {
  Json addresses = Json::array();
  for (size_t i = from; i < hosts.size(); ++i)
    addresses.push_back(hosts[i] + ":" + std::to_string(port));
  return addresses;
}

Json parameter_server_cluster(const std::vector<std::string>& hosts) {
  return {{"master", Json::array({hosts.front() + ":" + std::to_string(kTensorflowPort)})},
          {"ps", with_port(hosts, 0, kServerPort)},
          {"worker", with_port(hosts, 1, kTensorflowPort)}};
}

std::string tensorflow_config(Json cluster, const char* type, size_t index) {
  const Json config = {{"cluster", std::move(cluster)},
                       {"environment", "cloud"},
                       {"task", {{"index", index}, {"type", type}}}};
  return dump(config);
}

Result<Plan> plan_parameter_server(const Settings& settings, const Image& image, Plan plan) {
  TRY(need_python(image, "The distribution parameter_server"));
  plan.distribution = Distribution::parameter_server;
  const size_t place = location_of(plan.hosts, settings.current_host);
  const Json cluster = parameter_server_cluster(plan.hosts);
  if (image.tensorflow) {
    Start server;
    server.role = Start::Role::server;
    server.rank = static_cast<int>(place);
    server.arguments = {image.python, "-c", kParameterServer};
    server.variables["TF_CONFIG"] = tensorflow_config(cluster, "ps", place);
    plan.starts.push_back(std::move(server));
  } else {
    plan.remarks.push_back(
        "this image has no TensorFlow, so no parameter server is started; TF_CONFIG is set as if "
        "it were");
  }
  Start start = started_program(settings, image, place);
  start.variables["TF_CONFIG"] = place == 0 ? tensorflow_config(cluster, "master", 0)
                                            : tensorflow_config(cluster, "worker", place - 1);
  plan.starts.push_back(std::move(start));
  return plan;
}

Plan plan_mirrored(const Settings& settings, const Image& image, Plan plan) {
  plan.distribution = Distribution::mirrored;
  const size_t place = location_of(plan.hosts, settings.current_host);
  Start start = started_program(settings, image, place);
  start.variables["TF_CONFIG"] =
      tensorflow_config({{"worker", with_port(plan.hosts, 0, kMirroredPort)}}, "worker", place);
  plan.starts.push_back(std::move(start));
  return plan;
}

Plan plan_alone(const Settings& settings, const Image& image, Plan plan) {
  plan.hosts = {settings.current_host};
  plan.starts.push_back(
      started_program(settings, image, location_of(settings.hosts, settings.current_host)));
  if (settings.hosts.size() > 1 && settings.distribution_hosts.empty())
    plan.remarks.push_back(
        "warning: " + std::to_string(settings.hosts.size()) +
        " hosts and no distribution: unless the script connects the hosts itself, each "
        "trains alone, and one model.tar.gz has the files of all of them");
  return plan;
}

constexpr EnumTable<Distribution> kDistributions{
    "distribution",
    {{Distribution::none, "none"},
     {Distribution::mpi, "mpi"},
     {Distribution::torch, "torch_distributed"},
     {Distribution::parameter_server, "parameter_server"},
     {Distribution::mirrored, "multi_worker_mirrored_strategy"}}};

}  // namespace

std::string_view to_string(Distribution distribution) { return kDistributions.text(distribution); }

Program program_kind(std::string_view program, bool has_setup) {
  if (program.ends_with(".sh")) return Program::command;
  if (has_setup) return Program::package;
  return program.ends_with(".py") ? Program::script : Program::command;
}

std::vector<std::string> program_command(const Settings& settings, const Image& image,
                                         bool launched) {
  const auto arguments = user_arguments(settings.user);
  const Program kind = program_kind(settings.program, image.has_setup);
  std::vector<std::string> command;
  if (kind == Program::command) {
    std::string line = "./" + shell_word(settings.program);
    for (const auto& argument : arguments) line += " " + shell_word(argument);
    return {"/bin/sh", "-c", line};
  }
  command.push_back(image.python);
  if (launched && image.mpi4py) command.insert(command.end(), {"-m", "mpi4py"});
  if (kind == Program::package) {
    std::string module = settings.program;
    if (module.ends_with(".py")) module.resize(module.size() - 3);
    std::ranges::replace(module, '/', '.');
    command.insert(command.end(), {"-m", module});
  } else {
    command.push_back(settings.program);
  }
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

Pin pin_of_rank(int local_rank, const std::vector<std::vector<int>>& gpu_cpus,
                const Variables& variables) {
  Pin pin;
  if (gpu_cpus.empty()) return pin;
  const auto position = static_cast<size_t>(local_rank);
  const std::string visible = contract::variable_of(variables, "CUDA_VISIBLE_DEVICES");
  const auto names = split(visible, ',');
  const std::string device = visible.empty() ? std::to_string(position % gpu_cpus.size())
                                             : std::string(trim(names[position % names.size()]));
  if (contract::variable_of(variables, kPinVariable) == "1")
    pin.variables["CUDA_VISIBLE_DEVICES"] = device;
  const std::string order = contract::variable_of(variables, kOrderVariable);
  if (order.empty()) pin.variables[kOrderVariable] = kBusOrder;
  // The NUMA nodes are unknown if the visible GPUs have another form or order.
  const auto number = parse_int(device);
  if (number && *number >= 0 && static_cast<size_t>(*number) < gpu_cpus.size() &&
      (order.empty() || order == kBusOrder))
    pin.cpus = gpu_cpus[static_cast<size_t>(*number)];
  return pin;
}

Result<Plan> make_plan(const Settings& settings, const Image& image, const Variables& variables) {
  TRY(check_program(settings.program));
  if (program_kind(settings.program, image.has_setup) != Program::command)
    TRY(need_python(image, "The script " + settings.program));
  Plan plan;
  if (!settings.in_distribution()) return plan_alone(settings, image, std::move(plan));
  plan.hosts = settings.distribution_hosts;
  if (location_of(plan.hosts, settings.current_host) == plan.hosts.size())
    return invalid("resourceconfig.json: " + settings.current_host +
                   " is not among the hosts of its group");
  if (settings.enabled("sagemaker_parameter_server_enabled") && plan.hosts.size() > 1)
    return plan_parameter_server(settings, image, std::move(plan));
  if (settings.enabled("sagemaker_mpi_enabled"))
    return plan_mpi(settings, image, variables, std::move(plan));
  if (settings.enabled("sagemaker_pytorch_ddp_enabled") ||
      settings.enabled("sagemaker_torch_distributed_enabled"))
    return plan_torch(settings, image, variables, std::move(plan), false);
  if (settings.enabled("sagemaker_distributed_dataparallel_enabled"))
    return plan_torch(settings, image, variables, std::move(plan), true);
  if (settings.enabled("sagemaker_multi_worker_mirrored_strategy_enabled"))
    return plan_mirrored(settings, image, std::move(plan));
  if (settings.enabled("sagemaker_pytorch_xla_multi_worker_enabled"))
    return invalid(
        "The distribution pytorchxla needs the SageMaker Training Compiler, which is not "
        "supported: use torch_distributed");
  return plan_alone(settings, image, std::move(plan));
}

}  // namespace trainyard::entry
