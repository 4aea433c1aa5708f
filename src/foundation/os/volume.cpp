#include "os/volume.hpp"

#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "base/text.hpp"
#include "os/files.hpp"
#include "os/mounts.hpp"
#include "os/process.hpp"

namespace trainyard::os {
namespace {

constexpr Duration kMakeMax = 2min;  // a template of the largest size on a slow disk
// limit of retries: another process may claim a free loop device before this one does
constexpr int kLoopTriesMax = 64;
// Determines the number of files of a volume, independently of the machine's mke2fs.conf: enough
// for directories of small files.
constexpr uint64_t kBytesPerInode = 16 << 10;
// a volume with less free space counts as full: a write may fail with ENOSPC while some bytes are
// free, because the kernel reserves 2 MiB or more at once for large pages
constexpr uint64_t kFullBytes = 4 << 20;

// Copies the data of a file, and keeps its holes.
Result<void> copy_sparsely(const File& from, const File& to, uint64_t bytes) {
  if (::ftruncate(to.descriptor(), off_t(bytes)) != 0)
    return from_errno("extending the file of a volume to " + std::to_string(bytes) + " bytes");
  for (off_t at = 0;;) {
    const off_t begin = ::lseek(from.descriptor(), at, SEEK_DATA);
    if (begin < 0 && errno == ENXIO) return ok();
    const off_t end = begin < 0 ? begin : ::lseek(from.descriptor(), begin, SEEK_HOLE);
    if (end < 0) return from_errno("reading a volume's template");
    for (off_t in = begin, out = begin; in < end;) {
      const ssize_t copied =
          ::copy_file_range(from.descriptor(), &in, to.descriptor(), &out, size_t(end - in), 0);
      if (copied < 0) return from_errno("copying a volume's template");
      if (copied == 0) break;
    }
    at = end;
  }
}

Result<std::string> template_of(uint64_t bytes, const std::string& templates) {
  const std::string path =
      templates + "/ext4-" + std::to_string(bytes) + "-i" + std::to_string(kBytesPerInode);
  if (exists(path)) return path;
  TRY(make_directories(templates, 0700));
  const auto lock = TRY(FileLock::take_within(templates + "/lock", kMakeMax));
  if (exists(path)) return path;
  const std::string program = exists("/usr/sbin/mkfs.ext4") ? "/usr/sbin/mkfs.ext4" : "mkfs.ext4";
  if (!exists(program) && !on_path("mkfs.ext4"))
    return not_found("making a volume: mkfs.ext4 is not on PATH; install the package e2fsprogs");
  const std::string temporary = path + ".new";
  TRY(remove_all(temporary));
  {
    const File file(::open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file || ::ftruncate(file.descriptor(), off_t(bytes)) != 0)
      return from_errno("making " + temporary);
  }
  // Without a journal, since the content is not used after a crash of the machine, and without
  // blocks reserved for root, since the job may use the whole volume.
  TRY(run_or_fail({{program, "-q", "-F", "-m", "0", "-i", std::to_string(kBytesPerInode), "-O",
                    "^has_journal,^resize_inode", "-E", "lazy_itable_init=1,nodiscard", temporary},
                   {},
                   "",
                   "",
                   kMakeMax})
          .in("making a volume"));
  if (::rename(temporary.c_str(), path.c_str()) != 0) return from_errno("renaming to " + path);
  return path;
}

// Attaches a loop device to the file. The device detaches itself once it is neither open nor
// mounted.
Result<std::pair<File, std::string>> attach_loop(const File& file) {
  const File control(::open("/dev/loop-control", O_RDWR | O_CLOEXEC));
  if (!control) return from_errno("opening /dev/loop-control");
  for (int attempt = 0; attempt < kLoopTriesMax; attempt++) {
    const int number = ::ioctl(control.descriptor(), LOOP_CTL_GET_FREE);
    if (number < 0) return from_errno("finding a free loop device");
    const std::string path = "/dev/loop" + std::to_string(number);
    File device(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!device) return from_errno("opening " + path);
    loop_config config = {};
    config.fd = uint32_t(file.descriptor());
    // Direct I/O avoids caching all data twice in memory. Some disks do not support it.
    for (const uint32_t more : {uint32_t(LO_FLAGS_DIRECT_IO), 0u}) {
      config.info.lo_flags = LO_FLAGS_AUTOCLEAR | more;
      if (::ioctl(device.descriptor(), LOOP_CONFIGURE, &config) == 0)
        return std::pair(std::move(device), path);
      if (errno != EINVAL) break;
    }
    if (errno != EBUSY) return from_errno("setting up " + path);
  }
  return exhausted("attaching a loop device: other processes claimed " +
                   std::to_string(kLoopTriesMax) + " free devices first");
}

}  // namespace

Result<void> make_volume(const std::string& directory, const std::string& file, uint64_t bytes,
                         const std::string& templates) {
  TRY(remove_volume(directory, file));
  const std::string made = TRY(template_of(bytes, templates));
  const File from(::open(made.c_str(), O_RDONLY | O_CLOEXEC));
  if (!from) return from_errno("opening " + made);
  const File to(::open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!to) return from_errno("making " + file);
  auto done = [&]() -> Result<void> {
    TRY(copy_sparsely(from, to, bytes));
    TRY(make_directories(directory));
    const auto loop = TRY(attach_loop(to));
    if (::mount(loop.second.c_str(), directory.c_str(), "ext4", MS_NOSUID | MS_NODEV | MS_NOATIME,
                "") != 0)
      return from_errno("mounting a volume at " + directory);
    (void)::rmdir((directory + "/lost+found").c_str());
    return ok();
  }();
  if (!done) (void)remove_volume(directory, file);
  return done;
}

Result<void> remove_volume(const std::string& directory, const std::string& file) {
  if (!exists(file)) return ok();
  // Removes the content first, because removed data need not be written when the volume is
  // unmounted.
  if (const auto names = list_directory(directory))
    for (const auto& name : *names) (void)remove_all(directory + "/" + name);
  TRY(unmount_below(directory));
  return remove_all(file);
}

bool is_full(const std::string& directory) {
  struct statvfs status;
  return ::statvfs(directory.c_str(), &status) == 0 &&
         (uint64_t(status.f_bavail) * status.f_frsize < kFullBytes ||
          (status.f_files > 0 && status.f_favail == 0));
}

}  // namespace trainyard::os
