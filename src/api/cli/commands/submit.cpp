// `trainyard submit`: uploads local files, sends the request, and with --follow shows the job until
// it ends.
#include <array>
#include <filesystem>
#include <fstream>

#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/log_follower.hpp"
#include "cli/request_file.hpp"
#include "cli/status_block.hpp"
#include "os/files.hpp"

namespace trainyard::cli {
namespace {

using client::Service;

constexpr size_t kFileBytesMax = 4 << 20;      // of the request
constexpr size_t kUploadFilesMax = 1'000'000;  // of one channel
constexpr size_t kChunkBytes = 1 << 20;        // read before the progress is drawn again
constexpr Duration kFollowInterval = 500ms;
constexpr Duration kQuestionWait = 15s;  // for the answer whether to stop the job

struct LocalFile {
  std::string path;
  std::string key;  // below the upload's prefix
  int64_t bytes = 0;
};

// Lists regular files in the order of their names. Follows links, and skips hidden files in
// directories.
Result<std::vector<LocalFile>> files_of(const Upload& upload) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<LocalFile> files;
  const fs::path root(upload.path);
  const auto status = fs::status(root, error);
  if (error || status.type() == fs::file_type::not_found)
    return not_found("channel " + upload.channel + ": " + upload.path + " not found");
  if (fs::is_regular_file(status)) {
    files.push_back({upload.path, root.filename().string(), int64_t(fs::file_size(root, error))});
    return files;
  }
  if (!fs::is_directory(status))
    return invalid("channel " + upload.channel + ": " + upload.path +
                   " is neither a file nor a directory");
  for (auto at = fs::recursive_directory_iterator(root, error);
       !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    if (at->path().filename().string().starts_with('.')) {
      at.disable_recursion_pending();
      continue;
    }
    std::error_code of_file;
    if (!at->is_regular_file(of_file)) continue;
    files.push_back({at->path().string(), at->path().lexically_relative(root).generic_string(),
                     int64_t(at->file_size(of_file))});
    if (files.size() > kUploadFilesMax)
      return exhausted("channel " + upload.channel + " has more than " +
                       std::to_string(kUploadFilesMax) + " files");
  }
  if (error) return unavailable("reading " + upload.path + ": " + error.message());
  if (files.empty())
    return invalid("channel " + upload.channel + ": " + upload.path + " holds no files");
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
  return files;
}

Result<void> upload_file(objects::Objects& store, const Upload& upload, const LocalFile& file,
                         const std::function<Result<void>(int64_t)>& moved) {
  std::ifstream in(file.path, std::ios::binary);
  if (!in) return from_errno("opening " + file.path);
  auto writer = TRY(store.put(upload.bucket, upload.prefix + file.key));
  std::string chunk(kChunkBytes, '\0');
  while (in) {
    in.read(chunk.data(), std::streamsize(chunk.size()));
    const auto got = size_t(in.gcount());
    if (got == 0) break;
    TRY(writer->write({chunk.data(), got}));
    TRY(moved(int64_t(got)));
  }
  if (in.bad()) return unavailable("reading " + file.path + " failed");
  TRY(writer->commit());
  return {};
}

Result<void> ensure_bucket(World& world, objects::Objects& store, const std::string& bucket) {
  const auto there = store.head_bucket(bucket);
  if (there) return {};
  if (there.error().kind != Kind::not_found) return there.error();
  auto made = store.create_bucket(bucket, world.client.settings().region);
  if (!made && made.error().kind == Kind::conflict) return {};
  return made;
}

Result<void> upload_all(World& world, const std::vector<Upload>& uploads) {
  auto store = TRY(world.open_objects());
  StatusBlock block(world.looks);
  std::vector<ProgressView> progress;
  for (const Upload& upload : uploads) {
    const auto files = TRY(files_of(upload));
    TRY(ensure_bucket(world, *store, upload.bucket).in("the bucket " + upload.bucket));
    ProgressView& mine = progress.emplace_back();
    mine.what = "upload " + upload.channel;
    for (const auto& file : files) mine.total_bytes += file.bytes;
    const auto draw = [&]() -> Result<void> {
      TRY(world.terminal.write(block.show("", progress)));
      if (world.terminal.wait(0ms, false, -1).interrupted)
        return cancelled("nothing was submitted");
      return {};
    };
    TRY(draw());
    for (const auto& file : files) {
      const auto done = upload_file(*store, upload, file, [&](int64_t bytes) {
        mine.done_bytes += bytes;
        return draw();
      });
      if (!done && done.error().kind == Kind::cancelled) TRY(world.terminal.write(block.clear()));
      if (!done) return Error(done.error()).in("uploading " + file.path);
    }
    mine.finished = true;
    TRY(draw());
  }
  return {};
}

std::string headline_of(const JobView& job, Instant now) {
  std::string text = job.name + "  " + job.status;
  if (!job.secondary_status.empty() && job.secondary_status != job.status)
    text += " " + job.secondary_status;
  if (!job.wait_reason.empty()) text += ": " + job.wait_reason;
  // The time is for terminals only: in a file there would be a new line each second.
  if (job.started) text += "  " + duration_text(job.ended.value_or(now) - *job.started);
  return text;
}

// Lets the user decide whether to stop the job; without an answer it continues.
Result<int> leave(World& world, const std::string& name) {
  const std::string stays = "trainyard: " + name + " goes on; `trainyard logs -f " + name +
                            "` follows it again, `trainyard stop " + name + "` ends it\n";
  if (!world.looks.live || !world.terminal.shape().input) {
    world.terminal.write_error(stays);
    return kExitInterrupted;
  }
  world.terminal.write_error("\nStop the job? [s = stop it, Enter = let it go on without you] ");
  const auto answer = world.terminal.wait(kQuestionWait, true, -1);
  if (!answer.interrupted && trim(answer.input).starts_with("s")) {
    TRY(call_about(world, name, Service::sagemaker, "StopTrainingJob",
                   {{"TrainingJobName", name}}));
    world.terminal.write_error("trainyard: " + name + " is stopping\n");
    return kExitJobStopped;
  }
  world.terminal.write_error("\n" + stays);
  return kExitInterrupted;
}

Result<int> follow(World& world, const std::string& name) {
  world.terminal.watch_interrupts();
  StatusBlock block(world.looks);
  const auto log = TRY(follow_log(world.client, TRY(fetch_job(world, name)), {}));
  for (;;) {
    const auto shape = world.terminal.shape();
    if (shape.columns > 0) world.looks.columns = shape.columns;
    const JobView job = TRY(fetch_job(world, name));
    const Instant now = world.clock.now();
    TRY(log->round(job.finished(), [&](const std::vector<LogLine>& lines) {
      std::string text;
      for (const LogLine& line : lines) text += log_line(world.looks, line, log->widest());
      return world.terminal.write(block.scroll(text));
    }));
    if (job.finished()) {
      TRY(world.terminal.write(block.clear()));
      std::string words = paint(world.looks, paint_of_status(job.status), job.status);
      if (job.started) words += " after " + duration_text(job.ended.value_or(now) - *job.started);
      if (const auto cost = cost_text(job); !cost.empty()) words += ", " + cost;
      if (!job.failure_reason.empty()) words += ": " + job.failure_reason;
      TRY(world.terminal.write(job.name + " " + words + "\n"));
      return exit_code_of(job.status);
    }
    std::string headline = headline_of(job, now);
    if (!world.looks.live) headline = job.name + "  " + job.status + " " + job.secondary_status;
    std::vector<ProgressView> moving;
    for (const auto& one : job.progress)
      if (!one.finished || !world.looks.live) moving.push_back(one);
    TRY(world.terminal.write(block.show(headline, moving)));
    if (world.terminal.wait(kFollowInterval, false, -1).interrupted) {
      TRY(world.terminal.write(block.clear()));
      return leave(world, name);
    }
  }
}

}  // namespace

