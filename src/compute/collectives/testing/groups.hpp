// Runs groups whose ranks are threads of one test.
//
// Threads: each rank has its own. Errors: a failed expectation of the calling test.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "collectives/group.hpp"

namespace trainyard::collectives::testing {

// Returns loopback addresses (127/8) that no other test process of this machine uses.
inline std::vector<Endpoint> endpoints(int ranks) {
  static std::atomic<int> groups = 0;
  const int group = groups++;
  const auto process = unsigned(getpid());
  std::vector<Endpoint> all;
  for (int rank = 0; rank < ranks; ++rank) {
    all.push_back({"127." + std::to_string(1 + process / 250 % 250) + "." +
                       std::to_string(1 + process % 250) + "." + std::to_string(1 + rank),
                   uint16_t(7830 + group)});
  }
  return all;
}

enum class LinkKind { tcp, shared };

inline TcpOptions options(const std::vector<Endpoint>& endpoints, int rank,
                          LinkKind links = LinkKind::shared) {
  TcpOptions options;
  options.endpoints = endpoints;
  options.rank = rank;
  options.shared_value = "group_test";
  options.join_deadline = 60s;
  options.peer_timeout = 60s;
  options.share_memory = links == LinkKind::shared;
  options.group.deterministic = true;
  return options;
}

// Calls body(group) for every rank, in a thread of its own; `body` owns the group.
inline void run_owning_ranks(LinkKind links, int ranks,
                             const std::function<void(std::unique_ptr<Group>)>& body,
                             const std::string& plans = "") {
  const auto all = endpoints(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      auto mine = options(all, rank, links);
      mine.group.plans = plans;
      auto group = join_over_tcp(mine);
      ASSERT_TRUE(group) << group.error().message;
      body(std::move(*group));
    });
  }
  for (auto& thread : threads) thread.join();
}

inline void run_ranks(LinkKind links, int ranks, const std::function<void(Group&)>& body,
                      const std::string& plans = "") {
  run_owning_ranks(
      links, ranks, [&](std::unique_ptr<Group> group) { body(*group); }, plans);
}

inline void run_ranks_over_tcp(int ranks, const std::function<void(Group&)>& body) {
  run_ranks(LinkKind::tcp, ranks, body);
}

inline void run_owning_ranks_in_memory(int ranks,
                                       const std::function<void(std::unique_ptr<Group>)>& body) {
  auto groups = join_in_memory(ranks);
  std::vector<std::thread> threads;
  for (auto& group : groups) threads.emplace_back([&] { body(std::move(group)); });
  for (auto& thread : threads) thread.join();
}

inline void run_ranks_in_memory(int ranks, const std::function<void(Group&)>& body) {
  auto groups = join_in_memory(ranks);
  std::vector<std::thread> threads;
  for (auto& group : groups) threads.emplace_back([&] { body(*group); });
  for (auto& thread : threads) thread.join();
}

inline void expect_ok(const Result<void>& result) { EXPECT_TRUE(result) << result.error().message; }

}  // namespace trainyard::collectives::testing
