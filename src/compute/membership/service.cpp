#include "membership/service.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <list>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "membership/wire.hpp"

namespace trainyard::membership {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr Duration look_interval = 100ms;  // deadlines are seconds; those who come are heard at once
constexpr int backlog_connections = 1024;

// The steady clock in the words of Membership, which only takes differences.
Instant now() { return Instant(std::chrono::duration_cast<Duration>(SteadyClock::now().time_since_epoch())); }

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
    wake();
    thread_.join();
  }

  uint16_t port() const { return port_; }

  void tell(Event event) {
    {
      const std::lock_guard lock(mutex_);
      events_.push_back(std::move(event));
    }
    wake();
  }

  std::optional<News> next(Duration at_most) {
    std::unique_lock lock(mutex_);
    came_.wait_for(lock, at_most, [this] { return !news_.empty(); });
    if (news_.empty()) return std::nullopt;
    News first = std::move(news_.front());
    news_.pop_front();
    return first;
  }

  std::string missing() const {
    const std::lock_guard lock(mutex_);
    return missing_;
  }

 private:
  struct Connection {
    Wire wire;
    std::string name;               // of the member, once it came
    SteadyClock::time_point until;  // without a proof, or to hear that it is to go
    bool closing = false;           // it was told to go
    bool broken = false;
  };

  void wake() {
    const uint64_t one = 1;
    (void)!::write(wake_.descriptor(), &one, sizeof one);
  }

  void run() {
    while (!stopping_) {
      wait();
      accept();
      for (Connection& connection : connections_) hear(connection);
      std::erase_if(connections_, [](const Connection& each) {
        return each.closing && (each.broken || !each.wire.wants_to_write());
      });
      std::vector<Event> told;
      {
        const std::lock_guard lock(mutex_);
        told.swap(events_);
      }
      for (const Event& event : told) {
        if (const auto* gone = std::get_if<events::Gone>(&event); gone && known(gone->name)) say_gone(*gone);
        apply(event);
      }
      apply(events::TimePasses{});
      const std::lock_guard lock(mutex_);
      missing_ = membership_.missing();
    }
  }

  void wait() {
    std::vector<pollfd> events{{wake_.descriptor(), POLLIN, 0}};
    if (connections_.size() < members_max && strangers() < strangers_max)
      events.push_back({listener_.descriptor(), POLLIN, 0});
    for (const Connection& each : connections_)
      events.push_back(
          {each.wire.descriptor(), short(POLLIN | (each.wire.wants_to_write() ? POLLOUT : 0)), 0});
    (void)::poll(events.data(), events.size(), int(look_interval.count()));
    uint64_t count = 0;
    (void)!::read(wake_.descriptor(), &count, sizeof count);
  }

  size_t strangers() const {
    return size_t(std::count_if(connections_.begin(), connections_.end(),
                                [](const Connection& each) { return !each.wire.proved(); }));
  }

  void accept() {
    while (connections_.size() < members_max && strangers() < strangers_max) {
      collectives::Socket socket(
          ::accept4(listener_.descriptor(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket) return;
      watch_for_death(socket.descriptor());
      connections_.push_back({Wire(std::move(socket), options_.secret, Wire::Side::service),
                              {},
                              SteadyClock::now() + stranger_max});
    }
  }

  void hear(Connection& connection) {
    if (connection.closing) {
      connection.broken |= !connection.wire.look() || SteadyClock::now() > connection.until;
      return;
    }
    const auto messages = connection.wire.look();
    if (!messages || (!connection.wire.proved() && SteadyClock::now() > connection.until)) {
      connection.closing = connection.broken = true;
      const std::string name = std::exchange(connection.name, {});
      if (name.empty()) return;  // a stranger, or one that said that it is done
      const events::Gone gone{name, messages ? "it says nothing" : messages.error().message};
      say_gone(gone);
      return apply(gone);
    }
    for (const Message& message : *messages) {
      if (const auto* came = std::get_if<messages::Came>(&message)) {
        const bool first = connection.name.empty();
        connection.name = came->applicant.name;
        if (first)
          say({News::Kind::came, connection.name, connection.name + " came from " + came->applicant.host});
        apply(events::Came{came->applicant});
      } else if (std::holds_alternative<messages::Done>(message)) {
        const std::string name = std::exchange(connection.name, {});
        if (name.empty()) continue;
        say({News::Kind::done, name, name + " is done"});
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
      if (const auto* seated = std::get_if<actions::Seated>(&action)) {
        const Generation& generation = seated->generation;
        for (size_t rank = 0; rank < generation.slots.size(); ++rank)
          if (Connection* each = find(generation.slots[rank].name))
            each->wire.send(messages::Seated{uint32_t(rank), generation});
        say({News::Kind::seated, "",
             "generation " + std::to_string(generation.number) + ": " +
                 std::to_string(generation.slots.size()) + " ranks" +
                 (generation.reason.empty() ? "" : " (" + generation.reason + ")"),
             generation.number, int(generation.slots.size())});
      } else if (const auto* dismissed = std::get_if<actions::Dismissed>(&action)) {
        if (Connection* each = find(dismissed->name)) {
          each->wire.send(*dismissed);
          let_go(*each);
        }
        say({News::Kind::dismissed, dismissed->name, dismissed->name + " is dismissed: " + dismissed->why});
      } else {
        for (const std::string& name : membership_.running()) {
          Connection* each = find(name);
          if (!each) continue;
          if (const auto* changed = std::get_if<actions::Changed>(&action)) each->wire.send(*changed);
          if (const auto* lost = std::get_if<actions::Lost>(&action)) each->wire.send(*lost);
        }
      }
    }
  }

  static void let_go(Connection& connection) {
    connection.name.clear();
    connection.closing = true;
    connection.until = SteadyClock::now() + stranger_max;
  }

  void say_gone(const events::Gone& gone) {
    // The launcher and the connection may both say it: once is enough.
    if (Connection* each = find(gone.name)) let_go(*each);
    const auto running = membership_.running();
    const auto place = std::find(running.begin(), running.end(), gone.name);
    const std::string who = place == running.end()
                                ? gone.name
                                : "rank " + std::to_string(place - running.begin()) + " (" + gone.name + ")";
    if (gone.why.empty()) return say({News::Kind::done, gone.name, who + " is done"});
    say({News::Kind::lost, gone.name, who + " was lost: " + gone.why});
  }

  void say(News news) {
    const std::lock_guard lock(mutex_);
    news_.push_back(std::move(news));
    if (news_.size() > news_max) news_.pop_front();
    came_.notify_all();
  }

  const ServiceOptions options_;
  const collectives::Socket listener_;
  const uint16_t port_;
  const collectives::Socket wake_;
  std::atomic<bool> stopping_ = false;
  Membership membership_;              // the thread's
  std::list<Connection> connections_;  // the thread's
  mutable std::mutex mutex_;
  std::condition_variable came_;
  std::vector<Event> events_;  // guarded by mutex_, like what follows
  std::deque<News> news_;
  std::string missing_;
  std::thread thread_;
};

Result<std::unique_ptr<Service>> Service::start(ServiceOptions options) {
  if (options.limits.ranks_min < 1 || options.limits.ranks_max < options.limits.ranks_min)
    return invalid("at least one rank, and at most no fewer than at least");
  collectives::Socket listener = TRY(
      collectives::listen_at(options.listen, backlog_connections).in("listening at " + options.listen.host));
  const uint16_t port = TRY(collectives::port_of(listener));
  return std::unique_ptr<Service>(
      new Service(std::make_unique<Impl>(std::move(options), std::move(listener), port)));
}

Service::Service(std::unique_ptr<Impl> inside) : impl_(std::move(inside)) {}
Service::~Service() = default;
uint16_t Service::port() const { return impl_->port(); }
void Service::expect(std::string name) { impl_->tell(events::Expected{std::move(name)}); }
void Service::gone(std::string name, std::string why) {
  impl_->tell(events::Gone{std::move(name), std::move(why)});
}
void Service::host_leaves(std::string host) { impl_->tell(events::HostLeaves{std::move(host)}); }
void Service::host_returns(std::string host) { impl_->tell(events::HostReturns{std::move(host)}); }
std::optional<News> Service::next(Duration at_most) { return impl_->next(at_most); }
std::string Service::missing() const { return impl_->missing(); }

}  // namespace trainyard::membership
