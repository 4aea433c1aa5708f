// The one port listens before there is anything behind it, since orders name the port. Until open(), requests are
// answered 503, which clients repeat.
//
// Threads: open() once, from any; the rest as host::Handler. Lifetime: the opened handler must outlive the server.
#pragma once

#include <atomic>

#include "host/http_server.hpp"

namespace trainyard::apps {

class LateHandler final : public host::Handler {
 public:
  void open(host::Handler& handler) { handler_.store(&handler, std::memory_order_release); }

  Choice choose(const host::RequestHead& head) override {
    host::Handler* handler = handler_.load(std::memory_order_acquire);
    return handler ? handler->choose(head) : Choice{};
  }
  void handle(host::Request request, std::unique_ptr<host::Responder> responder) override {
    if (host::Handler* handler = handler_.load(std::memory_order_acquire))
      handler->handle(std::move(request), std::move(responder));
    else
      responder->reply({503, {}, "the server is starting\n"});
  }
  void stream(host::Stream& stream) override {
    if (host::Handler* handler = handler_.load(std::memory_order_acquire)) handler->stream(stream);
  }

 private:
  std::atomic<host::Handler*> handler_{nullptr};
};

}  // namespace trainyard::apps
