#include "cluster_setup/setup.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "base/thread_safety.hpp"
#include "cluster_setup/machine_facts.hpp"
#include "cluster_setup/names.hpp"
#include "cluster_setup/scripts.hpp"
#include "os/parallel.hpp"

namespace trainyard::cluster_setup {
namespace {

constexpr Duration kInspectAtMost = 60s;
constexpr size_t kKeyBytesMin = 32, kKeyBytesMax = 1024;  // munge's limits

}  // namespace

// Run has what the threads of one run share.
struct MachineSetup::Run {
  explicit Run(const SetupObserver& watcher, const std::atomic<bool>& stop)
      : observer(watcher), cancelled(stop) {}

  std::string error_of(size_t machine) {
    const MutexLock lock(mutex);
    return errors[machine];
  }

  const SetupObserver& observer;
  const std::atomic<bool>& cancelled;
  Mutex mutex;
  std::vector<std::string> errors GUARDED_BY(mutex);  // by machine; "" = none
};

Candidate MachineSetup::inspect_machine(const std::string& destination) {
  Candidate machine;
  machine.destination = destination;
  const auto output = shells_.run(destination, inspection_script(), kInspectAtMost);
  auto facts = output ? read_machine_facts(*output) : Result<MachineFacts>(output.error());
  if (!facts) {
    machine.problem = facts.error().message;
    return machine;
  }
  machine.clock_seconds = facts->seconds - to_milliseconds(clock_.now()) / 1000;
  machine.facts = *std::move(facts);
  return machine;
}

Result<Cluster> MachineSetup::find() {
  Cluster cluster;
  cluster.machines.push_back(inspect_machine(controller_));
  Candidate& controller = cluster.machines.front();
  if (!controller.facts)
    return unavailable("inspecting the controller" +
                       (controller_.empty() ? "" : " " + controller_) + ": " + controller.problem);
  if (!controller.facts->record.empty()) {
    cluster.record = TRY(read_cluster_record(controller.facts->record));
    controller.known = cluster.record->machines.front();
  }
  return cluster;
}

Result<void> MachineSetup::inspect(Cluster& cluster, const std::vector<std::string>& joining) {
  std::vector<Candidate> others;
  if (cluster.record)
    for (size_t i = 1; i < cluster.record->machines.size(); ++i) {
      Candidate machine;
      machine.known = cluster.record->machines[i];
      machine.destination = machine.known->destination;
      others.push_back(std::move(machine));
    }
  for (const std::string& destination : joining) {
    TRY(check_destination(destination));
    const bool is_known = std::any_of(others.begin(), others.end(), [&](const Candidate& other) {
      return other.destination == destination;
    });
    if (is_known) continue;
    Candidate machine;
    machine.destination = destination;
    others.push_back(std::move(machine));
  }
  TRY(os::for_each_in_parallel(others.size(), kMachinesAtATime, [&](size_t index) {
    Candidate found = inspect_machine(others[index].destination);
    found.known = std::move(others[index].known);
    others[index] = std::move(found);
    return ok();
  }));
  for (Candidate& machine : others) cluster.machines.push_back(std::move(machine));
  return {};
}

Result<std::string> MachineSetup::on_controller(const std::string& script, Duration at_most) {
  return shells_.run(controller_, script, at_most);
}

Result<std::string> MachineSetup::run_step(const Plan& plan, const Step& step) {
  const std::string& destination = step.on_controller || step.machine == 0
                                       ? controller_
                                       : plan.machines[step.machine].destination;
  if (step.content == Content::none) return shells_.run(destination, step.script, step.at_most);
  FileToWrite file;
  file.services = step.services;
  if (step.content == Content::munge_key) {
    const std::string encoded =
        TRY(on_controller(read_key_script()).in("reading the controller's munge key"));
    file.path = kMungeKey, file.owner = "munge:munge", file.mode = "0400";
    file.content = TRY(from_base64(trim(encoded)).in("reading the controller's munge key"));
    if (file.content.size() < kKeyBytesMin || file.content.size() > kKeyBytesMax)
      return corrupt("the controller's munge key has " + std::to_string(file.content.size()) +
                     " bytes");
  } else {
    file.path = std::string(kProgramDirectory) + "/" + step.program, file.mode = "0755";
    file.content = TRY(read_program_(step.program));
  }
  return shells_.run(destination, write_script(file), step.at_most);
}

void MachineSetup::run_steps(Run& run, const Plan& plan, Phase phase, size_t machine) {
  const PlannedMachine& planned = plan.machines[machine];
  const std::string& name = planned.name.empty() ? planned.destination : planned.name;
  for (const Step& step : plan.steps) {
    if (step.phase != phase || step.machine != machine || run.cancelled) continue;
    if (!run.error_of(machine).empty()) return;
    {
      const MutexLock lock(run.mutex);
      run.observer.begins(name, step);
    }
    const auto done = run_step(plan, step);
    const std::string error = done ? "" : step.text + ": " + done.error().message;
    const MutexLock lock(run.mutex);
    run.errors[machine] = error;
    run.observer.ended(name, step, done ? "" : done.error().message, done ? *done : "");
  }
}

Result<void> MachineSetup::run_phase(Run& run, const Plan& plan, Phase phase) {
  std::vector<size_t> busy;
  for (const Step& step : plan.steps)
    if (step.phase == phase && std::find(busy.begin(), busy.end(), step.machine) == busy.end())
      busy.push_back(step.machine);
  TRY(os::for_each_in_parallel(busy.size(), kMachinesAtATime, [&](size_t index) {
    run_steps(run, plan, phase, busy[index]);
    return ok();
  }));
  if (run.cancelled) return cancelled("interrupted; the same command continues");
  return {};
}

Result<std::vector<MachineOutcome>> MachineSetup::carry_out(Cluster cluster, const Wish& wish,
                                                            const SetupObserver& observer,
                                                            const std::atomic<bool>& cancelled) {
  Run run(observer, cancelled);
  Plan current = TRY(plan(cluster.record, cluster.machines, wish));
  {
    const MutexLock lock(run.mutex);
    for (const PlannedMachine& machine : current.machines) run.errors.push_back(machine.problem);
  }
  const auto controller_failed = [&] { return !run.error_of(0).empty(); };
  bool failed = false;
  for (Phase phase = Phase::drain; phase <= kLastPhaseOfMembership && !controller_failed();
       phase = Phase(int(phase) + 1))
    TRY(run_phase(run, current, phase));
  for (size_t i = 0; i < cluster.machines.size(); ++i) {
    Candidate& machine = cluster.machines[i];
    const bool answers = current.machines[i].problem.empty();
    if (const std::string error = run.error_of(i); !error.empty() && answers) {
      machine.problem = error, machine.leaves = false;
      failed = true;
    }
  }
  if (!controller_failed() && !(wish.dissolve && failed)) {
    // The rest is planned for the machines that have come this far.
    if (!wish.dissolve) current = TRY(plan(cluster.record, cluster.machines, wish));
    for (Phase phase = Phase::record; phase <= Phase::dissolve && !controller_failed();
         phase = Phase(int(phase) + 1))
      TRY(run_phase(run, current, phase));
  }
  std::vector<MachineOutcome> outcomes;
  for (size_t i = 0; i < current.machines.size(); ++i) {
    const PlannedMachine& machine = current.machines[i];
    outcomes.push_back(
        {machine.name.empty() ? machine.destination : machine.name, run.error_of(i)});
  }
  return outcomes;
}

}  // namespace trainyard::cluster_setup
