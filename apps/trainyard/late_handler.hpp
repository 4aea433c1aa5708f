// LateHandler takes the place of the API until the API is open: the server listens first, since
// orders contain its port. Until open(), it responds to requests with 503 in the form of their
// protocol, which clients retry. It also responds to unsigned GET /healthz and /readyz, before and
// after open(). After fail(), /readyz reports why the server ends.
//
// Threads: open() is called once; open() and fail() from any thread; the rest as net::Handler.
// Lifetime: the opened handler must outlive the server.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/random.hpp"
#include "base/thread_safety.hpp"
#include "dispatch/not_ready.hpp"
#include "net/http_server.hpp"
#include "trainyard/probes.hpp"

namespace trainyard::apps {

class LateHandler final : public net::Handler {
 public:
  explicit LateHandler(Random& random) : random_(random) {}

  void open(net::Handler& handler) { handler_.store(&handler, std::memory_order_release); }
  // Keeps the first reason.
  void fail(const std::string& why) {
    const MutexLock lock(mutex_);
    if (failure_.empty()) failure_ = why;
    failed_.store(true, std::memory_order_release);
  }

  Choice choose(const net::RequestHead& head) override {
    net::Handler* handler = handler_.load(std::memory_order_acquire);
    if (auto answer = answer_probe(head, why_not_ready(handler)))
      return {.refusal = std::move(*answer)};
    if (handler) return handler->choose(head);
    return {.refusal = api::not_ready(head, random_.hex(kRequestIdBytes))};
  }
  // Called only for requests that the opened handler accepted.
  std::optional<Choice> preface(const net::RequestHead& head, std::string_view bytes,
                                bool whole) override {
    return handler_.load(std::memory_order_acquire)->preface(head, bytes, whole);
  }
  void handle(net::Request request, std::unique_ptr<net::Responder> responder) override {
    handler_.load(std::memory_order_acquire)->handle(std::move(request), std::move(responder));
  }
  void stream(net::Stream& stream) override {
    handler_.load(std::memory_order_acquire)->stream(stream);
  }

 private:
  static constexpr size_t kRequestIdBytes = 16;  // as in the API

  std::string why_not_ready(const net::Handler* handler) const {
    if (!handler) return "the server is starting";
    if (!failed_.load(std::memory_order_acquire)) return "";
    const MutexLock lock(mutex_);
    return failure_;
  }

  Random& random_;
  mutable Mutex mutex_;
  std::string failure_ GUARDED_BY(mutex_);
  std::atomic<bool> failed_ = false;
  std::atomic<net::Handler*> handler_{nullptr};
};

}  // namespace trainyard::apps
