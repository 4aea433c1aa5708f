#include "cluster_setup/plan.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "base/plural.hpp"
#include "base/sha256.hpp"
#include "base/text.hpp"
#include "cluster_setup/names.hpp"
#include "cluster_setup/scripts.hpp"
#include "cluster_setup/slurm_files.hpp"

namespace trainyard::cluster_setup {
namespace {

constexpr Duration kInstallAtMost = 20min;  // over a slow link
constexpr Duration kDaemonAtMost = 90s;     // scripts.cpp waits up to 30 s for its answer
constexpr Duration kNodeAtMost = 3min;      // likewise 60 s, and as long for cancelled jobs

template <class Map>
const typename Map::mapped_type* find(const Map& map, const std::string& key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}

// Finds a file of Slurm's that something else than this program wrote, or has changed since.
std::string problem_of_files(const MachineFacts& facts, bool force) {
  for (const char* path : {kSlurmConf, kCgroupConf, kGresConf}) {
    const std::string* now = find(facts.files, path);
    if (!now) continue;
    const WrittenFile* written = find(facts.written, path);
    if (!written)
      return std::string("it has a file ") + path +
             " that `trainyard cluster` did not write: it belongs to another cluster";
    if (!force && *now != written->digest && *now != written->saved)
      return std::string(path) +
             " was changed by hand since `trainyard cluster` wrote it; --force replaces it";
  }
  return "";
}

// `controller`: of the cluster, as its record or its inspection says.
std::string problem_of(const Candidate& machine, const std::string& member,
                       const std::string& system, int64_t controller_clock, bool force) {
  if (!machine.facts) return machine.problem.empty() ? "it was not inspected" : machine.problem;
  const MachineFacts& facts = *machine.facts;
  if (!machine.problem.empty()) return machine.problem;
  if (!is_node_name(facts.hostname))
    return "its host name '" + facts.hostname + "' cannot be that of a node: change it";
  if (machine.known && machine.known->name != facts.hostname)
    return "its host name is '" + facts.hostname + "', but that of the cluster's node is '" +
           machine.known->name + "': change it back, or remove the node with --forget";
  if (!facts.system.starts_with("debian ") && !facts.system.starts_with("ubuntu "))
    return "it runs " + facts.system + ", but Debian or Ubuntu is needed";
  if (!system.empty() && facts.system != system)
    return "it runs " + facts.system + ", but the controller " + system +
           ": their releases of Slurm differ";
  if (!facts.member.empty() && !member.empty() && facts.member != member)
    return "it belongs to the cluster '" + facts.member.substr(0, facts.member.find(' ')) +
           "' of the controller " + facts.member.substr(facts.member.find(' ') + 1) +
           ": remove it there first";
  if (const int64_t ahead = machine.clock_seconds - controller_clock;
      ahead > kClockSecondsMax || ahead < -kClockSecondsMax)
    return "its clock is " + std::to_string(std::abs(ahead)) + " s " +
           (ahead > 0 ? "ahead of" : "behind") +
           " the controller's, and munge would reject its messages: install chrony";
  return problem_of_files(facts, force);
}

// Chooses the address at which other machines reach this one: the known one, as long as it has it.
std::string address_of(const Candidate& machine, const std::vector<Candidate>& all,
                       bool is_controller) {
  const auto& own = machine.facts->addresses;
  const auto has = [&](const std::string& address) {
    return !address.empty() && std::find(own.begin(), own.end(), address) != own.end();
  };
  if (machine.known && has(machine.known->address)) return machine.known->address;
  if (has(machine.facts->reached_at)) return machine.facts->reached_at;
  // The controller is this machine: its address is that from which it reached another one.
  if (is_controller)
    for (const Candidate& other : all)
      if (other.facts && has(other.facts->reached_from)) return other.facts->reached_from;
  return own.empty() ? std::string() : own.front();
}

MachineRecord record_of(const Candidate& machine, const std::vector<Candidate>& all,
                        bool is_controller) {
  if (!machine.facts) return *machine.known;
  const MachineFacts& facts = *machine.facts;
  MachineRecord record = machine.known.value_or(MachineRecord{});
  record.destination = is_controller ? std::string() : machine.destination;
  record.name = facts.hostname;
  record.address = address_of(machine, all, is_controller);
  record.cpus = facts.cpus;
  if (!machine.known || !memory_still_fits(record.memory_mib, facts.memory_mib))
    record.memory_mib = memory_for_jobs(facts.memory_mib);
  record.gpus = facts.gpus;
  return record;
}

class Planner {
 public:
  Planner(const std::optional<ClusterRecord>& record, const std::vector<Candidate>& machines,
          const Wish& wish)
      : old_(record), machines_(machines), wish_(wish) {}

