// `trainyard tensorboard`: writes the metrics of jobs as event files, downloads the files that the
// jobs write themselves, and starts TensorBoard.
#include <fcntl.h>

#include <algorithm>
#include <list>
#include <set>

#include "base/plural.hpp"
#include "cli/commands.hpp"
#include "cli/tensorboard/job_events.hpp"
#include "cli/tensorboard/own_files.hpp"
#include "os/files.hpp"
#include "os/process.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::cli {
namespace {

constexpr Duration kReadInterval = 5s;
constexpr Duration kServerTimeMax = 365 * 24h;  // longer than a user watches
constexpr const char* kServer = "tensorboard";
constexpr const char* kReloadSeconds = "5";
constexpr size_t kShownJobsMax = 100;
constexpr int64_t kPortDefault = 6006;  // TensorBoard's own
// The directory of the job's own files, below the job's directory as in S3. It is a separate run in
// TensorBoard, since the job may use the names of its metrics.
constexpr const char* kOwnFiles = "/tensorboard-output";

// The files of one job.
class JobFiles {
 public:
  // A file of an earlier run is replaced.
  static Result<JobFiles> open(client::Client& client, const std::string& job,
                               const std::string& directory) {
    TRY(os::make_directories(directory + "/" + job));
    JobFiles made(client, job, directory + "/" + job);
    made.path_ = made.directory_ + "/events.out.tfevents.trainyard";
    made.file_ =
        os::File(::open(made.path_.c_str(),
                        O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644));
    if (!made.file_) return from_errno("writing " + made.path_);
    return made;
  }
  // Writes new records of the metrics.
  Result<void> write_metrics(Instant now) {
    if (events_.ended()) return {};
    const std::string records = TRY(events_.next(now));
    return os::write_whole(file_, records, path_);
  }
  bool has_own() const { return events_.own_files() && !own_ended_; }
  // Downloads new files of the job itself; returns what to tell the user about them.
  Result<std::vector<std::string>> fetch_own(objects::Objects& store,
                                             const std::function<bool()>& may_continue) {
    const bool is_last = events_.ended();  // all was uploaded before the job ended
    if (!own_)
      own_ = TRY(tensorboard::OwnFiles::open(*events_.own_files(), directory_ + kOwnFiles));
    auto reported = TRY(own_->fetch(store, may_continue));
    own_ended_ = is_last;
    return reported;
  }
  void give_up_own() { own_ended_ = true; }
  bool ended() const { return events_.ended() && !has_own(); }
  const std::string& name() const { return name_; }

 private:
  JobFiles(client::Client& client, std::string job, std::string directory)
      : name_(job), directory_(std::move(directory)), events_(client, std::move(job)) {}

  std::string name_, directory_;
  tensorboard::JobEvents events_;
  std::string path_;
  os::File file_;
  std::optional<tensorboard::OwnFiles> own_;
  bool own_ended_ = false;
};

// The files of all jobs. A job whose metrics cannot be read does not delay the others.
class EventFiles {
 public:
  EventFiles(CommandContext& context, std::vector<JobFiles> files)
      : context_(context), files_(std::move(files)) {}

  // Writes new records and files, if the interval has passed. Errors: those of the first read of
  // metrics. Later errors are shown, as are errors of the jobs' own files.
  Result<void> write() {
    const Instant now = context_.clock.now();
    const bool first = !written_;
    if (!first && now < *written_ + kReadInterval && now >= *written_) return {};
    written_ = now;
    for (JobFiles& each : files_) {
      if (each.ended()) continue;
      const auto done = each.write_metrics(now);
      if (!done && first) return done;
      if (!done) say(done.error().message + "; will retry");
      if (each.has_own()) write_own(each);
    }
    return {};
  }
  bool all_ended() const {
    return std::ranges::all_of(files_, [](const JobFiles& each) { return each.ended(); });
  }
  // Waits at most `within` for the user to end the command. Returns whether the user has.
  bool interrupted(Duration within = Duration(0)) {
    interrupted_ = interrupted_ || context_.terminal.wait(within, false, -1).interrupted;
    return interrupted_;
  }

