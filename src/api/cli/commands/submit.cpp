// `trainyard submit`: uploads local files, sends the request, and with --follow shows the job until
// it ends.
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/nearest.hpp"
#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/commands/stop_prompt.hpp"
#include "cli/log_follower.hpp"
#include "cli/request_file.hpp"
#include "cli/source_archive.hpp"
#include "cli/status_block.hpp"
#include "cli/submission_check.hpp"
#include "cli/views/explain_view.hpp"
#include "os/files.hpp"

namespace trainyard::cli {
namespace {

using client::Service;

constexpr size_t kRequestBytesMax = 4 << 20;   // of the request
constexpr size_t kUploadFilesMax = 1'000'000;  // of one channel
constexpr size_t kChunkBytes = 1 << 20;        // read before the progress is drawn again
constexpr Duration kProgressInterval = 500ms;
constexpr Duration kAnswerWait = 1min;  // of one wait for an answer, repeated

struct LocalFile {
  std::string path;
  std::string key;  // below the upload's prefix
  int64_t bytes = 0;
  uint32_t mode = 0644;
  int64_t modified = 0;  // seconds since 1970
};

// Returns what errors call the local files: "channel train" or "code".
std::string place_of(const Upload& upload) {
  return (upload.entry.empty() ? "channel " : "") + upload.channel;
}

Result<LocalFile> local_file(const std::filesystem::directory_entry& at, std::string key) {
  std::error_code error;
  LocalFile file{at.path().string(), std::move(key), int64_t(at.file_size(error))};
  if (!error) file.mode = uint32_t(at.status(error).permissions() & std::filesystem::perms::mask);
  if (!error)
    file.modified =
        std::chrono::duration_cast<std::chrono::seconds>(
            std::chrono::file_clock::to_sys(at.last_write_time(error)).time_since_epoch())
            .count();
  if (error) return unavailable("reading " + file.path + ": " + error.message());
  return file;
}

// Lists regular files in the order of their names. Follows links, and skips hidden files in
// directories.
Result<std::vector<LocalFile>> files_of(const Upload& upload) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<LocalFile> files;
  const fs::path root(upload.path);
  const auto status = fs::status(root, error);
  if (error || status.type() == fs::file_type::not_found)
    return not_found(place_of(upload) + ": " + upload.path + " not found");
  if (fs::is_regular_file(status)) {
    files.push_back(TRY(local_file(fs::directory_entry(root), root.filename().string())));
    return files;
  }
  if (!fs::is_directory(status))
    return invalid(place_of(upload) + ": " + upload.path + " is neither a file nor a directory");
  for (auto at = fs::recursive_directory_iterator(root, error);
       !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    if (at->path().filename().string().starts_with('.')) {
      at.disable_recursion_pending();
      continue;
    }
    std::error_code of_file;
    if (!at->is_regular_file(of_file)) continue;
    files.push_back(TRY(local_file(*at, at->path().lexically_relative(root).generic_string())));
    if (files.size() > kUploadFilesMax)
      return exhausted(place_of(upload) + " has more than " + std::to_string(kUploadFilesMax) +
                       " files");
  }
  if (error) return unavailable("reading " + upload.path + ": " + error.message());
  if (files.empty())
    return invalid(place_of(upload) + ": " + upload.path +
                   " has no files (hidden files are skipped)");
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
  return files;
}

// Errors: not_found, if the sources have no entry.
Result<void> check_sources(const Upload& upload, const std::vector<LocalFile>& files,
                           const std::vector<std::string>& names) {
  int64_t bytes = 0;
  for (const LocalFile& file : files) bytes += file.bytes;
  if (bytes > kSourceBytesMax)
    return exhausted("code: " + upload.path + " has more than " +
                     human_bytes(uint64_t(kSourceBytesMax)) + "; data belongs in [channels]");
  if (std::ranges::find(names, upload.entry) != names.end()) return {};
  const std::string near = nearest(upload.entry, names);
  return not_found("code.entry: " + upload.entry + " not found in " + upload.path +
                   (near.empty() ? "" : "; did you mean " + near + "?"));
}

// The files of an upload, listed before anything is uploaded.
struct PlannedUpload {
  Upload upload;
  std::vector<LocalFile> files;
};
Result<std::vector<PlannedUpload>> plan_uploads(const Submission& submission) {
  std::vector<PlannedUpload> plan;
  for (const Upload& upload : submission.uploads) {
    auto files = TRY(files_of(upload));
    std::vector<std::string> keys;
    for (const LocalFile& file : files) keys.push_back(file.key);
    if (!upload.entry.empty()) TRY(check_sources(upload, files, keys));
    TRY(check_program(submission.request, upload, keys));
    plan.push_back({upload, std::move(files)});
  }
  return plan;
}

// Calls `sink` with the content of a file, chunk by chunk.
Result<void> read_chunks(const LocalFile& file,
                         const std::function<Result<void>(std::string_view)>& sink) {
  std::ifstream in(file.path, std::ios::binary);
  if (!in) return from_errno("opening " + file.path);
  std::string chunk(kChunkBytes, '\0');
  while (in) {
    in.read(chunk.data(), std::streamsize(chunk.size()));
    const auto got = size_t(in.gcount());
    if (got == 0) break;
    TRY(sink({chunk.data(), got}));
  }
  if (in.bad()) return unavailable("reading " + file.path + " failed");
  return {};
}

using Moved = std::function<Result<void>(int64_t)>;  // called with the number of bytes uploaded

Result<void> upload_file(objects::Objects& store, const Upload& upload, const LocalFile& file,
                         const Moved& moved) {
  auto writer = TRY(store.put(upload.bucket, upload.prefix + file.key));
  TRY(read_chunks(file, [&](std::string_view bytes) -> Result<void> {
    TRY(writer->write(bytes));
    return moved(int64_t(bytes.size()));
  }));
  TRY(writer->commit());
  return {};
}

// Packs the files, and uploads the archive while it grows.
Result<void> upload_sources(objects::Objects& store, const PlannedUpload& plan,
                            const Moved& moved) {
  auto writer = TRY(store.put(plan.upload.bucket, plan.upload.prefix + kSourceArchive));
  const auto archive = SourceArchive::open(
      [&](std::string_view bytes) -> Result<void> { return writer->write(bytes); });
  for (const LocalFile& file : plan.files) {
    int64_t left = file.bytes;
    TRY(archive->add({file.key, file.mode, file.bytes, file.modified}));
    TRY(read_chunks(file, [&](std::string_view bytes) -> Result<void> {
      left -= int64_t(bytes.size());
      if (left < 0) return conflict(file.path + " has grown while it was read");
      TRY(archive->write(bytes));
      return moved(int64_t(bytes.size()));
    }));
    if (left != 0) return conflict(file.path + " has shrunk while it was read");
  }
  TRY(archive->finish());
  TRY(writer->commit());
  return {};
}

Result<void> ensure_bucket(CommandContext& context, objects::Objects& store,
                           const std::string& bucket) {
  const auto there = store.head_bucket(bucket);
  if (there) return {};
  if (there.error().kind != Kind::not_found) return there.error();
  auto made = store.create_bucket(bucket, context.client.settings().region);
  if (!made && made.error().kind == Kind::conflict) return {};
  return made;
}

Result<void> upload_all(CommandContext& context, const std::vector<PlannedUpload>& plan) {
  auto store = TRY(context.open_objects());
  StatusBlock block(context.error_style);
  for (const PlannedUpload& each : plan) {
    const Upload& upload = each.upload;
    TRY(ensure_bucket(context, *store, upload.bucket).in("the bucket " + upload.bucket));
    ProgressView progress;
    progress.what = "upload " + upload.channel;
    for (const auto& file : each.files) progress.total_bytes += file.bytes;
    const auto draw = [&]() -> Result<void> {
      context.terminal.write_error(block.show("", {progress}));
      if (!context.terminal.wait(0ms, false, -1).interrupted) return {};
      context.terminal.write_error(block.clear());
      return cancelled("nothing was submitted");
    };
    const Moved moved = [&](int64_t bytes) {
      progress.done_bytes += bytes;
      return draw();
    };
    TRY(draw());
    if (!upload.entry.empty())
      TRY(upload_sources(*store, each, moved).in("uploading " + upload.path));
    else
      for (const auto& file : each.files)
        TRY(upload_file(*store, upload, file, moved).in("uploading " + file.path));
    progress.finished = true;
    context.terminal.write_error(block.clear());
    context.terminal.write_error(block.settle({progress}));
  }
  return {};
}

// `log_is_ahead`: the job has printed lines, though its status is still one before its start.
std::string headline_of(const JobView& job, bool log_is_ahead, bool with_time, Instant now) {
  std::string text = job.name + "  " + job.status;
  if (!log_is_ahead && !job.secondary_status.empty() && job.secondary_status != job.status)
    text += " " + job.secondary_status;
  if (!with_time) return text;
  if (!job.wait_reason.empty()) text += ": " + job.wait_reason;
  if (job.started) text += "  " + duration_text(job.ended.value_or(now) - *job.started);
  return text;
}

// Waits for a key that answers the question. Requires: the terminal is raw, so that Ctrl-C is a
// key.
bool wants_to_stop(CommandContext& context) {
  for (;;) {
    const auto event = context.terminal.wait(kAnswerWait, true, -1);
    if (event.interrupted || event.input_ended) return false;
    if (const auto answer = read_stop_answer(event.input)) return *answer;
  }
}

// Prompts the user to stop the job or to leave it running.
Result<int> leave(CommandContext& context, const std::string& name) {
  const std::string stays = "trainyard: " + name + " keeps running; `trainyard logs -f " + name +
                            "` follows it again, `trainyard stop " + name + "` stops it\n";
  if (!context.error_style.live || !context.terminal.shape().input) {
    context.terminal.write_error(stays);
    return kExitInterrupted;
  }
  bool stop = false;
  {
    const auto raw = TRY(context.terminal.raw());
    (void)context.terminal.wait(0ms, true, -1);  // keys that were typed before the question
    context.terminal.write_error(
        "\r\nStop the job? [s: stop it; Enter or Ctrl-C: leave it running] ");
    stop = wants_to_stop(context);
  }
  context.terminal.write_error("\n");
  if (stop) {
    TRY(call_about(context, name, Service::sagemaker, "StopTrainingJob",
                   {{"TrainingJobName", name}}));
    context.terminal.write_error("trainyard: " + name + " is stopping\n");
    return kExitJobStopped;
  }
  context.terminal.write_error(stays);
  return kExitInterrupted;
}

// Returns whether the hosts of a job have its channels. Transfers that all of them report are then
// complete.
bool has_begun(const JobView& job) {
  for (const char* before : {"Pending", "Starting", "Downloading"})
    if (job.secondary_status == before) return false;
  return true;
}

// Returns whether a host still downloads channels, though others may run.
bool is_downloading(const JobView& job) { return job.secondary_status == "Downloading"; }

std::string result_text(const OutputStyle& style, const JobView& job) {
  std::string text = job.name + " " + job.status;
  if (job.started && job.ended) text += " after " + duration_text(*job.ended - *job.started);
  if (const auto cost = cost_text(job); !cost.empty()) text += ", " + cost;
  if (!job.failure_reason.empty()) text += ": " + job.failure_reason;
  return paragraph(style, text, paint_of_status(job.status));
}

// Shows a job until it ends: its log on standard output, its progress below it on standard error.
class Follower {
 public:
  Follower(CommandContext& context, const std::string& name, std::unique_ptr<LogFollower> log)
      : context_(context), name_(name), block_(context.error_style), log_(std::move(log)) {}

