#include "file_systems/loop.hpp"

#include <algorithm>
#include <utility>

#include "base/arithmetic.hpp"
#include "base/log.hpp"
#include "base/text.hpp"

namespace trainyard::file_systems {
namespace {

constexpr size_t kWorkersMax = 16;        // file systems at a time; each exchange adds threads
constexpr size_t kRemovalsMax = 2;        // removals at a time: the disk is the bottleneck
constexpr Duration kInterval = 1s;        // between plans if the loop is not woken
constexpr Duration kRetryInterval = 5s;   // after a temporary fault
constexpr size_t kFailureBytesMax = 250;  // AWS's FailureDetails has at most 256 characters
constexpr size_t kLeftOutLogged = 100;    // lines of one import; the total is logged, too

// A file system or an association fails after this number of attempts that complete no further
// file: after five minutes, if each ends at once.
constexpr int kIdleAttemptsMax = 60;

uint64_t bytes_of(int64_t gib) {
  return checked_mul<uint64_t>(uint64_t(gib), uint64_t{1} << 30).value_or(UINT64_MAX);
}

// Leaves out keys that are not valid paths, as AWS does, and names them in the log and in the text
// that DescribeFileSystems shows. Errors: invalid, if other objects could not be imported.
Result<std::string> left_out_of(const std::string& subject, const ExchangeResult& result) {
  if (result.failed == 0) return std::string();
  const std::string counts =
      std::to_string(result.failed) + " of " + std::to_string(result.total) + " objects ";
  if (result.failed > result.misnamed) {
    // Misnamed keys come first.
    const size_t other = std::min(size_t(result.misnamed), result.failures.size() - 1);
    return invalid(counts + "could not be imported: " + result.failures[other].why);
  }
  for (size_t i = 0; i < std::min(result.failures.size(), kLeftOutLogged); ++i)
    log(Level::warning, "file_systems", "an object was left out of an import",
        {{"of", subject}, {"why", result.failures[i].why}});
  return counts + "were left out: " + summary_of(result.failures);
}

// A job may be created while the deletion is committed, and hosts of an ended job unmount later.
// Files are removed after all of them.
bool is_mounted(const JobsOn& jobs) { return jobs.unfinished + jobs.finished > 0; }

ImportMode mode_of(AutoImport automatic) {
  return automatic == AutoImport::added ? ImportMode::added : ImportMode::added_changed;
}

}  // namespace

FileSystemLoop::FileSystemLoop(FileSystems& all, objects::Objects& objects, Clock& clock)
    : all_(all), objects_(objects), clock_(clock) {
  pool_.emplace(kWorkersMax);
  removals_.emplace(kRemovalsMax);
  thread_ = std::thread([this] { run(); });
}

FileSystemLoop::~FileSystemLoop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  all_.wake();
  thread_.join();
  pool_.reset();  // waits for running work, which reads stopping_
  removals_.reset();
}

void FileSystemLoop::run() {
  for (;;) {
    std::vector<Work> begun;
    if (all_.settings().why_not().empty()) {
      const auto present = all_.snapshot();
      const Instant now = clock_.now();
      const MutexLock lock(mutex_);
      begun = plan_work(*present, busy_, imported_, now);
      std::erase_if(begun, [&](const Work& work) REQUIRES(mutex_) {
        const bool removal = work.kind == WorkKind::remove;
        const auto retry = retries_.find(work.file_system);
        // A removal does not wait for the retry of other work.
        if (retry != retries_.end() && now < retry->second.at &&
            (!removal || retry->second.kind == WorkKind::remove))
          return true;
        if (removal) return is_mounted(all_.jobs_on(work.file_system));
        if (running_ == kWorkersMax) return true;
        ++running_;
        return false;
      });
      for (const Work& work : begun) {
        busy_.insert(work.file_system);
        if (work.kind == WorkKind::import_changes) imported_[work.file_system] = now;
      }
    }
    for (Work& work : begun) begin(std::move(work));
    all_.wait(kInterval);
    const MutexLock lock(mutex_);
    if (stopping_) return;
  }
}