 private:
  void say(const std::string& text) { context_.terminal.write_error("trainyard: " + text + "\n"); }
  Result<std::vector<std::string>> fetch_own(JobFiles& job) {
    if (!store_) store_ = TRY(context_.open_objects());
    return job.fetch_own(*store_, [this] { return !interrupted(); });
  }
  void write_own(JobFiles& job) {
    const auto reported = fetch_own(job);
    if (reported) {
      for (const std::string& each : *reported) say(each);
      return;
    }
    const Kind kind = reported.error().kind;
    if (kind == Kind::cancelled) return;
    const bool for_good = kind == Kind::denied || kind == Kind::not_found || kind == Kind::invalid;
    say("the files that " + job.name() + " writes for TensorBoard cannot be read: " +
        reported.error().message + (for_good ? "; only its metrics are shown" : "; will retry"));
    if (for_good) job.give_up_own();
  }

  CommandContext& context_;
  std::vector<JobFiles> files_;
  std::unique_ptr<objects::Objects> store_;
  std::optional<Instant> written_;
  bool interrupted_ = false;
};

Result<int> follow(EventFiles& files) {
  while (!files.all_ended()) {
    if (files.interrupted(kReadInterval)) return kExitInterrupted;
    TRY(files.write());
  }
  return 0;
}

Result<int> serve(CommandContext& context, EventFiles& files, const std::string& directory,
                  int64_t port) {
  os::Command server;
  server.arguments = {
      kServer,  "--logdir",  directory,           "--port",       std::to_string(port),
      "--host", "127.0.0.1", "--reload_interval", kReloadSeconds, "--reload_multifile",
      "true"};
  server.at_most = kServerTimeMax;
  server.watch = [&] {
    static_cast<void>(files.write());  // only the first one fails
    return !files.interrupted();
  };
  context.terminal.write_error("TensorBoard: http://127.0.0.1:" + std::to_string(port) +
                               "/ (Ctrl-C ends it)\n");
  const auto ended = os::run(server);
  if (files.interrupted()) return kExitInterrupted;
  if (!ended && ended.error().kind == Kind::not_found)
    return not_found(
        "the program `tensorboard` is not on the PATH: install it with `pip install tensorboard`, "
        "or only write the files, with --no-server --logdir DIR");
  if (!ended) return ended.error();
  return unavailable("TensorBoard ended with exit code " + std::to_string(ended->code) + ": " +
                     ended->errors);
}

}  // namespace

Result<int> tensorboard_command(CommandContext& context, const Arguments& arguments) {
  const int64_t port = TRY(arguments.number("--port")).value_or(kPortDefault);
  if (port < 1 || port > 65535) return invalid("--port must be from 1 to 65535");
  std::string directory = arguments.value("--logdir");
  if (directory.empty() && arguments.has("--no-server"))
    return invalid("--no-server needs --logdir DIR, in which the files stay");
  if (arguments.operands.size() > kShownJobsMax)
    return invalid("at most " + std::to_string(kShownJobsMax) + " jobs can be shown");
  std::set<std::string> jobs;
  for (const std::string& each : arguments.operands) {
    const JobView job = TRY(find_job(context, each)).job;
    if (job.of_batch()) return invalid("'" + each + "' is a job of Batch, which has no metrics");
    // The name comes from the server, and becomes a directory.
    if (job.name.empty() || job.name.starts_with('.') || job.name.find('/') != std::string::npos)
      return invalid("the server's answer has the invalid job name '" + job.name + "'");
    jobs.insert(job.name);
  }
  std::optional<os::TemporaryDirectory> temporary;
  if (directory.empty()) directory = temporary.emplace().path();
  std::vector<JobFiles> opened;
  for (const std::string& job : jobs)
    opened.push_back(TRY(JobFiles::open(context.client, job, directory)));
  EventFiles files(context, std::move(opened));
  context.terminal.watch_interrupts();
  TRY(files.write());
  context.terminal.write_error(counted(jobs.size(), "job") + " in " + directory + "\n");
  return arguments.has("--no-server") ? follow(files) : serve(context, files, directory, port);
}

}  // namespace trainyard::cli
