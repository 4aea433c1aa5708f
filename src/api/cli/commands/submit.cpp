// `trainyard submit`: uploads local files, sends the request, and with --follow shows the job until
// it ends.
#include <array>
#include <filesystem>
#include <fstream>

#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/log_follower.hpp"
#include "cli/request_file.hpp"
#include "cli/source_archive.hpp"
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
  uint32_t mode = 0644;
  int64_t modified = 0;  // seconds since 1970
};

// "channel train" or "code", as an error names the place of local files.
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
  if (files.empty()) return invalid(place_of(upload) + ": " + upload.path + " holds no files");
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
  return files;
}

// Errors: not_found, if the sources have no entry.
Result<void> check_sources(const Upload& upload, const std::vector<LocalFile>& files) {
  std::vector<std::string> names;
  int64_t bytes = 0;
  for (const LocalFile& file : files) names.push_back(file.key), bytes += file.bytes;
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
Result<std::vector<PlannedUpload>> plan_uploads(const std::vector<Upload>& uploads) {
  std::vector<PlannedUpload> plan;
  for (const Upload& upload : uploads) {
    auto files = TRY(files_of(upload));
    if (!upload.entry.empty()) TRY(check_sources(upload, files));
    plan.push_back({upload, std::move(files)});
  }
  return plan;
}

// Calls `take` with the content of a file, chunk by chunk.
Result<void> read_chunks(const LocalFile& file,
                         const std::function<Result<void>(std::string_view)>& take) {
  std::ifstream in(file.path, std::ios::binary);
  if (!in) return from_errno("opening " + file.path);
  std::string chunk(kChunkBytes, '\0');
  while (in) {
    in.read(chunk.data(), std::streamsize(chunk.size()));
    const auto got = size_t(in.gcount());
    if (got == 0) break;
    TRY(take({chunk.data(), got}));
  }
  if (in.bad()) return unavailable("reading " + file.path + " failed");
  return {};
}

using Moved = std::function<Result<void>(int64_t)>;  // takes the number of bytes just uploaded

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

Result<void> ensure_bucket(World& world, objects::Objects& store, const std::string& bucket) {
  const auto there = store.head_bucket(bucket);
  if (there) return {};
  if (there.error().kind != Kind::not_found) return there.error();
  auto made = store.create_bucket(bucket, world.client.settings().region);
  if (!made && made.error().kind == Kind::conflict) return {};
  return made;
}

Result<void> upload_all(World& world, const std::vector<PlannedUpload>& plan) {
  auto store = TRY(world.open_objects());
  StatusBlock block(world.looks);
  std::vector<ProgressView> progress;
  for (const PlannedUpload& each : plan) {
    const Upload& upload = each.upload;
    TRY(ensure_bucket(world, *store, upload.bucket).in("the bucket " + upload.bucket));
    ProgressView& mine = progress.emplace_back();
    mine.what = "upload " + upload.channel;
    for (const auto& file : each.files) mine.total_bytes += file.bytes;
    const auto draw = [&]() -> Result<void> {
      TRY(world.terminal.write(block.show("", progress)));
      if (world.terminal.wait(0ms, false, -1).interrupted)
        return cancelled("nothing was submitted");
      return {};
    };
    const Moved moved = [&](int64_t bytes) {
      mine.done_bytes += bytes;
      return draw();
    };
    // Errors name the file, or the directory of sources.
    const auto finish = [&](Result<void> done, const std::string& path) -> Result<void> {
      if (done) return {};
      if (done.error().kind == Kind::cancelled) TRY(world.terminal.write(block.clear()));
      return Error(done.error()).in("uploading " + path);
    };
    TRY(draw());
    if (!upload.entry.empty())
      TRY(finish(upload_sources(*store, each, moved), upload.path));
    else
      for (const auto& file : each.files)
        TRY(finish(upload_file(*store, upload, file, moved), file.path));
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
  const auto plan = TRY(plan_uploads(submission.uploads));
  if (arguments.has("--dry-run")) {
    TRY(world.terminal.write(dump(submission.request, 2) + "\n"));
    for (const Upload& upload : submission.uploads)
      world.terminal.write_error("would upload " + upload.path + " to s3://" + upload.bucket + "/" +
                                 upload.prefix + (upload.entry.empty() ? "" : kSourceArchive) +
                                 "\n");
    return 0;
  }
  const std::string name = TRY(string_at(submission.request, "TrainingJobName"));
  if (!plan.empty()) {
    world.terminal.watch_interrupts();
    TRY(upload_all(world, plan));
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
