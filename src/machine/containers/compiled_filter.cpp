#include "containers/compiled_filter.hpp"

#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <utility>

#include "base/log.hpp"
#include "base/sha256.hpp"
#include "base/text.hpp"
#include "containers/container_plan.hpp"
#include "containers/runtime.hpp"
#include "os/files.hpp"

namespace trainyard::containers {
namespace {

// the kernel accepts programs of at most 4096 instructions of 8 bytes
constexpr size_t kInstructionBytes = 8, kProgramBytesMax = 4096 * kInstructionBytes;
// limit of cached programs of earlier runtimes and filters; beyond it all are removed
constexpr size_t kProgramsMax = 16;
// this file changes when any library is installed, such as the one with which the runtime compiles
constexpr const char* kLibraries = "/etc/ld.so.cache";

// Returns a text that changes with the content of the file.
std::string version_of(const std::string& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) return "absent";
  std::string text;
  for (const uint64_t number :
       {uint64_t(status.st_dev), uint64_t(status.st_ino), uint64_t(status.st_size),
        uint64_t(status.st_mtim.tv_sec), uint64_t(status.st_mtim.tv_nsec),
        uint64_t(status.st_ctim.tv_sec), uint64_t(status.st_ctim.tv_nsec)})
    text += std::to_string(number) + " ";
  return text;
}

std::string kernel_version() {
  utsname names;
  return ::uname(&names) == 0 ? std::string(names.release) + " " + names.machine : "";
}

// Returns true if no other user can have written in the directory.
bool is_ours_alone(const std::string& directory) {
  struct stat status;
  return ::lstat(directory.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == ::geteuid() && (status.st_mode & 022) == 0;
}

bool is_program(const std::string& bytes) {
  return !bytes.empty() && bytes.size() <= kProgramBytesMax &&
         bytes.size() % kInstructionBytes == 0;
}

Result<void> keep(const std::string& container, const std::string& directory,
                  const std::string& path) {
  const std::string made = runtime_root() + "/" + container + "/" + kRuntimeFilter;
  const auto program = os::read_file(made, kProgramBytesMax);
  // No file: the container has ended, or the runtime itself caches programs.
  if (!program && program.error().kind == Kind::not_found) return {};
  if (!program) return program.error();
  if (!is_program(*program)) return corrupt("invalid program in " + made);
  if (const auto names = os::list_directory(directory); names && names->size() >= kProgramsMax)
    TRY(os::remove_all(directory));
  TRY(os::make_directories(directory, 0700));
  if (!is_ours_alone(directory)) return denied(directory + " is writable by others");
  return os::write_file_durably(path, *program, 0600);
}

}  // namespace

CompiledFilter::CompiledFilter(const Json& filter, const std::string& runtime,
                               std::string directory)
    : directory_(std::move(directory)),
      path_(directory_ + "/" +
            to_hex(bytes_of(sha256(dump(filter) + "\n" + runtime + " " + version_of(runtime) +
                                   version_of(kLibraries) + kernel_version())))) {}

std::string CompiledFilter::read() const {
  if (!is_ours_alone(directory_)) return "";
  const auto program = os::read_file(path_, kProgramBytesMax);
  return program && is_program(*program) ? *program : "";
}

void CompiledFilter::store(const std::string& container) const {
  if (const auto kept = keep(container, directory_, path_); !kept)
    log(Level::warning, "containers", "cannot cache the compiled seccomp filter of a container",
        {{"why", kept.error().message}});
}

}  // namespace trainyard::containers
