#include "cli/cli.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "cli/commands.hpp"

namespace trainyard::cli {
namespace {

struct Command {
  Form form;
  Result<int> (*run)(World&, const Arguments&);
};

const std::vector<Command>& commands() {
  static const std::vector<Command> kCommands = {
      {{"jobs",
        {},
        {{"--status", "-s", true,
          "only jobs of STATUS: InProgress, Completed, Failed, Stopping, Stopped"},
         {"--name", "-n", true, "only jobs whose name holds TEXT"},
         {"--since", "", true, "only jobs created within DURATION: 90s, 15m, 2h, 7d"},
         {"--tag", "", true, "only jobs with the tag KEY=VALUE, or KEY"},
         {"--max", "-m", true, "at most COUNT jobs (20)"},
         {"--watch", "-w", false, "draw it again each two seconds, until ctrl-C"},
         {"--json", "", false, "the API's words"}},
        "Jobs, the newest first: state, hosts, times, cost, and why one waits.",
        "",
        {"trainyard jobs --status InProgress --watch", "trainyard jobs --name mnist --since 7d"}},
       jobs_command},
      {{"describe",
        {"JOB"},
        {{"--json", "", false,
          "the API's words: DescribeTrainingJob's answer, or Batch's of the job"}},
        "One job, or one of Batch by its id or name: timeline, hosts, channels, last metrics, "
        "where "
        "things lie.",
        "",
        {"trainyard describe mnist-1"}},
       describe_command},
      {{"logs",
        {"JOB"},
        {{"--follow", "-f", false, "go on until the job ends; the exit code is the job's"},
         {"--host", "", true, "only of HOST: algo-2, or 2"},
         {"--since", "", true, "only lines of the last DURATION: 90s, 15m, 2h"},
         {"--times", "-t", false, "each line with its time"}},
        "The log of all hosts, merged by time, each host in its colour; also of jobs of Batch.",
        "Of an array the log of each child, those of failed children first; JOB:7 is child 7, "
        "JOB#1 "
        "node 1 of a\nmulti-node parallel job.\n"
        "With --follow the exit code is 0 when the job completed, 3 when it failed, 4 when it was "
        "stopped, and 130\n"
        "after ctrl-C (the job goes on).",
        {"trainyard logs -f mnist-1", "trainyard logs mnist-1 --host algo-2 --since 10m",
         "trainyard logs nightly:7"}},
       logs_command},
      {{"top",
        {"[JOB]"},
        {{"--once", "", false, "print it once"}},
        "What each host of the running jobs uses, drawn again each five seconds.",
        "",
        {"trainyard top", "trainyard top mnist-1"}},
       top_command},
      {{"stop",
        {"JOB"},
        {{"--wait", "", false, "until it has ended"},
         {"--reason", "", true, "TEXT for the status reason of a job of Batch"}},
        "Stop a job: its processes get SIGTERM and time to save, and its model is kept.",
        "JOB is a training job's name, or of a job of Batch the id, the beginning of the id, or "
        "the "
        "name if no other\nunfinished job has it. ID:7 is child 7 of an array.",
        {"trainyard stop mnist-1 --wait", "trainyard stop 4b7d2c:7 --reason 'wrong data'"}},
       stop_command},
      {{"interrupt",
        {"JOB"},
        {{"--host", "", true, "take HOST away: algo-2, or 2 (all of them)"},
         {"--notice", "", true,
          "DURATION between SIGTERM and SIGKILL (as the server's config says)"},
         {"--reason", "", true, "TEXT for the job's timeline"}},
        "Take hosts away from a job, as spot does: the job is started again from its checkpoints.",
        "",
        {"trainyard interrupt mnist-1 --host algo-2 --notice 30s"}},
       interrupt_command},
      {{"cost",
        {"[JOB]"},
        {{"--by", "-b", true, "tag:KEY, user, instance, day or job (day)"},
         {"--since", "", true, "jobs created within DURATION (30d)"},
         {"--json", "", false, "the API's words"}},
        "What jobs cost, added up; or what JOB costs.",
        "Prices are those of the server's config, [prices]; where it has none, AWS's list prices "
        "of 2023.",
        {"trainyard cost --by tag:project", "trainyard cost --by user --since 7d",
         "trainyard cost nightly"}},
       cost_command},
      {{"submit",
        {"FILE"},
        {{"--follow", "-f", false,
          "show its progress and its log until it ends; the exit code is the job's"},
         {"--name", "", true, "the job's NAME, instead of the file's"},
         {"--dry-run", "", false, "print the request and upload nothing"}},
        "Start a job from a file: CreateTrainingJob's request as JSON or TOML, or its short form.",
        "Short form (TOML):\n"
        "  image = \"trainyard/host\"\n"
        "  command = \"python3 /opt/ml/input/data/code/train.py\"   # or a list of words\n"
        "  instance_type = \"ml.m5.large\"    # and instance_count, volume_gib\n"
        "  output = \"s3://bucket/models\"\n"
        "  [channels]\n"
        "  train = \"./data\"                 # a local directory is uploaded first\n"
        "  [code]                           # instead of command\n"
        "  directory = \"./src\"              # packed and uploaded\n"
        "  entry = \"train.py\"               # run as `train.py --epochs 3`, with SM_* variables\n"
        "  [hyperparameters]\n"
        "  epochs = 3\n"
        "Also: name, role, max_runtime_seconds, spot, max_wait_seconds, checkpoints, "
        "[environment],\n"
        "[tags]. Keys of the API's own request may be added, and take precedence.",
        {"trainyard submit job.toml --follow", "trainyard submit request.json --dry-run"}},
       submit_command},
      {{"campaign",
        {"ACTION", "[WHAT]"},
        {{"--dry-run", "", false, "run: show the plan and start nothing"},
         {"--detach", "-d", false, "run: do not follow it"},
         {"--name", "", true, "run: the campaign's NAME, instead of the file's"},
         {"--json", "", false, "the API's words"}},
        "Jobs from the rows of a query, each in the region where its data lies.",
        "  run FILE      plan it, start it, follow its regions; the exit code is 0 when every job "
        "completed, 3 when\n"
        "                one failed, 4 when it was stopped, and 130 after ctrl-C (it goes on)\n"
        "  list          campaigns, the newest first\n"
        "  show NAME     its regions, its rows, its best row, and what its jobs have in common\n"
        "  follow NAME   its regions until it is over\n"
        "  stop NAME     stop its jobs; rows that have not begun do not begin\n"
        "  query SQL     read the catalogue; @FILE reads the statement from a file\n"
        "  change SQL    change the catalogue, likewise\n"
        "The file is described in docs/operating/campaigns.md.",
        {"trainyard campaign run streets.toml --dry-run", "trainyard campaign run streets.toml",
         "trainyard campaign query 'SELECT * FROM datasets'"}},
       campaign_command},
      {{"shell",
        {"JOB", "[HOST]", "[COMMAND..]"},
        {{"--no-terminal", "", false, "bytes as they are: for pipes"}},
        "A shell inside a running host, or COMMAND instead of a shell.",
        "The exit code is that of the shell. Only the owner's keys may; the server's log says who "
        "did, where and for\n"
        "how long. Options of COMMAND stand behind `--`.",
        {"trainyard shell mnist-1 algo-2", "trainyard shell mnist-1 1 -- nvidia-smi -L",
         "trainyard shell mnist-1 1 --no-terminal cat /opt/ml/model/weights > weights"}},
       shell_command},
  };
  return kCommands;
}

}  // namespace

const std::vector<Form>& forms() {
  static const std::vector<Form> kForms = [] {
    std::vector<Form> all;
    for (const Command& command : commands()) {
      all.push_back(command.form);
      all.back().options.push_back({"--region", "", true, "the REGION (AWS_REGION)"});
      all.back().options.push_back(
          {"--data", "", true,
           "the server whose data directory is DIR, whatever AWS_ENDPOINT_URL says"});
    }
    return all;
  }();
  return kForms;
}

const Form* find_form(const std::string& command) {
  for (const Form& form : forms())
    if (form.command == command) return &form;
  return nullptr;
}

Result<int> run(World& world, const Arguments& arguments) {
  for (const Command& command : commands())
    if (command.form.command == arguments.command) return command.run(world, arguments);
  return invalid("unknown command '" + arguments.command + "'");
}

int exit_code_of(const std::string& status) {
  return status == "Completed" ? 0 : status == "Stopped" ? kExitJobStopped : kExitJobFailed;
}

Result<FoundJob> find_job(World& world, const std::string& text, Meant meant) {
  return find_job(world.client, world.looks, world.clock.now(), text, meant);
}

Result<Json> call_about(World& world, const std::string& name, client::Service service,
                        const std::string& operation, const Json& question) {
  auto answer = world.client.call(service, operation, question);
  if (!answer && answer.error().kind == Kind::not_found)
    return not_found("job '" + name + "' not found in " + world.client.settings().region +
                     "; `trainyard jobs` lists the jobs, those of Batch with their id");
  return answer;
}

Result<JobView> fetch_job(World& world, const std::string& name) {
  return job_view(
      TRY(call_about(world, name, client::Service::trainyard, "DescribeJob", {{"JobName", name}})));
}

Result<int> redraw(World& world, Duration interval, const std::function<Result<Frame>()>& page) {
  world.terminal.watch_interrupts();
  if (world.looks.live) world.terminal.hide_cursor();
  std::string last;
  for (;;) {
    const auto shape = world.terminal.shape();
    if (world.looks.live && shape.columns > 0)
      world.looks.columns = shape.columns, world.looks.rows = shape.rows;
    const Frame frame = TRY(page());
    if (world.looks.live) {
      // Moves the cursor home, clears the rest of each line, and then the screen below.
      std::string drawn = "\033[H";
      for (const char c : frame.text)
        drawn += c == '\n' ? std::string("\033[K\n") : std::string(1, c);
      TRY(world.terminal.write((last.empty() ? "\033[2J" : "") + drawn + "\033[J"));
    } else if (frame.text != last) {
      TRY(world.terminal.write(frame.text));
    }
    last = frame.text;
    if (!frame.more) return 0;
    if (world.terminal.wait(interval, false, -1).interrupted) {
      world.terminal.show_cursor();
      return kExitInterrupted;
    }
  }
}

Result<uint32_t> host_index(const std::string& text) {
  const auto number =
      parse_int(text.starts_with("algo-") ? std::string_view(text).substr(5) : text);
  constexpr int64_t kHostsMax = 1'000'000;
  if (!number || *number < 1 || *number > kHostsMax)
    return invalid("invalid host '" + text + "': write algo-1, algo-2, .. or 1, 2, ..");
  return uint32_t(*number - 1);
}

}  // namespace trainyard::cli
