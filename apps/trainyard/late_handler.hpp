// LateHandler stands in for the API until it is open: the one port listens first, since orders contain the
// port. Until open(), requests are answered with 503 in the form of their own protocol, which clients retry.
// Unsigned GET /healthz and /readyz are answered before and after. After fail() the latter reports why the
// server ends.
//
// Threads: open() once and fail(), from any; the rest as host::Handler. Lifetime: the opened handler must
// outlive the server.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/random.hpp"
#include "dispatch/not_ready.hpp"
#include "net/http_server.hpp"
#include "trainyard/probes.hpp"

namespace trainyard::apps {

class LateHandler final : public net::Handler {
 public:
  explicit LateHandler(Random& random) : random_(random) {}

  void open(net::Handler& handler) { handler_.store(&handler, std::memory_order_release); }
  // The first reason counts.
  void fail(const std::string& why) {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = why;
    failed_.store(true, std::memory_order_release);
  }

  Choice choose(const net::RequestHead& head) override {
    net::Handler* handler = handler_.load(std::memory_order_acquire);
    if (auto answer = answer_probe(head, why_not_ready(handler))) return {.refusal = std::move(*answer)};
    if (handler) return handler->choose(head);
    return {.refusal = api::not_ready(head, random_.hex(kRequestIdBytes))};
  }
  // Called only for requests that the opened handler accepted.
  std::optional<Choice> preface(const net::RequestHead& head, std::string_view bytes, bool whole) override {
    return handler_.load(std::memory_order_acquire)->preface(head, bytes, whole);
  }
  void handle(net::Request request, std::unique_ptr<net::Responder> responder) override {
    handler_.load(std::memory_order_acquire)->handle(std::move(request), std::move(responder));
  }
  void stream(net::Stream& stream) override { handler_.load(std::memory_order_acquire)->stream(stream); }

 private:
  static constexpr size_t kRequestIdBytes = 16;  // as the API's own

  std::string why_not_ready(const net::Handler* handler) const {
    if (!handler) return "the server is starting";
    if (!failed_.load(std::memory_order_acquire)) return "";
    const std::lock_guard lock(mutex_);
    return failure_;
  }

  Random& random_;
  mutable std::mutex mutex_;
  std::string failure_;  // guarded by mutex_
  std::atomic<bool> failed_ = false;
  std::atomic<net::Handler*> handler_{nullptr};
};

}  // namespace trainyard::apps
