#include "membership/member.hpp"

#include <netdb.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "collectives/transport/tcp/meeting.hpp"
#include "membership/wire.hpp"

namespace trainyard::membership {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr Duration connect_retry_pause = 100ms;
constexpr Duration look_interval = 1s;  // what comes is heard at once
constexpr Duration leave_max = 2s;      // to say that we are done, to a service that may be gone
constexpr int backlog_connections = 1024;

Result<collectives::Socket> connect_once(const collectives::Endpoint& endpoint, Duration at_most) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int code =
      ::getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &found);
  if (code != 0) return unavailable("looking up " + endpoint.host + ": " + ::gai_strerror(code));
  collectives::Socket socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const bool begun = socket && (::connect(socket.descriptor(), found->ai_addr, found->ai_addrlen) == 0 ||
                                errno == EINPROGRESS);
  const int error_number = errno;
  ::freeaddrinfo(found);
  if (!begun) return from_errno("connecting", error_number);
  pollfd writable{socket.descriptor(), POLLOUT, 0};
  if (::poll(&writable, 1, int(at_most.count())) <= 0) return unavailable("it does not answer");
  int failure = 0;
  socklen_t length = sizeof failure;
  ::getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &failure, &length);
  if (failure != 0) return from_errno("connecting", failure);
  return socket;
}

}  // namespace

class Member::Impl {
 public:
  Impl(MemberOptions options, collectives::Socket socket, std::string own_address)
      : options_(std::move(options)),
        own_address_(std::move(own_address)),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        wire_(std::move(socket), options_.secret, Wire::Side::member) {
    thread_ = std::thread([this] { run(); });
  }

