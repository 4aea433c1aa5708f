#include "sdk/python/c10d/channels.hpp"

#include <torch/extension.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>

namespace trainyard::sdk {
namespace {

using at::Tensor;
using c10d::OpType;
using collectives::Group;

static_assert(std::endian::native == std::endian::little, "a header is sent in memory order");
struct Header {
  int64_t tag = 0;
  uint64_t bytes = 0;
};

collectives::BufferView bytes(Header& header) {
  return {&header, sizeof header, collectives::Type::u8};
}

std::exception_ptr failure_with(const std::string& text) {
  return std::make_exception_ptr(std::runtime_error("trainyard: " + text));
}

}  // namespace

Channels::Channel::Channel(int from, int to, bool sends)
    : name("from rank " + std::to_string(from) + " to rank " + std::to_string(to)),
      from(from),
      to(to),
      sends(sends) {}

std::exception_ptr Channels::Channel::failure(int64_t tag, const std::string& message) const {
  return failure_with(name + ", tag " + std::to_string(tag) +
                      " (here the sender is rank 0 and the receiver rank 1): " + message);
}

std::exception_ptr Channels::Channel::fill(const Posted& receive, const Tensor& message) const {
  const size_t wanted = bytes_of(receive.destination.contiguous), received = bytes_of(message);
  if (wanted != received)
    return failure(receive.tag, "the message has " + std::to_string(received) +
                                    " bytes, and the tensor that receives it " +
                                    std::to_string(wanted));
  if (received > 0)
    std::memcpy(receive.destination.contiguous.data_ptr(), message.data_ptr(), received);
  receive.destination.copy_back();
  return nullptr;
}

Channels::Channels(Settings settings) : settings_(std::move(settings)) {}
Channels::~Channels() = default;

Channels::Channel& Channels::channel(int from, int to) {
  TORCH_CHECK(from != to && from >= 0 && to >= 0 && from < settings_.size && to < settings_.size,
              "trainyard: no message from rank ", from, " to rank ", to, " in a group of ",
              settings_.size);
  const MutexLock lock(mutex_);
  auto& found = channels_[{from, to}];
  if (!found) found = std::make_unique<Channel>(from, to, from == settings_.rank);
  return *found;
}

// -- sends and receives

c10::intrusive_ptr<c10d::Work> Channels::send(const Tensor& tensor, int to, int tag) {
  Channel& to_them = channel(settings_.rank, to);
  auto work = c10::make_intrusive<StartedWork>(settings_.rank, OpType::SEND, "trainyard:send",
                                               to_them.worker, Tensors{tensor});
  work->begin(
      work,
      [this, &to_them, in = tensor.contiguous(), tag] {
        if (auto sent = send_one(to_them, in, tag); !sent)
          std::rethrow_exception(to_them.failure(tag, sent.error().message));
      },
      Worker::Start::now);
  return work;
}

c10::intrusive_ptr<c10d::Work> Channels::receive(const Tensor& tensor, int from, int tag) {
  (void)channel(from, settings_.rank);
  return post(tensor, from, tag);
}

c10::intrusive_ptr<c10d::Work> Channels::receive_from_any(const Tensor& tensor, int tag) {
  TORCH_CHECK(settings_.size > 1, "trainyard: no message from any rank in a group of 1");
  return post(tensor, kAnySource, tag);
}

c10::intrusive_ptr<c10d::Work> Channels::post(const Tensor& tensor, int from, int tag) {
  const auto type = from == kAnySource ? OpType::RECVANYSOURCE : OpType::RECV;
  auto work =
      c10::make_intrusive<ReceivedWork>(settings_.rank, type, "trainyard:recv", Tensors{tensor});
  MutexLock lock(mutex_);
  const Posted receive{from, tag, Clock::now() + settings_.timeout, Destination(tensor), work};
  if (const auto taken = take_buffered(receive)) {
    lock.unlock();
    const at::NoGradGuard no_gradient;
    work->set_source(taken->channel.from);
    work->complete(taken->channel.fill(receive, taken->message));
    return work;
  }
  posted_.push_back(receive);
  read_for(from);
  return work;
}

void Channels::read_for(int from) {
  const auto posted = size_t(std::count_if(posted_.begin(), posted_.end(),
                                           [&](const Posted& each) { return each.from == from; }));
  const auto found = from == kAnySource ? nullptr : channels_.at({from, settings_.rank}).get();
  for (size_t& calls = readers_[from]; calls < posted; ++calls) {
    // shared by the function that completes a receive and the one that reports it
    const auto ended = std::make_shared<Ended>();
    (found ? found->worker : poller_)
        ->add([this, found, ended] { *ended = found ? end_one(*found) : end_one_of_any(); },
              [this, from, ended] {
                {
                  const MutexLock lock(mutex_);
                  --readers_[from];
                  if (!ending_)
                    read_for(from);  // the call may have completed a receive from another source
                }
                if (ended->work) ended->work->complete(ended->failure);
              });
  }
}

void Channels::end() {
  std::vector<Channel*> all;
  {
    const MutexLock lock(mutex_);
    ending_ = true;
    for (const auto& [ranks, channel] : channels_) all.push_back(channel.get());
  }
  changed_.notify_all();
  poller_->end();
  for (Channel* each : all) each->worker->end();
}

// -- receives and messages that wait for each other

bool Channels::is_posted(int from) {
  const MutexLock lock(mutex_);
  return std::any_of(posted_.begin(), posted_.end(),
                     [&](const Posted& each) { return each.from == from; });
}

template <class Fits>
std::optional<Channels::Posted> Channels::take(const Fits& fits) {
  const auto found = std::find_if(posted_.begin(), posted_.end(), fits);
  if (found == posted_.end()) return std::nullopt;
  Posted taken = std::move(*found);
  posted_.erase(found);
  return taken;
}

std::optional<Channels::Posted> Channels::take_for(int from, int64_t tag) {
  return take([&](const Posted& each) {
    return each.tag == tag && (each.from == from || each.from == kAnySource);
  });
}

std::optional<Channels::Posted> Channels::take_first(int from) {
  const MutexLock lock(mutex_);
  return take([&](const Posted& each) { return each.from == from; });
}

std::optional<Channels::Taken> Channels::take_buffered(const Posted& receive) {
  Channel* first = nullptr;
  std::deque<Buffered>::iterator message;
  for (const auto& [ranks, channel] : channels_) {
    if (channel->sends || (receive.from != kAnySource && channel->from != receive.from)) continue;
    const auto found = std::find_if(channel->buffered.begin(), channel->buffered.end(),
                                    [&](const Buffered& each) { return each.tag == receive.tag; });
    if (found == channel->buffered.end() || (first && message->number < found->number)) continue;
    first = channel.get();
    message = found;
  }
  if (!first) return std::nullopt;
  Taken taken{*first, message->message};
  first->buffered.erase(message);
  first->buffered_bytes -= bytes_of(taken.message);
  return taken;
}

// -- one channel

Result<void> Channels::connect_once(Channel& channel) {
  if (channel.group) return ok();
  if (channel.sends) TRY(settings_.announce(channel.to));
  channel.group = TRY(settings_.connect("between " + channel.name, channel.sends ? 0 : 1));
  return ok();
}

Result<void> Channels::send_one(Channel& channel, const Tensor& tensor, int64_t tag) {
  const MutexLock transfer(channel.transfer);
  TRY(connect_once(channel));
  Header header{tag, bytes_of(tensor)};
  TRY(channel.group->send(1, bytes(header)));
  return channel.group->send(1, sdk::bytes(tensor));
}

Result<std::optional<std::exception_ptr>> Channels::read_message(Channel& channel,
                                                                 std::optional<Posted>& receive) {
  TRY(connect_once(channel));
  Header header;
  TRY(channel.group->receive(0, bytes(header)));
  MutexLock lock(mutex_);
  receive = take_for(channel.from, header.tag);
  if (!receive && header.bytes > kBufferedBytesMax - channel.buffered_bytes)
    return exhausted("more than " + std::to_string(kBufferedBytesMax) +
                     " bytes have tags for which no receive is pending; the last was tag " +
                     std::to_string(header.tag));
  lock.unlock();
  if (receive && bytes_of(receive->destination.contiguous) == header.bytes) {
    TRY(channel.group->receive(0, sdk::bytes(receive->destination.contiguous)));
    receive->destination.copy_back();
    return std::optional(std::exception_ptr());
  }
  const Tensor message = at::empty({int64_t(header.bytes)}, at::kByte);
  TRY(channel.group->receive(0, sdk::bytes(message)));
  lock.lock();
  if (!receive) receive = take_for(channel.from, header.tag);  // posted meanwhile
  if (!receive) {
    channel.buffered.push_back({header.tag, ++messages_, message});
    channel.buffered_bytes += header.bytes;
    return std::optional<std::exception_ptr>();
  }
  lock.unlock();
  return std::optional(channel.fill(*receive, message));
}

std::optional<Channels::Ended> Channels::read_one(Channel& channel) {
  std::optional<Posted> receive;
  std::string message;
  try {
    const at::NoGradGuard no_gradient;
    const auto read = read_message(channel, receive);
    if (read && !*read) return std::nullopt;
    if (read) {
      receive->work->set_source(channel.from);
      return Ended{receive->work, **read};
    }
    message = read.error().message;
  } catch (const std::exception& failure) {  // of torch: no memory
    message = failure.what();
  }
  // nothing can be read after a part of a message
  if (channel.group) channel.group->abandon(message);
  channel.lost = true;
  if (receive) return Ended{receive->work, channel.failure(receive->tag, message)};
  channel.lost_message = message;
  return Ended{};
}

Channels::Ended Channels::end_one(Channel& channel) {
  const MutexLock transfer(channel.transfer);
  while (is_posted(channel.from)) {
    const auto ended = read_one(channel);
    if (!ended) continue;  // the message is buffered
    if (ended->work) return *ended;
    if (const auto receive = take_first(channel.from))
      return {receive->work, channel.failure(receive->tag, channel.lost_message)};
  }
  return {};
}

// -- any channel

Channels::Ended Channels::end_one_of_any() {
  auto pause = kPollPauseMin;
  while (is_posted(kAnySource)) {
    if (auto late = end_late()) return *late;
    poll_directory();
    if (auto ended = poll_channels()) {
      if (ended->work) return *ended;
      pause = kPollPauseMin;
      continue;  // a message was buffered
    }
    MutexLock lock(mutex_);
    changed_.wait_for(lock, pause, [&]() REQUIRES(mutex_) { return ending_; });
    pause = std::min(2 * pause, kPollPauseMax);
  }
  return {};
}

std::optional<Channels::Ended> Channels::end_late() {
  const MutexLock lock(mutex_);
  const auto now = Clock::now();
  const bool ending = ending_;
  const auto late = take([&](const Posted& each) {
    return each.from == kAnySource && (ending || now >= each.deadline);
  });
  if (!late) return std::nullopt;
  std::string text = "from any rank to rank " + std::to_string(settings_.rank) + ", tag " +
                     std::to_string(late->tag) + ": ";
  if (ending) return Ended{late->work, failure_with(text + "the group has ended")};
  text += "no message within " + std::to_string(settings_.timeout.count()) + " ms; ";
  std::string ranks;
  for (const auto& [pair, channel] : channels_)
    if (!channel->sends) ranks += " " + std::to_string(channel->from);
  text += ranks.empty() ? "no rank has sent anything" : "ranks that have sent something:" + ranks;
  return Ended{late->work, failure_with(text)};
}

void Channels::poll_directory() {
  const auto now = Clock::now();
  if (entries_read_ >= settings_.size - 1 || now < directory_due_) return;
  directory_due_ = now + kDirectoryInterval;
  while (const auto from = settings_.sender(entries_read_)) {
    ++entries_read_;
    if (*from < 0 || *from >= settings_.size || *from == settings_.rank) continue;
    Channel& each = channel(*from, settings_.rank);
    // Connects on the channel's own thread: a rank that does not connect must not delay others.
    each.worker->add(
        [this, &each] {
          const MutexLock transfer(each.transfer);
          const auto group = connect_once(each);
          if (group || each.lost) return;
          each.lost = true;
          each.lost_message = group.error().message;
        },
        [] {});
  }
}

std::optional<Channels::Ended> Channels::poll_channels() {
  std::vector<Channel*> all;
  {
    const MutexLock lock(mutex_);
    for (const auto& [ranks, channel] : channels_)
      if (!channel->sends) all.push_back(channel.get());
  }
  // Begins after the rank that was served last.
  const auto next = std::find_if(all.begin(), all.end(),
                                 [&](const Channel* each) { return each->from > served_; });
  std::rotate(all.begin(), next, all.end());
  for (Channel* each : all) {
    auto ended = poll_channel(*each);
    if (!ended) continue;
    served_ = each->from;
    return ended;
  }
  return std::nullopt;
}

std::optional<Channels::Ended> Channels::poll_channel(Channel& channel) {
  if (!channel.transfer.try_lock())
    return std::nullopt;  // the current reader handles these messages
  const MutexLock transfer(channel.transfer, std::adopt_lock);
  if (channel.group && !channel.lost) {
    const auto has = channel.group->has_message(0);
    if (has && !*has) return std::nullopt;
    if (has) {
      auto ended = read_one(channel);
      if (!ended || ended->work) return ended ? ended : Ended{};
    } else {
      channel.lost = true;
      channel.lost_message = has.error().message;
    }
  }
  if (!channel.lost || channel.lost_message.empty()) return std::nullopt;
  const auto receive = take_first(kAnySource);
  if (!receive) return std::nullopt;
  return Ended{receive->work,
               channel.failure(receive->tag, std::exchange(channel.lost_message, {}))};
}

}  // namespace trainyard::sdk
