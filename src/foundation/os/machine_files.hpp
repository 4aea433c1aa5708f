// MachineFiles gives access to the file system of the machine. main passes it to all constructors
// that take Files.
//
// Threads and errors: those of base/files.hpp.
#pragma once

#include "base/file_faults.hpp"
#include "base/files.hpp"
#include "os/disk.hpp"

namespace trainyard::os {

class MachineFiles final : public Files {
 public:
  // Lifetime: `faults`, for tests, outlives the MachineFiles.
  explicit MachineFiles(FileFaults* faults = nullptr) : disk_(faults) {}

  Result<std::unique_ptr<AppendFile>> open_append(const std::string& path, unsigned mode) override;
  Result<void> write(const std::string& path, std::string_view bytes, unsigned mode) override;
  Result<void> rename(const std::string& from, const std::string& to) override;
  Result<void> remove(const std::string& path) override;
  Result<void> remove_all(const std::string& path) override;
  Result<void> make_directories(const std::string& path, unsigned mode) override;
  Result<void> sync_directory(const std::string& path) override;
  Result<std::string> read(const std::string& path, size_t bytes_max) override;
  Result<std::string> read_at(const std::string& path, uint64_t offset, size_t bytes) override;
  Result<std::vector<std::string>> list_directory(const std::string& path) override;
  bool exists(const std::string& path) override;

 private:
  const Disk disk_;
};

}  // namespace trainyard::os
