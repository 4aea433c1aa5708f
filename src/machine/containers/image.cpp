#include "containers/image.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <deque>
#include <set>
#include <thread>

#include "base/complete_record.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "base/thread_safety.hpp"
#include "containers/id_range.hpp"
#include "containers/image_layer.hpp"
#include "containers/image_source.hpp"
#include "containers/rootless_sandbox.hpp"

namespace trainyard::containers {
namespace {

// limit of fetching and unpacking; after it a disk or registry hangs
constexpr Duration kPullMax = 3h;
// interval of polling the holder of a lock and the progress of unpacking
constexpr Duration kPollInterval = 200ms;
constexpr size_t kAccountsBytesMax = 4 << 20;  // limit of /etc/passwd and /etc/group
constexpr unsigned kUnpackersMax = 4;          // layers at a time; more do not make a disk faster
// limit of all layers of an image: ten times the size of the largest frameworks, or 16 million
// files
constexpr uint64_t kImageBytesMax = uint64_t{256} << 30;
constexpr int kAssemblyTriesMax = 2;  // a second time, if layers were removed meanwhile

// The paths below an images directory.
struct ImagePaths {
  std::string images;

  std::string image(const std::string& digest) const {
    return images + "/sha256-" + digest.substr(7);
  }
  std::string lock(const std::string& digest) const { return image(digest) + ".lock"; }
  std::string used(const std::string& digest) const { return image(digest) + ".used"; }
  std::string work(const std::string& digest) const { return image(digest) + ".unpacking"; }
  std::string blobs() const { return images + "/blobs"; }
  std::string blob(const std::string& digest) const {
    return blobs() + "/sha256/" + digest.substr(7);
  }
  // Path of the last digest of a name in a registry, which is used while the registry is
  // unavailable.
  std::string name(const std::string& source) const {
    return images + "/names/" + sha256(source).substr(7);
  }
  std::string layers() const { return images + "/layers"; }
  std::string layer(const std::string& digest) const { return layers() + "/" + digest.substr(7); }
};

// Reads a file in an untrusted root. Links are followed as in a container.
std::string read_inside(const std::string& root, const char* path) {
  const os::File folder(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return "";
  open_how how = {};
  // Checks the type before opening the file: an image may contain a device, and opening one may
  // have any effect on this machine.
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  const os::File file(int(::syscall(SYS_openat2, folder.descriptor(), path, &how, sizeof how)));
  struct stat status;
  if (!file || ::fstat(file.descriptor(), &status) != 0 || !S_ISREG(status.st_mode)) return "";
  auto text =
      os::read_file("/proc/self/fd/" + std::to_string(file.descriptor()), kAccountsBytesMax);
  return text ? std::move(*text) : "";
}

// Writes a file. Its content is on disk before the file gets its name.
Result<void> sync_file_system(const std::string& path) {
  const os::File directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory || ::syncfs(directory.descriptor()) != 0) return from_errno("syncing " + path);
  return ok();
}

Result<void> rename_durably(const std::string& from, const std::string& to,
                            const std::string& directory) {
  TRY(sync_file_system(from));
  if (::rename(from.c_str(), to.c_str()) != 0) return from_errno("renaming to " + to);
  return os::sync_directory(directory);
}

// The form of the file image.json of an unpacked image.
struct ImageFile {
  std::string digest;
  ImageConfig config;
  uint32_t user_id = 0, group_id = 0;
  std::vector<std::string> layers;
};

constexpr auto kImageFile = complete(json_record<ImageFile>("image", [](auto& side, auto& file) {
  side("digest", file.digest);
  side("entrypoint", file.config.entrypoint);
  side("command", file.config.command);
  side("environment", file.config.environment);
  side("working_directory", file.config.working_directory);
  side("user", file.config.user);
  side("user_id", file.user_id);
  side("group_id", file.group_id);
  // Images that earlier releases unpacked have no such member.
  side.when(!file.digest.empty(), "layers", file.layers);
}));

Result<UnpackedImage> load(const std::string& directory) {
  ImageFile file = TRY(kImageFile.read(
      TRY(parse_json(TRY(os::read_file(directory + "/image.json", kImageDocumentBytesMax))))));
  return UnpackedImage{directory + "/root", std::move(file.digest), std::move(file.config),
                       file.user_id,        file.group_id,          std::nullopt};
}

// Returns an unpacked image. Marks the image as used before it checks that it exists, so that
// trim_images() never removes it after the check.
Result<std::optional<UnpackedImage>> use_if_there(const ImagePaths& image_paths,
                                                  const std::string& digest) {
  static std::atomic<uint64_t> count{0};
  const std::string directory = image_paths.image(digest);
  TRY(os::make_directories(image_paths.used(digest), 0700));
  auto use = TRY(os::FileLock::take(image_paths.used(digest) + "/" + std::to_string(::getpid()) +
                                    "-" + std::to_string(++count)));
  if (!os::exists(directory + "/image.json")) return std::optional<UnpackedImage>();
  auto image = TRY(load(directory).in("the unpacked image " + directory));
  ::utimensat(AT_FDCWD, (directory + "/image.json").c_str(), nullptr, 0);  // records its last use
  image.use = std::move(use);
  return std::optional(std::move(image));
}

// Unpacks layers as they arrive, a few at a time. Threads: unpack() and the queries are called from
// one thread.
class LayerUnpacking {
 public:
  explicit LayerUnpacking(const ImagePaths& image_paths) : paths_(image_paths) {
    const unsigned count = std::clamp(std::thread::hardware_concurrency(), 1u, kUnpackersMax);
    for (unsigned i = 0; i < count; i++) threads_.emplace_back([this] { work(); });
  }
  ~LayerUnpacking() { (void)finish(); }

