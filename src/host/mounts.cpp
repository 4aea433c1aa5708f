#include "host/mounts.hpp"

#include <sys/mount.h>

#include <algorithm>
#include <cerrno>

#include "base/text.hpp"
#include "host/files.hpp"

namespace trainyard::host {
namespace {

constexpr size_t kMountinfoBytesMax = 64 << 20;

}  // namespace

std::string unescape_mount_path(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); i++) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      plain += char((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

std::vector<std::string> mounts_below(std::string_view mountinfo, const std::string& directory) {
  std::vector<std::string> found;
  for (const auto line : split(mountinfo, '\n')) {
    const auto members = split(line, ' ');
    constexpr size_t kMountPoint = 4;
    if (members.size() <= kMountPoint) continue;
    std::string path = unescape_mount_path(members[kMountPoint]);
    if (path == directory || path.starts_with(directory + "/")) found.push_back(std::move(path));
  }
  std::reverse(found.begin(), found.end());
  return found;
}

Result<void> unmount_below(const std::string& directory) {
  const std::string mountinfo = TRY(read_file("/proc/self/mountinfo", kMountinfoBytesMax));
  for (const auto& path : mounts_below(mountinfo, directory))
    if (::umount2(path.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) != 0 && errno != EINVAL && errno != ENOENT)
      return from_errno("unmounting " + path);
  return ok();
}

}  // namespace trainyard::host