bool FileSystemLoop::ends(const Work& work) const {
  {
    const MutexLock lock(mutex_);
    if (stopping_) return true;
  }
  return !all_.settings().why_not().empty() || is_cancelled(*all_.snapshot(), work);
}

void FileSystemLoop::begin(Work work) {
  const auto progress = std::make_shared<Progress>();
  const std::string shown = work.subject.empty() ? work.file_system : work.subject;
  all_.set_progress(shown, progress);
  const auto end = [this, work, shown] {
    all_.set_progress(shown, nullptr);
    {
      const MutexLock lock(mutex_);
      busy_.erase(work.file_system);
      if (work.kind != WorkKind::remove) --running_;
    }
    all_.wake();
  };
  const bool given =
      (work.kind == WorkKind::remove ? removals_ : pool_)->run([this, work, progress, end] {
        act(work, *progress);
        end();
      });
  if (!given) end();
}

// Does the work, unless it was cancelled meanwhile or no longer matches its record.
void FileSystemLoop::act(const Work& work, Progress& progress) {
  Result<void> done = cancelled("the work was cancelled");
  const auto present = all_.snapshot();
  const auto of = present->file_systems.find(work.file_system);
  try {
    if (of != present->file_systems.end() && (work.kind == WorkKind::run_task || !ends(work)))
      done = act_on(work, of->second, progress);
  } catch (const std::exception& fault) {
    done = internal("the work threw: " + std::string(fault.what()));
  }
  const MutexLock lock(mutex_);
  if (done) {
    retries_.erase(work.file_system);
    attempts_.erase(work.file_system);
    return;
  }
  retries_[work.file_system] = {work.kind, clock_.now() + kRetryInterval};
  if (done.error().kind == Kind::cancelled) return;
  log(Level::warning, "file_systems", "work on a file system failed",
      {{"file_system", work.file_system},
       {"work", std::string(kWorkKinds.text(work.kind))},
       {"subject", work.subject},
       {"why", done.error().message}});
}

Result<void> FileSystemLoop::act_on(const Work& work, const LustreFileSystem& of,
                                    Progress& progress) {
  switch (work.kind) {
    case WorkKind::fill:
      return fill(work, of, progress);
    case WorkKind::remove:
      return remove(work);
    case WorkKind::link:
      return link(work, of, progress);
    case WorkKind::unlink:
      return unlink(work, of);
    case WorkKind::run_task:
      return run_task(work, of, progress);
    case WorkKind::import_changes:
      return import_changes(work, of, progress);
  }
  return {};
}

// Returns true if another attempt may succeed without a change of the request.
bool FileSystemLoop::is_retried(const Work& work, const Error& error, const Progress& progress) {
  if (error.kind == Kind::cancelled) return true;
  if (error.kind != Kind::unavailable) return false;
  const MutexLock lock(mutex_);
  Attempts& attempts = attempts_[work.file_system];
  // Bytes do not count as progress: a file that fails at each attempt would be retried forever.
  const bool further = progress.files_done > attempts.files_done;
  attempts = {further ? 1 : attempts.idle + 1,
              std::max(attempts.files_done, progress.files_done.load())};
  return attempts.idle < kIdleAttemptsMax;
}

Result<Content> FileSystemLoop::open_content(const LustreFileSystem& of, bool unfinished) const {
  const Settings& settings = all_.settings();
  return Content::open(settings.root, of.id, settings.boot, unfinished,
                       domain::posix_user_of(settings.posix_users, of.creator));
}

Exchange FileSystemLoop::exchange_of(const Work& work, const LustreFileSystem& of,
                                     const Content& content, Progress& progress) const {
  return {objects_,
          content,
          progress,
          [this, work] { return ends(work); },
          all_.settings().check_disk_space,
          bytes_of(of.capacity_gib),
          work.kind == WorkKind::fill || work.kind == WorkKind::link};
}

