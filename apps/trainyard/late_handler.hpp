// Stands in for the API until it is there: the one port listens before anything is behind it, since orders name the
// port. Until open(), requests are answered 503 in the form of their own protocol, which clients repeat. Unsigned
// GET /healthz and /readyz are answered before and after.
//
// Threads: open() once, from any; the rest as host::Handler. Lifetime: the opened handler must outlive the server.
#pragma once

#include <atomic>
#include <utility>

#include "api/not_ready.hpp"
#include "base/random.hpp"
#include "host/http_server.hpp"
#include "trainyard/probes.hpp"

namespace trainyard::apps {

class LateHandler final : public host::Handler {
 public:
  explicit LateHandler(Random& random) : random_(random) {}

  void open(host::Handler& handler) { handler_.store(&handler, std::memory_order_release); }
  bool ready() const { return handler_.load(std::memory_order_acquire) != nullptr; }

  Choice choose(const host::RequestHead& head) override {
    if (auto answer = answer_probe(head, ready())) return {.refusal = std::move(*answer)};
    if (host::Handler* handler = handler_.load(std::memory_order_acquire)) return handler->choose(head);
    return {.refusal = api::not_ready(head, random_.hex(kRequestIdBytes))};
  }
  // Only what the opened handler chose comes here.
  void handle(host::Request request, std::unique_ptr<host::Responder> responder) override {
    handler_.load(std::memory_order_acquire)->handle(std::move(request), std::move(responder));
  }
  void stream(host::Stream& stream) override { handler_.load(std::memory_order_acquire)->stream(stream); }

 private:
  static constexpr size_t kRequestIdBytes = 16;  // as the API's own

  Random& random_;
  std::atomic<host::Handler*> handler_{nullptr};
};

}  // namespace trainyard::apps
