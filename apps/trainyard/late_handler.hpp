// LateHandler answers requests until the API is open: the server listens before that, since orders
// contain its port. Until open(), requests get 503 in the form of their protocol, which clients
// retry. Unsigned GET /healthz and /readyz are answered before and after open(); after fail(),
// /readyz reports why the server ends. While this server is not the writer of its ledger, requests
// get 503, too.
//
// Threads: open() is called once; open(), fail() and wait_because() from any thread; the rest as
// net::Handler.
// Lifetime: the opened handler must outlive the server.
#pragma once

#include <atomic>
#include <functional>
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

  // `closed` returns the reason why requests are not served now; "" if they are.
  void open(net::Handler& handler, std::function<std::string()> closed = {}) {
    closed_ = std::move(closed);
    handler_.store(&handler, std::memory_order_release);
  }
  // Sets the reason that requests get before open().
  void wait_because(const std::string& why) {
    const MutexLock lock(mutex_);
    waiting_ = why;
  }
  // Sets the reason why the server ends. The first one stays.
  void fail(const std::string& why) {
    const MutexLock lock(mutex_);
    if (failure_.empty()) failure_ = why;
    failed_.store(true, std::memory_order_release);
  }

  Choice choose(const net::RequestHead& head) override {
    net::Handler* handler = handler_.load(std::memory_order_acquire);
    const std::string closed = handler && closed_ ? closed_() : "";
    if (auto answer = answer_probe(head, closed.empty() ? why_not_ready(handler) : closed))
      return {.refusal = std::move(*answer)};
    if (handler && closed.empty()) return handler->choose(head);
    return {.refusal = api::not_ready(head, random_.hex(kRequestIdBytes),
                                      as_sentence(handler ? closed : why_not_ready(handler)))};
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
    if (!handler) {
      const MutexLock lock(mutex_);
      return waiting_;
    }
    if (!failed_.load(std::memory_order_acquire)) return "";
    const MutexLock lock(mutex_);
    return failure_;
  }

  static std::string as_sentence(std::string text) {
    if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] += 'A' - 'a';
    return text + ". Please try again.";
  }

  Random& random_;
  std::function<std::string()> closed_;  // written before the handler
  mutable Mutex mutex_;
  std::string waiting_ GUARDED_BY(mutex_) = "the server is starting";
  std::string failure_ GUARDED_BY(mutex_);
  std::atomic<bool> failed_ = false;
  std::atomic<net::Handler*> handler_{nullptr};
};

}  // namespace trainyard::apps
