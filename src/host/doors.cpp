#include "host/doors.hpp"

#include <poll.h>

#include <atomic>
#include <system_error>
#include <thread>

#include "base/log.hpp"
#include "host/bell.hpp"

namespace trainyard::host {
namespace {

class WaitingDoors final : public Doors {
 public:
  explicit WaitingDoors(std::vector<Door> doors) : doors_(std::move(doors)) {}
  ~WaitingDoors() override {
    over_ = true;
    bell_.ring();
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
    while (!over_ && !doors_.empty()) {
      std::vector<pollfd> watched = {{bell_.descriptor(), POLLIN, 0}};
      for (const Door& door : doors_) watched.push_back({door.listener.descriptor(), POLLIN, 0});
      (void)::poll(watched.data(), watched.size(), -1);
      if (over_) return;
      // From the last one down, since those that are opened are taken out.
      for (size_t i = doors_.size(); i-- > 0;)
        if (watched[i + 1].revents != 0) open(i);
    }
  }

  void open(size_t index) {
    Door door = std::move(doors_[index]);
    doors_.erase(doors_.begin() + ptrdiff_t(index));
    if (const auto opened = door.open(std::move(door.listener)); !opened)
      log(Level::warning, "host", "nobody can serve who connects", {{"why", opened.error().message}});
  }

  Bell bell_;
  std::atomic<bool> over_ = false;
  std::vector<Door> doors_;  // the thread's, once it runs
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<Doors>> wait_at(std::vector<Door> doors) {
  auto waiting = std::make_unique<WaitingDoors>(std::move(doors));
  TRY(waiting->start());
  return std::unique_ptr<Doors>(std::move(waiting));
}

}  // namespace trainyard::host
