// `trainyard tensorboard`: writes the metrics of jobs as event files, and starts TensorBoard.
#include <fcntl.h>

#include <algorithm>
#include <list>
#include <set>

#include "base/plural.hpp"
#include "cli/commands.hpp"
#include "cli/tensorboard/job_events.hpp"
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

// The event file of one job.
class EventFile {
 public:
  // A file of an earlier run is replaced.
  static Result<EventFile> open(client::Client& client, const std::string& job,
                                const std::string& directory) {
    TRY(os::make_directories(directory + "/" + job));
    EventFile made(client, job);
    made.path_ = directory + "/" + job + "/events.out.tfevents.trainyard";
    made.file_ =
        os::File(::open(made.path_.c_str(),
                        O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644));
    if (!made.file_) return from_errno("writing " + made.path_);
    return made;
  }
  Result<void> write(Instant now) {
    const std::string records = TRY(events_.next(now));
    return os::write_whole(file_, records, path_);
  }
  bool ended() const { return events_.ended(); }

 private:
  EventFile(client::Client& client, const std::string& job) : events_(client, job) {}

  tensorboard::JobEvents events_;
  std::string path_;
  os::File file_;
};

// The event files of all jobs; a job whose metrics cannot be read delays no other.
class EventFiles {
 public:
  EventFiles(World& world, std::vector<EventFile> files)
      : world_(world), files_(std::move(files)) {}

  // Writes what is new, if it is time. Errors: those of the first read; later ones are shown.
  Result<void> write() {
    const Instant now = world_.clock.now();
    const bool first = !written_;
    if (!first && now < *written_ + kReadInterval && now >= *written_) return {};
    written_ = now;
    for (EventFile& each : files_) {
      if (each.ended()) continue;
      const auto done = each.write(now);
      if (done) continue;
      if (first) return done;
      world_.terminal.write_error("trainyard: " + done.error().message + "; trying again\n");
    }
    return {};
  }
  bool all_ended() const {
    return std::ranges::all_of(files_, [](const EventFile& each) { return each.ended(); });
  }

 private:
  World& world_;
  std::vector<EventFile> files_;
  std::optional<Instant> written_;
};

Result<int> follow(World& world, EventFiles& files) {
  while (!files.all_ended()) {
    if (world.terminal.wait(kReadInterval, false, -1).interrupted) return kExitInterrupted;
    TRY(files.write());
  }
  return 0;
}

Result<int> serve(World& world, EventFiles& files, const std::string& directory, int64_t port) {
  bool interrupted = false;
  os::Command server;
  server.arguments = {kServer,     "--logdir",           directory,
                      "--port",    std::to_string(port), "--host",
                      "127.0.0.1", "--reload_interval",  kReloadSeconds};
  server.at_most = kServerTimeMax;
  server.watch = [&] {
    interrupted = world.terminal.wait(Duration(0), false, -1).interrupted;
    static_cast<void>(files.write());  // only the first one fails
    return !interrupted;
  };
  world.terminal.write_error("TensorBoard: http://127.0.0.1:" + std::to_string(port) +
                             "/ (Ctrl-C ends it)\n");
  const auto ended = os::run(server);
  if (interrupted) return kExitInterrupted;
  if (!ended && ended.error().kind == Kind::not_found)
    return not_found(
        "the program `tensorboard` is not on the PATH: install it with `pip install tensorboard`, "
        "or write the files alone with --no-server --logdir DIR");
  if (!ended) return ended.error();
  return unavailable("TensorBoard ended with exit code " + std::to_string(ended->code) + ": " +
                     ended->errors);
}

}  // namespace

Result<int> tensorboard_command(World& world, const Arguments& arguments) {
  const int64_t port = TRY(arguments.number("--port")).value_or(kPortDefault);
  if (port < 1 || port > 65535) return invalid("--port must be from 1 to 65535");
  std::string directory = arguments.value("--logdir");
  if (directory.empty() && arguments.has("--no-server"))
    return invalid("--no-server needs --logdir DIR, in which the files stay");
  if (arguments.operands.size() > kShownJobsMax)
    return invalid("at most " + std::to_string(kShownJobsMax) + " jobs can be shown");
  std::set<std::string> jobs;
  for (const std::string& each : arguments.operands) {
    const JobView job = TRY(find_job(world, each)).job;
    if (job.of_batch()) return invalid("'" + each + "' is a job of Batch, which has no metrics");
    // The name comes from the server, and becomes a directory.
    if (job.name.empty() || job.name.starts_with('.') || job.name.find('/') != std::string::npos)
      return invalid("the server's answer has the invalid job name '" + job.name + "'");
    jobs.insert(job.name);
  }
  std::optional<os::TemporaryDirectory> temporary;
  if (directory.empty()) directory = temporary.emplace().path();
  std::vector<EventFile> opened;
  for (const std::string& job : jobs)
    opened.push_back(TRY(EventFile::open(world.client, job, directory)));
  EventFiles files(world, std::move(opened));
  world.terminal.watch_interrupts();
  TRY(files.write());
  world.terminal.write_error(counted(jobs.size(), "job") + " in " + directory + "\n");
  return arguments.has("--no-server") ? follow(world, files) : serve(world, files, directory, port);
}

}  // namespace trainyard::cli