Result<int> submit_command(World& world, const Arguments& arguments) {
  const std::string& path = arguments.operands[0];
  const std::string text = TRY(os::read_file(path, kFileBytesMax).in("reading the request"));
  const std::filesystem::path file(path);
  auto submission =
      TRY(read_submission(
              text, {file.filename().string(), world.client.settings().region, world.clock.now()},
              arguments.value("--name"))
              .in(path));
  // Relative paths are relative to the file's directory.
  for (Upload& upload : submission.uploads)
    if (!upload.path.starts_with('/')) upload.path = (file.parent_path() / upload.path).string();
  if (arguments.has("--dry-run")) {
    TRY(world.terminal.write(dump(submission.request, 2) + "\n"));
    for (const Upload& upload : submission.uploads)
      world.terminal.write_error("would upload " + upload.path + " to s3://" + upload.bucket + "/" +
                                 upload.prefix + "\n");
    return 0;
  }
  const std::string name = TRY(string_at(submission.request, "TrainingJobName"));
  if (!submission.uploads.empty()) {
    world.terminal.watch_interrupts();
    TRY(upload_all(world, submission.uploads));
  } else if (const auto output = objects::parse_s3_uri(
                 submission.request["OutputDataConfig"].value("S3OutputPath", ""));
             output && !submission.request.contains("InputDataConfig")) {
    // A job without inputs may have a new bucket for its output, which is created here.
    auto store = TRY(world.open_objects());
    TRY(ensure_bucket(world, *store, output->bucket).in("the bucket " + output->bucket));
  }
  TRY(world.client.call(Service::sagemaker, "CreateTrainingJob", submission.request));
  if (!arguments.has("--follow")) {
    TRY(world.terminal.write(name + "\n"));
    world.terminal.write_error("trainyard: submitted; `trainyard logs -f " + name +
                               "` follows it\n");
    return 0;
  }
  return follow(world, name);
}

}  // namespace trainyard::cli
