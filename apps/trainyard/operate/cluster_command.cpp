#include "trainyard/operate/cluster_command.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "base/json.hpp"
#include "base/nearest.hpp"
#include "base/plural.hpp"
#include "base/sha256.hpp"
#include "base/text.hpp"
#include "base/thread_safety.hpp"
#include "cli/status_block.hpp"
#include "cli/table.hpp"
#include "cli/views/cluster_view.hpp"
#include "cluster_setup/names.hpp"
#include "cluster_setup/node_status.hpp"
#include "cluster_setup/scripts.hpp"
#include "cluster_setup/setup.hpp"
#include "cluster_setup/slurm_files.hpp"
#include "os/files.hpp"
#include "os/process.hpp"

namespace trainyard::apps {
namespace {

using namespace cluster_setup;

constexpr Duration kRedrawInterval = 200ms;  // fast enough for a status line
constexpr size_t kAnswerBytesMax = 64;
constexpr size_t kProgramBytesMax = 512 << 20;

const std::vector<std::string>& actions() {
  static const std::vector<std::string> kActions{"init", "add", "remove", "status"};
  return kActions;
}

// Progress takes what threads report, and gives the main thread what it shall print.
class Progress {
 public:
  void begin(const std::string& machine, const Step& step) {
    const MutexLock lock(mutex_);
    current_[machine] = step.text;
  }
  void end(const std::string& machine, const Step& step, const std::string& error,
           const std::string& output) {
    const MutexLock lock(mutex_);
    current_.erase(machine);
    lines_.push_back({machine, step.text, error, output});
  }
  struct Line {
    std::string machine, text, error, output;
  };
  std::vector<Line> take_lines() {
    const MutexLock lock(mutex_);
    return std::exchange(lines_, {});
  }
  std::string headline() {
    const MutexLock lock(mutex_);
    std::string text;
    for (const auto& [machine, step] : current_)
      text += (text.empty() ? "" : "; ") + machine + ": " + step;
    return text.empty() ? text : text + " ..";
  }

 private:
  Mutex mutex_;
  std::map<std::string, std::string> current_ GUARDED_BY(mutex_);  // machine -> step
  std::vector<Line> lines_ GUARDED_BY(mutex_);
};

class ClusterCommand {
 public:
  ClusterCommand(const cli::Arguments& arguments, os::Terminal& terminal,
                 const cli::OutputStyle& style, const cli::OutputStyle& error_style, Clock& clock)
      : arguments_(arguments),
        action_(arguments.operands.front()),
        hosts_(arguments.operands.begin() + 1, arguments.operands.end()),
        terminal_(terminal),
        style_(style),
        error_style_(error_style),
        shells_({arguments.value("--ssh-config")}),
        setup_(shells_, clock, arguments.value("--controller"),
               [this](const std::string& name) { return read_program(name); }) {}

  Result<int> run();

 private:
  Result<void> check_arguments() const;
  Result<Wish> wish();
  Result<std::string> read_program(const std::string& name) const;
  Result<void> mark_leaving(Cluster& cluster) const;
  Result<int> status(const Cluster& cluster);
  Result<void> show_plan(const Plan& plan, const Cluster& cluster);
  Result<void> confirm();
  Result<std::vector<MachineOutcome>> work(const Cluster& cluster, const Wish& wish);
  void print_lines(Progress& progress, cli::StatusBlock& block);
  Result<int> report(const std::vector<MachineOutcome>& outcomes, const Plan& plan);
  std::string next_steps(const Plan& plan) const;
  Result<void> write(const std::string& text) { return terminal_.write(text); }