  void unpack(const std::string& digest) {
    const MutexLock lock(mutex_);
    if (!ordered_.insert(digest).second) return;
    waiting_.push_back(digest);
    changed_.notify_all();
  }

  bool idle() {
    const MutexLock lock(mutex_);
    return waiting_.empty() && working_ == 0;
  }
  // Returns the compressed bytes of unpacked layers.
  uint64_t bytes_done() const { return bytes_done_; }

  // Waits for the running layers without starting others. Returns the first failure.
  Result<void> finish() {
    {
      const MutexLock lock(mutex_);
      ending_ = true;
      changed_.notify_all();
    }
    for (auto& thread : threads_)
      if (thread.joinable()) thread.join();
    const MutexLock lock(mutex_);
    if (failure_) return *failure_;
    return ok();
  }

 private:
  void work() {
    MutexLock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&]() REQUIRES(mutex_) { return ending_ || !waiting_.empty(); });
      if (ending_) return;
      const std::string digest = waiting_.front();
      waiting_.pop_front();
      working_++;
      lock.unlock();
      const auto done = one(digest);
      lock.lock();
      working_--;
      if (!done && !failure_) failure_ = done.error();
      if (failure_) waiting_.clear();
    }
  }

  // Another image that is being unpacked may contain the same layer.
  Result<void> one(const std::string& digest) {
    const std::string directory = paths_.layer(digest);
    const auto lock = TRY(os::FileLock::take_within(directory + ".lock", kPullMax));
    if (!os::exists(directory)) {
      LayerLimits limits;
      limits.bytes_max = std::min(limits.bytes_max, left());
      TRY(os::remove_all(directory + ".unpacking"));
      TRY(unpack_layer(paths_.blob(digest), directory + ".unpacking", limits));
      TRY(rename_durably(directory + ".unpacking", directory, paths_.layers()));
    }
    unpacked_bytes_ += layer_bytes(directory);
    if (left() == 0)
      return exhausted("unpacking the image: its layers have more than " +
                       human_bytes(kImageBytesMax));
    bytes_done_ += file_bytes(paths_.blob(digest));
    return ok();
  }
  // Returns the bytes that further layers may have. Layers that are being unpacked are not counted
  // yet, so a few layers may exceed the limit.
  uint64_t left() const {
    return kImageBytesMax - std::min<uint64_t>(unpacked_bytes_, kImageBytesMax);
  }

  const ImagePaths& paths_;
  std::vector<std::thread> threads_;
  std::atomic<uint64_t> bytes_done_{0};
  std::atomic<uint64_t> unpacked_bytes_{0};
  Mutex mutex_;
  ConditionVariable changed_;
  std::set<std::string> ordered_ GUARDED_BY(mutex_);
  std::deque<std::string> waiting_ GUARDED_BY(mutex_);
  unsigned working_ GUARDED_BY(mutex_) = 0;
  bool ending_ GUARDED_BY(mutex_) = false;
  std::optional<Error> failure_ GUARDED_BY(mutex_);
};