  Result<Plan> make();

 private:
  Result<void> examine();
  Result<void> check_controller() const;
  void mark_duplicates();
  Result<void> compose_record();
  void dissolve();
  void leave(size_t index);
  void converge(size_t index);
  bool plan_key(size_t index);
  bool plan_files(size_t index);
  bool plan_programs(size_t index);
  void plan_services(size_t index, bool key_changes, bool files_change);
  Step& add(Phase phase, size_t index, std::string text, std::string script,
            Duration at_most = 60s);

  const MachineFacts& facts(size_t index) const { return *machines_[index].facts; }
  bool has_problem(size_t index) const { return !result_.machines[index].problem.empty(); }
  bool runs_jobs(size_t index) const {
    for (const MachineRecord& machine : result_.record.machines)
      if (machine.name == result_.machines[index].name) return machine.runs_jobs;
    return false;
  }
  std::vector<std::string> slurm_services(size_t index) const {
    std::vector<std::string> names;
    if (index == 0) names.emplace_back("slurmctld");
    if (runs_jobs(index)) names.emplace_back("slurmd");
    return names;
  }
  std::string member() const { return result_.record.name + " " + controller_name_; }

  const std::optional<ClusterRecord>& old_;
  const std::vector<Candidate>& machines_;
  const Wish& wish_;
  Plan result_;
  std::string controller_name_;
  bool controller_restarts_ = false;
};

Step& Planner::add(Phase phase, size_t index, std::string text, std::string script,
                   Duration at_most) {
  Step step;
  step.phase = phase;
  step.machine = index;
  step.text = std::move(text);
  step.script = std::move(script);
  step.at_most = at_most;
  result_.steps.push_back(std::move(step));
  return result_.steps.back();
}

void Planner::mark_duplicates() {
  std::map<std::string, size_t> first;
  for (size_t i = 0; i < machines_.size(); ++i) {
    PlannedMachine& machine = result_.machines[i];
    if (machine.name.empty()) continue;
    const auto [place, made] = first.try_emplace(machine.name, i);
    if (!made && machine.problem.empty())
      machine.problem = place->second == 0
                            ? "it is the controller"
                            : "it is the machine '" + machine.name + "', which is named already";
  }
}

Result<void> Planner::check_controller() const {
  const PlannedMachine& controller = result_.machines.front();
  if (!controller.problem.empty())
    return conflict("the controller cannot be used: " + controller.problem);
  if (!wish_.controller_address.empty()) {
    const auto& own = facts(0).addresses;
    if (std::find(own.begin(), own.end(), wish_.controller_address) == own.end())
      return invalid("invalid --address '" + wish_.controller_address +
                     "': the controller has the addresses " + join(own, ", "));
  }
  return {};
}

// Names each machine, and finds what keeps it from being used.
Result<void> Planner::examine() {
  result_.record.name = old_ ? old_->name : wish_.name;
  const Candidate& controller = machines_.front();
  controller_name_ = controller.facts ? controller.facts->hostname
                     : old_           ? old_->machines.front().name
                                      : std::string();
  result_.record.system = controller.facts ? controller.facts->system : std::string();
  for (const Candidate& machine : machines_) {
    PlannedMachine planned;
    planned.destination = machine.destination;
    planned.name = machine.facts ? machine.facts->hostname : "";
    if (machine.known) planned.name = machine.known->name;
    planned.joins = !machine.known;
    planned.leaves = machine.leaves || wish_.dissolve;
    // A leaving machine may be of any kind.
    if (planned.leaves && !machine.facts && wish_.forget)
      planned.forgotten = machine.problem;
    else if (planned.leaves)
      planned.problem = machine.problem;
    else
      planned.problem = problem_of(machine, member(), result_.record.system,
                                   controller.clock_seconds, wish_.force);
    if (machine.facts && machine.facts->addresses.empty() && planned.problem.empty())
      planned.problem = "it has no IPv4 address that other machines reach";
    result_.machines.push_back(std::move(planned));
  }
  mark_duplicates();
  return check_controller();
}

Result<void> Planner::compose_record() {
  for (size_t i = 0; i < machines_.size(); ++i) {
    const PlannedMachine& planned = result_.machines[i];
    if (has_problem(i) ? planned.joins : planned.leaves) continue;
    Candidate machine = machines_[i];
    if (has_problem(i)) machine.facts.reset();  // it stays as it is
    MachineRecord record = record_of(machine, machines_, i == 0);
    if (i == 0 && planned.joins) {
      record.runs_jobs = wish_.controller_runs_jobs;
      if (!wish_.controller_address.empty()) record.address = wish_.controller_address;
    }
    result_.record.machines.push_back(std::move(record));
  }
  if (result_.record.machines.size() > kMachinesMax)
    return exhausted("a cluster may have " + std::to_string(kMachinesMax) + " machines, not " +
                     std::to_string(result_.record.machines.size()));
  return {};
}

void Planner::leave(size_t index) {
  const PlannedMachine& machine = result_.machines[index];
  if (has_problem(index)) return;
  const auto& known = machines_[index].known;
  if (known && known->runs_jobs) {
    Step& drain = add(Phase::drain, index, "drain the node, and see that no job runs there",
                      drain_script(machine.name, wish_.force), kNodeAtMost);
    drain.on_controller = true;
    if (wish_.force) drain.text = "drain the node, and cancel its jobs";
  }
  if (!machine.forgotten.empty()) return;
  add(index == 0 ? Phase::dissolve : Phase::undo, index,
      "stop Slurm and munge, and undo " + counted(facts(index).written.size(), "written file"),
      undo_script(), kDaemonAtMost);
}

// Plans what a controller that makes a key, or a machine that lacks it, must do. Returns true if
// the key changes.
bool Planner::plan_key(size_t index) {
  const std::string* now = find(facts(index).files, kMungeKey);
  const bool is_ours = find(facts(index).written, kMungeKey) != nullptr;
  const std::vector<std::string> services{"munge"};
  const std::string reason = !now      ? "new file"
                             : is_ours ? "it differs"
                                       : "replaces a file, which `remove` restores";
  if (index == 0) {
    if (now && is_ours) return false;
    add(Phase::key, 0, std::string("make a random key in ") + kMungeKey, make_key_script(services))
        .reason = reason;
    return true;
  }
  const std::string* right = find(facts(0).files, kMungeKey);
  const bool controller_keeps = right && find(facts(0).written, kMungeKey);
  if (controller_keeps && is_ours && now && *now == *right) return false;
  Step& step = add(Phase::files, index, std::string("copy the controller's ") + kMungeKey, "");
  step.reason = reason;
  step.content = Content::munge_key;
  step.services = services;
  return true;
}

bool Planner::plan_files(size_t index) {
  bool changes = false;
  for (const auto& [path, content] :
       {std::pair<std::string, std::string>(kSlurmConf, slurm_conf(result_.record)),
        {kCgroupConf, cgroup_conf()},
        {kGresConf, gres_conf(result_.record)}}) {
    const std::string* now = find(facts(index).files, path);
    if (now && find(facts(index).written, path) && *now == to_hex(bytes_of(sha256(content))))
      continue;
    changes = true;
    FileToWrite file{path, content};
    file.services = slurm_services(index);
    add(Phase::files, index, "write " + path, write_script(file)).reason =
        now ? "the cluster changed" : "new file";
  }
  return changes;
}

bool Planner::plan_programs(size_t index) {
  for (const auto& [name, digest] : wish_.programs) {
    const std::string path = std::string(kProgramDirectory) + "/" + name;
    const std::string* now = find(facts(index).files, path);
    if (now && *now == digest) continue;
    Step& step = add(Phase::files, index, "copy " + name + " to " + kProgramDirectory, "", 10min);
    step.reason = now ? "it differs" : "new file";
    step.content = Content::program;
    step.program = name;
  }
  return false;
}

void Planner::plan_services(size_t index, bool key_changes, bool files_change) {
  const auto restarts = [&](const std::string& service, bool changes) {
    const ServiceState* state = find(facts(index).services, service);
    const auto& pending = facts(index).pending;
    return changes || !state || *state != ServiceState::running ||
           std::find(pending.begin(), pending.end(), service) != pending.end();
  };
  const auto start = [&](Phase phase, const std::string& service) {
    const ServiceState* state = find(facts(index).services, service);
    const bool runs = state && *state == ServiceState::running;
    add(phase, index, (runs ? "restart " : "start ") + service, restart_script(service),
        kDaemonAtMost);
  };
  if (restarts("munge", key_changes)) start(Phase::munge, "munge");
  if (index == 0 && restarts("slurmctld", files_change)) {
    start(Phase::controller, "slurmctld");
    controller_restarts_ = true;
  }
  if (!runs_jobs(index)) return;
  const bool node_restarts = restarts("slurmd", files_change);
  if (node_restarts) start(Phase::nodes, "slurmd");
  if (node_restarts || controller_restarts_) {
    const std::string& name = result_.machines[index].name;
    Step& check = add(Phase::check, index, "wait until Slurm can use the node",
                      await_node_script(name), kNodeAtMost);
    check.on_controller = true;
  }
}

void Planner::converge(size_t index) {
  if (facts(index).member.empty())
    add(Phase::prepare, index, std::string("make ") + kDirectory + ", with notes for undoing",
        prepare_script(member()));
  std::vector<std::string> wanted = node_packages();
  if (index == 0) wanted.emplace_back(kControllerPackage);
  std::erase_if(wanted, [&](const std::string& name) {
    return find(facts(index).packages, name) || (name == "slurmd" && !runs_jobs(index));
  });
  if (!wanted.empty())
    add(Phase::packages, index, "install " + join(wanted, ", "), install_script(wanted),
        kInstallAtMost);
  const bool key_changes = plan_key(index);
  const bool files_change = plan_files(index);
  plan_programs(index);
  plan_services(index, key_changes, files_change);
}

Result<Plan> Planner::make() {
  TRY(examine());
  if (!wish_.dissolve) TRY(compose_record());
  for (size_t i = 0; i < machines_.size(); ++i)
    if (result_.machines[i].leaves) leave(i);
  if (!wish_.dissolve) {
    const std::string text = to_text(result_.record);
    if (facts(0).record != text)
      add(Phase::record, 0, "note the machines of the cluster", record_script(text));
    for (size_t i = 0; i < machines_.size(); ++i)
      if (!has_problem(i) && !result_.machines[i].leaves) converge(i);
  }
  std::stable_sort(result_.steps.begin(), result_.steps.end(),
                   [](const Step& a, const Step& b) { return a.phase < b.phase; });
  return std::move(result_);
}

}  // namespace

Result<Plan> plan(const std::optional<ClusterRecord>& record,
                  const std::vector<Candidate>& machines, const Wish& wish) {
  return Planner(record, machines, wish).make();
}

}  // namespace trainyard::cluster_setup
