#include "membership/member.hpp"

#include <netdb.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "base/thread_safety.hpp"
#include "collectives/transport/tcp/bootstrap.hpp"
#include "collectives/transport/tcp/sockets.hpp"
#include "membership/wire.hpp"

namespace trainyard::membership {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr Duration kConnectRetryPause = 100ms;
constexpr Duration kCheckInterval = 1s;  // at most; messages are handled at once
constexpr Duration kLeaveMax = 2s;       // the time to send Done; the service may have ended
constexpr int kBacklogConnections = 1024;

Result<collectives::Socket> connect_once(const collectives::Endpoint& endpoint, Duration at_most) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int code =
      ::getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &found);
  if (code != 0) return unavailable("looking up " + endpoint.host + ": " + ::gai_strerror(code));
  collectives::Socket socket(
      ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const bool begun =
      socket && (::connect(socket.descriptor(), found->ai_addr, found->ai_addrlen) == 0 ||
                 errno == EINPROGRESS);
  const int error_number = errno;
  ::freeaddrinfo(found);
  if (!begun) return from_errno("connecting to the service", error_number);
  pollfd writable{socket.descriptor(), POLLOUT, 0};
  if (::poll(&writable, 1, int(at_most.count())) <= 0)
    return unavailable("timed out after " + std::to_string(at_most.count()) + " ms");
  int failure = 0;
  socklen_t length = sizeof failure;
  ::getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &failure, &length);
  if (failure != 0) return from_errno("connecting to the service", failure);
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
      const MutexLock lock(mutex_);
      stopping_ = true;
    }
    wake(wake_);
    thread_.join();
  }

  Result<Assignment> next(const std::string& complaint, Duration at_most) {
    listener_ = TRY(collectives::listen_at({own_address_, 0}, kBacklogConnections)
                        .in("listening at " + own_address_));
    const uint16_t port = TRY(collectives::port_of(listener_));
    MutexLock lock(mutex_);
    assignment_.reset();
    changed_ = {};
    lost_.clear();
    outgoing_messages_.emplace_back(messages::Came{
        {options_.name, options_.host, {own_address_, port}, options_.wanted_rank, complaint}});
    wake(wake_);
    received_.wait_for(lock, at_most, [this]() REQUIRES(mutex_) { return assignment_ || end_; });
    if (end_) return *end_;
    if (!assignment_)
      return cancelled("waiting for the next generation: timed out after " +
                       std::to_string(at_most.count()) + " ms");
    joined_ = *assignment_;
    return joined_;
  }

  Result<std::unique_ptr<collectives::Group>> join(collectives::TcpOptions options) {
    if (!listener_) return invalid("join() needs a new assignment: call next() first");
    options.rank = joined_.rank;
    options.endpoints.clear();
    for (const Slot& slot : joined_.generation.slots) options.endpoints.push_back(slot.endpoint);
    // The secret differs by generation, so that ranks of another generation cannot join.
    options.shared_value = std::to_string(joined_.generation.number) + " " + options_.secret;
    options.shared_value =
        options.shared_value.substr(0, collectives::TcpOptions::kSharedValueBytesMax);
    options.cancelled = [this, theirs = std::move(options.cancelled), settled = settled_] {
      // After joining, the group itself detects lost ranks.
      return (!settled->load() && !lost().empty()) || (theirs && theirs());
    };
    settled_->store(false);
    auto group = collectives::join_bootstrapped(std::move(options), std::exchange(listener_, {}));
    settled_->store(true);
    if (group) return group;
    const std::string lost_members = lost();
    return std::move(group).error().in("joining generation " +
                                       std::to_string(joined_.generation.number) +
                                       (lost_members.empty() ? "" : " (" + lost_members + ")"));
  }

  actions::Changed changed() const {
    const MutexLock lock(mutex_);
    return changed_;
  }

  std::string lost() const {
    const MutexLock lock(mutex_);
    return end_ ? end_->message : lost_;
  }

  void done() {
    MutexLock lock(mutex_);
    if (end_) return;
    outgoing_messages_.emplace_back(messages::Done{});
    wake(wake_);
    received_.wait_for(lock, kLeaveMax, [this]() REQUIRES(mutex_) {
      return (outgoing_messages_.empty() && all_sent_) || end_;
    });
  }

 private:
  void run() {
    for (;;) {
      pollfd events[] = {
          {wake_.descriptor(), POLLIN, 0},
          {wire_.descriptor(), short(POLLIN | (wire_.wants_to_write() ? POLLOUT : 0)), 0}};
      (void)::poll(events, 2, int(kCheckInterval.count()));
      clear(wake_);
      auto messages = wire_.exchange();
      const MutexLock lock(mutex_);
      if (stopping_) return;
      if (!messages) {
        end_ = std::move(messages).error().in("lost the membership service");
      } else {
        for (const Message& message : *messages) handle(message);
        if (wire_.proved()) {  // until then the peer is unauthenticated
          for (const Message& message : std::exchange(outgoing_messages_, {})) wire_.send(message);
          if (auto sent = wire_.exchange(); sent)
            for (const Message& message : *sent) handle(message);
        }
        all_sent_ = !wire_.wants_to_write();
      }
      received_.notify_all();
      if (end_) return;
    }
  }

  void handle(const Message& message) REQUIRES(mutex_) {
    if (const auto* assigned = std::get_if<messages::Assigned>(&message)) {
      assignment_ = Assignment{int(assigned->rank), assigned->generation};
      // Earlier changes belong to the previous generation.
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
  collectives::Socket listener_;  // used by the caller's thread only, like the next two members
  Assignment joined_;
  // Shared with the cancellation callback of the group, which may outlive this object.
  std::shared_ptr<std::atomic<bool>> settled_ = std::make_shared<std::atomic<bool>>(true);
  Wire wire_;  // used by thread_ only
  mutable Mutex mutex_;
  ConditionVariable received_;
  std::vector<Message> outgoing_messages_ GUARDED_BY(mutex_);
  bool all_sent_ GUARDED_BY(mutex_) = true;
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::optional<Assignment> assignment_ GUARDED_BY(mutex_);
  actions::Changed changed_ GUARDED_BY(mutex_);
  std::string lost_ GUARDED_BY(mutex_);
  std::optional<Error> end_ GUARDED_BY(mutex_);
  std::thread thread_;
};

Result<std::unique_ptr<Member>> Member::connect(MemberOptions options) {
  const auto deadline = SteadyClock::now() + options.connect_timeout;
  for (;;) {
    const auto left =
        std::max(Duration(1), std::chrono::duration_cast<Duration>(deadline - SteadyClock::now()));
    auto socket = connect_once(options.service, left);
    if (socket) {
      collectives::set_link_options(socket->descriptor());
      std::string own = TRY(own_address_of(socket->descriptor()));
      return std::unique_ptr<Member>(new Member(
          std::make_unique<Impl>(std::move(options), std::move(socket).value(), std::move(own))));
    }
    if (SteadyClock::now() >= deadline)
      return std::move(socket).error().in("connecting to the membership service at " +
                                          options.service.host + ":" +
                                          std::to_string(options.service.port));
    (void)::poll(nullptr, 0, int(kConnectRetryPause.count()));
  }
}

Member::Member(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Member::~Member() = default;
Result<Assignment> Member::next(const std::string& complaint, Duration at_most) {
  return impl_->next(complaint, at_most);
}
Result<std::unique_ptr<collectives::Group>> Member::join(collectives::TcpOptions options) {
  return impl_->join(std::move(options));
}
actions::Changed Member::changed() const { return impl_->changed(); }
std::string Member::lost() const { return impl_->lost(); }
void Member::done() { impl_->done(); }

}  // namespace trainyard::membership
