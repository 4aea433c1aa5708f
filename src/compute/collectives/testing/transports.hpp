// Wraps transports for tests: with hosts that the test chooses, and with ranks that die.
//
// Threads, errors: as the wrapped transport.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collectives/transport.hpp"

namespace trainyard::collectives::testing {

// ForwardingTransport forwards every call to another transport.
class ForwardingTransport : public Transport {
 public:
  explicit ForwardingTransport(std::unique_ptr<Transport> inside) : impl_(std::move(inside)) {}
  int rank() const override { return impl_->rank(); }
  int size() const override { return impl_->size(); }
  void send(std::span<const int> peers, Tag tag, std::span<const std::byte> bytes) override {
    impl_->send(peers, tag, bytes);
  }
  void send_writable(int peer, Tag tag, std::span<std::byte> bytes) override {
    impl_->send_writable(peer, tag, bytes);
  }
  void notify(int peer, Tag tag, std::span<const std::byte> bytes) override {
    impl_->notify(peer, tag, bytes);
  }
  void receive_into(int peer, Tag tag, std::span<std::byte> into) override {
    impl_->receive_into(peer, tag, into);
  }
  void receive(int peer, Tag tag, std::span<std::byte> destination) override {
    impl_->receive(peer, tag, destination);
  }
  const std::byte* arrived(int peer) override { return impl_->arrived(peer); }
  std::byte* writable(int peer) override { return impl_->writable(peer); }
  void release(int peer) override { impl_->release(peer); }
  Result<bool> has_message(int peer) override { return impl_->has_message(peer); }
  bool all_received() const override { return impl_->all_received(); }
  bool all_sent() const override { return impl_->all_sent(); }
  Result<void> advance() override { return impl_->advance(); }
  Result<void> wait() override { return impl_->wait(); }
  std::vector<int> hosts() const override { return impl_->hosts(); }
  RegisteredMemory* registered() override { return impl_->registered(); }
  Result<std::string> offer() override { return impl_->offer(); }
  Result<std::unique_ptr<Transport>> connect_members(const std::vector<int>& members,
                                                     const std::vector<std::string>& offers,
                                                     uint64_t key) override {
    return impl_->connect_members(members, offers, key);
  }
  void abandon(std::string_view why) override { impl_->abandon(why); }

 private:
  const std::unique_ptr<Transport> impl_;
};

// TransportOnHosts reports the hosts that the test chooses, so that hierarchical plans can be
// tested on one machine.
class TransportOnHosts final : public ForwardingTransport {
 public:
  TransportOnHosts(std::unique_ptr<Transport> inside, std::vector<int> hosts)
      : ForwardingTransport(std::move(inside)), hosts_(std::move(hosts)) {}
  std::vector<int> hosts() const override { return hosts_; }

 private:
  const std::vector<int> hosts_;
};

// MortalTransport simulates the death of its rank. The rank lives while `lives` returns true.
// `lives` is called before each step of a plan: before each message is sent or expected, and for
// each message that a reduction releases. A dead rank does nothing more, and advance() reports it.
class MortalTransport final : public ForwardingTransport {
 public:
  MortalTransport(std::unique_ptr<Transport> inside, std::function<bool()> lives)
      : ForwardingTransport(std::move(inside)), lives_(std::move(lives)) {}
  void send(std::span<const int> peers, Tag tag, std::span<const std::byte> bytes) override {
    if (step()) ForwardingTransport::send(peers, tag, bytes);
  }
  void send_writable(int peer, Tag tag, std::span<std::byte> bytes) override {
    if (step()) ForwardingTransport::send_writable(peer, tag, bytes);
  }
  void notify(int peer, Tag tag, std::span<const std::byte> bytes) override {
    if (step()) ForwardingTransport::notify(peer, tag, bytes);
  }
  void receive_into(int peer, Tag tag, std::span<std::byte> into) override {
    if (step()) ForwardingTransport::receive_into(peer, tag, into);
  }
  void receive(int peer, Tag tag, std::span<std::byte> destination) override {
    if (step()) ForwardingTransport::receive(peer, tag, destination);
  }
  void release(int peer) override {
    if (step()) ForwardingTransport::release(peer);
  }
  const std::byte* arrived(int peer) override {
    return dead_ ? nullptr : ForwardingTransport::arrived(peer);
  }
  bool all_received() const override { return !dead_ && ForwardingTransport::all_received(); }
  bool all_sent() const override { return !dead_ && ForwardingTransport::all_sent(); }
  Result<void> advance() override {
    if (dead_) return cancelled("this rank is dead");
    return ForwardingTransport::advance();
  }

 private:
  bool step() {
    dead_ = dead_ || !lives_();
    return !dead_;
  }

  const std::function<bool()> lives_;
  bool dead_ = false;
};

}  // namespace trainyard::collectives::testing
