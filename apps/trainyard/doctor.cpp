#include "trainyard/doctor.hpp"

#include <cstdio>

#include "config/config.hpp"
#include "containers/gpu_memory.hpp"
#include "containers/rootless_sandbox.hpp"
#include "launch/local/local.hpp"
#include "launch/slurm/slurm_launcher.hpp"
#include "ledger/set_aside.hpp"
#include "os/machine_clock.hpp"
#include "preflight/preflight.hpp"
#include "trainyard/data_directory.hpp"
#include "trainyard/identities.hpp"
#include "trainyard/serve_settings.hpp"
#include "trainyard/terminal.hpp"

namespace trainyard::apps {
namespace {

std::string mark(preflight::Examination::State state) {
  switch (state) {
    case preflight::Examination::State::ok:
      return paint(Paint::green, "ok     ");
    case preflight::Examination::State::limited:
      return paint(Paint::yellow, "limited");
    case preflight::Examination::State::missing:
      return paint(Paint::red, "missing");
  }
  return "";
}

void print_findings(const std::string& data_directory) {
  // An ordinary user's server runs in namespaces of its own, so the machine is examined from such
  // namespaces. An error of creating them is the first finding.
  if (!containers::is_root())
    if (auto entered = containers::enter_temporary_rootless_sandbox(); !entered)
      std::printf("%s\n", entered.error().message.c_str());
  const auto findings = preflight::examine_machine(data_directory);
  int missing = 0;
  for (const auto& finding : findings) {
    std::printf("%s  %-22s %s\n", mark(finding.state).c_str(), finding.name.c_str(),
                finding.text.c_str());
    if (!finding.remedy.empty())
      std::printf("         %-22s %s\n", "", paint(Paint::dim, finding.remedy).c_str());
    missing += finding.state == preflight::Examination::State::missing;
  }
  std::printf("%s\n",
              missing == 0
                  ? "This machine can run jobs."
                  : "Jobs cannot run on this machine until what is missing above is there.");
}

// Prints the GPUs that jobs do not get, since their memory may hold data of the last job.
void print_uncleared_gpus(const std::string& data_directory) {
  for (const auto& gpu : containers::uncleared_gpus(launch::gpus_directory(data_directory))) {
    std::printf("%s  %-22s %s is not given to jobs: its memory could not be cleared: %s\n",
                mark(preflight::Examination::State::limited).c_str(), "GPUs", gpu.device.c_str(),
                gpu.reason.c_str());
    std::printf(
        "         %-22s %s\n", "",
        paint(Paint::dim, "reset it (nvidia-smi --gpu-reset), then remove " + gpu.mark).c_str());
  }
}

// Prints the records that the server set aside when it started.
void print_set_aside(const std::string& data_directory) {
  const std::string path = data_directory + "/ledger.db";
  const auto aside = ledger::read_set_aside(path);
  if (!aside && aside.error().kind == Kind::not_found) return;
  if (!aside) {
    std::printf("%s  %-22s %s\n", mark(preflight::Examination::State::limited).c_str(), "ledger",
                aside.error().message.c_str());
    return;
  }
  for (const auto& record : *aside)
    std::printf("%s  %-22s the record of %s %s was set aside: %s\n",
                mark(preflight::Examination::State::limited).c_str(), "ledger", record.kind.c_str(),
                record.name.c_str(), record.reason.c_str());
  if (!aside->empty())
    std::printf(
        "         %-22s %s\n", "",
        paint(Paint::dim, "docs/formats/ledger.md describes how to restore a record").c_str());
}

void print_about_config(preflight::Examination::State state, const std::string& sentence) {
  std::printf("%s  %-22s %s\n", mark(state).c_str(), "config", sentence.c_str());
}

// Lists the nodes as the server would, and counts those on which jobs can be placed.
void examine_slurm(const config::Slurm& slurm) {
  using State = preflight::Examination::State;
  const auto say = [](State state, const std::string& sentence) {
    std::printf("%s  %-22s %s\n", mark(state).c_str(), "Slurm", sentence.c_str());
  };
  os::MachineClock clock;
  const auto nodes = [&]() -> Result<std::vector<launch::SlurmNode>> {
    return TRY(open_slurm(slurm, clock))->nodes();
  }();
  if (!nodes) return say(State::missing, nodes.error().message);
  std::vector<std::string> partitions;
  if (!slurm.placement.partition.empty()) partitions.push_back(slurm.placement.partition);
  const size_t usable = launch::machines_of(*nodes, partitions, {}).size();
  say(usable > 0 ? State::ok : State::limited,
      std::to_string(usable) + " of " + std::to_string(nodes->size()) + " nodes can be used" +
          (partitions.empty() ? "" : " (partition " + partitions.front() + ")"));
}

// Reads the configuration as the server would, and prints its error or its warnings.
Result<void> examine_config(const std::string& data_directory, const std::string& config_file) {
  const auto config = TRY(config::read_config(config_file));
  const auto identity = read_identity(data_directory);
  if (identity) TRY(check_account(data_directory, identity->account, config.account_id));
  auto identities = stored_identities(data_directory, config);
  // Before the first start only the config has identities.
  if (!identities && identities.error().kind == Kind::not_found)
    identities = config_identities(config, config.account_id, config.access_keys);
  const auto warnings = config_warnings(config, TRY(std::move(identities)));
  for (const std::string& warning : warnings)
    print_about_config(preflight::Examination::State::limited, warning);
  if (warnings.empty()) print_about_config(preflight::Examination::State::ok, config_file);
  if (config.slurm) examine_slurm(*config.slurm);
  return {};
}

void print_config_findings(const std::string& data_directory, std::string config_file) {
  if (config_file.empty())
    if (const auto record = read_server_record(data_directory)) config_file = record->config_file;
  if (config_file.empty()) return;
  if (const auto examined = examine_config(data_directory, config_file); !examined)
    print_about_config(preflight::Examination::State::missing, examined.error().message);
}

}  // namespace

Result<void> doctor(const DoctorRequest& request) {
  const std::string& data_directory = request.data_directory;
  if (!request.clean) {
    // Before the examination, which may enter namespaces.
    print_config_findings(data_directory, request.config_file);
    print_findings(data_directory);
    print_set_aside(data_directory);
    print_uncleared_gpus(data_directory);
    return {};
  }
  const auto data = TRY(DataDirectory::open(data_directory).in("sweeping"));
  const auto gone = TRY(launch::sweep(data.path()));
  for (const auto& text : gone) std::printf("%s\n", text.c_str());
  std::printf("%s\n", gone.empty() ? "Nothing was left behind." : "The rest is clean.");
  return {};
}

}  // namespace trainyard::apps