  Result<int> run() {
    context_.terminal.watch_interrupts();
    for (;;) {
      update_size(context_);
      const JobView job = TRY(fetch_job(context_, name_));
      show(job);
      is_fresh_ = false;
      TRY(log_->round(job.finished(),
                      [&](const std::vector<LogLine>& lines) { return print(lines); }));
      if (job.finished()) {
        show_transfers(job);
        context_.terminal.write_error(block_.clear());
        TRY(context_.terminal.write(result_text(context_.style, job)));
        return exit_code_of(job.status);
      }
      if (context_.terminal.wait(kProgressInterval, false, -1).interrupted) {
        context_.terminal.write_error(block_.clear());
        return leave(context_, name_);
      }
    }
  }

 private:
  void show_transfers(const JobView& job) {
    context_.terminal.write_error(block_.settle(job.progress));
  }

  // Stores the job's state, and draws it unless the job has ended.
  void show(const JobView& job) {
    has_begun_ = has_begun(job);
    if (has_begun_) log_is_ahead_ = false;
    if (!job.finished()) draw(job);
    if (has_begun_) show_transfers(job);
  }

  // Lines are printed after the transfers and the status that precede them: both may be
  // missing in the job that was fetched before the log. The log can be ahead of the server's
  // status.
  Result<void> print(const std::vector<LogLine>& lines) {
    if (!is_fresh_ && !(has_begun_ && has_printed_)) {
      const JobView job = TRY(fetch_job(context_, name_));
      is_fresh_ = true;
      log_is_ahead_ = !has_begun(job) && (job.hosts_wanted() == 1 || !is_downloading(job));
      show(job);
      show_transfers(job);
    }
    has_printed_ = true;
    std::string text;
    for (const LogLine& line : lines) text += log_line(context_.style, line, log_->widest());
    context_.terminal.write_error(block_.hide());
    TRY(context_.terminal.write(text));
    context_.terminal.write_error(block_.draw());
    return {};
  }

