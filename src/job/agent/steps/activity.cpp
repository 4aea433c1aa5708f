// Makes the activity table of the host and mounts it into the container. The job may write any
// number of bytes to it, so it is on the job's volume or in a file system of limited size.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>

#include "agent/steps.hpp"
#include "base/activity_table.hpp"
#include "os/files.hpp"
#include "os/mounts.hpp"

namespace trainyard::agent {
namespace {

constexpr const char* kTableInside = "/opt/trainyard/activity";
constexpr mode_t kTableMode = 0666;  // for any user of the image
constexpr uint64_t kFilesMax = 4;    // the root directory and the table, with a margin

// Makes or empties the table. It is not replaced, since a reused container has it mounted already.
// Its blocks are reserved: ranks map it, and a full volume would kill them.
Result<os::File> make_table(const StepContext& context, const std::string& directory,
                            const std::string& path) {
  TRY(os::make_directories(directory));
  if (context.writes_to_memory_only() && !os::exists(path))
    TRY(os::mount_memory(directory, kActivityTableBytes, kFilesMax));
  os::File table(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, kTableMode));
  if (!table || ::fchmod(table.descriptor(), kTableMode) != 0 ||
      ::ftruncate(table.descriptor(), 0) != 0)
    return from_errno("making " + path);
  const int error_number = ::posix_fallocate(table.descriptor(), 0, off_t(kActivityTableBytes));
  if (error_number != 0) return from_errno("making " + path, error_number);
  return table;
}

}  // namespace

std::optional<Failure> open_activity(StepContext& context) {
  const std::string directory = context.writable_path(kActivity), path = directory + "/table";
  auto table = make_table(context, directory, path);
  if (!table) return failure_of(table.error(), "preparing the container");
  context.activity_table = *std::move(table);
  containers::Mount mount;
  mount.source = path;
  mount.destination = kTableInside;
  mount.read_only = false;
  // Ignores an error: older kernels cannot map a tmpfs to other ids, and the file's mode allows any
  // user.
  if (context.writes_to_memory_only())
    mount.set_owner = [](const containers::PosixIdentity&) { return ok(); };
  context.mounts.push_back(std::move(mount));
  context.variables[kActivityVariable] = kTableInside;
  return {};
}

void close_activity(StepContext& context) { context.activity_table.close(); }

}  // namespace trainyard::agent
