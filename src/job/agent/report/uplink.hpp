// Connects the agent to the server: sends spooled facts until they are acknowledged, over any
// number of connections, and delivers the server's messages.
//
// The server may be unavailable for hours: the agent tries to connect forever, with growing pauses.
// A final fact (finished, failed) is held until the log before it is acknowledged, so that a
// finished job has its complete log, at most for kFinalFactHoldMax.
//
// Threads: state(), lines(), points(), say(), offer() and stop() from anywhere; `deliver`
//          is called on the link's thread, one message at a time, and must not block.
// Lifetime: the constructor's arguments must outlive it. stop() joins.
//
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "agent/report/facts.hpp"
#include "agent/report/job_clock.hpp"
#include "agent/report/spool.hpp"
#include "base/random.hpp"
#include "base/thread_safety.hpp"
#include "net/link.hpp"

namespace trainyard::agent {

// The pause before the next connection doubles from the minimum to the maximum. A random part of up
// to half of it is added, so that the agents of a large gang do not connect at once after an
// outage.
inline constexpr Duration kReconnectPauseMin = 20ms;
inline constexpr Duration kReconnectPauseMax = 2s;
// A connection is closed if no Welcome arrives within this time.
inline constexpr Duration kWelcomeWaitMax = 10s;
// Data sent and not acknowledged: enough to fill the network, far below the link's own limit of
// unsent bytes.
inline constexpr uint64_t kDataWindowBytes = 8 << 20;
// The longest time that a final fact waits for the log before it: a server that cannot store logs
// must not keep jobs from ending.
inline constexpr Duration kFinalFactHoldMax = 30s;

// Presence is the state of the connection to the server. It outlives spool and uplink, which both
// refer to it.
class Presence final : public SpoolReason {
 public:
  std::string reason() override;
  std::atomic<bool> connected = false;
};

class Uplink final : public Facts {
 public:
  using Connect = std::function<Result<std::unique_ptr<net::LinkClient>>(net::LinkEvents)>;
  using Deliver = std::function<void(wire::Message)>;

  // `issued`: wire::Order::issued.
  Uplink(wire::Hello hello, Spool& spool, Presence& presence, Connect connect, Clock& clock,
         Random& random, Deliver deliver, Instant issued = {});
  ~Uplink() override;

  void start();
  void stop();
  // Waits until all facts are acknowledged. Returns false if `at_most` passed before.
  bool wait_acknowledged(Duration at_most);

  void state(wire::StateFact fact) override;
  void lines(std::vector<wire::LogLine> lines) override;
  void points(std::vector<wire::MetricPoint> points) override;
  void say(const std::string& text) override;
  // Sends the Idle of `message` before the next final fact, and again on each later link; `message`
  // is called when it is sent. No effect with a server of version 1.
  void offer(std::function<wire::Idle()> message);
  // Sends the message at once, neither numbered nor spooled; drops it when there is no link.
  void send_now(const wire::Message& message);

 private:
  void loop();
  void run_connection();  // until it closes
  // Releases the mutex while the spool's files are read and frames are sent.
  void send_pending(net::Link& link) REQUIRES(mutex_);
  void on_frame(uint64_t connection, const std::shared_ptr<net::Link>& link,
                const std::string& frame);
  void wake();

  const wire::Hello hello_;
  Spool& spool_;
  Presence& presence_;
  const Connect connect_;
  Clock& clock_;
  JobClock job_clock_;  // for facts; log lines use the wall clock
  Random& random_;
  const Deliver deliver_;

  Mutex mutex_;
  ConditionVariable changed_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  bool refused_ GUARDED_BY(mutex_) = false;
  uint64_t connection_ GUARDED_BY(mutex_) = 0;  // events of earlier connections are ignored
  // Shared with the transport, which frees it last.
  std::shared_ptr<net::Link> link_ GUARDED_BY(mutex_);
  bool welcomed_ GUARDED_BY(mutex_) = false;
  bool closed_ GUARDED_BY(mutex_) = false;
  bool send_requested_ GUARDED_BY(mutex_) = false;  // there may be messages to send
  std::function<wire::Idle()> offer_ GUARDED_BY(mutex_);
  bool offered_ GUARDED_BY(mutex_) = false;  // on this link
  // A final fact that waits for the log before it.
  std::optional<wire::StateFact> held_ GUARDED_BY(mutex_);
  std::chrono::nanoseconds held_since_ GUARDED_BY(mutex_){};

  std::thread thread_;
};

}  // namespace trainyard::agent
