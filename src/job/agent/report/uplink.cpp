#include "agent/report/uplink.hpp"

#include <algorithm>

#include "base/log.hpp"
#include "base/thread_safety.hpp"
#include "wire/codec.hpp"

namespace trainyard::agent {

std::string Presence::reason() {
  return connected ? "because the job wrote them faster than the server accepted them"
                   : "because the server was unavailable";
}

Uplink::Uplink(wire::Hello hello, Spool& spool, Presence& presence, Connect connect, Clock& clock,
               Random& random, Deliver deliver, Instant issued)
    : hello_(std::move(hello)),
      spool_(spool),
      presence_(presence),
      connect_(std::move(connect)),
      clock_(clock),
      job_clock_(clock, issued),
      random_(random),
      deliver_(std::move(deliver)) {}

Uplink::~Uplink() { stop(); }

void Uplink::start() {
  thread_ = std::thread([this] { loop(); });
}

void Uplink::stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool Uplink::wait_acknowledged(Duration at_most) {
  MutexLock lock(mutex_);
  return changed_.wait_for(lock, at_most, [&]() REQUIRES(mutex_) {
    return spool_.states_empty() && spool_.data_empty();
  });
}

void Uplink::state(wire::StateFact fact) {
  fact.at = job_clock_.now();
  if (auto added = spool_.add_state(std::move(fact)); !added) {
    log(Level::error, "agent", "could not spool a fact", {{"error", added.error().message}});
  }
  wake();
}

void Uplink::lines(std::vector<wire::LogLine> lines) {
  spool_.add_logs(std::move(lines));
  wake();
}

void Uplink::points(std::vector<wire::MetricPoint> points) {
  spool_.add_metrics(std::move(points));
  wake();
}

void Uplink::say(const std::string& text) { lines({{clock_.now(), "trainyard: " + text}}); }

void Uplink::send_now(const wire::Message& message) {
  std::shared_ptr<net::Link> link;
  {
    const MutexLock lock(mutex_);
    if (welcomed_ && !closed_) link = link_;
  }
  if (link) link->send(wire::encode(message));
}

void Uplink::offer(std::function<wire::Idle()> message) {
  {
    const MutexLock lock(mutex_);
    if (hello_.version < 2) return;
    offer_ = std::move(message);
    offered_ = false;
  }
  wake();
}

void Uplink::wake() {
  {
    const MutexLock lock(mutex_);
    send_requested_ = true;
  }
  changed_.notify_all();
}

void Uplink::loop() {
  Duration pause = kReconnectPauseMin;
  MutexLock lock(mutex_);
  while (!stopping_ && !refused_) {
    const uint64_t connection = ++connection_;
    closed_ = false;
    welcomed_ = false;
    offered_ = false;
    lock.unlock();
    net::LinkEvents events;
    events.opened = [this, connection](const std::shared_ptr<net::Link>& link) {
      link->send(wire::encode(hello_));
      const MutexLock current(mutex_);
      if (connection_ != connection) return;
      link_ = link;
      changed_.notify_all();
    };
    events.frame = [this, connection](const std::shared_ptr<net::Link>& link,
                                      const std::string& frame) {
      on_frame(connection, link, frame);
    };
    events.closed = [this, connection](const std::shared_ptr<net::Link>&, const Error& why) {
      log(Level::info, "agent", "the link to the server was closed", {{"why", why.message}});
      const MutexLock current(mutex_);
      if (connection_ != connection) return;
      closed_ = true;
      presence_.connected = false;
      changed_.notify_all();
    };
    auto client = connect_(std::move(events));
    bool was_welcomed = false;
    if (client) {
      run_connection();
      client->reset();  // joins its thread: no event of this connection follows
    } else {
      log(Level::debug, "agent", "cannot reach the server", {{"error", client.error().message}});
    }
    lock.lock();
    was_welcomed = welcomed_;
    welcomed_ = false;
    link_.reset();
    held_.reset();
    presence_.connected = false;
    if (was_welcomed) pause = kReconnectPauseMin;
    if (stopping_ || refused_) break;
    const auto chance = Duration(
        static_cast<int64_t>(random_.number() % static_cast<uint64_t>(pause.count() / 2 + 1)));
    changed_.wait_for(lock, pause + chance, [&]() REQUIRES(mutex_) { return stopping_; });
    pause = std::min(pause * 2, kReconnectPauseMax);
  }
}

void Uplink::run_connection() {
  MutexLock lock(mutex_);
  if (!changed_.wait_for(lock, kWelcomeWaitMax, [&]() REQUIRES(mutex_) {
        return stopping_ || refused_ || closed_ || welcomed_;
      }))
    return;
  send_requested_ = true;
  while (!stopping_ && !refused_ && !closed_) {
    if (send_requested_ && link_) {
      send_requested_ = false;
      const auto link = link_;
      send_pending(*link);
      continue;
    }
    const auto ready = [&]() REQUIRES(mutex_) {
      return stopping_ || refused_ || closed_ || send_requested_;
    };
    if (held_) {
      if (!changed_.wait_for(lock, kFinalFactHoldMax / 10, ready)) send_requested_ = true;
    } else {
      changed_.wait(lock, ready);
    }
  }
}

void Uplink::send_pending(net::Link& link) {
  if (offer_ && !std::exchange(offered_, true)) link.send(wire::encode(offer_()));
  if (held_ && (spool_.data_empty() || clock_.monotonic() - held_since_ > kFinalFactHoldMax)) {
    link.send(wire::encode(*held_));
    held_.reset();
  }
  while (!held_) {
    auto fact = spool_.take_state();
    if (!fact) break;
    if (domain::is_final(fact->state) && !spool_.data_empty()) {
      held_ = std::move(fact);
      held_since_ = clock_.monotonic();
      break;
    }
    link.send(wire::encode(*fact));
  }
  const MutexUnlock unlocked(mutex_);
  while (spool_.data_in_flight_bytes() < kDataWindowBytes) {
    auto payload = spool_.take_data();
    if (!payload) break;
    link.send(std::move(*payload));
  }
}

void Uplink::on_frame(uint64_t connection, const std::shared_ptr<net::Link>& link,
                      const std::string& frame) {
  auto message = wire::decode(frame);
  if (!message) {
    log(Level::error, "agent", "received an invalid message from the server",
        {{"error", message.error().message}});
    link->close();
    return;
  }
  if (const auto* unknown = std::get_if<wire::Unknown>(&*message)) {
    log(Level::info, "agent", "skipped a message of a later version",
        {{"kind", std::to_string(unknown->kind)}});
    return;
  }
  if (const auto* welcome = std::get_if<wire::Welcome>(&*message);
      welcome && (welcome->version < hello_.oldest || welcome->version > hello_.version))
    message = wire::Message(
        wire::Refused{"the server speaks version " + std::to_string(welcome->version) +
                      " with agents, and this agent " + wire::versions_text(hello_)});
  {
    const MutexLock lock(mutex_);
    if (connection_ != connection) return;
    if (const auto* welcome = std::get_if<wire::Welcome>(&*message)) {
      if (welcome->now != Instant{}) job_clock_.catch_up(welcome->now);
      spool_.rewind(welcome->state_acknowledged, welcome->data_acknowledged);
      held_.reset();
      welcomed_ = true;
      presence_.connected = true;
    } else if (const auto* acknowledge = std::get_if<wire::Acknowledge>(&*message)) {
      if (acknowledge->track != wire::Track::other)
        spool_.acknowledge(acknowledge->track, acknowledge->number);
    } else if (std::holds_alternative<wire::Refused>(*message)) {
      refused_ = true;
    }
    send_requested_ = true;
  }
  changed_.notify_all();
  deliver_(std::move(*message));
}

}  // namespace trainyard::agent
