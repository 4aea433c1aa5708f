// The `trainyard` program: the server, commands for its operation, and commands about jobs.

#include <signal.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "base/nearest.hpp"
#include "base/plural.hpp"
#include "base/text.hpp"
#include "cli/cli.hpp"
#include "cli/table.hpp"
#include "config/config.hpp"
#include "containers/rootless_sandbox.hpp"
#include "objects/s3_client.hpp"
#include "observe/audit.hpp"
#include "os/environment.hpp"
#include "os/files.hpp"
#include "os/machine_clock.hpp"
#include "os/terminal.hpp"
#include "trainyard/data_directory.hpp"
#include "trainyard/operate/cache_command.hpp"
#include "trainyard/operate/cluster_command.hpp"
#include "trainyard/operate/doctor.hpp"
#include "trainyard/operate/downgrade.hpp"
#include "trainyard/operate/hand_over.hpp"
#include "trainyard/operate/ledger_commands.hpp"
#include "trainyard/operate/pull.hpp"
#include "trainyard/operate/scrub.hpp"
#include "trainyard/serve.hpp"

namespace {

using namespace trainyard;

const cli::Option kData{"--data", "", true,
                        "data directory DIR (default: $TRAINYARD_DATA, ~/.local/share/trainyard)"};

constexpr const char* kEnvText =
    "With --user or --endpoint the output is a script that needs no file of this machine: it\n"
    "writes the certificate authority and the files of clients below the home directory of its\n"
    "user. It contains the secret of the key, which is read from the data directory: only the\n"
    "server's Unix user may.";

// The commands that move and back up stored state.
std::vector<cli::Form> forms_of_state() {
  return {
      {"ledger",
       {"ACTION"},
       {kData,
        {"--config", "", true, "configuration FILE with [ledger] (default: the server's)"},
        {"--to", "", true, "copy: target, `database` (of [ledger]) or `file` (DATA/ledger.db)"}},
       "Move the ledger to PostgreSQL and back.",
       "ACTION is copy or adopt. No server of the data directory may run.\n"
       "copy refuses a target with content. adopt gives the ledger in the database to this data\n"
       "directory and machine: use it when the former machine will not come back.",
       {"trainyard ledger copy --config trainyard.toml --to database",
        "trainyard ledger copy --config trainyard.toml --to file"}},
      {"backup",
       {},
       {kData,
        {"--config", "", true, "configuration FILE (default: the server's)"},
        {"--to", "", true, "new DIRECTORY for the backup"}},
       "Write the ledger, keys, campaigns and alarms to a directory.",
       "The server may run. Objects, logs and metrics are not included: see docs/operating.",
       {"trainyard backup --to /backup/2026-11-24"}},
      {"restore",
       {},
       {kData,
        {"--config", "", true, "configuration FILE; with [ledger] its empty database is filled"},
        {"--from", "", true, "DIRECTORY of a backup"}},
       "Fill a new data directory from a backup.",
       "",
       {"trainyard restore --data /srv/yard --from /backup/2026-11-24"}}};
}

cli::Form form_of_cache() {
  return {"cache",
          {"ACTION", "[S3URI]"},
          {kData,
           {"--pin", "", false, "warm: also pin"},
           {"--remove", "", false, "pin: remove the pin instead"},
           {"--all", "", false, "drop: everything"},
           {"--json", "", false, "ls: print JSON"}},
          "Show and manage this machine's cache of objects, from which mounted channels are read.",
          "  ls [S3URI]    what is cached: buckets, or what is below a prefix; and pins\n"
          "  warm S3URI    fetch the objects below a prefix, before a job needs them\n"
          "  pin S3URI     keep what is cached below a prefix until the pin is removed\n"
          "  drop S3URI    remove what is cached below a prefix, and pins below it\n"
          "Blocks of running jobs stay in any case. Only the server's Unix user may do this.",
          {"trainyard cache warm s3://data/imagenet/ --pin", "trainyard cache ls s3://data/",
           "trainyard cache pin s3://data/imagenet/ --remove"}};
}

// The commands for the server and its operation.
std::vector<cli::Form> forms_of_operation() {
  return {
      {"serve",
       {},
       {kData,
        {"--listen", "", true, "ADDRESS:PORT (default: 127.0.0.1:4566)"},
        {"--config", "", true, "configuration FILE (docs/operating)"},
        {"--log-file", "", true, "write the log to FILE, rotated (default: standard error)"}},
       "Run the server. One port serves HTTP and HTTPS; jobs outlive the server.",
       "",
       {"trainyard serve", "trainyard serve --data /srv/yard --listen 0.0.0.0:4566"}},
      {"env",
       {},
       {kData,
        {"--user", "", true, "with the key of USER, of this machine or another"},
        {"--endpoint", "", true, "with the URL at which the user reaches the server"}},
       "Print shell exports for AWS clients.",
       kEnvText,
       {"eval \"$(trainyard env)\"",
        "trainyard env --user bob --endpoint https://yard.lan:4566 > bob.env"}},
      {"pull",
       {"IMAGE"},
       {kData, {"--config", "", true, "configuration FILE of the server, whose [images] apply"}},
       "Pull and unpack an image before jobs need it.",
       "",
       {"trainyard pull registry.lan:5000/team/train:v1"}},
      {"scrub",
       {},
       {kData,
        {"--bucket", "", true, "only this BUCKET"},
        {"--rate", "", true, "at most MIB per second (default: 0, no limit)"},
        {"--json", "", false, "print JSON"}},
       "Verify the checksum of every object; exit code 1 if one is broken.",
       "",
       {"trainyard scrub", "trainyard scrub --bucket data --rate 50"}},
      {"audit",
       {"ACTION"},
       {kData},
       "Verify that no record of the audit log was changed.",
       "ACTION is verify. Prints the digest of the last record. Keep it elsewhere to detect later "
       "that records were cut off.",
       {"trainyard audit verify"}},
      {"downgrade",
       {},
       {kData},
       "Convert a data directory back to the format of the previous release.",
       "The server must not run. The ledger is replaced by the copy that was made at the upgrade: "
       "jobs, queues and users since then are lost. Objects stay.",
       {"trainyard downgrade"}},
      {"doctor",
       {},
       {kData,
        {"--config", "", true, "configuration FILE to check (default: the server's)"},
        {"--clean", "", false, "remove what a crash left behind"}},
       "Report what this machine supports, what to install, and errors of the config.",
       "",
       {"trainyard doctor", "trainyard doctor --config trainyard.toml"}}};
}

const std::vector<cli::Form>& server_forms() {
  static const std::vector<cli::Form> kForms = [] {
    auto forms = forms_of_operation();
    forms.push_back(form_of_cache());
    forms.push_back(apps::form_of_cluster());
    for (const cli::Form& form : forms_of_state()) forms.push_back(form);
    return forms;
  }();
  return kForms;
}

// The former name of the command `pull`, accepted until the next version.
constexpr const char* kDeprecatedPull = "warm";

std::string overview() {
  constexpr int kSummaryColumn = 13;
  const cli::OutputStyle style{.columns = cli::kHelpColumns};
  std::string text = "trainyard: a training cloud that you own\n";
  const auto add = [&](const char* title, const std::vector<cli::Form>& forms) {
    text += std::string("\n") + title + "\n";
    for (const auto& form : forms)
      text += cli::paragraph(style, form.summary, cli::Paint::none, "  " + form.command,
                             kSummaryColumn);
  };
  add("server commands", server_forms());
  add("job and user commands", cli::forms());
  return text + "\n" +
         cli::paragraph(style,
                        "`trainyard COMMAND --help` shows options and examples. Job and user "
                        "commands call the server at AWS_ENDPOINT_URL with the keys of the "
                        "environment, as `trainyard env` prints them; if that is not set, the "
                        "server of the local data directory.");
}

std::string first_of(std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (auto value = os::environment_variable(name); !value.empty()) return value;
  return "";
}

struct ServerAddress {
  client::Settings api;
  std::string objects_endpoint;
};

// Finds the address and keys of the server: in the environment or, without these, in the local
// server's record.
Result<ServerAddress> find_server(const cli::Arguments& arguments) {
  ServerAddress server;
  const std::string data = arguments.value("--data");
  server.api.endpoint = data.empty() ? os::environment_variable("AWS_ENDPOINT_URL") : "";
  if (!server.api.endpoint.empty()) {
    server.api.keys = {os::environment_variable("AWS_ACCESS_KEY_ID"),
                       os::environment_variable("AWS_SECRET_ACCESS_KEY"),
                       os::environment_variable("AWS_SESSION_TOKEN")};
    server.api.ca_bundle = os::environment_variable("AWS_CA_BUNDLE");
    server.objects_endpoint = os::environment_variable("AWS_ENDPOINT_URL_S3");
    server.api.region = first_of({"AWS_REGION", "AWS_DEFAULT_REGION"});
    if (server.api.region.empty()) server.api.region = "us-east-1";
  } else {
    const std::string directory =
        std::filesystem::absolute(data.empty() ? apps::default_data_directory() : data).string();
    const auto record = TRY(apps::read_server_record(directory));
    server.api.endpoint = record.endpoint;
    server.api.region = record.region;
    server.api.keys = {record.key.id, record.key.secret, ""};
    server.api.ca_bundle = directory + "/tls/ca.pem";
    server.objects_endpoint = record.objects_endpoint;
  }
  if (const auto region = arguments.value("--region"); !region.empty()) server.api.region = region;
  if (server.objects_endpoint.empty()) server.objects_endpoint = server.api.endpoint;
  return server;
}

enum class Stream { output, error };

cli::OutputStyle style_of(os::Terminal& terminal, Stream stream) {
  const auto shape = terminal.shape();
  return cli::style_of({stream == Stream::output ? shape.output : shape.error, shape.columns,
                        shape.rows, os::environment_variable("NO_COLOR"),
                        os::environment_variable("TERM"),
                        first_of({"LC_ALL", "LC_CTYPE", "LANG"})});
}

Result<int> about_jobs(const cli::Arguments& arguments) {
  ::signal(SIGPIPE, SIG_IGN);
  os::MachineClock clock;
  set_log({}, clock, Level::error);
  const ServerAddress server = TRY(find_server(arguments));
  const auto client = TRY(client::open_client(server.api, clock));
  const auto terminal = os::open_terminal();
  const auto open_objects = [&] {
    objects::S3Settings settings;
    settings.endpoint = server.objects_endpoint;
    settings.region = server.api.region;
    settings.ca_bundle = server.api.ca_bundle;
    settings.keys = [&] { return server.api.keys; };
    return objects::open_s3(std::move(settings), clock);
  };
  const auto hand_over = [&](const std::string& user, const cli::Key& key,
                             const std::string& endpoint) {
    return apps::hand_over(server.api, server.objects_endpoint, {key.id, key.secret, user},
                           endpoint);
  };
  cli::CommandContext context{
      *client,
      *terminal,
      style_of(*terminal, Stream::output),
      style_of(*terminal, Stream::error),
      clock,
      open_objects,
      os::environment_variable("TERM"),
      hand_over,
      arguments.value("--data"),
      [&](client::Settings settings) { return client::open_client(std::move(settings), clock); }};
  return cli::run(context, arguments);
}

// A server whose jobs run in pods starts none on this machine. In a pod of its own it may be unable
// to make namespaces. Errors in the config are reported later.
bool serves_pods_only(const cli::Arguments& arguments) {
  const std::string file = arguments.value("--config");
  if (arguments.command != "serve" || file.empty()) return false;
  const auto config = config::read_config(file);
  return config && config->kubernetes;
}

// Commands that run jobs, unpack their images or remove their remains need root: on the machine, or
// in an ordinary user's own namespaces, of which each data directory has one set.
Result<void> ensure_root_or_sandbox(const cli::Arguments& arguments, const std::string& data) {
  if (containers::is_root()) return ok();
  // doctor reports missing rights itself
  if (arguments.command == "doctor" && !arguments.has("--clean")) return ok();
  if (arguments.command == "env" || arguments.command == "audit") return ok();
  if (serves_pods_only(arguments)) return ok();
  for (const char* no_jobs :
       {"scrub", "cache", "ledger", "backup", "restore", "cluster"})  // with the caller's rights
    if (arguments.command == no_jobs) return ok();
  TRY(os::make_directories(data, 0700).in("making the data directory"));
  // The directory keeps its old name: servers of other versions must find the sandbox that runs.
  return containers::enter_rootless_sandbox(std::filesystem::canonical(data).string() +
                                            "/enclosure");
}

constexpr int64_t kScrubMibMax = 1 << 20;  // per second: a tebibyte, more than any disk

Result<int> scrub(const cli::Arguments& arguments, const std::string& data) {
  const auto rate = parse_int(arguments.value("--rate", "0"));
  if (!rate || *rate < 0 || *rate > kScrubMibMax)
    return invalid("invalid --rate '" + arguments.value("--rate") +
                   "': use a whole number of MiB per second, 0 to " + std::to_string(kScrubMibMax));
  os::MachineClock clock;
  const auto terminal = os::open_terminal();
  const bool whole = TRY(apps::scrub(
      {data, arguments.value("--bucket"), uint64_t(*rate) << 20, arguments.has("--json")},
      *terminal, style_of(*terminal, Stream::output), style_of(*terminal, Stream::error), clock));
  return whole ? 0 : 1;
}

Result<void> use_cache(const cli::Arguments& arguments, const std::string& data) {
  ::signal(SIGPIPE, SIG_IGN);
  os::MachineClock clock;
  const auto terminal = os::open_terminal();
  apps::CacheOptions options;
  options.data_directory = std::filesystem::absolute(data).string();
  options.action = arguments.operands.front();
  if (arguments.operands.size() > 1) options.uri = arguments.operands[1];
  options.pin = arguments.has("--pin"), options.remove = arguments.has("--remove");
  options.all = arguments.has("--all"), options.json = arguments.has("--json");
  return apps::cache_command(options, *terminal, style_of(*terminal, Stream::output),
                             style_of(*terminal, Stream::error), clock);
}

Result<int> set_up_cluster(const cli::Arguments& arguments) {
  ::signal(SIGPIPE, SIG_IGN);
  os::MachineClock clock;
  const auto terminal = os::open_terminal();
  return apps::cluster_command(arguments, *terminal, style_of(*terminal, Stream::output),
                               style_of(*terminal, Stream::error), clock);
}

// Needs no server: the log may be a copy.
Result<void> verify_audit(const std::string& action, const std::string& data) {
  if (action != "verify")
    return invalid("unknown action '" + action + "': use `trainyard audit verify`");
  const auto found = TRY(observe::verify_audit_log(data + "/audit").in("verifying the audit log"));
  std::printf("%s in %s, unchanged%s%s\nlast digest: %s\n",
              counted(found.records, "record").c_str(), counted(found.files, "file").c_str(),
              found.from_beginning ? "" : "; older files were moved away",
              found.torn ? "; the last line is not whole" : "", found.digest.c_str());
  return ok();
}

Result<void> downgrade(const std::string& data) {
  os::MachineClock clock;
  os::MachineRandom random;
  const auto done = TRY(apps::downgrade(std::filesystem::absolute(data).string(), clock, random));
  std::printf(
      "the ledger has version %lld again; the newer one is kept as %s\njoined the parts of %s\n"
      "converted %s of metrics\n",
      static_cast<long long>(done.ledger_version), done.kept_ledger.c_str(),
      counted(done.joined, "object").c_str(), counted(done.points, "point").c_str());
  return ok();
}

Result<std::string> operate_on_state(const cli::Arguments& arguments, const std::string& data) {
  os::MachineClock clock;
  os::MachineRandom random;
  const apps::StoredState state{std::filesystem::absolute(data).string(),
                                arguments.value("--config")};
  if (arguments.command == "backup") return apps::backup(state, arguments.value("--to"));
  if (arguments.command == "restore")
    return apps::restore(state, arguments.value("--from"), clock, random);
  const std::string& action = arguments.operands.front();
  if (action == "adopt") return apps::adopt_ledger(state, random);
  if (action != "copy")
    return invalid("unknown action '" + action + "': use `trainyard ledger copy` or adopt");
  const std::string to = arguments.value("--to");
  if (to != "database" && to != "file")
    return invalid("invalid --to '" + to + "': use `--to database` or `--to file`");
  return apps::copy_ledger(state, to == "file", clock, random);
}

Result<int> operate(const cli::Arguments& arguments) {
  const std::string data = arguments.value("--data", apps::default_data_directory());
  TRY(ensure_root_or_sandbox(arguments, data));
  if (arguments.command == "serve")
    TRY(apps::serve({data, arguments.value("--config"), arguments.value("--listen"),
                     arguments.value("--log-file")}));
  if (arguments.command == "scrub") return scrub(arguments, data);
  if (arguments.command == "cluster") return set_up_cluster(arguments);
  if (arguments.command == "cache") TRY(use_cache(arguments, data));
  if (arguments.command == "doctor")
    TRY(apps::doctor({data, arguments.value("--config"), arguments.has("--clean")},
                     style_of(*os::open_terminal(), Stream::output)));
  if (arguments.command == "downgrade") TRY(downgrade(data));
  if (arguments.command == "pull")
    TRY(apps::pull({data, arguments.value("--config"), arguments.operands.front()}));
  if (arguments.command == "audit") TRY(verify_audit(arguments.operands.front(), data));
  if (arguments.command == "ledger" || arguments.command == "backup" ||
      arguments.command == "restore")
    std::printf("%s\n", TRY(operate_on_state(arguments, data)).c_str());
  if (arguments.command == "env") {
    const std::string text =
        TRY(apps::environment_of({data, arguments.value("--user"), arguments.value("--endpoint")}));
    std::fputs(text.c_str(), stdout);
  }
  return 0;
}

const cli::Form* find_operating(const std::string& name) {
  for (const auto& form : server_forms())
    if (form.command == name) return &form;
  return nullptr;
}

int complain(const Error& error, int code) {
  const cli::OutputStyle style = style_of(*os::open_terminal(), Stream::error);
  std::fputs(cli::paragraph(style, "trainyard: " + error.message).c_str(), stderr);
  return code;
}

int no_such_command(const std::string& name) {
  std::vector<std::string> names{"help"};
  for (const auto* forms : {&server_forms(), &cli::forms()})
    for (const auto& form : *forms) names.push_back(form.command);
  const std::string near = nearest(name, names);
  return complain(invalid("unknown command '" + name + "'" +
                          (near.empty() ? "." : "; did you mean `trainyard " + near + "`?") +
                          " `trainyard help` lists the commands"),
                  cli::kExitUsage);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> command_line(argv + 1, argv + argc);
  const auto is_help = [](const std::string& word) {
    return word == "help" || word == "--help" || word == "-h";
  };
  if (command_line.empty() || (is_help(command_line[0]) && command_line.size() == 1)) {
    std::fputs(overview().c_str(), stdout);
    return 0;
  }
  if (is_help(command_line[0])) command_line = {command_line[1], "--help"};
  if (command_line[0] == kDeprecatedPull) {
    std::fprintf(stderr, "trainyard: `trainyard warm` is deprecated: use `trainyard pull`\n");
    command_line[0] = "pull";
  }
  const cli::Form* of_server = find_operating(command_line[0]);
  const cli::Form* form = of_server ? of_server : cli::find_form(command_line[0]);
  if (!form) return no_such_command(command_line[0]);
  const auto arguments = cli::read_arguments(*form, {command_line.begin() + 1, command_line.end()});
  if (!arguments) return complain(arguments.error(), cli::kExitUsage);
  if (arguments->help) {
    std::fputs(cli::help_of(*form).c_str(), stdout);
    return 0;
  }
  const auto done = of_server ? operate(*arguments) : about_jobs(*arguments);
  if (done) return *done;
  return complain(done.error(), done.error().kind == Kind::cancelled ? cli::kExitInterrupted : 1);
}
