#include "launch/slurm/command_line.hpp"

#include <atomic>

#include "launch/slurm/answers.hpp"

namespace trainyard::launch {
namespace {

// Slurm's programs retry for some ten seconds when slurmctld is busy.
constexpr Duration kProgramMax = 30s;

// Ignores the error that the job has ended meanwhile.
Result<void> unless_ended(Result<std::string> done) {
  if (done || done.error().is(SlurmFault::job_has_ended)) return {};
  return std::move(done).error();
}

class ByPrograms final : public Slurm {
 public:
  ByPrograms(SlurmPrograms programs, RunProgram run)
      : programs_(std::move(programs)), run_(std::move(run)) {}

  Result<std::vector<SlurmJob>> jobs() override {
    return read_jobs(TRY(run({"squeue", "--noheader", "--me", "--all", "--states=all",
                              std::string("--format=") + kJobsFormat})));
  }
  Result<std::vector<SlurmNode>> nodes() override {
    return read_nodes(TRY(run({"scontrol", "--all", "--oneliner", "show", "nodes"})));
  }
  Result<uint64_t> submit(const SlurmJobRequest& request) override {
    return read_submitted(TRY(run(sbatch_arguments(request), request.script)));
  }
  Result<void> cancel(uint64_t job, const std::string& name) override {
    const std::string id = std::to_string(job);
    TRY(unless_ended(run({"scontrol", "update", "jobid=" + id, "name=" + name})));
    return unless_ended(run({"scancel", id}));
  }
  void stop() override { stopped_ = true; }

 private:
  Result<std::string> run(std::vector<std::string> arguments, std::string input = "") {
    os::Command command;
    const std::string program = arguments[0];
    command.arguments = std::move(arguments);
    command.input = std::move(input);
    command.at_most = kProgramMax;
    command.watch = [this] { return !stopped_; };
    if (!programs_.config_file.empty()) command.environment["SLURM_CONF"] = programs_.config_file;
    auto outcome = run_(command);
    if (!outcome && stopped_) return unavailable(program + " was ended, since the server stops");
    if (!outcome && outcome.error().kind == Kind::cancelled)
      return unavailable(program + " did not end within " +
                         std::to_string(kProgramMax / Duration(1s)) + " s");
    if (!outcome) return std::move(outcome).error().in("running " + program);
    if (outcome->code != 0) return error_of_slurm(outcome->errors).in(program);
    // The caller would take jobs that a truncated list lacks for ended ones.
    if (outcome->output_cut)
      return exhausted(program + " printed more than " + std::to_string(os::kOutputBytesMax >> 20) +
                       " MiB");
    return std::move(outcome->output);
  }

  const SlurmPrograms programs_;
  const RunProgram run_;
  std::atomic<bool> stopped_ = false;
};

}  // namespace

std::vector<std::string> sbatch_arguments(const SlurmJobRequest& request) {
  const SlurmPlacement& placement = request.placement;
  std::vector<std::string> arguments = {
      "sbatch",
      "--parsable",
      "--job-name=" + request.name,
      "--comment=" + request.comment,
      "--nodes=" + std::to_string(request.nodes.size()),
      "--nodelist=" + join_names(request.nodes),
      "--ntasks-per-node=" + std::to_string(request.tasks_per_node),
      "--cpus-per-task=" + std::to_string(request.cpus_per_task),
      "--mem=" + std::to_string(request.memory_mib_per_node),
      "--dependency=" + dependency_of(request),
      "--no-requeue",  // the server decides about another attempt
      "--export=NIL",
      "--chdir=/",
      "--input=/dev/null",
      "--output=/dev/null"};
  if (request.gpus_per_node > 0)
    arguments.push_back(
        "--gres=gpu:" + (placement.gpu_type.empty() ? "" : placement.gpu_type + ":") +
        std::to_string(request.gpus_per_node));
  if (request.time_limit_minutes > 0)
    arguments.push_back("--time=" + std::to_string(request.time_limit_minutes));
  for (const auto& [option, value] : {std::pair("--partition=", &placement.partition),
                                      {"--account=", &placement.account},
                                      {"--qos=", &placement.qos},
                                      {"--constraint=", &placement.constraint},
                                      {"--reservation=", &placement.reservation},
                                      {"--licenses=", &placement.licenses}})
    if (!value->empty()) arguments.push_back(option + *value);
  if (placement.exclusive) arguments.emplace_back("--exclusive");
  return arguments;
}

std::unique_ptr<Slurm> slurm_by_programs(SlurmPrograms programs, RunProgram run) {
  return std::make_unique<ByPrograms>(std::move(programs), std::move(run));
}

}  // namespace trainyard::launch
