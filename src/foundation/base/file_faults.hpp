// Lets tests inject disk faults, such as a full disk, into the modules that decide crash safety.
//
// A module that writes durable files takes a FileFaults in its constructor and calls it before each
// step that changes the disk. The shipped programs pass nullptr, and every step is carried out.
//
// Threads: before() is called from the threads that write; NthFileFault is callable from anywhere.
// Errors:  none; a fault is the errno with which the step then fails.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace trainyard {

enum class FileStep { create, write, sync, truncate, rename, remove, make_directory };

struct FileFault {
  int error_number = 0;      // EIO, ENOSPC ..; 0: the step is carried out
  size_t bytes_written = 0;  // bytes that a failing write stores before it fails
};

class FileFaults {
 public:
  virtual ~FileFaults() = default;
  // `bytes` is the length of a write.
  virtual FileFault before(FileStep step, const std::string& path, size_t bytes) = 0;
};

// Fails the n-th step, counted from 1, and no other. A failing write stores the first half of its
// bytes.
class NthFileFault final : public FileFaults {
 public:
  NthFileFault(uint64_t nth, int error_number) : nth_(nth), error_number_(error_number) {}
  FileFault before(FileStep step, const std::string&, size_t bytes) override {
    if (!armed_ || ++steps_ != nth_) return {};
    failed_ = step;
    struck_ = true;
    return {error_number_, step == FileStep::write ? bytes / 2 : 0};
  }
  // Starts counting steps; a test calls it after its setup.
  void arm() { armed_ = true; }
  bool struck() const { return struck_; }
  FileStep failed() const { return failed_; }

 private:
  const uint64_t nth_;
  const int error_number_;
  std::atomic<bool> armed_ = false;
  std::atomic<bool> struck_ = false;
  std::atomic<uint64_t> steps_ = 0;
  std::atomic<FileStep> failed_ = FileStep::create;
};

}  // namespace trainyard
