// Channels sends and receives messages between two ranks. Each ordered pair of ranks has a channel:
// a group of two ranks with a thread of its own. So messages in both directions, messages of other
// peers and collective operations do not delay each other. A channel is created for the first
// message.
//
//   message   i64 tag, u64 bytes, then the bytes; little-endian
//
// A receiver reads messages in their order. A message completes the oldest posted receive of its
// tag; without one, it is buffered until a receive is posted. So messages of different tags may
// overtake each other, and messages of one tag may not.
//
// A receive from any source gets the buffered message of its tag that arrived first. If there is
// none, a separate thread polls the channels, starting after the one from which it read last, so
// that a rank that sends continuously does not starve the others. It finds ranks that have not sent
// before in a directory, to which a sender adds itself before its first message.
//
// Threads: send() and receive() from any thread. Lifetime: call end() before the last owner is
// destroyed.
// Errors:  of a work: those of a Group, with the ranks and the tag; a message whose size differs
// from the tensor's. A receive from any source also fails if no message arrives within the timeout,
// if a rank that sent before has died, or if a sender does not connect. The next receive continues
// with the other ranks.
#pragma once

#include <torch/csrc/distributed/c10d/Work.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/thread_safety.hpp"
#include "collectives/group.hpp"
#include "sdk/python/c10d/tensors.hpp"
#include "sdk/python/c10d/works.hpp"

namespace trainyard::sdk {

class Channels {
 public:
  struct Settings {
    int rank = 0;
    int size = 1;
    std::chrono::milliseconds timeout{};  // limits a receive from any source
    // Makes a group of two, in which this process is `rank`: 0 sends, 1 receives. Both pass the
    // same `key`, which no other pair uses.
    std::function<Result<std::unique_ptr<collectives::Group>>(const std::string& key, int rank)>
        connect;
    // Adds this rank to the directory of the ranks that send to `to`.
    std::function<Result<void>(int to)> announce;
    // Returns entry `number` of the directory of the ranks that send to this rank, if it is
    // written.
    std::function<std::optional<int>(int64_t number)> sender;
  };
  explicit Channels(Settings settings);
  ~Channels();
  Channels(const Channels&) = delete;
  Channels& operator=(const Channels&) = delete;

  c10::intrusive_ptr<c10d::Work> send(const at::Tensor& tensor, int to, int tag);
  c10::intrusive_ptr<c10d::Work> receive(const at::Tensor& tensor, int from, int tag);
  c10::intrusive_ptr<c10d::Work> receive_from_any(const at::Tensor& tensor, int tag);
  // Completes the remaining operations, then ends the threads. Requires: no calls follow.
  void end();

  // Limits the buffered messages of one channel; more than a stage of a pipeline sends in a step.
  // Without a limit, a rank that receives too little would run out of memory without an
  // explanation.
  static constexpr size_t kBufferedBytesMax = size_t{8} << 30;
  // Pauses between two polls of the channels while nothing arrives: first short compared to waking
  // a thread, then long enough to leave the core to the computation.
  static constexpr std::chrono::microseconds kPollPauseMin{20};
  static constexpr std::chrono::microseconds kPollPauseMax{2000};
  // Pause between two polls of the directory, each of which reads the store.
  static constexpr std::chrono::milliseconds kDirectoryInterval{5};

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int kAnySource = -1;

  // A receive that waits for its message.
  struct Posted {
    int from;  // a rank, or kAnySource
    int64_t tag;
    Clock::time_point deadline;
    Destination destination;
    c10::intrusive_ptr<ReceivedWork> work;
  };
  // A message that arrived before its receive was posted.
  struct Buffered {
    int64_t tag;
    uint64_t number;  // order of arrival
    at::Tensor message;
  };
  // A completed receive; without a work, no receive was completed.
  struct Ended {
    c10::intrusive_ptr<ReceivedWork> work;
    std::exception_ptr failure;
  };

