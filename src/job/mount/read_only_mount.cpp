#include "mount/read_only_mount.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>
#include <thread>
#include <unordered_map>

#include "base/text.hpp"
#include "mount/fuse_library.hpp"
#include "os/files.hpp"

namespace trainyard::mount {
namespace {

// Requests that are served at a time; further ones wait in the kernel.
constexpr size_t kThreads = 16;
// The largest window of blocks that are fetched ahead of a sequential reader. The window starts
// with one block and doubles with each block that is read.
constexpr uint64_t kAheadBlocksMax = 4;
// Lines about failed reads, which are limited since a program may ignore errors and retry forever.
constexpr size_t kLinesMax = 1000;
// The names and versions of a mount never change.
constexpr double kValidSeconds = 1e6;
constexpr uint64_t kStatBytes = 512;  // the unit of st_blocks

// A Reading is the state of one open file.
struct Reading {
  uint64_t next = 0;             // the block that follows the last one read
  uint64_t ahead = 0;            // the window: blocks to fetch ahead
  uint64_t requested_up_to = 0;  // blocks below this one were requested
};

class Fuse final : public ReadOnlyMount {
 public:
  Fuse(std::string name, NameTree tree, BlockSource& source, BlockSource::Say say, MountModes modes)
      : name_(std::move(name)),
        tree_(std::move(tree)),
        source_(source),
        say_(std::move(say)),
        modes_(modes) {}
  ~Fuse() override;
  Result<void> start(const std::string& directory);
  void set_owner(uint32_t user_id, uint32_t group_id) override {
    user_id_ = user_id, group_id_ = group_id;
  }
  const NameTree& tree() const override { return tree_; }

  void lookup(fuse_req_t request, fuse_ino_t parent, std::string_view name);
  void get_attributes(fuse_req_t request, fuse_ino_t inode);
  void open(fuse_req_t request, fuse_ino_t inode, fuse_file_info* file);
  void release(fuse_req_t request, fuse_file_info* file);
  void read(fuse_req_t request, fuse_ino_t inode, size_t size, off_t offset, fuse_file_info* file);
  void read_directory(fuse_req_t request, fuse_ino_t inode, size_t size, off_t offset,
                      bool with_attributes);
  void get_statistics(fuse_req_t request);

 private:
  const NameTree::Node* node_of(fuse_ino_t inode) const { return tree_.find(inode - 1); }
  struct stat attributes_of(NameTree::Number number) const;
  void answer();
  void read_ahead(const MountedObject& object, uint64_t block, uint64_t handle);
  Result<void> read_into(const MountedObject& object, std::span<char> buffer, uint64_t offset,
                         uint64_t handle);
  void explain(const MountedObject& object, const Error& error);

  const std::string name_;
  const NameTree tree_;
  BlockSource& source_;
  const BlockSource::Say say_;
  const MountModes modes_;
  std::atomic<uint32_t> user_id_ = 0, group_id_ = 0;
  fuse_session* session_ = nullptr;
  bool mounted_ = false;
  os::File end_;  // readable once the mount ends
  std::vector<std::thread> threads_;

