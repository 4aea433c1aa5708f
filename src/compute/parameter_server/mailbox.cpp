#include "parameter_server/mailbox.hpp"

#include <cstring>
#include <utility>

#include "base/check.hpp"

namespace trainyard::parameter_server {
namespace {

// Returns a tag with the number of the message, and whether it is a length or `bytes` bytes.
constexpr uint64_t kLengthLabel = 1;
collectives::Tag length_tag(uint64_t number) { return {number, kLengthLabel}; }
collectives::Tag text_tag(uint64_t number, uint64_t bytes) { return {number, bytes + 2}; }

}  // namespace

Mailbox::Mailbox(std::unique_ptr<collectives::Transport> transport)
    : transport_(std::move(transport)),
      sent_(size_t(transport_->size())),
      incoming_(size_t(transport_->size())) {}

// Destroys the transport first: it may still read posted sends and write to posted receives.
Mailbox::~Mailbox() { transport_.reset(); }

void Mailbox::send(int peer, std::string text) {
  CHECK(peer != rank() && !text.empty() && text.size() <= kMessageBytesMax,
        "a message must have another rank as peer and 1 to kMessageBytesMax bytes");
  auto outgoing = std::make_unique<Outgoing>();
  outgoing->peer = peer;
  const uint64_t length = text.size();
  std::memcpy(outgoing->length.data(), &length, sizeof length);
  outgoing->text = std::move(text);
  const uint64_t number = sent_[size_t(peer)]++;
  outgoing->length_tag = length_tag(number);
  outgoing->text_tag = text_tag(number, length);
  waiting_.push_back(std::move(outgoing));
  post();
}

// Posts one batch at a time: a transport reports only when all posted messages are sent.
void Mailbox::post() {
  if (!transport_->all_sent()) return;
  posted_.clear();
  while (!waiting_.empty()) {
    posted_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
    const Outgoing& each = *posted_.back();
    transport_->send(std::span(&each.peer, 1), each.length_tag, each.length);
    transport_->send(std::span(&each.peer, 1), each.text_tag, std::as_bytes(std::span(each.text)));
  }
}

void Mailbox::post_receive(int peer) {
  Incoming& incoming = incoming_[size_t(peer)];
  if (incoming.is_posted) return;
  incoming.is_posted = true;
  if (!incoming.has_length) {
    transport_->receive(peer, length_tag(incoming.count), incoming.length);
  } else {
    transport_->receive(peer, text_tag(incoming.count, incoming.text.size()),
                        std::as_writable_bytes(std::span(incoming.text)));
  }
}

Result<bool> Mailbox::poll(int peer) {
  Incoming& incoming = incoming_[size_t(peer)];
  for (;;) {
    post_receive(peer);
    const std::byte* arrived = transport_->arrived(peer);
    if (arrived == nullptr) return false;
    incoming.is_posted = false;
    if (incoming.has_length) {
      if (arrived != reinterpret_cast<const std::byte*>(incoming.text.data()))
        std::memcpy(incoming.text.data(), arrived, incoming.text.size());
      transport_->release(peer);
      incoming.has_length = false;
      ++incoming.count;
      return true;
    }
    uint64_t length;
    std::memcpy(&length, arrived, sizeof length);
    transport_->release(peer);
    if (length == 0 || length > kMessageBytesMax)
      return corrupt("invalid message length " + std::to_string(length) + " from rank " +
                     std::to_string(peer));
    incoming.text.resize(size_t(length));
    incoming.has_length = true;
  }
}

Result<ReceivedMessage> Mailbox::receive(std::span<const int> peers) {
  CHECK(!peers.empty(), "at least one peer is needed");
  for (;;) {
    post();
    for (size_t i = 0; i < peers.size(); ++i) {
      const int peer = peers[(next_ + i) % peers.size()];
      if (TRY(poll(peer))) {
        next_ = (next_ + i + 1) % peers.size();
        return ReceivedMessage{peer, std::exchange(incoming_[size_t(peer)].text, {})};
      }
    }
    TRY(transport_->advance());
    bool arrived = false;
    for (const int peer : peers) arrived = arrived || transport_->arrived(peer) != nullptr;
    // The peer may have read the posted messages since post() checked. Then nothing would wake this
    // rank, and the messages that wait behind them would never be sent.
    const bool may_post = !waiting_.empty() && transport_->all_sent();
    if (!arrived && !may_post) TRY(transport_->wait());
  }
}

Result<void> Mailbox::flush() {
  for (;;) {
    post();
    if (waiting_.empty() && transport_->all_sent()) return ok();
    TRY(transport_->advance());
    if (!transport_->all_sent()) TRY(transport_->wait());
  }
}

}  // namespace trainyard::parameter_server
