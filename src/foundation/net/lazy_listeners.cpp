#include "net/lazy_listeners.hpp"

#include <poll.h>

#include <atomic>
#include <system_error>
#include <thread>

#include "base/log.hpp"
#include "os/notifier.hpp"

namespace trainyard::net {
namespace {

class WaitingListeners final : public LazyListeners {
 public:
  explicit WaitingListeners(std::vector<LazyListener> listeners)
      : listeners_(std::move(listeners)) {}
  ~WaitingListeners() override {
    over_ = true;
    notifier_.notify();
    if (thread_.joinable()) thread_.join();
  }

  Result<void> start() {
    try {
      thread_ = std::thread([this] { wait(); });
    } catch (const std::system_error& error) {
      return exhausted(std::string("starting a thread: ") + error.what());
    }
    return ok();
  }

 private:
  void wait() {
    while (!over_ && !listeners_.empty()) {
      std::vector<pollfd> watched = {{notifier_.descriptor(), POLLIN, 0}};
      for (const LazyListener& listener : listeners_)
        watched.push_back({listener.listener.descriptor(), POLLIN, 0});
      (void)::poll(watched.data(), watched.size(), -1);
      if (over_) return;
      // Iterates from the last to the first, because opened listeners are removed.
      for (size_t i = listeners_.size(); i-- > 0;)
        if (watched[i + 1].revents != 0) open(i);
    }
  }

  void open(size_t index) {
    LazyListener listener = std::move(listeners_[index]);
    listeners_.erase(listeners_.begin() + ptrdiff_t(index));
    if (const auto opened = listener.open(std::move(listener.listener)); !opened)
      log(Level::warning, "net", "cannot serve connections to a listener",
          {{"why", opened.error().message}});
  }

  os::Notifier notifier_;
  std::atomic<bool> over_ = false;
  std::vector<LazyListener> listeners_;  // used only by the thread, once it runs
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<LazyListeners>> serve_lazily(std::vector<LazyListener> listeners) {
  auto waiting = std::make_unique<WaitingListeners>(std::move(listeners));
  TRY(waiting->start());
  return std::unique_ptr<LazyListeners>(std::move(waiting));
}

}  // namespace trainyard::net
