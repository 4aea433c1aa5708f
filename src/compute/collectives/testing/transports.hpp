// Wraps transports for tests: with hosts that the test chooses, and with ranks that die.
//
// Threads, errors: of the transport inside.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collectives/transport.hpp"

namespace trainyard::collectives::testing {

// Forwards everything.
class Around : public Transport {
 public:
  explicit Around(std::unique_ptr<Transport> inside) : impl_(std::move(inside)) {}
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
  Result<std::unique_ptr<Transport>> meet(const std::vector<int>& members,
                                          const std::vector<std::string>& offers,
                                          uint64_t key) override {
    return impl_->meet(members, offers, key);
  }
  void abandon(std::string_view why) override { impl_->abandon(why); }

 private:
  const std::unique_ptr<Transport> impl_;
};

// Reports the hosts that the test chooses, so that a hierarchical plan finds several on one
// machine.
class Placed final : public Around {
 public:
  Placed(std::unique_ptr<Transport> inside, std::vector<int> hosts)
      : Around(std::move(inside)), hosts_(std::move(hosts)) {}
  std::vector<int> hosts() const override { return hosts_; }

 private:
  const std::vector<int> hosts_;
};

// Simulates the death of its rank. The rank lives while `lives` returns true, which is called
// before each step of a plan: before each message is sent or expected, and for each message that a
// reduction releases. A dead rank does nothing more, and advance() reports it.
class Mortal final : public Around {
 public:
  Mortal(std::unique_ptr<Transport> inside, std::function<bool()> lives)
      : Around(std::move(inside)), lives_(std::move(lives)) {}
  void send(std::span<const int> peers, Tag tag, std::span<const std::byte> bytes) override {
    if (step()) Around::send(peers, tag, bytes);
  }
  void send_writable(int peer, Tag tag, std::span<std::byte> bytes) override {
    if (step()) Around::send_writable(peer, tag, bytes);
  }
  void notify(int peer, Tag tag, std::span<const std::byte> bytes) override {
    if (step()) Around::notify(peer, tag, bytes);
  }
  void receive_into(int peer, Tag tag, std::span<std::byte> into) override {
    if (step()) Around::receive_into(peer, tag, into);
  }
  void receive(int peer, Tag tag, std::span<std::byte> destination) override {
    if (step()) Around::receive(peer, tag, destination);
  }
  void release(int peer) override {
    if (step()) Around::release(peer);
  }
  const std::byte* arrived(int peer) override { return dead_ ? nullptr : Around::arrived(peer); }
  bool all_received() const override { return !dead_ && Around::all_received(); }
  bool all_sent() const override { return !dead_ && Around::all_sent(); }
  Result<void> advance() override {
    if (dead_) return cancelled("this rank is dead");
    return Around::advance();
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
