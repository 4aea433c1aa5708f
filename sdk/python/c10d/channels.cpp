#include "sdk/python/c10d/channels.hpp"

#include <torch/extension.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <optional>
#include <stdexcept>

namespace trainyard::sdk {
namespace {

using at::Tensor;
using c10d::OpType;
using collectives::Group;

static_assert(std::endian::native == std::endian::little, "a header is sent as it lies in memory");
struct Header {
  int64_t tag = 0;
  uint64_t bytes = 0;
};

collectives::BufferView bytes(Header& header) { return {&header, sizeof header, collectives::Type::u8}; }

// A receive that waits for its message.
struct Posted {
  int64_t tag;
  Place place;
  c10::intrusive_ptr<PromisedWork> work;
};

// A message that came before it was asked for.
struct Kept {
  int64_t tag;
  Tensor message;
};

// A receive that is over.
struct Ended {
  c10::intrusive_ptr<PromisedWork> work;
  std::exception_ptr failure;
};

template <class List>
auto take(List& list, int64_t tag) {
  std::optional<typename List::value_type> taken;
  const auto found =
      std::find_if(list.begin(), list.end(), [&](const auto& each) { return each.tag == tag; });
  if (found != list.end()) {
    taken = std::move(*found);
    list.erase(found);
  }
  return taken;
}

}  // namespace

struct Channels::Channel {
  Channel(int from, int to, bool sends, const Meet& meet)
      : name("from rank " + std::to_string(from) + " to rank " + std::to_string(to)),
        sends(sends),
        meet(meet) {}

  std::exception_ptr failure(int64_t tag, const std::string& words) const {
    return std::make_exception_ptr(
        std::runtime_error("trainyard: " + name + ", tag " + std::to_string(tag) +
                           " (here the sender is rank 0 and the receiver rank 1): " + words));
  }

  Result<void> meet_once() {
    if (!group) group = TRY(meet("between " + name, sends ? 0 : 1));
    return ok();
  }

  Result<void> send_one(const Tensor& tensor, int64_t tag) {
    TRY(meet_once());
    Header header{tag, bytes_of(tensor)};
    TRY(group->send(1, bytes(header)));
    return group->send(1, bytes(tensor));
  }

  // -> what is wrong with it
  std::exception_ptr fill(const Posted& receive, const Tensor& message) const {
    const size_t wanted = bytes_of(receive.place.written), came = bytes_of(message);
    if (wanted != came)
      return failure(receive.tag, "the message has " + std::to_string(came) +
                                      " bytes, and the tensor that receives it " + std::to_string(wanted));
    if (came > 0) std::memcpy(receive.place.written.data_ptr(), message.data_ptr(), came);
    receive.place.settle();
    return nullptr;
  }

  // Takes messages until somebody waited for one: `receive`, and what is wrong with that message alone.
  Result<std::exception_ptr> take_messages(std::optional<Posted>& receive) {
    TRY(meet_once());
    for (;;) {
      Header header;
      TRY(group->receive(0, bytes(header)));
      std::unique_lock lock(mutex);
      receive = take(posted, header.tag);
      if (!receive && header.bytes > kept_bytes_max - kept_bytes)
        return exhausted("more than " + std::to_string(kept_bytes_max) +
                         " bytes came under other tags than those that are received; the last was tag " +
                         std::to_string(header.tag));
      lock.unlock();
      if (receive && bytes_of(receive->place.written) == header.bytes) {
        TRY(group->receive(0, bytes(receive->place.written)));
        receive->place.settle();
        return std::exception_ptr();
      }
      const Tensor message = at::empty({int64_t(header.bytes)}, at::kByte);
      TRY(group->receive(0, bytes(message)));
      lock.lock();
      if (!receive) receive = take(posted, header.tag);  // asked for meanwhile
      if (!receive) {
        kept.push_back({header.tag, message});
        kept_bytes += header.bytes;
        continue;
      }
      lock.unlock();
      return fill(*receive, message);
    }
  }

  // Until a receive is over, whichever: there is a call of this for each that is posted.
  Ended end_one() {
    std::optional<Posted> receive;
    std::string words;
    try {
      const at::NoGradGuard no_gradient;
      const auto taken = take_messages(receive);
      if (taken) return {receive->work, *taken};
      words = taken.error().message;
    } catch (const std::exception& failure) {  // torch's own: no memory
      words = failure.what();
    }
    if (group) group->abandon(words);  // in the middle of a message nothing more can be read
    if (!receive) {
      const std::scoped_lock lock(mutex);
      receive = std::move(posted.front());
      posted.pop_front();
    }
    return {receive->work, failure(receive->tag, words)};
  }

  const std::string name;
  const bool sends;
  const Meet& meet;
  std::unique_ptr<Group> group;  // by the worker
  std::shared_ptr<Worker> worker = new_worker();
  std::mutex mutex;
  // Guarded by mutex. No tag is in both.
  std::deque<Posted> posted;
  std::deque<Kept> kept;
  size_t kept_bytes = 0;
};

Channels::Channels(int rank, int size, Meet meet) : rank_(rank), size_(size), meet_(std::move(meet)) {}
Channels::~Channels() = default;

Channels::Channel& Channels::channel(int from, int to) {
  TORCH_CHECK(from != to && from >= 0 && to >= 0 && from < size_ && to < size_,
              "trainyard: no message from rank ", from, " to rank ", to, " in a group of ", size_);
  const std::scoped_lock lock(mutex_);
  auto& found = channels_[{from, to}];
  if (!found) found = std::make_unique<Channel>(from, to, from == rank_, meet_);
  return *found;
}

c10::intrusive_ptr<c10d::Work> Channels::send(const Tensor& tensor, int to, int tag) {
  Channel& to_them = channel(rank_, to);
  auto work = c10::make_intrusive<StartedWork>(rank_, OpType::SEND, "trainyard:send", to_them.worker,
                                               Tensors{tensor});
  work->begin(
      work,
      [&to_them, in = tensor.contiguous(), tag] {
        if (auto sent = to_them.send_one(in, tag); !sent)
          std::rethrow_exception(to_them.failure(tag, sent.error().message));
      },
      Worker::Start::now);
  return work;
}

c10::intrusive_ptr<c10d::Work> Channels::receive(const Tensor& tensor, int from, int tag) {
  Channel& from_them = channel(from, rank_);
  const Posted receive{
      tag, Place(tensor),
      c10::make_intrusive<PromisedWork>(rank_, OpType::RECV, "trainyard:recv", Tensors{tensor})};
  std::unique_lock lock(from_them.mutex);
  if (const auto kept = take(from_them.kept, tag)) {
    from_them.kept_bytes -= bytes_of(kept->message);
    lock.unlock();
    const at::NoGradGuard no_gradient;
    receive.work->complete(from_them.fill(receive, kept->message));
    return receive.work;
  }
  from_them.posted.push_back(receive);
  lock.unlock();
  const auto ended = std::make_shared<Ended>();  // shared by what ends a receive and what tells of it
  from_them.worker->add([&from_them, ended] { *ended = from_them.end_one(); },
                        [ended] { ended->work->complete(ended->failure); });
  return receive.work;
}

void Channels::end() {
  const std::scoped_lock lock(mutex_);
  for (const auto& [ranks, channel] : channels_) channel->worker->end();
}

}  // namespace trainyard::sdk