  void draw(const JobView& job) {
    std::vector<ProgressView> moving;
    for (const auto& one : job.progress)
      if (!one.finished) moving.push_back(one);
    if (log_is_ahead_ && !context_.error_style.live) return;  // the next status is the next line
    // The time is for terminals only: in a file there would be a new line each second.
    context_.terminal.write_error(block_.show(
        headline_of(job, log_is_ahead_, context_.error_style.live, context_.clock.now()), moving));
  }

  CommandContext& context_;
  const std::string name_;
  StatusBlock block_;
  const std::unique_ptr<LogFollower> log_;
  bool has_printed_ = false;
  bool is_fresh_ = false;      // the job was fetched after the log was last read
  bool has_begun_ = false;     // the job had begun when it was last fetched
  bool log_is_ahead_ = false;  // the log is newer than the status of the job
};

}  // namespace

Result<int> submit_command(CommandContext& context, const Arguments& arguments) {
  const std::string& path = arguments.operands[0];
  const std::string text = TRY(os::read_file(path, kRequestBytesMax).in("reading the request"));
  const std::filesystem::path file(path);
  auto submission = TRY(
      read_submission(
          text, {file.filename().string(), context.client.settings().region, context.clock.now()},
          arguments.value("--name"))
          .in(path));
  TRY(check_instance_types(submission.request).in(path));
  // Relative paths are relative to the file's directory.
  for (Upload& upload : submission.uploads)
    if (!upload.path.starts_with('/'))
      upload.path = (file.parent_path() / upload.path).lexically_normal().string();
  const auto plan = TRY(plan_uploads(submission));
  const bool dry_run = arguments.has("--dry-run");
  if (auto added = add_role(context, submission.request); !added) {
    if (!dry_run || added.error().kind != Kind::unavailable) return added.error();
    context.terminal.write_error("trainyard: RoleArn is left out: " + added.error().message + "\n");
  }
  if (dry_run) {
    TRY(context.terminal.write(dump(submission.request, 2) + "\n"));
    for (const Upload& upload : submission.uploads)
      context.terminal.write_error("would upload " + upload.path + " to s3://" + upload.bucket +
                                   "/" + upload.prefix +
                                   (upload.entry.empty() ? "" : kSourceArchive) + "\n");
    return 0;
  }
  const std::string name = TRY(string_at(submission.request, "TrainingJobName"));
  if (arguments.has("--preview")) {
    const Json answer = TRY(context.client.call(
        Service::trainyard, "PreviewJob",
        {{"TrainingJobRequest", dump(submission.request)}, {"WithChanges", true}}));
    TRY(context.terminal.write(preview_page(context.style, name, answer, context.clock.now())));
    return 0;
  }
  if (!plan.empty()) {
    context.terminal.watch_interrupts();
    TRY(upload_all(context, plan));
  } else if (const auto output = objects::parse_s3_uri(
                 submission.request["OutputDataConfig"].value("S3OutputPath", ""));
             output && !submission.request.contains("InputDataConfig")) {
    // A job without inputs may have a new bucket for its output, which is created here.
    auto store = TRY(context.open_objects());
    TRY(ensure_bucket(context, *store, output->bucket).in("the bucket " + output->bucket));
  }
  TRY(context.client.call(Service::sagemaker, "CreateTrainingJob", submission.request));
  if (!arguments.has("--follow")) {
    TRY(context.terminal.write(name + "\n"));
    context.terminal.write_error("trainyard: submitted; `trainyard logs -f " + name +
                                 "` follows it\n");
    return 0;
  }
  auto log = TRY(follow_log(context.client, TRY(fetch_job(context, name)), {}));
  return Follower(context, name, std::move(log)).run();
}

}  // namespace trainyard::cli
