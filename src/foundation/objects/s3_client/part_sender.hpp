// PartSender sends the parts of one upload on its own threads, several at a time.
//
// The parts that are being sent and the one that the caller fills are all that is in memory: send()
// waits while too many are being sent, and the buffer of a part that was sent is used again.
//
// After the first error no further part is sent, and attempts of the others end.
//
// Threads: confined to one, but `Send` is called from several at the same time. The destructor ends
// attempts, and waits for the requests that are being sent.
// Errors: the first error of `Send`, again at each later call.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/result.hpp"
#include "base/thread_safety.hpp"
#include "objects/objects.hpp"

namespace trainyard::objects {

// The parts of an upload that are sent at once. With parts of 8 MiB, four hide the latency between
// two parts and use several connections of a store that limits each.
inline constexpr size_t kPartsAtOnceMax = 4;
// Limit of their bytes, for uploads with larger parts. One part is sent whatever its size.
inline constexpr uint64_t kBytesAtOnceMax = 64 << 20;

class PartSender {
 public:
  // Sends a part. When `abandoned` becomes true, it makes no further attempt.
  using Send = std::function<Result<PartInfo>(uint32_t number, std::string_view bytes,
                                              const std::atomic<bool>& abandoned)>;

  explicit PartSender(Send send) : send_(std::move(send)) {}
  ~PartSender();
  PartSender(const PartSender&) = delete;

  // Starts to send the next part, and replaces its bytes by an empty buffer.
  Result<void> send(std::string& bytes);
  // Returns the number of parts that were given to send().
  uint32_t parts() const { return parts_; }
  // Waits for all parts, and returns them in their order. Requires: no call afterwards.
  Result<std::vector<PartInfo>> finish();

 private:
  struct Part {
    uint32_t number = 0;
    std::string bytes;
  };

  static size_t at_once(uint64_t part_bytes);
  void work();
  void fail(Error error) REQUIRES(mutex_);
  void join();

  const Send send_;
  uint32_t parts_ = 0;
  std::vector<std::thread> threads_;
  std::atomic<bool> abandoned_ = false;

  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<Part> queue_ GUARDED_BY(mutex_);
  size_t unsent_ GUARDED_BY(mutex_) = 0;  // parts in the queue, and parts that are being sent
  std::vector<std::string> spares_ GUARDED_BY(mutex_);  // buffers of parts that were sent
  std::vector<PartInfo> sent_ GUARDED_BY(mutex_);
  std::optional<Error> failure_ GUARDED_BY(mutex_);
  bool ended_ GUARDED_BY(mutex_) = false;
};

}  // namespace trainyard::objects
