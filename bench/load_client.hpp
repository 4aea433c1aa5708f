// A load of HTTP/1.1 requests against one server: many connections that stay, on each one request after
// another.
//
// It measures what a client sees: from the first byte sent to the last byte of the answer. Each request is
// made when it is sent (so it can be signed for that instant), and making it is not part of its latency, but
// is part of the client's own work: `busy_share` says how much of its time the client was not waiting, and a
// share near 1 means that the client is what was measured.
//
// Threads: blocks the caller; runs `threads` of its own, which call `make_request` at once from all of them.
// Errors: unavailable (cannot connect, a connection broke). Answers with a status of 400 or more are counted,
// not errors.
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
  uint64_t requests_max = 0;  // ends earlier when so many were answered; 0 = no such limit
  // The whole request with its head and body, by its number (0, 1, ... in no particular order).
  std::function<std::string(uint64_t number)> make_request;
};

struct LoadResult {
  uint64_t answers = 0;       // within the time that counts
  uint64_t refusals = 0;      // of them, with a status of 400 or more
  std::string first_refusal;  // the first such answer, shortened: for whoever wonders
  double answers_per_second = 0;
  double p50_ms = 0, p90_ms = 0, p99_ms = 0, max_ms = 0;
  double busy_share = 0;  // of the client's threads
};

Result<LoadResult> run_load(const Load& load);

}  // namespace trainyard::bench
