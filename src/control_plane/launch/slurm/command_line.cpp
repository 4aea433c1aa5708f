#include "launch/slurm/command_line.hpp"

#include <atomic>
#include <set>

#include "base/text.hpp"
#include "launch/slurm/answers.hpp"
#include "launch/slurm/components.hpp"

namespace trainyard::launch {
namespace {

// Slurm's programs retry for some ten seconds when slurmctld is busy.
constexpr Duration kProgramMax = 30s;
constexpr size_t kMarkerBytes = 16;

// Ignores the error that the job has ended meanwhile.
Result<void> unless_ended(Result<std::string> done) {
  if (done || done.error().is(SlurmFault::job_has_ended)) return {};
  return std::move(done).error();
}

// Returns whether squeue's option takes it: a name, or a number of which no name is known.
bool is_owner(std::string_view user) { return is_unix_name(user) || parse_int(user); }

class ByPrograms final : public Slurm {
 public:
  ByPrograms(SlurmPrograms programs, RunProgram run, Random& random)
      : programs_(std::move(programs)),
        run_(std::move(run)),
        random_(random),
        owners_(programs_.users.begin(), programs_.users.end()) {
    owners_.insert(programs_.own_user);
  }

  Result<std::vector<SlurmJob>> jobs() override {
    const std::string marker = random_.hex(kMarkerBytes);
    std::vector<std::string> arguments = {"squeue", "--noheader", "--all", "--states=all",
                                          "--Format=" + jobs_format(marker)};
    if (knows_owners_)
      arguments.push_back("--user=" + join_names({owners_.begin(), owners_.end()}));
    auto jobs = TRY(read_jobs(TRY(run(std::move(arguments))), marker, programs_.own_user));
    for (const SlurmJob& job : jobs)
      if (!knows_owners_ && is_owner(job.user)) owners_.insert(job.user);
    knows_owners_ = true;
    return jobs;
  }
  Result<std::vector<SlurmJob>> ended(const std::vector<uint64_t>& ids) override {
    std::string list;
    for (const uint64_t id : ids) list += (list.empty() ? "" : ",") + std::to_string(id);
    return read_ended(TRY(run({"sacct", "--noheader", "--parsable2", "--allocations", "--allusers",
                               "--jobs=" + list, std::string("--format=") + kEndedFormat})),
                      programs_.own_user);
  }
  Result<void> check_user(const UnixUser& user) override {
    if (programs_.own_user == "root") return {};
    return denied("this server runs as " + programs_.own_user + ", and only root can run `sbatch " +
                  "--uid` for " + user.name + ": run the server as root, or set slurm.rest_url");
  }
  Result<std::vector<SlurmNode>> nodes() override {
    return read_nodes(TRY(run({"scontrol", "--all", "--oneliner", "show", "nodes"})));
  }
  Result<uint64_t> submit(const SlurmJobRequest& request) override {
    os::Command command;
    command.arguments = sbatch_arguments(request);
    command.input = request.script;
    command.inherited = {"PATH", "LD_LIBRARY_PATH", "SLURM_CONF"};  // the job gets them, too
    return read_submitted(TRY(run(std::move(command))));
  }
  Result<void> cancel(uint64_t job, const std::string& name) override {
    const std::string id = std::to_string(job);
    TRY(unless_ended(run({"scontrol", "update", "jobid=" + id, "name=" + name})));
    return unless_ended(run({"scancel", id}));
  }
  Result<void> power_up(const std::vector<std::string>& nodes) override {
    return set_power(nodes, "power_up");
  }
  Result<void> power_down(const std::vector<std::string>& nodes) override {
    return set_power(nodes, "power_down");
  }
  void stop() override { stopped_ = true; }

 private:
  Result<void> set_power(const std::vector<std::string>& nodes, const std::string& state) {
    TRY(run({"scontrol", "update", "nodename=" + join_names(nodes), "state=" + state}));
    return {};
  }
  Result<std::string> run(std::vector<std::string> arguments) {
    os::Command command;
    command.arguments = std::move(arguments);
    return run(std::move(command));
  }
  Result<std::string> run(os::Command command) {
    const std::string program = command.arguments[0];
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
  Random& random_;
  std::set<std::string> owners_;
  bool knows_owners_ = false;
  std::atomic<bool> stopped_ = false;
};

// Adds the options that each component has.
void add_component(const SlurmPlacement& placement, const SlurmComponent& component,
                   std::vector<std::string>& arguments) {
  arguments.push_back("--nodes=" + std::to_string(component.nodes.size()));
  arguments.push_back("--nodelist=" + join_names(component.nodes));
  arguments.emplace_back("--ntasks-per-node=1");
  arguments.push_back("--cpus-per-task=" + std::to_string(component.per_node.cpus));
  arguments.push_back("--mem=" + std::to_string(component.per_node.memory_mib));
  if (component.per_node.gpus > 0)
    arguments.push_back(
        "--gres=gpu:" + (placement.gpu_type.empty() ? "" : placement.gpu_type + ":") +
        std::to_string(component.per_node.gpus));
  for (const auto& [option, value] : {std::pair("--partition=", &placement.partition),
                                      {"--account=", &placement.account},
                                      {"--qos=", &placement.qos},
                                      {"--constraint=", &placement.constraint},
                                      {"--reservation=", &placement.reservation}})
    if (!value->empty()) arguments.push_back(option + *value);
  if (placement.exclusive) arguments.emplace_back("--exclusive");
}

}  // namespace

std::vector<std::string> sbatch_arguments(const SlurmJobRequest& request) {
  std::vector<std::string> arguments = {
      "sbatch", "--parsable", "--comment=" + request.comment,
      "--dependency=" + dependency_of(request),
      "--no-requeue",  // the server decides about another attempt
      // All of the environment that ByPrograms::submit() gives it, which has no secret. Anything
      // else than ALL makes the slurmd of older versions start a login shell of the job's user.
      "--export=ALL", "--chdir=/", "--input=/dev/null", "--output=/dev/null"};
  if (request.time_limit_minutes > 0)
    arguments.push_back("--time=" + std::to_string(request.time_limit_minutes));
  if (!request.user.name.empty()) {
    arguments.push_back("--uid=" + std::to_string(request.user.user_id));
    arguments.push_back("--gid=" + std::to_string(request.user.group_id));
  }
  // sbatch applies the options before this line to all components. Licences are requested once.
  if (!request.placement.licenses.empty())
    arguments.push_back("--licenses=" + request.placement.licenses);
  const auto components = components_of(request);
  for (size_t index = 0; index < components.size(); ++index) {
    if (index > 0) arguments.emplace_back(":");
    arguments.push_back("--job-name=" + component_name(request.name, index));
    add_component(request.placement, *components[index], arguments);
  }
  return arguments;
}

std::unique_ptr<Slurm> slurm_by_programs(SlurmPrograms programs, RunProgram run, Random& random) {
  return std::make_unique<ByPrograms>(std::move(programs), std::move(run), random);
}

}  // namespace trainyard::launch
