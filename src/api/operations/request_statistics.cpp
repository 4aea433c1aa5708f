#include "operations/request_statistics.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <tuple>
#include <vector>

#include "shapes/services.hpp"

namespace trainyard::api {
namespace {

// Statuses that the API sends. All others are counted together.
constexpr std::array kStatuses = {101, 200, 201, 204, 206, 304, 400, 403, 404, 405,
                                  409, 411, 412, 413, 416, 429, 500, 501, 503};
constexpr std::string_view kRequests = "trainyard_requests_total";
constexpr std::string_view kSeconds = "trainyard_request_seconds";
constexpr std::string_view kThrottled = "trainyard_requests_throttled_total";

}  // namespace

struct RequestStatistics::Operation {
  std::string service, name;
  std::array<std::atomic<uint64_t>, kStatuses.size() + 1> by_status{};
  Histogram seconds;
};

RequestStatistics::RequestStatistics() {
  const auto put = [&](const shapes::OperationShape* shape, std::string_view service,
                       std::string_view name) {
    auto operation = std::make_unique<Operation>();
    operation->service = service;
    operation->name = name;
    operations_.emplace(shape, std::move(operation));
  };
  put(nullptr, "unknown", "unknown");
  for (const shapes::Service* service : all_services())
    for (const shapes::OperationShape& shape : service->operations)
      put(&shape, service->scope, shape.name);
}

RequestStatistics::~RequestStatistics() = default;

void RequestStatistics::add(const shapes::OperationShape* operation, int status,
                            std::chrono::nanoseconds took) {
  const auto found = operations_.find(operation);
  Operation& counted = found == operations_.end() ? *operations_.at(nullptr) : *found->second;
  const auto at = std::find(kStatuses.begin(), kStatuses.end(), status) - kStatuses.begin();
  counted.by_status[size_t(at)].fetch_add(1, std::memory_order_relaxed);
  counted.seconds.add(std::chrono::duration<double>(took).count());
}

void RequestStatistics::write(PrometheusText& text) const {
  std::vector<const Operation*> requested;
  for (const auto& [shape, operation] : operations_)
    if (operation->seconds.count_to(Histogram::kBounds.size()) > 0)
      requested.push_back(operation.get());
  std::sort(requested.begin(), requested.end(), [](const Operation* a, const Operation* b) {
    return std::tie(a->service, a->name) < std::tie(b->service, b->name);
  });
  text.begin(kRequests, "counter", "Requests answered, by operation and HTTP status.");
  for (const Operation* operation : requested)
    for (size_t i = 0; i < operation->by_status.size(); i++) {
      const uint64_t count = operation->by_status[i].load(std::memory_order_relaxed);
      const std::string status = i < kStatuses.size() ? std::to_string(kStatuses[i]) : "other";
      if (count > 0)
        text.sample(
            kRequests,
            {{"service", operation->service}, {"operation", operation->name}, {"status", status}},
            double(count));
    }
  text.begin(kSeconds, "histogram", "Time from a request's head to its answer, by operation.");
  for (const Operation* operation : requested)
    text.histogram(kSeconds, {{"service", operation->service}, {"operation", operation->name}},
                   operation->seconds);
  text.begin(kThrottled, "counter", "Requests refused since their principal exceeded its rate.");
  text.sample(kThrottled, {}, double(throttled_.load(std::memory_order_relaxed)));
}

}  // namespace trainyard::api
