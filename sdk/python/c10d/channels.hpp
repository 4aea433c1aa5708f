// Messages between two ranks, for send and recv: a channel for each ordered pair, which is a group of its own with a
// thread of its own, so that messages of both ways, other peers, and the collective operations pass each other. Made at
// the first message.
//
//   message   i64 tag, u64 bytes, then the bytes; little-endian
//
// A receiver takes messages as they come. One that somebody waits for under its tag goes where it is wanted; any other
// is kept until it is asked for. So tags pass each other, and those of one tag stay in order.
//
// Threads: send() and receive() from anywhere. Lifetime: end() before the last owner lets go.
// Errors:  of a work: what a Group says, with the ranks and the tag; a message of another size than the tensor.
#pragma once

#include <torch/csrc/distributed/c10d/Work.hpp>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "collectives/group.hpp"
#include "sdk/python/c10d/tensors.hpp"
#include "sdk/python/c10d/works.hpp"

namespace trainyard::sdk {

class Channels {
 public:
  // Makes a group of two, of which we are `rank`: 0 sends, 1 receives. `place` is the same on both, and only theirs.
  using Meet = std::function<Result<std::unique_ptr<collectives::Group>>(const std::string& place, int rank)>;
  Channels(int rank, int size, Meet meet);
  ~Channels();
  Channels(const Channels&) = delete;
  Channels& operator=(const Channels&) = delete;

  c10::intrusive_ptr<c10d::Work> send(const at::Tensor& tensor, int to, int tag);
  c10::intrusive_ptr<c10d::Work> receive(const at::Tensor& tensor, int from, int tag);
  // Carries out what is left, then ends the threads. Nothing may be asked for any more.
  void end();

  // Of messages of one channel that nobody has asked for: more than a stage of a pipeline hands on in a step. A rank
  // that is sent so much more than it takes would end for want of memory, with no word of why.
  static constexpr size_t kept_bytes_max = size_t{8} << 30;

 private:
  struct Channel;
  Channel& channel(int from, int to);

  const int rank_;
  const int size_;
  const Meet meet_;
  std::mutex mutex_;
  // By sender and receiver: two for each peer at most. Guarded by mutex_.
  std::map<std::pair<int, int>, std::unique_ptr<Channel>> channels_;
};

}  // namespace trainyard::sdk
