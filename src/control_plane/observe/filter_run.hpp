// Implements Logs::filter: searches streams and merges matching events by time.
//
// Threads: callable from anywhere. Errors: invalid (pattern, token) and those of Stream.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "observe/logs.hpp"
#include "observe/stream.hpp"

namespace trainyard::observe {

struct FilterSource {
  uint64_t id = 0;
  std::string name;
  std::optional<Instant> first_event;
  std::optional<Instant> last_event;
  // called when the merge reaches its first event
  std::function<Result<std::shared_ptr<Stream>>()> open;
};

Result<FilterPage> run_filter(std::vector<FilterSource> sources, const FilterQuery& query,
                              uint64_t scan_bytes_max);

}  // namespace trainyard::observe