// Pulls one image. Requires: the lock of the image is held.
class Pull {
 public:
  Pull(ImageSource source, ImagePaths image_paths, std::string digest, const PullWatch& watch)
      : source_(std::move(source)),
        paths_(std::move(image_paths)),
        digest_(std::move(digest)),
        watch_(watch) {}

  Result<void> run() {
    const std::string work = paths_.work(digest_);
    TRY(os::remove_all(work));
    TRY(os::make_directories(work, 0700));
    TRY(os::make_directories(paths_.layers(), 0700));
    auto done = pull(work);
    (void)os::remove_all(work);
    return done;
  }

 private:
  Result<void> pull(const std::string& work) {
    const LayoutPaths layout{work + "/layout", paths_.blobs()};
    known_ = TRY(layers_of(source_));
    std::erase_if(known_, [&](const auto& layer) { return os::exists(paths_.blob(layer.digest)); });
    for (const auto& layer : known_) bytes_total_ += layer.bytes;
    LayerUnpacking unpacking(paths_);
    if (!say(PullProgress::Doing::downloading, 0, bytes_total_))
      return cancelled("pulling the image: stopped");
    TRY(fetch(source_, layout, [&] {
      const uint64_t landed = take_landed(unpacking);
      return say(PullProgress::Doing::downloading, landed + incomplete_blob_bytes(layout),
                 bytes_total_);
    }));
    const auto image = TRY(describe(layout));
    TRY(check_fetched(source_, digest_, image));
    uint64_t bytes = 0;
    for (const auto& layer : image.layers) {
      bytes += file_bytes(paths_.blob(layer.digest));
      unpacking.unpack(layer.digest);
    }
    while (!unpacking.idle()) {
      if (!say(PullProgress::Doing::unpacking, unpacking.bytes_done(), bytes))
        return cancelled("pulling the image: stopped");
      std::this_thread::sleep_for(kPollInterval);
    }
    TRY(unpacking.finish());
    return assemble(image, work);
  }

  // Unpacks layers that are complete while others still arrive. Returns the bytes that have
  // arrived.
  uint64_t take_landed(LayerUnpacking& unpacking) {
    uint64_t bytes = 0;
    for (const auto& layer : known_) {
      if (!os::exists(paths_.blob(layer.digest))) continue;
      bytes += layer.bytes;
      unpacking.unpack(layer.digest);
    }
    return bytes;
  }

  bool say(PullProgress::Doing doing, uint64_t bytes, uint64_t total) const {
    return !watch_ || watch_({doing, total ? std::min(bytes, total) : bytes, total});
  }

  Result<void> assemble(const DescribedImage& described, const std::string& work) const {
    const std::string made = work + "/image", root = made + "/root";
    ImageFile file{.digest = digest_, .config = described.config, .layers = {}};
    TRY(os::make_directories(root, 0755));
    for (const auto& layer : described.layers) {
      TRY(link_layer_into(paths_.layer(layer.digest), root));
      file.layers.push_back(layer.digest);
    }
    const auto ids = TRY(find_user(file.config.user, read_inside(root, "etc/passwd"),
                                   read_inside(root, "etc/group")));
    file.user_id = ids.user;
    file.group_id = ids.group;
    TRY(os::write_file(made + "/image.json", dump(kImageFile.write(file)), 0600));
    return rename_durably(made, paths_.image(digest_), paths_.images);
  }

  const ImageSource source_;
  const ImagePaths paths_;
  const std::string digest_;
  const PullWatch& watch_;
  std::vector<ImageReference> known_;  // expected layers
  uint64_t bytes_total_ = 0;
};

// Waits for the holder of the image's lock, and reports that it waits.
Result<os::FileLock> take_image_lock(const std::string& path, const PullWatch& watch) {
  const auto deadline = std::chrono::steady_clock::now() + kPullMax;
  for (;;) {
    auto lock = os::FileLock::take_within(path, kPollInterval);
    if (lock || lock.error().kind != Kind::conflict || std::chrono::steady_clock::now() >= deadline)
      return lock;
    if (watch && !watch({PullProgress::Doing::waiting, 0, 0}))
      return cancelled("pulling the image: stopped");
  }
}

