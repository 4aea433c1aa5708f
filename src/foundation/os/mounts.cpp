#include "os/mounts.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/text.hpp"
#include "os/files.hpp"

namespace trainyard::os {
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

Result<void> bind_beneath(const std::string& root, const std::string& path,
                          const std::string& target) {
  const File above(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!above) return from_errno("opening " + root);
  struct open_how how {};
  how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  const File found(static_cast<int>(::syscall(
      SYS_openat2, above.descriptor(), path.empty() ? "." : path.c_str(), &how, sizeof how)));
  if (!found) {
    if (errno == EXDEV || errno == ELOOP) return invalid(path + ": a link leads out of " + root);
    if (errno == ENOTDIR) return invalid(path + ": not a directory");
    return from_errno(path);
  }
  TRY(make_directories(target));
  const std::string source = "/proc/self/fd/" + std::to_string(found.descriptor());
  if (::mount(source.c_str(), target.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0)
    return from_errno("mounting " + path + " of " + root);
  // Without this, unmounting it would also unmount the mounts below the original.
  if (::mount(nullptr, target.c_str(), nullptr, MS_REC | MS_SLAVE, nullptr) != 0) {
    const auto error = from_errno("mounting " + path + " of " + root);
    ::umount2(target.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW);
    return error;
  }
  return ok();
}

Result<void> mount_overlay(const std::string& lower, const std::string& layer,
                           const std::string& target, bool in_user_namespace) {
  TRY(remove_all(layer));
  const std::string upper = layer + "/upper", work = layer + "/work";
  for (const auto& path : {upper, work, target}) {
    TRY(make_directories(path, 0755));
    // Sets the mode independently of the umask: the root of the overlay has the mode of `upper`.
    if (::chmod(path.c_str(), 0755) != 0) return from_errno("changing the mode of " + path);
  }
  // Passes descriptors, because the kernel would read commas and colons in a path as separators.
  std::string options;
  std::vector<File> directories;
  for (const auto& [option, path] :
       {std::pair{"lowerdir=", &lower}, std::pair{",upperdir=", &upper},
        std::pair{",workdir=", static_cast<const std::string*>(&work)}}) {
    directories.emplace_back(::open(path->c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!directories.back()) return from_errno("opening " + *path);
    options += option + ("/proc/self/fd/" + std::to_string(directories.back().descriptor()));
  }
  // The overlay stores its marks in attributes that only root of the machine may set. In a user
  // namespace it uses others (userxattr), which cannot describe a renamed directory.
  options += in_user_namespace ? ",userxattr" : ",redirect_dir=on";
  if (::mount("overlay", target.c_str(), "overlay", MS_NOSUID | MS_NODEV, options.c_str()) != 0)
    return from_errno("mounting an overlay");
  return ok();
}

Result<void> mount_memory(const std::string& directory, uint64_t bytes, uint64_t files) {
  const std::string options =
      "mode=0700,size=" + std::to_string(bytes) + ",nr_inodes=" + std::to_string(files);
  if (::mount("tmpfs", directory.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, options.c_str()) != 0)
    return from_errno("mounting a tmpfs at " + directory);
  return ok();
}

Result<void> unmount(const std::string& directory) {
  if (::umount2(directory.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) != 0 && errno != EINVAL &&
      errno != ENOENT)
    return from_errno("unmounting " + directory);
  return ok();
}

Result<void> unmount_below(const std::string& directory) {
  const std::string mountinfo = TRY(read_file("/proc/self/mountinfo", kMountinfoBytesMax));
  for (const auto& path : mounts_below(mountinfo, directory)) TRY(unmount(path));
  return ok();
}

Result<void> enter_mount_namespace() {
  if (::unshare(CLONE_NEWNS) != 0 ||
      ::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0)
    return from_errno("making a mount namespace");
  return ok();
}

}  // namespace trainyard::os