Result<void> FileSystemLoop::fill(const Work& work, const LustreFileSystem& of,
                                  Progress& progress) {
  const auto filled = [&]() -> Result<std::string> {
    const Content content = TRY(open_content(of, true));
    if (of.import_path.empty()) return std::string();
    const auto repository = TRY(parse_repository(of.import_path));
    const Link link{"", repository};
    const Exchange exchange = exchange_of(work, of, content, progress);
    return left_out_of(work.file_system, TRY(import_objects(exchange, link, {}, ImportMode::all)));
  }();
  if (!filled && is_retried(work, filled.error(), progress)) return filled.error();
  TRY(all_.change([&](Snapshot& next) -> Result<void> {
    const auto found = next.file_systems.find(work.file_system);
    if (found == next.file_systems.end() || found->second.lifecycle != Lifecycle::creating)
      return {};
    found->second.lifecycle = filled ? Lifecycle::available : Lifecycle::failed;
    found->second.failure = shorten(filled ? *filled : filled.error().message, kFailureBytesMax);
    return {};
  }));
  if (filled)
    log(Level::info, "file_systems", "a file system is available",
        {{"file_system", work.file_system},
         {"files", std::to_string(progress.files_done)},
         {"bytes", std::to_string(progress.bytes_done)}});
  if (!filled) return filled.error();
  return {};
}

Result<void> FileSystemLoop::link(const Work& work, const LustreFileSystem& of,
                                  Progress& progress) {
  const auto present = all_.snapshot();
  const auto found = present->associations.find(work.subject);
  if (found == present->associations.end()) return {};
  const Association& each = found->second;
  const auto linked = [&]() -> Result<std::string> {
    const auto repository = TRY(parse_repository(each.repository));
    const Link link{each.path, repository};
    TRY(objects_.head_bucket(link.repository.bucket));
    const Content content = TRY(open_content(of, false));
    TRY(content.make_directory(each.path));
    if (!each.import_on_create) return std::string();
    return left_out_of(work.subject, TRY(import_objects(exchange_of(work, of, content, progress),
                                                        link, {}, ImportMode::all)));
  }();
  if (!linked && is_retried(work, linked.error(), progress)) return linked.error();
  TRY(all_.change([&](Snapshot& next) -> Result<void> {
    const auto at = next.associations.find(work.subject);
    if (at == next.associations.end() || at->second.lifecycle != Lifecycle::creating) return {};
    at->second.lifecycle = linked ? Lifecycle::available : Lifecycle::failed;
    at->second.failure = shorten(linked ? *linked : linked.error().message, kFailureBytesMax);
    return {};
  }));
  if (!linked) return linked.error();
  return {};
}

Result<void> FileSystemLoop::unlink(const Work& work, const LustreFileSystem& of) {
  const auto present = all_.snapshot();
  const auto found = present->associations.find(work.subject);
  if (found == present->associations.end()) return {};
  if (found->second.delete_files) {
    const Content content = TRY(open_content(of, false));
    TRY(content.remove_below(found->second.path,
                             {.cancelled = [this, work] { return ends(work); }}));
  }
  return all_.change([&](Snapshot& next) -> Result<void> {
    next.associations.erase(work.subject);
    return {};
  });
}

// Removes the file system and its associations; its tasks are kept, as on AWS.
Result<void> FileSystemLoop::remove(const Work& work) {
  const std::string region = region_of(work.file_system);
  const std::string id = work.file_system.substr(region.size() + 1);
  TRY(remove_content(all_.settings().root, id).in("removing file system " + id));
  TRY(all_.change([&](Snapshot& next) -> Result<void> {
    next.file_systems.erase(work.file_system);
    std::erase_if(next.associations, [&](const auto& each) {
      return each.second.file_system == id && region_of(each.first) == region;
    });
    return {};
  }));
  {
    const MutexLock lock(mutex_);
    imported_.erase(work.file_system);
    std::erase_if(left_out_,
                  [&](const auto& each) { return each.first.starts_with(work.file_system + "/"); });
  }
  log(Level::info, "file_systems", "a file system was deleted",
      {{"file_system", work.file_system}});
  return {};
}

