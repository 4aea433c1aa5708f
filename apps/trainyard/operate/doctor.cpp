#include "trainyard/operate/doctor.hpp"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "cli/findings_view.hpp"
#include "cli/table.hpp"
#include "config/config.hpp"
#include "containers/gpu/gpu_memory.hpp"
#include "containers/rootless_sandbox.hpp"
#include "launch/kubernetes/kubernetes_launcher.hpp"
#include "launch/kubernetes/list_objects.hpp"
#include "launch/local/local.hpp"
#include "launch/slurm/node_kinds.hpp"
#include "launch/slurm/slurm_states.hpp"
#include "ledger/set_aside.hpp"
#include "os/machine_clock.hpp"
#include "preflight/preflight.hpp"
#include "trainyard/data_directory.hpp"
#include "trainyard/identities.hpp"
#include "trainyard/ledger_role.hpp"
#include "trainyard/serve_settings.hpp"

namespace trainyard::apps {
namespace {

using cli::Finding;
using State = cli::Finding::State;

constexpr const char* kExampleAccount = "123456789012";  // the account in AWS's examples

State state_of(preflight::Examination::State state) {
  switch (state) {
    case preflight::Examination::State::ok:
      return State::ok;
    case preflight::Examination::State::limited:
      return State::limited;
    case preflight::Examination::State::missing:
      return State::missing;
  }
  return State::missing;
}

// Prints findings, with colours if the terminal supports them.
class Report {
 public:
  explicit Report(const cli::OutputStyle& style) : style_(style) {}
  void print(const std::vector<Finding>& findings) const {
    std::fputs(cli::findings_text(style_, findings).c_str(), stdout);
  }
  void print(const std::string& text) const {
    std::fputs(cli::paragraph(style_, text).c_str(), stdout);
  }

