#include "cli/cli.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "cli/commands.hpp"

namespace trainyard::cli {
namespace {

struct Command {
  Form form;
  Result<int> (*run)(CommandContext&, const Arguments&);
};

const std::vector<Command>& commands_that_show() {
  static const std::vector<Command> kCommands = {
      {{"jobs",
        {},
        {{"--status", "-s", true,
          "only jobs of STATUS: InProgress, Completed, Failed, Stopping, Stopped"},
         {"--name", "-n", true, "only jobs whose name contains TEXT"},
         {"--since", "", true, "only jobs created within DURATION: 90s, 15m, 2h, 7d"},
         {"--tag", "", true, "only jobs with the tag KEY=VALUE, or KEY"},
         {"--max", "-m", true, "at most COUNT jobs (default: 20)"},
         {"--all-regions", "-a", false, "the jobs of all regions that the server knows"},
         {"--watch", "-w", false, "redraw every two seconds, until Ctrl-C"},
         {"--json", "", false, "raw API response"}},
        "List jobs, newest first: status, hosts, times, cost, pending reason.",
        "With --all-regions the regions are queried at the same time. A line on standard error "
        "names each region that does not answer; the exit code is 1 if none answers.",
        {"trainyard jobs --status InProgress --watch", "trainyard jobs --name mnist --since 7d",
         "trainyard jobs --all-regions"}},
       jobs_command},
      {{"describe",
        {"JOB"},
        {{"--json", "", false,
          "raw API response: of DescribeTrainingJob, or of Batch's DescribeJobs"}},
        "Show one job, by name or Batch id: timeline, hosts, channels, metrics, output.",
        "",
        {"trainyard describe mnist-1"}},
       describe_command},
      {{"logs",
        {"JOB"},
        {{"--follow", "-f", false, "follow the log until the job ends; the exit code is the job's"},
         {"--host", "", true, "only the log of HOST: algo-2, or 2"},
         {"--since", "", true, "only lines of the last DURATION: 90s, 15m, 2h"},
         {"--times", "-t", false, "print the time of each line"}},
        "Print the log of all hosts, merged by time, each host in its colour.",
        "For an array job of Batch it prints the children's logs, failed children first. JOB:7 is "
        "child 7, and JOB#1 is node 1 of a multi-node parallel job.\n"
        "With --follow the exit code is 0 when the job completed, 3 when it failed, 4 when it was "
        "stopped, and 130 after Ctrl-C (the job keeps running).",
        {"trainyard logs -f mnist-1", "trainyard logs mnist-1 --host algo-2 --since 10m",
         "trainyard logs nightly:7"}},
       logs_command},
      {{"top",
        {"[JOB]"},
        {{"--once", "", false, "print once, and exit"}},
        "Show what each host of the running jobs uses, every five seconds.",
        "",
        {"trainyard top", "trainyard top mnist-1"}},
       top_command}};
  return kCommands;
}

const std::vector<Command>& commands_that_explain() {
  static const std::vector<Command> kCommands = {
      {{"explain",
        {"JOB"},
        {{"--json", "", false, "raw API response"}},
        "Tell why a job waits, when it starts, and what would make it start sooner.",
        "The scheduler plans again with one thing changed: one more machine, a smaller gang, "
        "another "
        "instance type or queue, a raised limit or priority, a job that ends. Each change would "
        "suffice. A later start is an estimate: it assumes that each job runs for its maximum time "
        "and that no further jobs arrive. Jobs that you may not see are not named.",
        {"trainyard explain mnist-1", "trainyard explain nightly:7 --json"}},
       explain_command},
      {{"time",
        {"[JOB]"},
        {{"--by", "-b", true, "group by user, queue, month or job (default: month)"},
         {"--since", "", true, "only jobs created within DURATION (default: 30d)"},
         {"--json", "", false, "raw API response"}},
        "Show how the time of jobs was spent: queued, starting, training, lost work.",
        "Every millisecond from a job's creation to its end has one use. ETTR, the effective "
        "training "
        "time ratio, is the share of that time in which the job trained, without work that an "
        "interruption lost; goodput is the same share of the time in which it had machines.",
        {"trainyard time mnist-1", "trainyard time --by user --since 7d"}},
       time_command},
      {{"replay",
        {},
        {{"--since", "", true, "TIME: 24h ago, a date, or a date with time (default: 24h)"},
         {"--until", "", true, "TIME of the end (default: now)"},
         {"--variant", "", true, "NAME of the changes that follow it; may be repeated"},
         {"--add-machine", "", true, "a machine: NAME=VCPUS,MEMORY_GIB,GPUS"},
         {"--machines", "", true, "machines of the size of an instance type: COUNTxTYPE"},
         {"--remove-machine", "", true, "NAME of a hypothetical machine"},
         {"--queue", "", true, "NAME:policy=fifo|fair|quota or NAME:priority=NUMBER"},
         {"--weight", "", true, "QUEUE/SHARE=WEIGHT: a higher weight gets less, as in AWS Batch"},
         {"--limit", "", true, "NAME=NUMBER: of a compute environment, a quota, .."},
         {"--submit-rate", "", true, "jobs arrive RATE times as fast"},
         {"--jobs", "", true, "show the COUNT jobs that are affected most (default: 20)"},
         {"--json", "", false, "raw API response"}},
        "Replay past jobs with other machines, policies or limits, side by side.",
        "Jobs of the period arrive again and use machines for as long as they did; the scheduler "
        "plans them by its current rules. The columns: as recorded, replayed without changes, and "
        "each --variant. A replay does not account for other run times on other machines, or for "
        "jobs that users would have submitted otherwise. The server computes one at a time.",
        {"trainyard replay --machines 2xml.m5.4xlarge",
         "trainyard replay --variant big --add-machine big=96,384,8",
         "trainyard replay --since 7d --queue nightly:policy=fair",
         "trainyard replay --since 2026-11-20 --until 2026-11-21 --submit-rate 1.5"}},
       replay_command}};
  return kCommands;
}

const std::vector<Command>& commands_that_search() {
  static const std::vector<Command> kCommands = {
      {{"events",
        {},
        {{"--follow", "-f", false, "print further events until Ctrl-C"},
         {"--pattern", "", true, "only events that match JSON, an event pattern of EventBridge"},
         {"--json", "", false, "print each event as JSON, one a line"}},
        "Show events: changes of jobs, and events that PutEvents has put.",
        "Without -f the events that the server still remembers are printed.",
        {"trainyard events -f",
         "trainyard events -f --pattern '{\"source\": [\"aws.batch\"]}' --json"}},
       events_command},
      {{"query",
        {"QUERY"},
        {{"--job", "-j", true, "only the log of the training job JOB"},
         {"--group", "-g", true, "the log GROUP (default: /aws/sagemaker/TrainingJobs)"},
         {"--since", "", true, "only lines of the last DURATION (default: 1h)"},
         {"--json", "", false, "raw API response"}},
        "Search and count log lines with a query of Logs Insights.",
        "Commands are separated by |: fields, display, filter, parse, stats, sort, limit, dedup. "
        "docs/operating/logs.md describes them. Ctrl-C stops the query.",
        {"trainyard query 'filter @message like /ERROR/ | limit 20'",
         "trainyard query 'stats count(*) by @logStream' --since 1d",
         "trainyard query 'parse \"loss=*\" as loss | stats min(loss)' --job mnist-1"}},
       query_command},
      {{"timeline",
        {"JOB"},
        {{"--output", "-o", true, "write FILE (default: JOB.trace.json); - is standard output"},
         {"--otlp", "", false, "a request for an OpenTelemetry collector, in JSON"}},
        "Write a job's timeline to a file for Perfetto or chrome://tracing.",
        "It has the phases and attempts of the job, the states of each host, and the trace files "
        "that the job wrote to /opt/ml/output/intermediate/timelines, on one clock. Open the file "
        "at ui.perfetto.dev, which keeps it in the browser, or in Chromium at chrome://tracing.",
        {"trainyard timeline mnist-1", "trainyard timeline mnist-1 -o - | jq .otherData"}},
       timeline_command},
      {{"tensorboard",
        {"JOB", "[JOB..]"},
        {{"--logdir", "", true, "keep the event files in DIR/JOB (default: a temporary directory)"},
         {"--port", "-p", true, "PORT of TensorBoard on this machine (default: 6006)"},
         {"--no-server", "", false, "start no TensorBoard; end when the jobs have ended"}},
        "Show the metrics of training jobs in TensorBoard, also while they run.",
        "The program `tensorboard` must be on the PATH (pip install tensorboard). It reads event "
        "files that this command writes from the jobs' metrics and hyperparameters, and those that "
        "the jobs' TensorBoardOutputConfig keeps in S3, until Ctrl-C.",
        {"trainyard tensorboard mnist-1 mnist-2",
         "trainyard tensorboard mnist-1 --no-server --logdir runs"}},
       tensorboard_command}};
  return kCommands;
}

constexpr const char* kSubmitDetails =
    "The file has the request of CreateTrainingJob as JSON or TOML, or its short form:\n"
    "  image = \"trainyard/host\"\n"
    "  command = \"python3 /opt/ml/input/data/code/train.py\"  # or a list\n"
    "  instance_type = \"ml.m5.large\"  # and instance_count, volume_gib\n"
    "  output = \"s3://bucket/models\"\n"
    "  [channels]\n"
    "  train = \"./data\"               # a local directory is uploaded first\n"
    "  [code]                         # instead of command\n"
    "  directory = \"./src\"            # packed and uploaded\n"
    "  entry = \"train.py\"             # run with --epochs 3 and SM_* variables\n"
    "  [hyperparameters]\n"
    "  epochs = 3\n"
    "Also: name, role, max_runtime_seconds, spot, max_wait_seconds, checkpoints, "
    "tensorboard, [environment], [tags]. Keys of the API's own request may be added, and "
    "take precedence. Progress goes to standard error: J=$(trainyard submit job.toml) has the "
    "name.";

const std::vector<Command>& commands_that_change() {
  static const std::vector<Command> kCommands = {
      {{"stop",
        {"JOB"},
        {{"--wait", "", false, "wait until it has ended"},
         {"--now", "", false, "kill its processes: no SIGTERM, and no time to save"},
         {"--reason", "", true, "TEXT for the status reason of a job of Batch"}},
        "Stop a job: SIGTERM, time to save, then SIGKILL. Its model is kept.",
        "JOB is the name of a training job; or the id of a Batch job, the beginning of the id, or "
        "its name if no other unfinished job has it. JOB:7 is child 7 of an array.",
        {"trainyard stop mnist-1 --wait", "trainyard stop mnist-1 --now",
         "trainyard stop nightly:7 --reason 'wrong data'"}},
       stop_command},
      {{"interrupt",
        {"JOB"},
        {{"--host", "", true, "interrupt HOST: algo-2, or 2 (default: all)"},
         {"--notice", "", true,
          "DURATION between SIGTERM and SIGKILL (default: the server's config)"},
         {"--reason", "", true, "TEXT for the job's timeline"}},
        "Interrupt hosts as spot does; the job restarts from its checkpoints.",
        "",
        {"trainyard interrupt mnist-1 --host algo-2 --notice 30s"}},
       interrupt_command},
      {{"cost",
        {"[JOB]"},
        {{"--by", "-b", true, "group by tag:KEY, user, instance, day or job (default: day)"},
         {"--since", "", true, "only jobs created within DURATION (default: 30d)"},
         {"--json", "", false, "raw API response"}},
        "Sum up what jobs cost, or one job.",
        "Prices come from [prices] in the server's config, else from AWS's price list of 2023.",
        {"trainyard cost --by tag:project", "trainyard cost --by user --since 7d",
         "trainyard cost nightly"}},
       cost_command},
      {{"submit",
        {"FILE"},
        {{"--follow", "-f", false,
          "show progress and log until the job ends; the exit code is the job's"},
         {"--name", "", true, "the job's NAME, instead of the one in the file"},
         {"--dry-run", "", false, "print the request; upload and submit nothing"},
         {"--preview", "", false,
          "print when it would start and what it would cost; upload and submit nothing"}},
        "Submit a training job from a file, and print its name.",
        kSubmitDetails,
        {"trainyard submit job.toml --follow", "trainyard submit job.toml --preview",
         "trainyard submit request.json --dry-run"}},
       submit_command}};
  return kCommands;
}

const std::vector<Command>& commands_that_connect() {
  static const std::vector<Command> kCommands = {
      {{"campaign",
        {"ACTION", "[WHAT]"},
        {{"--dry-run", "", false, "run: show the plan; start nothing"},
         {"--detach", "-d", false, "run: do not follow the campaign"},
         {"--name", "", true, "run: the campaign's NAME, instead of the one in the file"},
         {"--json", "", false, "raw API response"}},
        "Run jobs from the rows of a query, each in the region of its data.",
        "  run FILE      plan it, start it, and follow its regions\n"
        "  list          campaigns, newest first\n"
        "  show NAME     its regions, rows and best row, and what its jobs share\n"
        "  follow NAME   its regions until it ends\n"
        "  stop NAME     stop its jobs; waiting rows do not start\n"
        "  query SQL     query the catalogue; @FILE reads the statement from a file\n"
        "  change SQL    change the catalogue, likewise\n"
        "\n"
        "The exit code of run and follow is 0 when every job completed, 3 when one failed, 4 when "
        "the campaign was stopped, and 130 after Ctrl-C (it keeps running).\n"
        "The file is described in docs/operating/campaigns.md.",
        {"trainyard campaign run streets.toml --dry-run", "trainyard campaign run streets.toml",
         "trainyard campaign query 'SELECT * FROM datasets'"}},
       campaign_command},
      {{"shell",
        {"JOB", "[HOST]", "[COMMAND..]"},
        {{"--no-terminal", "", false, "no terminal: bytes unchanged, for pipes"}},
        "Open a shell in a running host, or run COMMAND there.",
        "Exits with the code of the shell or of COMMAND. Write `--` before a COMMAND with options. "
        "Users other than the owner need trainyard:Shell; the server's log records each shell.",
        {"trainyard shell mnist-1 algo-2", "trainyard shell mnist-1 1 -- nvidia-smi -L",
         "trainyard shell mnist-1 1 --no-terminal cat /opt/ml/model/weights > weights"}},
       shell_command},
  };
  return kCommands;
}

const std::vector<Command>& administration() {
  static const std::vector<Command> kCommands = {
      {{"user",
        {"ACTION", "[NAME]"},
        {{"--groups", "-g", true, "add: the groups A,B of the user"},
         {"--policies", "-p", true, "add: the managed policies A,B of the user, by name or ARN"},
         {"--env", "", true, "add: write a script that sets up the user's shell to FILE"},
         {"--endpoint", "", true, "add: the URL by which the user reaches the server"},
         {"--json", "", false, "print JSON"}},
        "Add users with access keys, list users, remove them.",
        "  add NAME      make the user, its memberships and an access key, all or nothing\n"
        "  list          users with their groups, policies and keys\n"
        "  remove NAME   delete the keys, policies and memberships, then the user; jobs stay\n"
        "The command uses IAM, so `aws iam` shows and changes the same users. Users of the\n"
        "server's config can only be changed there.",
        {"trainyard user add ann --groups researchers",
         "trainyard user add bob --endpoint https://yard.lan:4566 --env bob.env",
         "trainyard user remove bob"}},
       user_command},
      {{"status",
        {},
        {{"--json", "", false, "DescribeServer's response"}},
        "Show the server's disk, ledger, jobs, agents, certificate, warnings, last errors.",
        "",
        {"trainyard status"}},
       status_command},
      {{"console",
        {},
        {},
        "Print a link that opens the web console, signed in as you.",
        "The link works once, within five minutes. It contains no key. Its session has the rights\n"
        "of this command's key. Without a link, sign in at /console with an access key.",
        {"trainyard console"}},
       console_command},
      {{"metrics-token",
        {},
        {{"--write", "", false, "a token that writes metrics instead"}},
        "Print a token with which Prometheus scrapes the server, with your rights.",
        "Use it as authorization.credentials_file of a scrape config. It is computed from this\n"
        "command's access key, does not contain the key's secret, and expires with the key.",
        {"trainyard metrics-token > /etc/prometheus/trainyard.token"}},
       metrics_token_command},
  };
  return kCommands;
}

const std::vector<Command>& all_commands() {
  static const std::vector<Command> kCommands = [] {
    std::vector<Command> all;
    for (const auto* some :
         {&commands_that_show(), &commands_that_explain(), &commands_that_search(),
          &commands_that_change(), &commands_that_connect(), &administration()})
      all.insert(all.end(), some->begin(), some->end());
    return all;
  }();
  return kCommands;
}

}  // namespace

const std::vector<Form>& forms() {
  static const std::vector<Form> kForms = [] {
    std::vector<Form> all;
    for (const Command& command : all_commands()) {
      all.push_back(command.form);
      all.back().options.push_back({"--region", "", true, "the REGION (default: AWS_REGION)"});
      all.back().options.push_back(
          {"--data", "", true, "use the server with the data directory DIR, not AWS_ENDPOINT_URL"});
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

Result<int> run(CommandContext& context, const Arguments& arguments) {
  for (const Command& command : all_commands())
    if (command.form.command == arguments.command) return command.run(context, arguments);
  return invalid("unknown command '" + arguments.command + "'");
}

int exit_code_of(const std::string& status) {
  return status == "Completed" ? 0 : status == "Stopped" ? kExitJobStopped : kExitJobFailed;
}

Result<FoundJob> find_job(CommandContext& context, const std::string& text, JobScope scope) {
  return find_job(context.client, context.style, context.clock.now(), text, scope);
}

Result<Json> call_about(CommandContext& context, const std::string& name, client::Service service,
                        const std::string& operation, const Json& question) {
  auto answer = context.client.call(service, operation, question);
  if (!answer && answer.error().kind == Kind::not_found)
    return not_found("job '" + name + "' not found in " + context.client.settings().region +
                     "; `trainyard jobs` lists the jobs, with the ids of Batch jobs");
  return answer;
}

Result<JobView> fetch_job(CommandContext& context, const std::string& name) {
  return job_view(TRY(
      call_about(context, name, client::Service::trainyard, "DescribeJob", {{"JobName", name}})));
}

Result<void> add_role(CommandContext& context, Json& request) {
  if (request.contains("RoleArn")) return {};
  const Json caller =
      TRY(context.client.call(client::Service::sts, "GetCallerIdentity", Json::object())
              .in("requesting the account of the role"));
  request["RoleArn"] = "arn:aws:iam::" + TRY(string_at(caller, "Account")) + ":role/trainer";
  return {};
}

void update_size(CommandContext& context) {
  const auto shape = context.terminal.shape();
  for (OutputStyle* style : {&context.style, &context.error_style})
    if (style->columns > 0 && shape.columns > 0)
      style->columns = shape.columns, style->rows = shape.rows;
}

Result<int> redraw(CommandContext& context, Duration interval,
                   const std::function<Result<Frame>()>& page) {
  context.terminal.watch_interrupts();
  if (context.style.live) context.terminal.hide_cursor();
  std::string last;
  for (;;) {
    update_size(context);
    const Frame frame = TRY(page());
    if (context.style.live) {
      // Moves the cursor home, clears the rest of each line, and then the screen below.
      std::string drawn = "\033[H";
      for (const char c : frame.text)
        drawn += c == '\n' ? std::string("\033[K\n") : std::string(1, c);
      TRY(context.terminal.write((last.empty() ? "\033[2J" : "") + drawn + "\033[J"));
    } else if (frame.text != last) {
      TRY(context.terminal.write(frame.text));
    }
    last = frame.text;
    if (!frame.more) return 0;
    if (context.terminal.wait(interval, false, -1).interrupted) {
      context.terminal.show_cursor();
      return kExitInterrupted;
    }
  }
}

Result<uint32_t> host_index(const std::string& text) {
  const auto number =
      parse_int(text.starts_with("algo-") ? std::string_view(text).substr(5) : text);
  constexpr int64_t kHostsMax = 1'000'000;
  if (!number || *number < 1 || *number > kHostsMax)
    return invalid("invalid host '" + text + "': use algo-1, algo-2, .. or 1, 2, ..");
  return uint32_t(*number - 1);
}

}  // namespace trainyard::cli