  Mutex mutex_;
  std::unordered_map<uint64_t, Reading> readings_ GUARDED_BY(mutex_);  // by handle
  uint64_t last_handle_ GUARDED_BY(mutex_) = 0;
  std::set<std::string> lines_ GUARDED_BY(mutex_);
};

Fuse& mount_of(fuse_req_t request) {
  return *static_cast<Fuse*>(libfuse().fuse_req_userdata(request));
}

constexpr fuse_lowlevel_ops operations() {
  fuse_lowlevel_ops all{};
  all.lookup = [](fuse_req_t request, fuse_ino_t parent, const char* name) {
    mount_of(request).lookup(request, parent, name);
  };
  all.getattr = [](fuse_req_t request, fuse_ino_t inode, fuse_file_info*) {
    mount_of(request).get_attributes(request, inode);
  };
  all.open = [](fuse_req_t request, fuse_ino_t inode, fuse_file_info* file) {
    mount_of(request).open(request, inode, file);
  };
  all.release = [](fuse_req_t request, fuse_ino_t, fuse_file_info* file) {
    mount_of(request).release(request, file);
  };
  all.read = [](fuse_req_t request, fuse_ino_t inode, size_t size, off_t offset,
                fuse_file_info* file) {
    mount_of(request).read(request, inode, size, offset, file);
  };
  all.readdir = [](fuse_req_t request, fuse_ino_t inode, size_t size, off_t offset,
                   fuse_file_info*) {
    mount_of(request).read_directory(request, inode, size, offset, false);
  };
  all.readdirplus = [](fuse_req_t request, fuse_ino_t inode, size_t size, off_t offset,
                       fuse_file_info*) {
    mount_of(request).read_directory(request, inode, size, offset, true);
  };
  all.statfs = [](fuse_req_t request, fuse_ino_t) { mount_of(request).get_statistics(request); };
  return all;
}

constexpr fuse_lowlevel_ops kOperations = operations();

Result<void> Fuse::start(const std::string& directory) {
  TRY(os::make_directories(directory));
  if (::access("/dev/fuse", R_OK | W_OK) != 0) return unavailable("/dev/fuse cannot be opened");
  if (!has_libfuse()) return unavailable("this machine does not have libfuse3");
  std::array<char*, 3> arguments{
      const_cast<char*>("trainyard"), const_cast<char*>("-o"),
      const_cast<char*>("ro,allow_other,default_permissions,nosuid,nodev,"
                        "noatime,fsname=trainyard,subtype=fastfile")};
  fuse_args args = FUSE_ARGS_INIT(int(arguments.size()), arguments.data());
  session_ = libfuse().fuse_session_new(&args, &kOperations, sizeof kOperations, this);
  libfuse().fuse_opt_free_args(&args);
  if (session_ == nullptr) return unavailable("cannot create a FUSE session");
  if (libfuse().fuse_session_mount(session_, directory.c_str()) != 0)
    return unavailable("cannot mount a FUSE file system at " + directory);
  mounted_ = true;
  const int device = libfuse().fuse_session_fd(session_);
  end_ = os::File(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!end_ || ::fcntl(device, F_SETFL, ::fcntl(device, F_GETFL) | O_NONBLOCK) != 0)
    return from_errno("preparing /dev/fuse");
  for (size_t i = 0; i < kThreads; ++i) threads_.emplace_back([this] { answer(); });
  return {};
}

Fuse::~Fuse() {
  // Without a mount there are no reads to end, and other mounts may use the source.
  if (mounted_) source_.stop();
  if (end_) (void)::eventfd_write(end_.descriptor(), 1);
  for (auto& thread : threads_) thread.join();
  if (mounted_) libfuse().fuse_session_unmount(session_);
  if (session_ != nullptr) libfuse().fuse_session_destroy(session_);
}

void Fuse::answer() {
  fuse_buf buffer{};
  std::array<pollfd, 2> files{pollfd{libfuse().fuse_session_fd(session_), POLLIN, 0},
                              pollfd{end_.descriptor(), POLLIN, 0}};
  while (libfuse().fuse_session_exited(session_) == 0) {
    if (::poll(files.data(), files.size(), -1) < 0 && errno != EINTR) break;
    if (files[1].revents != 0) break;
    // EAGAIN: another thread has taken the request. 0: the file system was unmounted.
    const int got = libfuse().fuse_session_receive_buf(session_, &buffer);
    if (got == -EAGAIN || got == -EINTR) continue;
    if (got <= 0) break;
    libfuse().fuse_session_process_buf(session_, &buffer);
  }
  std::free(buffer.mem);
}

struct stat Fuse::attributes_of(NameTree::Number number) const {
  const auto& node = *tree_.find(number);
  struct stat status {};
  status.st_ino = number + 1;
  status.st_uid = user_id_, status.st_gid = group_id_;
  if (!node.object) {
    status.st_mode = S_IFDIR | modes_.directory;
    status.st_nlink = 2;
    return status;
  }
  const auto& object = tree_.object(*node.object);
  status.st_mode = S_IFREG | modes_.file;
  status.st_nlink = 1;
  status.st_size = static_cast<off_t>(object.bytes);
  status.st_blocks = static_cast<blkcnt_t>((object.bytes + kStatBytes - 1) / kStatBytes);
  status.st_blksize = 128 << 10;
  status.st_mtim.tv_sec = status.st_ctim.tv_sec = status.st_atim.tv_sec = object.modified_seconds;
  return status;
}

void Fuse::lookup(fuse_req_t request, fuse_ino_t parent, std::string_view name) {
  const auto* directory = node_of(parent);
  const auto number = directory == nullptr ? std::nullopt : tree_.child(*directory, name);
  fuse_entry_param entry{};
  entry.attr_timeout = entry.entry_timeout = kValidSeconds;
  if (number) {
    entry.ino = *number + 1;
    entry.attr = attributes_of(*number);
  }
  libfuse().fuse_reply_entry(request, &entry);  // inode 0: absent; the kernel may cache that
}

void Fuse::get_attributes(fuse_req_t request, fuse_ino_t inode) {
  if (node_of(inode) == nullptr) {
    libfuse().fuse_reply_err(request, ENOENT);
    return;
  }
  const auto status = attributes_of(static_cast<NameTree::Number>(inode - 1));
  libfuse().fuse_reply_attr(request, &status, kValidSeconds);
}

void Fuse::open(fuse_req_t request, fuse_ino_t inode, fuse_file_info* file) {
  const auto* node = node_of(inode);
  if (node == nullptr || !node->object || (file->flags & O_ACCMODE) != O_RDONLY) {
    libfuse().fuse_reply_err(request, node == nullptr ? ENOENT : !node->object ? EISDIR : EROFS);
    return;
  }
  {
    const MutexLock lock(mutex_);
    file->fh = ++last_handle_;
    readings_.emplace(file->fh, Reading{});
  }
  file->keep_cache = 1;
  libfuse().fuse_reply_open(request, file);
}

void Fuse::release(fuse_req_t request, fuse_file_info* file) {
  {
    const MutexLock lock(mutex_);
    readings_.erase(file->fh);
  }
  libfuse().fuse_reply_err(request, 0);
}

// Fetches the blocks after `block` in advance if the file is read sequentially. A file is expected
// to be read from its first block; a read out of order closes the window until the next block in
// order is read.
void Fuse::read_ahead(const MountedObject& object, uint64_t block, uint64_t handle) {
  const uint64_t blocks = (object.bytes + cache::kBlockBytes - 1) / cache::kBlockBytes;
  uint64_t from = 0, to = 0;
  {
    const MutexLock lock(mutex_);
    auto& reading = readings_[handle];
    if (block + 1 == reading.next) return;
    reading.ahead =
        block == reading.next ? std::clamp<uint64_t>(2 * reading.ahead, 1, kAheadBlocksMax) : 0;
    reading.next = block + 1;
    from = reading.ahead == 0 ? block + 1 : std::max(block + 1, reading.requested_up_to);
    to = std::min(block + 1 + reading.ahead, blocks);
    reading.requested_up_to = to;
  }
  for (; from < to; ++from) source_.fetch_ahead(object, from);
}

Result<void> Fuse::read_into(const MountedObject& object, std::span<char> buffer, uint64_t offset,
                             uint64_t handle) {
  while (!buffer.empty()) {
    const uint64_t number = offset / cache::kBlockBytes;
    read_ahead(object, number, handle);
    const auto block = TRY(source_.get(object, number));
    const uint64_t begin = offset % cache::kBlockBytes;
    const size_t bytes = std::min<size_t>(buffer.size(), block->size() - begin);
    std::memcpy(buffer.data(), block->data() + begin, bytes);
    buffer = buffer.subspan(bytes);
    offset += bytes;
  }
  return {};
}

void Fuse::read(fuse_req_t request, fuse_ino_t inode, size_t size, off_t offset,
                fuse_file_info* file) {
  const auto* node = node_of(inode);
  if (node == nullptr || !node->object) {
    libfuse().fuse_reply_err(request, EISDIR);
    return;
  }
  const auto& object = tree_.object(*node->object);
  const uint64_t first = std::min(uint64_t(offset), object.bytes);
  std::string buffer(std::min<uint64_t>(size, object.bytes - first), '\0');
  if (const auto done = read_into(object, buffer, first, file->fh); !done) {
    explain(object, done.error());
    libfuse().fuse_reply_err(request, done.error().kind == Kind::denied ? EACCES : EIO);
    return;
  }
  libfuse().fuse_reply_buf(request, buffer.data(), buffer.size());
}

void Fuse::explain(const MountedObject& object, const Error& error) {
  if (error.kind == Kind::cancelled) return;
  const std::string line = "cannot read " + name_ + "/" + shorten(to_utf8(object.path), 200) +
                           " (s3://" + object.bucket + "/" + shorten(to_utf8(object.key), 200) +
                           "): " + error.message;
  {
    const MutexLock lock(mutex_);
    if (lines_.size() >= kLinesMax || !lines_.insert(line).second) return;
  }
  say_(line);
}

void Fuse::read_directory(fuse_req_t request, fuse_ino_t inode, size_t size, off_t offset,
                          bool with_attributes) {
  const auto* node = node_of(inode);
  if (node == nullptr || node->object) {
    libfuse().fuse_reply_err(request, ENOTDIR);
    return;
  }
  // Offsets: 0 is ".", 1 is "..", the children follow.
  std::string buffer(size, '\0');
  size_t filled = 0;
  const auto number = static_cast<NameTree::Number>(inode - 1);
  for (auto at = static_cast<size_t>(offset); at < node->children.size() + 2; ++at) {
    const auto shown = at == 0 ? number : at == 1 ? node->parent : node->children[at - 2];
    const std::string name = at == 0 ? "." : at == 1 ? ".." : std::string(tree_.find(shown)->name);
    fuse_entry_param entry{};
    // An entry for "." or ".." must not count as a lookup.
    entry.ino = at < 2 ? 0 : shown + 1;
    entry.attr = attributes_of(shown);
    entry.attr_timeout = entry.entry_timeout = kValidSeconds;
    const auto next = static_cast<off_t>(at + 1);
    char* const place = buffer.data() + filled;
    const size_t needed = with_attributes
                              ? libfuse().fuse_add_direntry_plus(request, place, size - filled,
                                                                 name.c_str(), &entry, next)
                              : libfuse().fuse_add_direntry(request, place, size - filled,
                                                            name.c_str(), &entry.attr, next);
    if (needed > size - filled) break;
    filled += needed;
  }
  libfuse().fuse_reply_buf(request, buffer.data(), filled);
}

void Fuse::get_statistics(fuse_req_t request) {
  struct statvfs all {};
  all.f_bsize = all.f_frsize = kStatBytes;
  all.f_blocks = (tree_.bytes() + kStatBytes - 1) / kStatBytes;
  all.f_files = tree_.size();
  all.f_namemax = 255;
  libfuse().fuse_reply_statfs(request, &all);
}

}  // namespace

Result<std::unique_ptr<ReadOnlyMount>> ReadOnlyMount::make(const std::string& directory,
                                                           const std::string& name, NameTree tree,
                                                           BlockSource& source,
                                                           BlockSource::Say say, MountModes modes) {
  auto made = std::make_unique<Fuse>(name, std::move(tree), source, std::move(say), modes);
  TRY(made->start(directory));
  return std::unique_ptr<ReadOnlyMount>(std::move(made));
}

}  // namespace trainyard::mount
