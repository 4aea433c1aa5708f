#include "os/machine_files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace trainyard::os {
namespace {

class MachineAppendFile final : public AppendFile {
 public:
  MachineAppendFile(const Disk& disk, File file, std::string path)
      : disk_(disk), file_(std::move(file)), path_(std::move(path)) {}
  Result<void> append(std::string_view bytes) override { return disk_.write(file_, bytes, path_); }
  Result<void> truncate(uint64_t bytes) override { return disk_.truncate(file_, bytes, path_); }
  Result<void> sync() override { return disk_.sync(file_, path_); }

 private:
  const Disk& disk_;
  const File file_;
  const std::string path_;
};

}  // namespace

Result<std::unique_ptr<AppendFile>> MachineFiles::open_append(const std::string& path,
                                                              unsigned mode) {
  auto file = TRY(disk_.create(path, O_WRONLY | O_CREAT | O_APPEND, mode));
  return std::unique_ptr<AppendFile>(
      std::make_unique<MachineAppendFile>(disk_, std::move(file), path));
}

Result<void> MachineFiles::write(const std::string& path, std::string_view bytes, unsigned mode) {
  if (const int failed = disk_.fault(FileStep::write, path))
    return from_errno("writing " + path, failed);
  return os::write_file(path, bytes, mode);
}

Result<void> MachineFiles::rename(const std::string& from, const std::string& to) {
  return disk_.rename(from, to);
}
Result<void> MachineFiles::remove(const std::string& path) { return disk_.remove(path); }
Result<void> MachineFiles::remove_all(const std::string& path) {
  if (const int failed = disk_.fault(FileStep::remove, path))
    return from_errno("removing " + path, failed);
  return os::remove_all(path);
}
Result<void> MachineFiles::make_directories(const std::string& path, unsigned mode) {
  return disk_.make_directories(path, mode);
}
Result<void> MachineFiles::sync_directory(const std::string& path) {
  return disk_.sync_directory(path);
}

Result<std::string> MachineFiles::read(const std::string& path, size_t bytes_max) {
  return os::read_file(path, bytes_max);
}

Result<std::string> MachineFiles::read_at(const std::string& path, uint64_t offset, size_t bytes) {
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return from_errno("opening " + path);
  std::string text(bytes, '\0');
  size_t have = 0;
  while (have < bytes) {
    const ssize_t got = ::pread(file.descriptor(), text.data() + have, bytes - have,
                                static_cast<off_t>(offset + have));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return from_errno("reading " + path);
    if (got == 0) break;
    have += static_cast<size_t>(got);
  }
  text.resize(have);
  return text;
}

Result<std::vector<std::string>> MachineFiles::list_directory(const std::string& path) {
  return os::list_directory(path);
}
bool MachineFiles::exists(const std::string& path) { return os::exists(path); }

}  // namespace trainyard::os
