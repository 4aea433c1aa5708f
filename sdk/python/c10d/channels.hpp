// Messages between two ranks, for send and recv: a channel for each ordered pair, which is a group
// of its own with a thread of its own, so that messages of both ways, other peers, and the
// collective operations pass each other. Made at the first message.
//
//   message   i64 tag, u64 bytes, then the bytes; little-endian
//
// A receiver takes messages as they come. One for which a receive of its tag is posted goes to that
// receive, the oldest first; any other is kept until it is asked for. So tags pass each other, and
// those of one tag stay in order.
//
// A receive from any source takes, of its tag, the message that came first of those that are kept.
// Otherwise a thread of its own looks at the channels in turn, after the one that it took from
// last: a rank that sends without pause cannot keep the others waiting. It learns of ranks that
// have not sent before from the directory, in which a sender enters itself before its first
// message.
//
// Threads: send() and receive() from anywhere. Lifetime: end() before the last owner lets go.
// Errors:  of a work: what a Group says, with the ranks and the tag; a message of another size than
//          the tensor. Of a receive from any source also: nothing came within the timeout; a rank
//          that sent before has died, or one that is about to send does not connect. The next
//          receive goes on with the other ranks.
#pragma once

#include <torch/csrc/distributed/c10d/Work.hpp>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collectives/group.hpp"
#include "sdk/python/c10d/tensors.hpp"
#include "sdk/python/c10d/works.hpp"

namespace trainyard::sdk {

class Channels {
 public:
  struct World {
    int rank = 0;
    int size = 1;
    std::chrono::milliseconds timeout{};  // limits a receive from any source
    // Makes a group of two, of which we are `rank`: 0 sends, 1 receives. `key` is the same on
    // both, and only theirs.
    std::function<Result<std::unique_ptr<collectives::Group>>(const std::string& key, int rank)>
        connect;
    // Enters this rank in the directory of the ranks that send to `to`.
    std::function<Result<void>(int to)> announce;
    // Returns entry `number` of the directory of those that send to this rank, if it is written.
    std::function<std::optional<int>(int64_t number)> sender;
  };
  explicit Channels(World world);
  ~Channels();
  Channels(const Channels&) = delete;
  Channels& operator=(const Channels&) = delete;

  c10::intrusive_ptr<c10d::Work> send(const at::Tensor& tensor, int to, int tag);
  c10::intrusive_ptr<c10d::Work> receive(const at::Tensor& tensor, int from, int tag);
  c10::intrusive_ptr<c10d::Work> receive_from_any(const at::Tensor& tensor, int tag);
  // Carries out what is left, then ends the threads. Nothing may be asked for any more.
  void end();

  // Of messages of one channel that nobody has asked for: more than a stage of a pipeline hands on
  // in a step. A rank that is sent so much more than it takes would end for want of memory, with no
  // word of why.
  static constexpr size_t kKeptBytesMax = size_t{8} << 30;
  // Pauses between two looks at the channels, while nothing comes: short enough to be unnoticed
  // beside waking a thread, then long enough to leave the core to the computation.
  static constexpr std::chrono::microseconds kPollPauseMin{20};
  static constexpr std::chrono::microseconds kPollPauseMax{2000};
  // Between two looks at the directory, each of which asks the store.
  static constexpr std::chrono::milliseconds kDirectoryInterval{5};

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int kAnySource = -1;

  struct Channel;
  // A receive that waits for its message.
  struct Posted {
    int from;  // or kAnySource
    int64_t tag;
    Clock::time_point deadline;
    Destination destination;
    c10::intrusive_ptr<ReceivedWork> work;
  };
  // A message that came before it was asked for.
  struct Kept {
    int64_t tag;
    uint64_t number;  // in the order of arrival
    at::Tensor message;
  };
  // A receive that is over; without a work, none is.
  struct Ended {
    c10::intrusive_ptr<ReceivedWork> work;
    std::exception_ptr failure;
  };

  Channel& channel(int from, int to);
  c10::intrusive_ptr<c10d::Work> post(const at::Tensor& tensor, int from, int tag);
  // Adds a call of end_one() or end_one_of_any() for each receive that is posted. Requires: mutex_
  // is held.
  void read_for(int from);
  bool is_posted(int from);
  // Take the first receive that fits. take_first() locks mutex_; the others require it.
  template <class Fits>
  std::optional<Posted> take(const Fits& fits);
  std::optional<Posted> take_for(int from, int64_t tag);
  std::optional<Posted> take_first(int from);
  // Fills the receive with the oldest kept message that fits, if there is one. Requires: lock holds
  // mutex_; it is released when there is one.
  std::optional<Ended> take_kept(const Posted& receive, std::unique_lock<std::mutex>& lock);

  // The functions below that read require that channel.reading is held.

  Result<void> connect_once(Channel& channel);
  Result<void> send_one(Channel& channel, const at::Tensor& tensor, int64_t tag);
  // Reads the next message for `receive`, and returns what is wrong with that message alone; or
  // keeps it, and returns nothing.
  Result<std::optional<std::exception_ptr>> read_message(Channel& channel,
                                                         std::optional<Posted>& receive);
  // Reads the next message; nothing when it is kept. Without a work: the channel is lost, and no
  // receive knows yet.
  std::optional<Ended> read_one(Channel& channel);
  // Reads until a receive is over, whichever, or none of this channel is posted.
  Ended end_one(Channel& channel);
  // The same of the receives from any source.
  Ended end_one_of_any();
  // Ends a receive from any source whose time is over.
  std::optional<Ended> end_late();
  void poll_directory();
  // Look for messages without waiting; nothing when there are none. Without a work: a message was
  // kept.
  std::optional<Ended> poll_channels();
  std::optional<Ended> poll_channel(Channel& channel);

  const World world_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;  // guarded by mutex_, as all up to messages_
  // By sender and receiver: two for each peer at most.
  std::map<std::pair<int, int>, std::unique_ptr<Channel>> channels_;
  std::deque<Posted> posted_;  // receives of all channels, in call order
  // calls of end_one() and end_one_of_any() that are not over, by source
  std::map<int, size_t> readers_;
  uint64_t messages_ = 0;  // that were kept

  // Confined to poller_.
  int served_ = kAnySource;   // the source of the message that was taken last
  int64_t entries_read_ = 0;  // directory entries handled so far
  Clock::time_point directory_due_{};
  const std::shared_ptr<Worker> poller_ = new_worker();
};

}  // namespace trainyard::sdk
