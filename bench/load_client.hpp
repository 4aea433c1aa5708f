// Loads a server with HTTP/1.1 requests: many persistent connections, each with one request after
// another.
//
// It measures the latency that a client sees: from the first byte sent to the last byte of the
// response. Each request is made when it is sent, so that it can be signed with the current time.
// Making it does not count as latency, but as work of the client: `busy_share` is the share of the
// time in which the client was not waiting. If it is near 1, the client limited the result.
//
// Threads: blocks the caller; runs `threads` of its own, which call `make_request` concurrently.
// Errors: unavailable (cannot connect, a connection broke). Responses with a status of 400 or more
// are counted, not errors.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::bench {

struct Load {
  std::string address = "127.0.0.1:4566";  // an IPv4 address and a port
  size_t connections = 16;
  size_t threads = 1;
  Duration warm_up = 500ms;  // not counted
  Duration lasts = 3s;
  uint64_t requests_max = 0;  // ends after this number of responses; 0: no limit
  // Returns the whole request, with header and body, for a number (0, 1, .. in no particular
  // order).
  std::function<std::string(uint64_t number)> make_request;
};

struct LoadResult {
  uint64_t answers = 0;       // within the measured time
  uint64_t refusals = 0;      // responses with a status of 400 or more
  std::string first_refusal;  // the first of these responses, shortened, for error messages
  double answers_per_second = 0;
  double p50_ms = 0, p90_ms = 0, p99_ms = 0, max_ms = 0;
  double busy_share = 0;  // share of time in which the client's threads work
};

Result<LoadResult> run_load(const Load& load);

}  // namespace trainyard::bench