  const cli::Arguments& arguments_;
  const std::string action_;
  const std::vector<std::string> hosts_;
  os::Terminal& terminal_;
  const cli::OutputStyle& style_;
  const cli::OutputStyle& error_style_;
  SystemShells shells_;
  MachineSetup setup_;
};

Result<void> ClusterCommand::check_arguments() const {
  if (std::find(actions().begin(), actions().end(), action_) == actions().end()) {
    const std::string near = nearest(action_, actions());
    return invalid("unknown action '" + action_ + "'" +
                   (near.empty() ? "" : "; did you mean `trainyard cluster " + near + "`?") +
                   " (`trainyard cluster --help` lists the actions)");
  }
  for (const std::string& host : hosts_) TRY(check_destination(host));
  if (const std::string& controller = arguments_.value("--controller"); !controller.empty())
    TRY(check_destination(controller).in("--controller"));
  const std::string name = arguments_.value("--name", "trainyard");
  if (!is_plain_name(name))
    return invalid("invalid --name '" + name + "': use letters, digits and -, at most " +
                   std::to_string(kNameBytesMax));
  if (action_ == "status" && !hosts_.empty())
    return invalid("`trainyard cluster status` shows all nodes: leave out '" + hosts_[0] + "'");
  if (action_ == "add" && hosts_.empty())
    return invalid("`trainyard cluster add` needs the machines to add: HOST..");
  if (action_ == "remove" && arguments_.has("--all") != hosts_.empty())
    return invalid("`trainyard cluster remove` needs the machines to remove, HOST.., or --all");
  return {};
}

Result<std::string> ClusterCommand::read_program(const std::string& name) const {
  return os::read_file(os::program_directory() + "/" + name, kProgramBytesMax);
}

Result<Wish> ClusterCommand::wish() {
  Wish wish;
  wish.name = arguments_.value("--name", "trainyard");
  wish.controller_runs_jobs = !arguments_.has("--controller-only");
  wish.controller_address = arguments_.value("--address");
  wish.dissolve = action_ == "remove" && arguments_.has("--all");
  wish.force = arguments_.has("--force");
  wish.forget = arguments_.has("--forget");
  if (action_ == "remove" || arguments_.has("--no-programs")) return wish;
  for (const std::string& name : node_programs())
    wish.programs[name] = to_hex(bytes_of(sha256(
        TRY(read_program(name).in("reading the program that nodes need; --no-programs copies "
                                  "none")))));
  return wish;
}

// Marks the machines that `remove` names, by the names of their hosts or as ssh reaches them.
Result<void> ClusterCommand::mark_leaving(Cluster& cluster) const {
  for (const std::string& host : hosts_) {
    const auto found = std::find_if(
        cluster.machines.begin(), cluster.machines.end(), [&](const Candidate& machine) {
          return machine.known && (machine.known->name == host || machine.destination == host);
        });
    if (found == cluster.machines.end())
      return not_found("machine '" + host +
                       "' not found in the cluster; `trainyard cluster status` lists them");
    if (found == cluster.machines.begin())
      return conflict("'" + host +
                      "' is the controller: it leaves last, by `trainyard cluster remove --all`");
    found->leaves = true;
  }
  return {};
}

Result<int> ClusterCommand::status(const Cluster& cluster) {
  const ClusterRecord& record = *cluster.record;
  const std::string output =
      TRY(setup_.on_controller(status_script()).in("querying slurmctld for its nodes"));
  const auto nodes = TRY(read_node_status(output));
  std::vector<cli::ClusterNodeView> rows;
  for (const MachineRecord& machine : record.machines) {
    cli::ClusterNodeView row{machine.name, machine.address, "", machine.cpus, machine.memory_mib};
    row.gpus = int64_t(machine.gpus.size());
    row.is_controller = rows.empty(), row.runs_jobs = machine.runs_jobs;
    for (const NodeStatus& node : nodes)
      if (node.name == machine.name) {
        row.state = node.state, row.cpus = node.cpus, row.memory_mib = node.memory_mib;
        row.gpus = node.gpus, row.version = node.version, row.reason = node.reason;
      }
    rows.push_back(std::move(row));
  }
  if (!arguments_.has("--json")) {
    TRY(write(cli::cluster_status_page(style_, record.name, rows)));
    return 0;
  }
  Json list = Json::array();
  for (const cli::ClusterNodeView& row : rows)
    list.push_back({{"name", row.name},
                    {"address", row.address},
                    {"state", row.state},
                    {"cpus", row.cpus},
                    {"memory_mib", row.memory_mib},
                    {"gpus", row.gpus},
                    {"version", row.version},
                    {"reason", row.reason},
                    {"controller", row.is_controller},
                    {"runs_jobs", row.runs_jobs}});
  TRY(write(dump({{"cluster", record.name}, {"nodes", std::move(list)}}) + "\n"));
  return 0;
}

Result<void> ClusterCommand::show_plan(const Plan& plan, const Cluster& cluster) {
  std::vector<cli::MachinePlanView> views;
  for (size_t i = 0; i < plan.machines.size(); ++i) {
    const PlannedMachine& machine = plan.machines[i];
    cli::MachinePlanView view;
    view.name = machine.name.empty() ? machine.destination : machine.name;
    view.problem = machine.problem;
    view.forgotten = machine.forgotten;
    if (const auto& facts = cluster.machines[i].facts)
      view.about = cli::machine_size_text(facts->cpus, facts->memory_mib, facts->gpus.size(),
                                          facts->gpus.empty() ? "" : facts->gpus[0].type);
    for (const Step& step : plan.steps)
      if (step.machine == i) view.steps.emplace_back(step.text, step.reason);
    views.push_back(std::move(view));
  }
  return write(cli::cluster_plan_page(style_, views));
}

Result<void> ClusterCommand::confirm() {
  if (arguments_.has("--yes")) return {};
  const auto shape = terminal_.shape();
  if (!shape.input || !shape.output)
    return invalid("nothing was changed: repeat the command with --yes to do this");
  terminal_.watch_interrupts();
  TRY(write("Do this? [y/N] "));
  std::string answer;
  while (answer.size() < kAnswerBytesMax && answer.find('\n') == std::string::npos) {
    const auto event = terminal_.wait(1s, true, -1);
    if (event.interrupted || event.input_ended) break;
    answer += event.input;
  }
  const std::string word = to_lower(trim(answer));
  if (word == "y" || word == "yes") return {};
  return cancelled("nothing was changed");
}

void ClusterCommand::print_lines(Progress& progress, cli::StatusBlock& block) {
  for (const Progress::Line& line : progress.take_lines()) {
    std::string text = block.hide();
    const std::string label = line.machine + ": ";
    text += cli::paragraph(error_style_, line.text + (line.error.empty() ? ": done" : ": failed"),
                           line.error.empty() ? cli::Paint::green : cli::Paint::red, label, 4);
    if (!line.error.empty())
      text +=
          cli::paragraph(error_style_, cli::plain_text(line.error), cli::Paint::none, "    ", 4);
    for (const std::string_view kept : split(line.output, '\n'))
      if (kept.starts_with("kept "))
        text += cli::paragraph(
            error_style_,
            "left " + cli::plain_text(kept.substr(5)) + " as it is: it was changed by hand",
            cli::Paint::yellow, label, 4);
    terminal_.write_error(text);
  }
}

Result<std::vector<MachineOutcome>> ClusterCommand::work(const Cluster& cluster, const Wish& wish) {
  terminal_.watch_interrupts();
  Progress progress;
  const SetupObserver observer{
      [&](const std::string& machine, const Step& step) { progress.begin(machine, step); },
      [&](const std::string& machine, const Step& step, const std::string& error,
          const std::string& output) { progress.end(machine, step, error, output); }};
  std::atomic<bool> stop = false, ended = false;
  std::optional<Result<std::vector<MachineOutcome>>> outcomes;
  std::thread working([&] {
    outcomes.emplace(setup_.carry_out(cluster, wish, observer, stop));
    ended = true;
  });
  cli::StatusBlock block(error_style_);
  while (!ended) {
    print_lines(progress, block);
    if (error_style_.live)
      terminal_.write_error(block.show((stop ? "ends after: " : "") + progress.headline(), {}));
    if (terminal_.wait(kRedrawInterval, false, -1).interrupted) stop = true;
  }
  working.join();
  print_lines(progress, block);
  terminal_.write_error(block.clear());
  return std::move(*outcomes);
}

std::string ClusterCommand::next_steps(const Plan& plan) const {
  if (action_ != "init" && action_ != "add") return "";
  std::string text = "\nThe cluster '" + plan.record.name + "' has " +
                     counted(plan.record.machines.size(), "machine") +
                     ". For Trainyard's server on " + plan.record.machines.front().name +
                     ", put into its configuration (docs/operating/slurm.md):\n\n";
  const std::string& address = plan.record.machines.front().address;
  text += "  [server]\n  listen = \"" + address + ":4566\"\n\n  [slurm]\n  partition = \"" +
          kPartition + "\"\n  agents_listen = \"" + address + ":4570\"\n";
  if (!arguments_.has("--no-programs"))
    text += std::string("  program_directory = \"") + kProgramDirectory + "\"\n";
  return text;
}

Result<int> ClusterCommand::report(const std::vector<MachineOutcome>& outcomes, const Plan& plan) {
  size_t failed = 0;
  for (const MachineOutcome& outcome : outcomes) {
    if (outcome.error.empty()) continue;
    ++failed;
    terminal_.write_error(cli::paragraph(error_style_, cli::plain_text(outcome.error),
                                         cli::Paint::red, cli::plain_text(outcome.name) + ": ", 4));
  }
  if (failed > 0) {
    terminal_.write_error(cli::paragraph(
        error_style_, counted(failed, "machine") + " failed; the same command continues there"));
    return 1;
  }
  if (action_ == "remove" && plan.record.machines.empty())
    TRY(
        write("The cluster is dissolved. Debian's packages stay: `apt-get purge slurmd slurmctld "
              "munge` removes them.\n"));
  TRY(write(next_steps(plan)));
  return 0;
}

Result<int> ClusterCommand::run() {
  TRY(check_arguments());
  Cluster cluster = TRY(setup_.find());
  if (!cluster.record && action_ != "init")
    return not_found("the controller " +
                     (cluster.machines[0].destination.empty() ? "(this machine)"
                                                              : cluster.machines[0].destination) +
                     " has no cluster: `trainyard cluster init` makes one; --controller HOST names "
                     "another controller");
  if (action_ == "status") return status(cluster);
  TRY(setup_.inspect(cluster, action_ == "remove" ? std::vector<std::string>() : hosts_));
  if (action_ == "remove") TRY(mark_leaving(cluster));
  const Wish wish = TRY(this->wish());
  const Plan first = TRY(plan(cluster.record, cluster.machines, wish));
  TRY(show_plan(first, cluster));
  const bool has_problems =
      std::any_of(first.machines.begin(), first.machines.end(),
                  [](const PlannedMachine& machine) { return !machine.problem.empty(); });
  if (first.steps.empty()) {
    if (!has_problems) TRY(write("Nothing to do: every machine is as it should be.\n"));
    return has_problems ? 1 : 0;
  }
  if (arguments_.has("--dry-run")) return has_problems ? 1 : 0;
  TRY(confirm());
  return report(TRY(work(cluster, wish)), first);
}

}  // namespace

cli::Form form_of_cluster() {
  return {
      "cluster",
      {"ACTION", "[HOST..]"},
      {{"--controller", "", true, "HOST of slurmctld (default: this machine)"},
       {"--yes", "-y", false, "start at once, without a question"},
       {"--dry-run", "", false, "print what would be done; do nothing"},
       {"--ssh-config", "", true, "FILE of ssh's configuration (default: the user's own)"},
       {"--name", "", true, "init: NAME of the cluster (default: trainyard)"},
       {"--address", "", true, "init: IPv4 ADDRESS at which the others reach the controller"},
       {"--controller-only", "", false, "init: the controller runs no jobs"},
       {"--no-programs", "", false, "init, add: do not copy Trainyard's programs to the machines"},
       {"--all", "", false, "remove: every machine, the controller last"},
       {"--forget", "", false, "remove: also machines that do not answer; nothing is undone there"},
       {"--force", "", false, "cancel jobs of removed nodes; replace files changed by hand"},
       {"--json", "", false, "status: print JSON"}},
      "Make a Slurm cluster of your own machines, over ssh.",
      "  init [HOST..]  make this machine the controller, and add HOSTs\n"
      "  add HOST..     add machines, each as ssh reaches it: host, or user@host\n"
      "  remove HOST..  remove machines, and undo what was done to them\n"
      "  status         the nodes and their state\n"
      "The machines run one release of Debian or Ubuntu. ssh must log in without a password, as "
      "root or as a user with `sudo -n`. Each action prints what it will do, and can be "
      "repeated. docs/operating/slurm-cluster.md describes it.",
      {"trainyard cluster init", "trainyard cluster add ws2 ws3", "trainyard cluster status",
       "trainyard cluster remove ws3", "trainyard cluster remove --all"}};
}

Result<int> cluster_command(const cli::Arguments& arguments, os::Terminal& terminal,
                            const cli::OutputStyle& style, const cli::OutputStyle& error_style,
                            Clock& clock) {
  return ClusterCommand(arguments, terminal, style, error_style, clock).run();
}

}  // namespace trainyard::apps