 private:
  const cli::OutputStyle style_;
};

void print_machine(const Report& report, const std::string& data_directory) {
  // An ordinary user's server runs in namespaces of its own, so the machine is examined from such
  // namespaces. An error of creating them is the first finding.
  if (!containers::is_root())
    if (auto entered = containers::enter_temporary_rootless_sandbox(); !entered)
      report.print(entered.error().message);
  std::vector<Finding> findings;
  bool missing = false;
  for (auto& found : preflight::examine_machine(data_directory)) {
    findings.push_back({state_of(found.state), found.name, found.text, found.remedy});
    missing |= findings.back().state == State::missing;
  }
  report.print(findings);
  report.print(missing ? "Jobs cannot run on this machine until what is missing above is there."
                       : "This machine can run jobs.");
}

// Finds the GPUs that are not assigned to jobs, since their memory may have data of the last job.
std::vector<Finding> uncleared_gpus(const std::string& data_directory) {
  std::vector<Finding> findings;
  for (const auto& gpu : containers::uncleared_gpus(launch::gpus_directory(data_directory)))
    findings.push_back(
        {State::limited, "GPUs",
         gpu.device + " is not given to jobs: its memory could not be cleared: " + gpu.reason,
         "reset it (nvidia-smi --gpu-reset), then remove " + gpu.mark});
  return findings;
}

// Finds the records that the server set aside when it started.
std::vector<Finding> set_aside(const std::string& data_directory, const config::Config& config) {
  const auto database = ledger_database_of(config);
  const auto aside = database ? ledger::read_set_aside(*database)
                              : ledger::read_set_aside(data_directory + "/ledger.db");
  if (!aside && aside.error().kind == Kind::not_found) return {};
  if (!aside) return {{State::limited, "ledger", aside.error().message, ""}};
  std::vector<Finding> findings;
  for (const auto& record : *aside)
    findings.push_back(
        {State::limited, "ledger",
         "the record of " + record.kind + " " + record.name + " was set aside: " + record.reason,
         ""});
  if (!findings.empty())
    findings.back().remedy = "docs/formats/ledger.md describes how to restore a record";
  return findings;
}

// Lists the nodes as the server would, and counts those on which jobs can be placed. Checks that
// jobs can be submitted for the accounts of its users.
Finding examine_slurm(const config::Slurm& slurm) {
  os::MachineClock clock;
  os::MachineRandom random;
  const auto nodes = [&]() -> Result<std::vector<launch::SlurmNode>> {
    const auto opened = TRY(open_slurm(slurm, clock, random));
    TRY(launch::check_users(*opened, TRY(unix_users_of(slurm))));
    return opened->nodes();
  }();
  if (!nodes) return {State::missing, "Slurm", nodes.error().message, ""};
  std::vector<std::string> partitions;
  if (!slurm.placement.partition.empty()) partitions.push_back(slurm.placement.partition);
  const size_t usable = launch::machines_of(*nodes, partitions, {}).size();
  const auto among = std::ranges::count_if(
      *nodes, [&](const launch::SlurmNode& node) { return launch::is_in(partitions, node); });
  const auto off = std::ranges::count_if(*nodes, [&](const launch::SlurmNode& node) {
    return launch::is_in(partitions, node) && launch::power_of(node) == launch::NodePower::off &&
           launch::kind_of_node(slurm.node_kinds, node) != nullptr;
  });
  return {usable + size_t(off) > 0 ? State::ok : State::limited, "Slurm",
          std::to_string(usable) + " of " + std::to_string(among) + " nodes can be used" +
              (off > 0 ? ", " + std::to_string(off) + " can be powered up" : "") +
              (partitions.empty() ? "" : " (partition " + partitions.front() + ")"),
          ""};
}

// Makes the same checks for Kubernetes.
Finding examine_kubernetes(const config::Kubernetes& kubernetes) {
  os::MachineClock clock;
  launch::KubernetesJobSettings jobs;
  jobs.placement = kubernetes.placement;
  jobs.of_queues = kubernetes.of_queues;
  jobs.of_instance_types = kubernetes.of_instance_types;
  const auto nodes = [&]() -> Result<std::vector<launch::KubernetesNode>> {
    const auto client = TRY(open_kubernetes(kubernetes, jobs, clock));
    const auto list = TRY(launch::list_objects<launch::KubernetesNode>(*client, jobs.mark));
    std::vector<launch::KubernetesNode> found;
    for (const auto& [name, node] : list.objects) found.push_back(node);
    return found;
  }();
  if (!nodes) return {State::missing, "Kubernetes", nodes.error().message, ""};
  const size_t usable = launch::machines_of(*nodes, launch::placements_of(jobs), {}).size();
  return {usable > 0 ? State::ok : State::limited, "Kubernetes",
          std::to_string(usable) + " of " + std::to_string(nodes->size()) + " nodes can be used",
          ""};
}

// Reads the configuration as the server does, and returns its warnings. Errors: those of the
// server.
Result<std::vector<Finding>> examine_config(const std::string& data_directory,
                                            const std::string& config_file) {
  const auto config = TRY(config::read_config(config_file));
  const auto identity = read_identity(data_directory);
  if (identity) TRY(check_account(data_directory, identity->account, config.account_id));
  auto identities = stored_identities(data_directory, config);
  // Before the first start only the config has identities, and the account may not be known yet.
  if (!identities && identities.error().kind == Kind::not_found)
    identities =
        config_identities(config, config.account_id.empty() ? kExampleAccount : config.account_id,
                          config.access_keys);
  std::vector<Finding> findings;
  for (const std::string& warning : config_warnings(config, TRY(std::move(identities))))
    findings.push_back({State::limited, "config", warning, ""});
  if (findings.empty()) findings.push_back({State::ok, "config", config_file, ""});
  if (config.slurm) findings.push_back(examine_slurm(*config.slurm));
  if (config.kubernetes) findings.push_back(examine_kubernetes(*config.kubernetes));
  return findings;
}

// Returns the file to examine: the request's or, without one, the server's; "" = none.
std::string config_file_of(const DoctorRequest& request) {
  if (!request.config_file.empty()) return request.config_file;
  const auto record = read_server_record(request.data_directory);
  return record ? record->config_file : "";
}

std::vector<Finding> config_findings(const std::string& data_directory,
                                     const std::string& config_file) {
  if (config_file.empty()) return {};
  auto findings = examine_config(data_directory, config_file);
  if (findings) return *std::move(findings);
  return {{State::missing, "config", findings.error().message, ""}};
}

}  // namespace

Result<void> doctor(const DoctorRequest& request, const cli::OutputStyle& style) {
  const std::string& data_directory = request.data_directory;
  const Report report(style);
  if (!request.clean) {
    // Before the examination, which may enter namespaces.
    const std::string config_file = config_file_of(request);
    report.print(config_findings(data_directory, config_file));
    config::Config config;
    if (!config_file.empty())
      if (auto found = config::read_config(config_file)) config = *std::move(found);
    print_machine(report, data_directory);
    report.print(set_aside(data_directory, config));
    report.print(uncleared_gpus(data_directory));
    return {};
  }
  const auto data = TRY(DataDirectory::open(data_directory).in("sweeping"));
  const auto gone = TRY(launch::sweep(data.path()));
  for (const auto& text : gone) report.print(text);
  report.print(gone.empty() ? "Nothing was left behind." : "The rest is clean.");
  return {};
}

}  // namespace trainyard::apps
