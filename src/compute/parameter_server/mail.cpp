#include "parameter_server/mail.hpp"

#include <cstring>
#include <utility>

#include "base/check.hpp"

namespace trainyard::parameter_server {
namespace {

// The number of a message and what it is: a length, or so many bytes.
constexpr uint64_t length_label = 1;
collectives::Tag length_tag(uint64_t number) { return {number, length_label}; }
collectives::Tag text_tag(uint64_t number, uint64_t bytes) { return {number, bytes + 2}; }

}  // namespace

Mail::Mail(std::unique_ptr<collectives::Transport> transport)
    : transport_(std::move(transport)),
      sent_(size_t(transport_->size())),
      incoming_(size_t(transport_->size())) {}

// The transport goes first: it may still read what was posted, and write where something was expected.
Mail::~Mail() { transport_.reset(); }

void Mail::send(int peer, std::string text) {
  CHECK(peer != rank() && !text.empty() && text.size() <= message_bytes_max, "a message to another rank");
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

// A batch at a time: whether one message of several has gone, no transport says.
void Mail::post() {
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

void Mail::expect(int peer) {
  Incoming& incoming = incoming_[size_t(peer)];
  if (incoming.expected) return;
  incoming.expected = true;
  if (!incoming.has_length) {
    transport_->receive(peer, length_tag(incoming.count), incoming.length);
  } else {
    transport_->receive(peer, text_tag(incoming.count, incoming.text.size()),
                        std::as_writable_bytes(std::span(incoming.text)));
  }
}

Result<bool> Mail::look(int peer) {
  Incoming& incoming = incoming_[size_t(peer)];
  for (;;) {
    expect(peer);
    const std::byte* arrived = transport_->arrived(peer);
    if (arrived == nullptr) return false;
    incoming.expected = false;
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
    if (length == 0 || length > message_bytes_max)
      return corrupt("rank " + std::to_string(peer) + " announces a message of " + std::to_string(length) +
                     " bytes");
    incoming.text.resize(size_t(length));
    incoming.has_length = true;
  }
}

Result<Letter> Mail::receive(std::span<const int> peers) {
  CHECK(!peers.empty(), "somebody to hear");
  for (;;) {
    post();
    for (size_t i = 0; i < peers.size(); ++i) {
      const int peer = peers[(next_ + i) % peers.size()];
      if (TRY(look(peer))) {
        next_ = (next_ + i + 1) % peers.size();
        return Letter{peer, std::exchange(incoming_[size_t(peer)].text, {})};
      }
    }
    TRY(transport_->advance());
    bool arrived = false;
    for (const int peer : peers) arrived = arrived || transport_->arrived(peer) != nullptr;
    // What was sent may have been read since post() looked: nothing would wake this rank again, and the messages that wait
    // behind it would never go.
    const bool may_post = !waiting_.empty() && transport_->all_sent();
    if (!arrived && !may_post) TRY(transport_->wait());
  }
}

Result<void> Mail::flush() {
  for (;;) {
    post();
    if (waiting_.empty() && transport_->all_sent()) return ok();
    TRY(transport_->advance());
    if (!transport_->all_sent()) TRY(transport_->wait());
  }
}

}  // namespace trainyard::parameter_server