  ~Impl() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake();
    thread_.join();
  }

  Result<Place> next(const std::string& complaint, Duration at_most) {
    listener_ = TRY(
        collectives::listen_at({own_address_, 0}, backlog_connections).in("listening at " + own_address_));
    const uint16_t port = TRY(collectives::port_of(listener_));
    std::unique_lock lock(mutex_);
    place_.reset();
    changed_ = {};
    lost_.clear();
    say_.emplace_back(messages::Came{
        {options_.name, options_.host, {own_address_, port}, options_.wanted_rank, complaint}});
    wake();
    heard_.wait_for(lock, at_most, [this] { return place_ || end_; });
    if (end_) return *end_;
    if (!place_)
      return cancelled("no generation was formed within " + std::to_string(at_most.count()) + " ms");
    joined_ = *place_;
    return joined_;
  }

  Result<std::unique_ptr<collectives::Group>> join(collectives::TcpOptions options) {
    if (!listener_) return invalid("a place is good for one join");
    options.rank = joined_.rank;
    options.endpoints.clear();
    for (const Slot& slot : joined_.generation.slots) options.endpoints.push_back(slot.endpoint);
    // Those of another generation do not fit.
    options.shared_value = std::to_string(joined_.generation.number) + " " + options_.secret;
    options.shared_value = options.shared_value.substr(0, collectives::TcpOptions::shared_value_bytes_max);
    options.cancelled = [this, theirs = std::move(options.cancelled), settled = settled_] {
      // Once joined, the group itself notices who dies.
      return (!settled->load() && !lost().empty()) || (theirs && theirs());
    };
    settled_->store(false);
    auto group = collectives::join_met(std::move(options), std::exchange(listener_, {}));
    settled_->store(true);
    if (group) return group;
    const std::string who = lost();
    return std::move(group).error().in("joining generation " + std::to_string(joined_.generation.number) +
                                       (who.empty() ? "" : ", of which " + who));
  }

  actions::Changed changed() const {
    const std::lock_guard lock(mutex_);
    return changed_;
  }

  std::string lost() const {
    const std::lock_guard lock(mutex_);
    return end_ ? end_->message : lost_;
  }

  void done() {
    std::unique_lock lock(mutex_);
    if (end_) return;
    say_.emplace_back(messages::Done{});
    wake();
    heard_.wait_for(lock, leave_max, [this] { return (say_.empty() && said_all_) || end_; });
  }

 private:
  void wake() {
    const uint64_t one = 1;
    (void)!::write(wake_.descriptor(), &one, sizeof one);
  }

  void run() {
    for (;;) {
      pollfd events[] = {{wake_.descriptor(), POLLIN, 0},
                         {wire_.descriptor(), short(POLLIN | (wire_.wants_to_write() ? POLLOUT : 0)), 0}};
      (void)::poll(events, 2, int(look_interval.count()));
      uint64_t count = 0;
      (void)!::read(wake_.descriptor(), &count, sizeof count);
      auto messages = wire_.look();
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      if (!messages) {
        end_ = std::move(messages).error().in("the service that seats ranks is gone");
      } else {
        for (const Message& message : *messages) hear(message);
        if (wire_.proved()) {  // before, it may be anyone
          for (const Message& message : std::exchange(say_, {})) wire_.send(message);
          if (auto sent = wire_.look(); sent)
            for (const Message& message : *sent) hear(message);
        }
        said_all_ = !wire_.wants_to_write();
      }
      heard_.notify_all();
      if (end_) return;
    }
  }

  void hear(const Message& message) {
    if (const auto* seated = std::get_if<messages::Seated>(&message)) {
      place_ = Place{int(seated->rank), seated->generation};
      // What was said before was of the generation before.
      changed_ = {};
      lost_.clear();
    } else if (const auto* changed = std::get_if<actions::Changed>(&message)) {
      changed_.added |= changed->added;
      changed_.removed |= changed->removed;
    } else if (const auto* lost = std::get_if<actions::Lost>(&message)) {
      lost_ += (lost_.empty() ? "" : ", ") + lost->name + " was lost: " + lost->why;
    } else if (const auto* dismissed = std::get_if<actions::Dismissed>(&message)) {
      end_ = denied("dismissed: " + dismissed->why);
    }
  }

  const MemberOptions options_;
  const std::string own_address_;
  const collectives::Socket wake_;
  collectives::Socket listener_;  // the caller's, like the next two
  Place joined_;
  // Shared with the group's question whether to give up, which may outlive us.
  std::shared_ptr<std::atomic<bool>> settled_ = std::make_shared<std::atomic<bool>>(true);
  Wire wire_;  // the thread's
  mutable std::mutex mutex_;
  std::condition_variable heard_;
  std::vector<Message> say_;  // guarded by mutex_, like what follows
  bool said_all_ = true;
  bool stopping_ = false;
  std::optional<Place> place_;
  actions::Changed changed_;
  std::string lost_;
  std::optional<Error> end_;
  std::thread thread_;
};

Result<std::unique_ptr<Member>> Member::connect(MemberOptions options) {
  const auto deadline = SteadyClock::now() + options.connect_deadline;
  for (;;) {
    const auto left =
        std::max(Duration(1), std::chrono::duration_cast<Duration>(deadline - SteadyClock::now()));
    auto socket = connect_once(options.service, left);
    if (socket) {
      watch_for_death(socket->descriptor());
      std::string own = TRY(own_address_of(socket->descriptor()));
      return std::unique_ptr<Member>(
          new Member(std::make_unique<Impl>(std::move(options), std::move(socket).value(), std::move(own))));
    }
    if (SteadyClock::now() >= deadline)
      return std::move(socket).error().in("the service that seats ranks, at " + options.service.host + ":" +
                                          std::to_string(options.service.port));
    (void)::poll(nullptr, 0, int(connect_retry_pause.count()));
  }
}

Member::Member(std::unique_ptr<Impl> inside) : impl_(std::move(inside)) {}
Member::~Member() = default;
Result<Place> Member::next(const std::string& complaint, Duration at_most) {
  return impl_->next(complaint, at_most);
}
Result<std::unique_ptr<collectives::Group>> Member::join(collectives::TcpOptions options) {
  return impl_->join(std::move(options));
}
actions::Changed Member::changed() const { return impl_->changed(); }
std::string Member::lost() const { return impl_->lost(); }
void Member::done() { impl_->done(); }

}  // namespace trainyard::membership