// Returns the digest under which a source is stored here. If the registry is unavailable, returns
// the last digest of the name, so that hosts that have used the image before can start.
Result<std::string> find_digest(const ImagePaths& image_paths, const ImageSource& source) {
  const std::string remembered = image_paths.name(source.name);
  const auto last = os::read_file(remembered, 256);
  auto digest = digest_of(source);
  if (!digest) {
    Error failure = explained(std::move(digest).error(), source.name);
    if (failure.kind == Kind::unavailable && last && os::exists(image_paths.image(*last)))
      return *last;
    return failure;
  }
  if (!last || *last != *digest) {
    TRY(os::make_directories(image_paths.images + "/names", 0700));
    TRY(os::write_file_durably(remembered, *digest, 0600));
  }
  return digest;
}

}  // namespace

std::string format_progress(const PullProgress& progress) {
  constexpr uint64_t kMebi = 1 << 20;
  std::string message;
  switch (progress.doing) {
    case PullProgress::Doing::waiting:
      return "Waiting for another host of this machine, which prepares the training image";
    case PullProgress::Doing::downloading:
      message = "Downloading the training image";
      break;
    case PullProgress::Doing::unpacking:
      message = "Unpacking the training image";
      break;
  }
  if (progress.bytes_total == 0) return message;
  return message + ": " + std::to_string(progress.bytes / kMebi) + " of " +
         std::to_string((progress.bytes_total + kMebi - 1) / kMebi) + " MiB";
}

Result<UserIds> user_of(const std::string& root, const std::string& user) {
  const std::string of = root.empty() ? "/" : root;
  const auto ids =
      TRY(find_user(user, read_inside(of, "etc/passwd"), read_inside(of, "etc/group")));
  if (ids.user >= kIdsOfRange || ids.group >= kIdsOfRange)
    return invalid("invalid user '" + shorten(user, 60) + "': container ids must be below " +
                   std::to_string(kIdsOfRange));
  TRY(check_ids(ids.user, ids.group));
  return ids;
}

namespace {

// Unpacks an image, after the paths and the form of the source have been determined.
Result<UnpackedImage> unpack(const ImageSource& source, const ImagePaths& image_paths,
                             const PullWatch& watch) {
  const auto digest = find_digest(image_paths, source);
  if (!digest) return digest.error();
  if (auto there = TRY(use_if_there(image_paths, *digest))) return *std::move(there);
  Error failure = internal("unpacking an image: not tried");
  for (int attempt = 0; attempt < kAssemblyTriesMax; attempt++) {
    const auto lock = take_image_lock(image_paths.lock(*digest), watch);
    if (!lock) return lock.error();
    if (auto there = TRY(use_if_there(image_paths, *digest))) return *std::move(there);
    auto done = Pull(pinned_to(source, *digest), image_paths, *digest, watch).run();
    if (done) {
      if (auto there = TRY(use_if_there(image_paths, *digest))) return *std::move(there);
      continue;
    }
    failure = explained(std::move(done).error(), source.name);
    if (failure.kind != Kind::not_found) break;
  }
  return failure;
}

// Images that were fetched with a login are used only for that login.
std::string directory_of(const std::string& images, const ImageRights::Login& login) {
  return private_images(images) + "/" + sha256(login.host + "\n" + login.username).substr(7, 32);
}

}  // namespace

Result<UnpackedImage> unpack_image(const std::string& source, const std::string& images_directory,
                                   const PullWatch& watch, const ImageRights& rights) {
  TRY(check_source(source));
  const ImagePaths image_paths{rights.login ? directory_of(images_directory, *rights.login)
                                            : images_directory};
  TRY(os::make_directories(image_paths.images, 0700));
  if (rights.login) {
    const auto file = TRY(LoginFile::write(image_paths.images, *rights.login));
    return unpack({source, file.path()}, image_paths, watch);
  }
  const auto held = TRY(open_layout(source, rights.oci_directories).in("the image " + source));
  if (!held) return unpack({source}, image_paths, watch);
  auto unpacked = unpack({held->source}, image_paths, watch);
  if (unpacked) return unpacked;
  // Messages show the requested name of the layout.
  Error failure = std::move(unpacked).error();
  for (size_t at; (at = failure.message.find(held->source)) != std::string::npos;)
    failure.message.replace(at, held->source.size(), source);
  return failure;
}

}  // namespace trainyard::containers
