// Makes groups within one process, and counts the bytes that each rank sends.
//
// Threads: each rank has its own. Errors: a failed expectation of the calling test.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "collectives/group.hpp"
#include "collectives/testing/transports.hpp"
#include "collectives/transport/memory/memory_transport.hpp"
#include "parallel/torch.hpp"

namespace trainyard::parallel::testing {

class CountedTransport final : public collectives::testing::ForwardingTransport {
 public:
  CountedTransport(std::unique_ptr<collectives::Transport> inside, std::atomic<uint64_t>& bytes)
      : ForwardingTransport(std::move(inside)), bytes_(bytes) {}
  void send(std::span<const int> peers, collectives::Tag tag,
            std::span<const std::byte> bytes) override {
    bytes_ += peers.size() * bytes.size();
    ForwardingTransport::send(peers, tag, bytes);
  }
  void send_writable(int peer, collectives::Tag tag, std::span<std::byte> bytes) override {
    bytes_ += bytes.size();
    ForwardingTransport::send_writable(peer, tag, bytes);
  }
  void notify(int peer, collectives::Tag tag, std::span<const std::byte> bytes) override {
    bytes_ += bytes.size();
    ForwardingTransport::notify(peer, tag, bytes);
  }

 private:
  std::atomic<uint64_t>& bytes_;
};

// Calls play(group, bytes) on a thread for each rank; `bytes` counts what the rank has sent.
template <class Play>
void on_counted_ranks(int ranks, const Play& play) {
  auto transports = collectives::connect_in_memory(ranks);
  std::vector<std::atomic<uint64_t>> bytes(static_cast<size_t>(ranks));
  std::vector<std::unique_ptr<collectives::Group>> groups(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < size_t(ranks); ++rank)
    threads.emplace_back([&, rank] {
      at::set_num_threads(1);
      auto group = collectives::Group::make(
          std::make_unique<CountedTransport>(std::move(transports[rank]), bytes[rank]),
          {.deterministic = true});
      ASSERT_TRUE(group) << group.error().message;
      groups[rank] = std::move(*group);
      play(*groups[rank], bytes[rank]);
    });
  for (std::thread& each : threads) each.join();
}

}  // namespace trainyard::parallel::testing