  struct Channel {
    Channel(int from, int to, bool sends);

    std::exception_ptr failure(int64_t tag, const std::string& message) const;
    // Copies a buffered message. Returns its error, or null.
    std::exception_ptr fill(const Posted& receive, const at::Tensor& message) const;

    const std::string name;
    const int from, to;
    const bool sends;
    const std::shared_ptr<Worker> worker = new_worker();

    // Held while a message is sent or read. Locked before the mutex of the channels.
    Mutex transfer;
    std::unique_ptr<collectives::Group> group GUARDED_BY(transfer);
    // receives from any source continue without it
    bool lost GUARDED_BY(transfer) = false;
    std::string lost_message GUARDED_BY(transfer);  // until a receive has failed with it

    // Guarded by the mutex of the channels. No tag is in both `buffered` and those posted for this
    // channel.
    std::deque<Buffered> buffered;
    size_t buffered_bytes = 0;
  };
  // A buffered message that completes a receive.
  struct Taken {
    const Channel& channel;
    at::Tensor message;
  };

  Channel& channel(int from, int to);
  c10::intrusive_ptr<c10d::Work> post(const at::Tensor& tensor, int from, int tag);
  // Starts a call of end_one() or end_one_of_any() for each posted receive.
  void read_for(int from) REQUIRES(mutex_);
  bool is_posted(int from);
  // Remove and return the first posted receive that fits.
  template <class Fits>
  std::optional<Posted> take(const Fits& fits) REQUIRES(mutex_);
  std::optional<Posted> take_for(int from, int64_t tag) REQUIRES(mutex_);
  std::optional<Posted> take_first(int from) EXCLUDES(mutex_);
  // Removes and returns the oldest buffered message that fits the receive, if there is one.
  std::optional<Taken> take_buffered(const Posted& receive) REQUIRES(mutex_);

  Result<void> connect_once(Channel& channel) REQUIRES(channel.transfer);
  Result<void> send_one(Channel& channel, const at::Tensor& tensor, int64_t tag);
  // Reads the next message for `receive`. Returns the error of only that message, or null; returns
  // nullopt if the message was buffered.
  Result<std::optional<std::exception_ptr>> read_message(Channel& channel,
                                                         std::optional<Posted>& receive)
      REQUIRES(channel.transfer);
  // Reads the next message. Returns nullopt if it was buffered; a result without a work if the
  // channel is lost and no receive has failed yet.
  std::optional<Ended> read_one(Channel& channel) REQUIRES(channel.transfer);
  // Reads until any receive is completed, or no receive of this channel is posted.
  Ended end_one(Channel& channel);
  // Does the same for receives from any source.
  Ended end_one_of_any();
  // Fails a receive from any source whose deadline has passed.
  std::optional<Ended> end_late();
  void poll_directory();
  // Poll for messages without waiting. Return nullopt if there are none, and a result without a
  // work if a message was buffered.
  std::optional<Ended> poll_channels();
  std::optional<Ended> poll_channel(Channel& channel);

  const Settings settings_;
  Mutex mutex_;
  ConditionVariable changed_;
  bool ending_ GUARDED_BY(mutex_) = false;
  // By sender and receiver; at most two for each peer.
  std::map<std::pair<int, int>, std::unique_ptr<Channel>> channels_ GUARDED_BY(mutex_);
  std::deque<Posted> posted_ GUARDED_BY(mutex_);  // receives of all channels, in call order
  // running calls of end_one() and end_one_of_any(), by source
  std::map<int, size_t> readers_ GUARDED_BY(mutex_);
  uint64_t messages_ GUARDED_BY(mutex_) = 0;  // buffered so far

  // Confined to poller_.
  int served_ = kAnySource;   // the source of the last message
  int64_t entries_read_ = 0;  // directory entries handled so far
  Clock::time_point directory_due_{};
  const std::shared_ptr<Worker> poller_ = new_worker();
};

}  // namespace trainyard::sdk
