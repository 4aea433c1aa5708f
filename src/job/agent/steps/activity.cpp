// Makes the activity table of the host, and mounts it into its container.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "agent/steps.hpp"
#include "base/activity_table.hpp"

namespace trainyard::agent {
namespace {

constexpr const char* kTableInside = "/opt/trainyard/activity";
constexpr mode_t kTableMode = 0666;  // for any user of the image

}  // namespace

std::optional<Failure> open_activity(StepContext& context) {
  const std::string path = context.path(kActivityTable);
  // A reused container has it mounted already, so it is emptied, not replaced.
  os::File table(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, kTableMode));
  if (!table || ::fchmod(table.descriptor(), kTableMode) != 0 ||
      ::ftruncate(table.descriptor(), 0) != 0 ||
      ::ftruncate(table.descriptor(), off_t(kActivityTableBytes)) != 0)
    return failure_of(from_errno("making " + path), "preparing the container");
  context.activity_table = std::move(table);
  containers::Mount mount;
  mount.source = path;
  mount.destination = kTableInside;
  mount.read_only = false;
  context.mounts.push_back(std::move(mount));
  context.variables[kActivityVariable] = kTableInside;
  return {};
}

void close_activity(StepContext& context) { context.activity_table.close(); }

}  // namespace trainyard::agent
