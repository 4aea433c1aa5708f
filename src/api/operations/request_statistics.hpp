// RequestStatistics counts the API's requests by operation and status, and measures their
// durations.
//
// Threads: callable from anywhere. Errors: none.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <unordered_map>

#include "base/prometheus.hpp"
#include "shapes/shape.hpp"

namespace trainyard::api {

class RequestStatistics {
 public:
  RequestStatistics();
  ~RequestStatistics();

  // Counts a finished request. `operation` nullptr: it was rejected before its operation was known.
  void add(const shapes::OperationShape* operation, int status, std::chrono::nanoseconds took);
  // Counts a request that exceeded its principal's rate.
  void add_throttled() { throttled_.fetch_add(1, std::memory_order_relaxed); }

  // Writes the metrics of all operations that were requested at least once.
  void write(PrometheusText& text) const;

 private:
  struct Operation;

  // Written only by the constructor.
  std::unordered_map<const shapes::OperationShape*, std::unique_ptr<Operation>> operations_;
  std::atomic<uint64_t> throttled_{0};
};

}  // namespace trainyard::api
