// Runs negotiators whose ranks are threads of one test.
//
// Threads: each rank has its own. Errors: a failed expectation of the calling test.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "collectives/testing/groups.hpp"
#include "gradients/fusion/negotiator.hpp"

namespace trainyard::gradients::testing {

// Calls body(negotiator) for every rank, in a thread and with a negotiator of its own.
inline void run_negotiators(int ranks, const std::function<void(Negotiator&)>& body,
                            const Options& options = {}) {
  auto groups = collectives::join_in_memory(ranks);
  std::vector<std::thread> threads;
  for (auto& group : groups) {
    threads.emplace_back([&body, &options, mine = std::move(group)]() mutable {
      auto negotiator = Negotiator::start(std::move(mine), options);
      ASSERT_TRUE(negotiator) << negotiator.error().message;
      body(**negotiator);
    });
  }
  for (auto& thread : threads) thread.join();
}

inline Request reduce_request(std::string name, std::vector<float>& values,
                              collectives::Reduction reduction = collectives::Reduction::sum) {
  Request request;
  request.name = std::move(name);
  request.input = request.output = collectives::buffer_view(std::span(values));
  request.reduction = reduction;
  return request;
}

inline void expect_done(Handle& handle) {
  const auto outcome = handle.wait();
  EXPECT_TRUE(outcome) << outcome.error().message;
}

inline void expect_failed(Handle& handle, const std::string& part) {
  const auto outcome = handle.wait();
  ASSERT_FALSE(outcome);
  EXPECT_NE(outcome.error().message.find(part), std::string::npos) << outcome.error().message;
}

}  // namespace trainyard::gradients::testing
