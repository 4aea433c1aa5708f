#include "membership/service.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <list>
#include <thread>
#include <utility>
#include <vector>

#include "base/thread_safety.hpp"
#include "collectives/transport/tcp/sockets.hpp"
#include "membership/wire.hpp"

namespace trainyard::membership {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Deadlines are seconds; messages are handled at once.
constexpr Duration kDeadlineCheckInterval = 100ms;
constexpr int kMemberBacklogConnections = 1024;

// Returns the steady clock's time as an Instant; Membership only uses differences.
Instant now() {
  return Instant(std::chrono::duration_cast<Duration>(SteadyClock::now().time_since_epoch()));
}

}  // namespace

class Service::Impl {
 public:
  Impl(ServiceOptions options, collectives::Socket listener, uint16_t port)
      : options_(std::move(options)),
        listener_(std::move(listener)),
        port_(port),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        membership_(options_.limits) {
    thread_ = std::thread([this] { run(); });
  }

  ~Impl() {
    stopping_ = true;
    wake(wake_);
    thread_.join();
  }

  uint16_t port() const { return port_; }

  void post(Event event) {
    {
      const MutexLock lock(mutex_);
      events_.push_back(std::move(event));
    }
    wake(wake_);
  }

  std::optional<News> next(Duration at_most) {
    MutexLock lock(mutex_);
    news_arrived_.wait_for(lock, at_most, [this]() REQUIRES(mutex_) { return !news_.empty(); });
    if (news_.empty()) return std::nullopt;
    News first = std::move(news_.front());
    news_.pop_front();
    return first;
  }

  std::string missing() const {
    const MutexLock lock(mutex_);
    return missing_;
  }

 private:
  struct Connection {
    Wire wire;
    std::string name;               // name of the member; known after Came
    SteadyClock::time_point until;  // deadline of the handshake, or of sending the last message
    bool closing = false;           // closes after the last message was sent
    bool broken = false;
  };

  void run() {
    while (!stopping_) {
      wait();
      accept();
      for (Connection& connection : connections_) handle(connection);
      std::erase_if(connections_, [](const Connection& each) {
        return each.closing && (each.broken || !each.wire.wants_to_write());
      });
      std::vector<Event> posted;
      {
        const MutexLock lock(mutex_);
        posted.swap(events_);
      }
      for (const Event& event : posted) {
        if (const auto* gone = std::get_if<events::Gone>(&event); gone && known(gone->name))
          report_gone(*gone);
        apply(event);
      }
      apply(events::TimePasses{});
      const MutexLock lock(mutex_);
      missing_ = membership_.missing();
    }
  }

  void wait() {
    std::vector<pollfd> events{{wake_.descriptor(), POLLIN, 0}};
    if (connections_.size() < kMembersMax && unauthenticated() < kUnauthenticatedMax)
      events.push_back({listener_.descriptor(), POLLIN, 0});
    for (const Connection& each : connections_)
      events.push_back(
          {each.wire.descriptor(), short(POLLIN | (each.wire.wants_to_write() ? POLLOUT : 0)), 0});
    (void)::poll(events.data(), events.size(), int(kDeadlineCheckInterval.count()));
    clear(wake_);
  }

  size_t unauthenticated() const {
    return size_t(std::count_if(connections_.begin(), connections_.end(),
                                [](const Connection& each) { return !each.wire.proved(); }));
  }

