// Sets up clusters: inspects machines, plans what is to be done (plan.hpp), and does it.
//
// A machine that fails stops its own steps, and not those of the others; if the controller fails,
// no further phase begins. Every step may be repeated, so the same command continues where an
// interrupted one ended.
//
// Threads: confined to one; machines are worked on from threads of its own, which call the
// observer. Errors: those of the controller (plan.hpp, shells.hpp), cancelled.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "cluster_setup/cluster_record.hpp"
#include "cluster_setup/plan.hpp"
#include "cluster_setup/shells.hpp"

namespace trainyard::cluster_setup {

// more would contend for the link of this machine, through which packages and programs pass
inline constexpr size_t kMachinesAtATime = 16;

// SetupObserver shows progress. Called from several threads, one call at a time.
struct SetupObserver {
  std::function<void(const std::string& machine, const Step& step)> begins;
  // `error`: "" = done. `output`: what the step has to say.
  std::function<void(const std::string& machine, const Step& step, const std::string& error,
                     const std::string& output)>
      ended;
};

struct Cluster {
  std::optional<ClusterRecord> record;  // nullopt: the controller has none
  std::vector<Candidate> machines;      // the controller first
};

// Outcome of a machine in a finished run.
struct MachineOutcome {
  std::string name;   // the host's, or how ssh reaches it
  std::string error;  // "" = all its steps are done
};

class MachineSetup {
 public:
  // `read_program`: returns the content of one of Wish::programs.
  MachineSetup(Shells& shells, Clock& clock, std::string controller,
               std::function<Result<std::string>(const std::string&)> read_program)
      : shells_(shells),
        clock_(clock),
        controller_(std::move(controller)),
        read_program_(std::move(read_program)) {}

  // Inspects the controller alone, and reads its record.
  Result<Cluster> find();
  // Inspects the other machines of the record, and those that shall join.
  Result<void> inspect(Cluster& cluster, const std::vector<std::string>& joining);
  // Carries out a plan for these machines. Machines that cannot join or leave are left out on the
  // way, and the rest is planned again. Returns an outcome for each machine.
  Result<std::vector<MachineOutcome>> carry_out(Cluster cluster, const Wish& wish,
                                                const SetupObserver& observer,
                                                const std::atomic<bool>& cancelled);
  // Runs a script on the controller.
  Result<std::string> on_controller(const std::string& script, Duration at_most = 60s);

 private:
  struct Run;
  Candidate inspect_machine(const std::string& destination);
  Result<void> run_phase(Run& run, const Plan& plan, Phase phase);
  void run_steps(Run& run, const Plan& plan, Phase phase, size_t machine);
  Result<std::string> run_step(const Plan& plan, const Step& step);

  Shells& shells_;
  Clock& clock_;
  const std::string controller_;
  const std::function<Result<std::string>(const std::string&)> read_program_;
};

}  // namespace trainyard::cluster_setup
