#include "log_routing/exports.hpp"

#include <algorithm>

#include "base/log.hpp"
#include "log_routing/gzip.hpp"

namespace trainyard::log_routing {
namespace {

constexpr size_t kPieceBytes = 4 << 20;  // of text before each compression
constexpr size_t kExportPageEvents = 10'000;

bool is_active(ExportState state) {
  return state == ExportState::pending || state == ExportState::running;
}

std::string object_key(const ExportRequest& request, const std::string& id, std::string stream) {
  std::ranges::replace(stream, '/', '-');
  return request.prefix + "/" + id + "/" + stream + "/000000.gz";
}

// A StreamObject is the object of one stream, which is created with the first event.
class StreamObject {
 public:
  StreamObject(objects::Objects& objects, const ExportRequest& request, std::string key)
      : objects_(objects), request_(request), key_(std::move(key)) {}

  Result<void> add(const observe::LogEvent& event) {
    text_ += to_iso8601(event.at) + " " + event.message + "\n";
    return text_.size() < kPieceBytes ? ok() : write();
  }
  Result<void> finish() {
    if (!text_.empty()) TRY(write());
    if (writer_) TRY(writer_->commit());
    return ok();
  }

 private:
  Result<void> write() {
    if (!writer_)
      writer_ =
          TRY(objects_.put(request_.bucket, key_,
                           {.content_type = "application/gzip", .owner = request_.principal}));
    const std::string bytes = gzip(text_);
    text_.clear();
    return writer_->write(bytes);
  }

  objects::Objects& objects_;
  const ExportRequest& request_;
  const std::string key_;
  std::string text_;
  std::unique_ptr<objects::Writer> writer_;
};

}  // namespace

struct Exports::Task {
  ExportReport report;  // read and written with the lock of Exports, except for its request
  std::atomic<bool> stop = false;
};

Exports::Exports(observe::Logs& logs, objects::Objects& objects, Clock& clock, Random& random)
    : logs_(logs), objects_(objects), clock_(clock), random_(random), thread_([this] { work(); }) {}

Exports::~Exports() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    for (const auto& task : tasks_) task->stop = true;
    changed_.notify_all();
  }
  thread_.join();
}

Result<std::string> Exports::start(ExportRequest request) {
  auto task = std::make_shared<Task>();
  const MutexLock lock(mutex_);
  for (const auto& each : tasks_)
    if (each->report.request.region == request.region && is_active(each->report.state))
      return exhausted("Resource limit exceeded.");
  task->report.id = random_.uuid();
  task->report.request = std::move(request);
  task->report.created = clock_.now();
  task->report.message = "Task is pending";
  const std::string id = task->report.id;
  tasks_.push_back(std::move(task));
  if (tasks_.size() > kExportsKept && !is_active(tasks_.front()->report.state)) tasks_.pop_front();
  changed_.notify_all();
  return id;
}

void Exports::wait(const std::string& id, Duration at_most) {
  MutexLock lock(mutex_);
  changed_.wait_for(lock, at_most, [&]() REQUIRES(mutex_) {
    return stopping_ || std::ranges::none_of(tasks_, [&](const auto& task) {
             return task->report.id == id && is_active(task->report.state);
           });
  });
}

std::vector<ExportReport> Exports::list(const std::string& region) {
  const MutexLock lock(mutex_);
  std::vector<ExportReport> reports;
  for (auto task = tasks_.rbegin(); task != tasks_.rend(); ++task)
    if ((*task)->report.request.region == region) reports.push_back((*task)->report);
  return reports;
}

Result<bool> Exports::cancel(const std::string& region, const std::string& id) {
  const MutexLock lock(mutex_);
  const auto found = std::ranges::find_if(tasks_, [&](const auto& task) {
    return task->report.id == id && task->report.request.region == region;
  });
  if (found == tasks_.end()) return not_found("unknown export task '" + id + "'");
  ExportReport& report = (*found)->report;
  if (!is_active(report.state)) return false;
  (*found)->stop = true;
  report.state = ExportState::cancelled;
  report.message = "Task was cancelled";
  report.ended = clock_.now();
  changed_.notify_all();
  return true;
}

void Exports::work() {
  for (;;) {
    std::shared_ptr<Task> task;
    {
      MutexLock lock(mutex_);
      changed_.wait(lock, [&]() REQUIRES(mutex_) {
        for (const auto& each : tasks_)
          if (!task && each->report.state == ExportState::pending) task = each;
        return stopping_ || task;
      });
      if (stopping_) return;
      task->report.state = ExportState::running;
      task->report.message = "Task is active";
    }
    const auto done = run(*task);
    const MutexLock lock(mutex_);
    if (task->report.state == ExportState::running) {
      task->report.state = done ? ExportState::completed : ExportState::failed;
      task->report.message = done ? "Completed successfully" : done.error().message;
      task->report.ended = clock_.now();
      if (!done)
        log(Level::warning, "log_routing", "an export task failed",
            {{"task", task->report.id}, {"why", done.error().message}});
    }
    changed_.notify_all();
  }
}

Result<void> Exports::run(Task& task) {
  const ExportRequest& request = task.report.request;
  for (const auto& stream :
       TRY(logs_.streams(request.region, request.group, request.stream_prefix))) {
    StreamObject object(objects_, request, object_key(request, task.report.id, stream.name));
    observe::ReadQuery query{.from = from_milliseconds(request.from),
                             .to = from_milliseconds(request.to) + 1ms,
                             .events_max = kExportPageEvents};
    for (;;) {
      if (task.stop) return cancelled("the task was stopped");
      const auto page = TRY(logs_.read({request.region, request.group, stream.name}, query));
      for (const auto& event : page.events) TRY(object.add(event));
      if (page.events.empty()) break;  // an empty page is the end of the stream
      query.position = page.end;
    }
    TRY(object.finish());
  }
  return ok();
}

}  // namespace trainyard::log_routing