Result<ExchangeResult> FileSystemLoop::exchange_files(const Work& work, const RepositoryTask& task,
                                                      const LustreFileSystem& of,
                                                      Progress& progress) {
  const auto present = all_.snapshot();
  const Content content = TRY(open_content(of, false));
  const Exchange exchange = exchange_of(work, of, content, progress);
  const auto imports = links_of(*present, work.file_system, TaskKind::import_files);
  if (task.kind == TaskKind::export_files)
    return export_files(exchange, links_of(*present, work.file_system, TaskKind::export_files),
                        imports, task.paths);
  ExchangeResult all;
  for (const Link& link : imports) {
    if (!task.paths.empty() && std::ranges::none_of(task.paths, [&](const auto& path) {
          return overlap(path, link.path);
        }))
      continue;
    auto result = TRY(import_objects(exchange, link, task.paths, ImportMode::all));
    all.total += result.total;
    all.succeeded += result.succeeded;
    all.failed += result.failed;
    std::ranges::move(result.failures, std::back_inserter(all.failures));
  }
  return all;
}

Result<void> FileSystemLoop::run_task(const Work& work, const LustreFileSystem& of,
                                      Progress& progress) {
  RepositoryTask task;
  TRY(all_.change([&](Snapshot& next) -> Result<void> {
    const auto found = next.tasks.find(work.subject);
    if (found == next.tasks.end()) return cancelled("the task was removed");
    if (found->second.state == TaskState::pending) found->second.state = TaskState::executing;
    if (!found->second.started) found->second.started = clock_.now();
    found->second.updated = clock_.now();
    task = found->second;
    return {};
  }));
  auto result = task.state == TaskState::canceling
                    ? Result<ExchangeResult>(cancelled("the task was cancelled"))
                    : exchange_files(work, task, of, progress);
  std::string failure;
  if (result && result->failed > 0) failure = summary_of(result->failures);
  if (result && !task.report.empty())
    if (const auto written = write_report(objects_, task, *result); !written)
      failure = written.error().message;
  if (!result) {
    // The server stops; the next one continues.
    if (result.error().kind == Kind::cancelled && !is_cancelled(*all_.snapshot(), work))
      return result.error();
    failure = result.error().message;
  }
  return all_.change([&](Snapshot& next) -> Result<void> {
    const auto found = next.tasks.find(work.subject);
    if (found == next.tasks.end()) return {};
    RepositoryTask& each = found->second;
    const bool canceled = each.state == TaskState::canceling;
    each.state = canceled          ? TaskState::canceled
                 : failure.empty() ? TaskState::succeeded
                                   : TaskState::failed;
    each.failure = canceled ? "" : shorten(failure, kFailureBytesMax);
    each.total = result ? result->total : progress.files.load();
    each.succeeded = result ? result->succeeded : progress.files_done.load();
    each.failed = result ? result->failed : progress.files_failed.load();
    each.ended = each.updated = clock_.now();
    return {};
  });
}

void FileSystemLoop::log_left_out(const std::string& file_system, const Link& link,
                                  const ExchangeResult& result) {
  const std::string why =
      result.failed == 0 ? "" : std::to_string(result.failed) + ": " + summary_of(result.failures);
  {
    const MutexLock lock(mutex_);
    std::string& last = left_out_[file_system + "/" + link.path];
    if (last == why) return;
    last = why;
  }
  if (!why.empty())
    log(Level::warning, "file_systems", "an automatic import left objects out",
        {{"file_system", file_system}, {"directory", "/" + link.path}, {"why", why}});
}

Result<void> FileSystemLoop::import_changes(const Work& work, const LustreFileSystem& of,
                                            Progress& progress) {
  const auto present = all_.snapshot();
  const Content content = TRY(open_content(of, false));
  const Exchange exchange = exchange_of(work, of, content, progress);
  std::vector<std::pair<Link, AutoImport>> links;
  if (of.auto_import != AutoImport::none) {
    auto repository = TRY(parse_repository(of.import_path));
    links.push_back({{"", std::move(repository)}, of.auto_import});
  }
  for (const auto& [key, each] : present->associations)
    if (each.file_system == of.id && region_of(key) == region_of(work.file_system) &&
        each.lifecycle == Lifecycle::available && each.auto_import != AutoImport::none) {
      auto repository = TRY(parse_repository(each.repository));
      links.push_back({{each.path, std::move(repository)}, each.auto_import});
    }
  for (const auto& [link, automatic] : links) {
    const auto result = TRY(import_objects(exchange, link, {}, mode_of(automatic)));
    log_left_out(work.file_system, link, result);
  }
  return {};
}

}  // namespace trainyard::file_systems
