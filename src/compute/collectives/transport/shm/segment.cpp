#include "collectives/transport/shm/segment.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "base/thread_safety.hpp"

namespace trainyard::collectives {
namespace {

Result<Mapping> map(int descriptor, size_t bytes) {
  void* begin = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (begin == MAP_FAILED) return from_errno("mapping " + std::to_string(bytes) + " bytes");
  return Mapping(static_cast<std::byte*>(begin), bytes);
}

Result<int> make_memfd(const char* name, size_t bytes) {
  const int descriptor = ::memfd_create(name, MFD_CLOEXEC);
  if (descriptor < 0) return from_errno("creating a memfd");
  if (::ftruncate(descriptor, off_t(bytes)) == 0) return descriptor;
  auto error = from_errno("creating a memfd of the requested size");
  ::close(descriptor);
  return error;
}

// The pages that are registered in place.
struct InPlacePages {
  std::span<std::byte> pages;
  int descriptor;
};
Mutex in_place_mutex;  // held while the process forks
std::vector<InPlacePages> in_place GUARDED_BY(in_place_mutex);
std::once_flag in_place_fork_handlers;

// Runs in a child of fork(), which would otherwise share these pages with its parent. Makes the
// child's writes private. The child still sees changes to pages that it has not written: copying
// all pages would make every fork() as expensive as the memory is large.
void keep_in_place_private() REQUIRES(in_place_mutex) {
  for (const InPlacePages& each : in_place) {
    (void)::mmap(each.pages.data(), each.pages.size(), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_FIXED, each.descriptor, 0);
  }
}

}  // namespace

Mapping::Mapping(Mapping&& other) noexcept
    : begin_(std::exchange(other.begin_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(begin_, other.begin_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Mapping::~Mapping() {
  if (begin_) ::munmap(begin_, bytes_);
}

Result<SharedMemory> SharedMemory::make(const char* name, size_t bytes) {
  SharedMemory memory;
  memory.descriptor_ = TRY(make_memfd(name, bytes));
  memory.mapping_ = TRY(map(memory.descriptor_, bytes));
  return memory;
}

Result<SharedMemory> SharedMemory::make_at(const char* name, std::span<std::byte> pages) {
  SharedMemory memory;
  memory.descriptor_ = TRY(make_memfd(name, pages.size()));
  for (size_t written = 0; written < pages.size();) {
    const ssize_t more = ::pwrite(memory.descriptor_, pages.data() + written,
                                  pages.size() - written, off_t(written));
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0) return from_errno("copying into shared memory");
    written += size_t(more);
  }
  // Until the final mmap, nothing changes for the users of these pages.
  const MutexLock lock(in_place_mutex);
  std::call_once(in_place_fork_handlers, [] {
    // One function locks and another unlocks, which the thread safety analysis does not support.
    (void)::pthread_atfork([]() NO_THREAD_SAFETY_ANALYSIS { in_place_mutex.lock(); },
                           []() NO_THREAD_SAFETY_ANALYSIS { in_place_mutex.unlock(); },
                           []() NO_THREAD_SAFETY_ANALYSIS {
                             keep_in_place_private();
                             in_place_mutex.unlock();
                           });
  });
  if (::mmap(pages.data(), pages.size(), PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_FIXED | MAP_POPULATE, memory.descriptor_, 0) == MAP_FAILED)
    return from_errno("mapping " + std::to_string(pages.size()) + " bytes");
  memory.pages_ = pages;
  in_place.push_back({pages, memory.descriptor_});
  return memory;
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      mapping_(std::move(other.mapping_)),
      pages_(std::exchange(other.pages_, {})) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(pages_, other.pages_);
  mapping_ = std::move(other.mapping_);
  return *this;
}

SharedMemory::~SharedMemory() { end(); }

void SharedMemory::end() {
  if (!pages_.empty()) {
    const MutexLock lock(in_place_mutex);
    std::erase_if(in_place,
                  [&](const InPlacePages& each) { return each.descriptor == descriptor_; });
    // Replaces the pages by a private copy. If there is no memory for the copy, the pages stay
    // shared: they remain valid, but a peer may still have them mapped.
    void* const copy =
        ::mmap(nullptr, pages_.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy != MAP_FAILED) {
      std::memcpy(copy, pages_.data(), pages_.size());
      if (::mremap(copy, pages_.size(), pages_.size(), MREMAP_MAYMOVE | MREMAP_FIXED,
                   pages_.data()) == MAP_FAILED)
        ::munmap(copy, pages_.size());
    }
    pages_ = {};
  }
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

Result<Mapping> map_of(int64_t process, int descriptor, size_t bytes) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%lld/fd/%d", (long long)process, descriptor);
  const int opened = ::open(path, O_RDWR | O_CLOEXEC);
  if (opened < 0) return from_errno(path);
  // Never maps beyond the end of the file, where an access would raise SIGBUS, and never maps
  // special files.
  struct stat status {};
  Result<Mapping> mapping = unavailable("not the announced shared memory");
  if (::fstat(opened, &status) == 0 && S_ISREG(status.st_mode) && uint64_t(status.st_size) >= bytes)
    mapping = map(opened, bytes);
  ::close(opened);
  return mapping;
}

ProcessWatch::ProcessWatch(int64_t process)
    : descriptor_(int(::syscall(SYS_pidfd_open, process, 0))) {}
ProcessWatch::ProcessWatch(ProcessWatch&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}
ProcessWatch& ProcessWatch::operator=(ProcessWatch&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}
ProcessWatch::~ProcessWatch() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool ProcessWatch::ended() const {
  if (descriptor_ < 0) return false;
  pollfd readable{descriptor_, POLLIN, 0};
  return ::poll(&readable, 1, 0) > 0;
}

CoreSet usable_cores() {
  CoreSet cores{};
  static_assert(sizeof cores == sizeof(cpu_set_t));
  // If the set cannot be read (more cores than fit), one core is assumed, so waits yield sooner.
  if (::sched_getaffinity(0, sizeof cores, reinterpret_cast<cpu_set_t*>(cores.data())) != 0)
    cores = {1};
  return cores;
}

CoreSet join(const CoreSet& a, const CoreSet& b) {
  CoreSet both{};
  for (size_t i = 0; i < both.size(); ++i) both[i] = a[i] | b[i];
  return both;
}

int count(const CoreSet& cores) {
  int sum = 0;
  for (const uint64_t word : cores) sum += std::popcount(word);
  return sum;
}

void sleep_on(std::atomic<uint32_t>& word, uint32_t milliseconds) {
  const timespec at_most{time_t(milliseconds / 1000), long(milliseconds % 1000) * 1000000};
  ::syscall(SYS_futex, &word, FUTEX_WAIT, 1, &at_most, nullptr, 0);
}

void wake(Header& header) {
  // A full fence must separate the preceding writes from the check whether the owner sleeps. The
  // owner first announces that it sleeps, and then checks for messages.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (header.asleep.load(std::memory_order_relaxed) == 0) return;
  if (header.asleep.exchange(0) == 1)
    ::syscall(SYS_futex, &header.asleep, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

}  // namespace trainyard::collectives