  void accept() {
    while (connections_.size() < kMembersMax && unauthenticated() < kUnauthenticatedMax) {
      collectives::Socket socket(
          ::accept4(listener_.descriptor(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket) return;
      collectives::set_link_options(socket.descriptor());
      connections_.push_back({Wire(std::move(socket), options_.secret, Wire::Side::service),
                              {},
                              SteadyClock::now() + kHandshakeMax});
    }
  }

  void handle(Connection& connection) {
    if (connection.closing) {
      connection.broken |= !connection.wire.exchange() || SteadyClock::now() > connection.until;
      return;
    }
    const auto messages = connection.wire.exchange();
    if (!messages || (!connection.wire.proved() && SteadyClock::now() > connection.until)) {
      connection.closing = connection.broken = true;
      const std::string name = std::exchange(connection.name, {});
      if (name.empty()) return;  // unauthenticated, or done
      const events::Gone gone{name, messages ? "timed out waiting for its proof of the secret"
                                             : messages.error().message};
      report_gone(gone);
      return apply(gone);
    }
    for (const Message& message : *messages) {
      if (const auto* came = std::get_if<messages::Came>(&message)) {
        const bool first = connection.name.empty();
        connection.name = came->applicant.name;
        if (first)
          report({News::Kind::came, connection.name,
                  connection.name + " applied from " + came->applicant.host});
        apply(events::Came{came->applicant});
      } else if (std::holds_alternative<messages::Done>(message)) {
        const std::string name = std::exchange(connection.name, {});
        if (name.empty()) continue;
        report({News::Kind::done, name, name + " is done"});
        apply(events::Gone{name, ""});
      }
    }
  }

  Connection* find(const std::string& name) {
    for (Connection& each : connections_)
      if (each.name == name) return &each;
    return nullptr;
  }
  bool known(const std::string& name) { return find(name) != nullptr; }

  void apply(const Event& event) {
    for (const Action& action : membership_.on(event, now())) {
      if (const auto* formed = std::get_if<actions::Formed>(&action)) {
        const Generation& generation = formed->generation;
        for (size_t rank = 0; rank < generation.slots.size(); ++rank)
          if (Connection* each = find(generation.slots[rank].name))
            each->wire.send(messages::Assigned{uint32_t(rank), generation});
        report({News::Kind::formed, "",
                "generation " + std::to_string(generation.number) + ": " +
                    std::to_string(generation.slots.size()) + " ranks" +
                    (generation.reason.empty() ? "" : " (" + generation.reason + ")"),
                generation.number, int(generation.slots.size())});
      } else if (const auto* dismissed = std::get_if<actions::Dismissed>(&action)) {
        if (Connection* each = find(dismissed->name)) {
          each->wire.send(*dismissed);
          close_later(*each);
        }
        report({News::Kind::dismissed, dismissed->name,
                dismissed->name + " is dismissed: " + dismissed->why});
      } else {
        for (const std::string& name : membership_.running()) {
          Connection* each = find(name);
          if (!each) continue;
          if (const auto* changed = std::get_if<actions::Changed>(&action))
            each->wire.send(*changed);
          if (const auto* lost = std::get_if<actions::Lost>(&action)) each->wire.send(*lost);
        }
      }
    }
  }

  static void close_later(Connection& connection) {
    connection.name.clear();
    connection.closing = true;
    connection.until = SteadyClock::now() + kHandshakeMax;
  }

  void report_gone(const events::Gone& gone) {
    // The launcher and the connection may both report the end of a process; reports it once.
    if (Connection* each = find(gone.name)) close_later(*each);
    const auto running = membership_.running();
    const auto found = std::find(running.begin(), running.end(), gone.name);
    const std::string member =
        found == running.end()
            ? gone.name
            : "rank " + std::to_string(found - running.begin()) + " (" + gone.name + ")";
    if (gone.why.empty()) return report({News::Kind::done, gone.name, member + " is done"});
    report({News::Kind::lost, gone.name, member + " was lost: " + gone.why});
  }

  void report(News news) {
    const MutexLock lock(mutex_);
    news_.push_back(std::move(news));
    if (news_.size() > kNewsMax) news_.pop_front();
    news_arrived_.notify_all();
  }

  const ServiceOptions options_;
  const collectives::Socket listener_;
  const uint16_t port_;
  const collectives::Socket wake_;
  std::atomic<bool> stopping_ = false;
  Membership membership_;              // used by thread_ only
  std::list<Connection> connections_;  // used by thread_ only
  mutable Mutex mutex_;
  ConditionVariable news_arrived_;
  std::vector<Event> events_ GUARDED_BY(mutex_);
  std::deque<News> news_ GUARDED_BY(mutex_);
  std::string missing_ GUARDED_BY(mutex_);
  std::thread thread_;
};

Result<std::unique_ptr<Service>> Service::start(ServiceOptions options) {
  if (options.limits.ranks_min < 1 || options.limits.ranks_max < options.limits.ranks_min)
    return invalid(
        "invalid limits: ranks_min must be at least 1, and ranks_max at least ranks_min");
  collectives::Socket listener =
      TRY(collectives::listen_at(options.listen, kMemberBacklogConnections)
              .in("listening at " + options.listen.host));
  const uint16_t port = TRY(collectives::port_of(listener));
  return std::unique_ptr<Service>(
      new Service(std::make_unique<Impl>(std::move(options), std::move(listener), port)));
}

Service::Service(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Service::~Service() = default;
uint16_t Service::port() const { return impl_->port(); }
void Service::expect(std::string name) { impl_->post(events::Expected{std::move(name)}); }
void Service::gone(std::string name, std::string why) {
  impl_->post(events::Gone{std::move(name), std::move(why)});
}
void Service::host_leaves(std::string host) { impl_->post(events::HostLeaves{std::move(host)}); }
void Service::host_returns(std::string host) { impl_->post(events::HostReturns{std::move(host)}); }
std::optional<News> Service::next(Duration at_most) { return impl_->next(at_most); }
std::string Service::missing() const { return impl_->missing(); }

}  // namespace trainyard::membership
