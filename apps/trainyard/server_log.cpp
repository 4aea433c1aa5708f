#include "trainyard/server_log.hpp"

#include <cstdio>
#include <string>

#include "base/text.hpp"

namespace trainyard::apps {
namespace {

// Removes the time and the level from the start of a line; they are stored separately.
std::string_view message_of(std::string_view line) {
  for (int word = 0; word < 2; ++word) {
    const size_t blank = line.find(' ');
    if (blank == std::string_view::npos) return line;
    line.remove_prefix(blank + 1);
  }
  return line;
}

}  // namespace

Result<void> ServerLog::open(const os::LogFileSettings& settings) {
  std::shared_ptr<os::LogFile> file =
      TRY(os::LogFile::open(settings).in("opening the log file of the server"));
  const MutexLock lock(mutex_);
  file_ = std::move(file);
  return ok();
}

void ServerLog::reopen() {
  std::shared_ptr<os::LogFile> file;
  {
    const MutexLock lock(mutex_);
    file = file_;
  }
  if (!file) return;
  // Outside the lock: log() calls write().
  if (const auto done = file->reopen(); !done)
    log(Level::error, "serve", "the log file was not opened again",
        {{"why", done.error().message}});
}

void ServerLog::write(Level level, std::string_view line) {
  std::shared_ptr<os::LogFile> file;
  {
    const MutexLock lock(mutex_);
    if (level == Level::error) {
      errors_.push_back({clock_.now(), shorten(message_of(line), kErrorBytesMax)});
      if (errors_.size() > kErrorsKept) errors_.pop_front();
    }
    file = file_;
  }
  if (file && file->write(line)) return;
  const std::string whole = std::string(line) + "\n";
  std::fwrite(whole.data(), 1, whole.size(), stderr);
}

std::vector<api::ServerError> ServerLog::errors() const {
  const MutexLock lock(mutex_);
  return {errors_.begin(), errors_.end()};
}

}  // namespace trainyard::apps
