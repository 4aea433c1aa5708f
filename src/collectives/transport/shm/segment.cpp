#include "collectives/transport/shm/segment.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdio>
#include <utility>
#include <vector>

namespace trainyard::collectives {
namespace {

Result<Mapping> map(int descriptor, size_t bytes) {
  void* begin = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (begin == MAP_FAILED) return from_errno("mapping " + std::to_string(bytes) + " bytes");
  return Mapping(static_cast<std::byte*>(begin), bytes);
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
  memory.descriptor_ = ::memfd_create(name, MFD_CLOEXEC);
  if (memory.descriptor_ < 0) return from_errno("memfd_create");
  if (::ftruncate(memory.descriptor_, off_t(bytes)) != 0) return from_errno("a memfd of our size");
  memory.mapping_ = TRY(map(memory.descriptor_, bytes));
  return memory;
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), mapping_(std::move(other.mapping_)) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  mapping_ = std::move(other.mapping_);
  return *this;
}

SharedMemory::~SharedMemory() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<Mapping> map_of(int64_t process, int descriptor, size_t bytes) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%lld/fd/%d", (long long)process, descriptor);
  const int opened = ::open(path, O_RDWR | O_CLOEXEC);
  if (opened < 0) return from_errno(path);
  // Never map beyond its end: touching that would kill us. Nor open what is no plain memory.
  struct stat status {};
  Result<Mapping> mapping = unavailable("it is not the shared memory that we were told of");
  if (::fstat(opened, &status) == 0 && S_ISREG(status.st_mode) && uint64_t(status.st_size) >= bytes)
    mapping = map(opened, bytes);
  ::close(opened);
  return mapping;
}

std::string encode(const SegmentAddress& address) {
  char text[128];
  std::snprintf(text, sizeof text, "%lld %d %llx %llx", (long long)address.process, address.descriptor,
                (unsigned long long)address.nonce[0], (unsigned long long)address.nonce[1]);
  return text;
}

Result<SegmentAddress> decode_address(std::string_view text) {
  SegmentAddress address;
  const char* const end = text.data() + text.size();
  auto read = std::from_chars(text.data(), end, address.process);
  const auto next = [&](auto& number, int base) {
    if (read.ec != std::errc{} || read.ptr == end || *read.ptr != ' ') {
      read.ec = std::errc::invalid_argument;
      return;
    }
    read = std::from_chars(read.ptr + 1, end, number, base);
  };
  next(address.descriptor, 10);
  next(address.nonce[0], 16);
  next(address.nonce[1], 16);
  if (read.ec != std::errc{} || read.ptr != end || address.process <= 0 || address.descriptor < 0)
    return corrupt("no address of shared memory");
  return address;
}

ProcessWatch::ProcessWatch(int64_t process) : descriptor_(int(::syscall(SYS_pidfd_open, process, 0))) {}
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
  // Where it cannot be told (more cores than fit), it looks like few: then waits yield sooner.
  if (::sched_getaffinity(0, sizeof cores, reinterpret_cast<cpu_set_t*>(cores.data())) != 0) cores = {1};
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
  // Between our news and the question whether it sleeps there must be a full fence: it says that it sleeps, and
  // then looks for news.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (header.asleep.load(std::memory_order_relaxed) == 0) return;
  if (header.asleep.exchange(0) == 1)
    ::syscall(SYS_futex, &header.asleep, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

}  // namespace trainyard::collectives
