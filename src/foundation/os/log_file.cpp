#include "os/log_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <optional>

namespace trainyard::os {
namespace {

constexpr unsigned kMode = 0640;  // lines name users and jobs

std::string rotated(const std::string& path, int64_t number) {
  return path + "." + std::to_string(number);
}

// Returns the size of a regular file; nullopt for a pipe or a device. The descriptor is queried,
// because other programs may truncate the file.
std::optional<uint64_t> size_of(const File& file) {
  struct stat status = {};
  if (::fstat(file.descriptor(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return uint64_t(status.st_size);
}

}  // namespace

Result<File> LogFile::open_file() const {
  // Without O_NONBLOCK, opening a pipe waits for its reader.
  return disk_.create(settings_.path, O_WRONLY | O_APPEND | O_CREAT | O_NOCTTY | O_NONBLOCK, kMode);
}

Result<std::unique_ptr<LogFile>> LogFile::open(LogFileSettings settings, FileFaults* faults) {
  std::unique_ptr<LogFile> made(new LogFile(std::move(settings), faults));
  const MutexLock lock(made->mutex_);
  made->file_ = TRY(made->open_file());
  made->rotate_at_bytes_ = made->settings_.bytes_max;
  return made;
}

Result<void> LogFile::reopen() {
  File file = TRY(open_file());
  const MutexLock lock(mutex_);
  file_ = std::move(file);
  rotate_at_bytes_ = settings_.bytes_max;
  torn_ = false;
  return ok();
}

Result<void> LogFile::write(std::string_view line) {
  const MutexLock lock(mutex_);
  const auto size = size_of(file_);
  if (size && *size > 0 && *size + line.size() + 1 > rotate_at_bytes_)
    if (!rotate()) rotate_at_bytes_ = *size + settings_.bytes_max;
  std::string text = torn_ ? "\n" : "";
  if (missing_ > 0)
    text += "# missing here: " + std::to_string(missing_) +
            (missing_ == 1 ? " line: " : " lines: ") + missing_because_ + "\n";
  text.append(line).append("\n");
  auto written = append(text);
  if (!written) {
    ++missing_;
    missing_because_ = written.error().message;
    return written;
  }
  torn_ = false;
  missing_ = 0;
  return ok();
}

Result<void> LogFile::append(std::string_view text) {
  const auto before = size_of(file_);
  auto written = disk_.write(file_, text, settings_.path);
  if (written || !before || size_of(file_) == before) return written;
  if (!disk_.truncate(file_, *before, settings_.path)) torn_ = true;
  return written;
}

Result<void> LogFile::rotate() {
  if (settings_.files_max <= 1) {
    TRY(disk_.truncate(file_, 0, settings_.path));
    rotate_at_bytes_ = settings_.bytes_max;
    torn_ = false;
    return ok();
  }
  for (int64_t number = settings_.files_max - 1; number > 1; --number) {
    const auto moved =
        disk_.rename(rotated(settings_.path, number - 1), rotated(settings_.path, number));
    if (!moved && moved.error().kind != Kind::not_found) return moved;
  }
  const auto moved = disk_.rename(settings_.path, rotated(settings_.path, 1));
  if (!moved && moved.error().kind != Kind::not_found) return moved;
  // If this fails, lines are written to the open file under its new name.
  File file = TRY(open_file());
  file_ = std::move(file);
  rotate_at_bytes_ = settings_.bytes_max;
  torn_ = false;
  return ok();
}

}  // namespace trainyard::os
