// Decides which of several servers writes the ledger: the one that holds the lease.
//
// The lease is a row of the database: a fencing number, its holder, and when it expires by the
// database's clock. A server takes it when it has expired, and increments the number. The holder
// renews it, even after the expiry, as long as the number shows that no other server has taken it.
//
// A server's wall clock is not involved. The holder measures with its monotonic clock, from the
// instant before it sent a renewal, so that it stops acting before the database regards the lease
// as expired.
//
//   free ──take──► held ──no renewal in time──► suspended ──renewed──► held
//                   │ │                             │
//                   │ └──release──► free            └──another number──► lost
//                   └──another number──► lost
//
// Threads: the functions are pure; WriterLease is callable from anywhere.
// Errors:  those of the connection; a lost lease is a state, not an error.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/result.hpp"
#include "base/thread_safety.hpp"
#include "base/time.hpp"
#include "ledger/postgres_ledger.hpp"
#include "postgres/connection.hpp"

namespace trainyard::ledger {

struct LeaseSettings {
  Duration duration = 3s;
  Duration renew_every = 1s;
  // A standby reads the lease this often.
  Duration poll_every = 500ms;
};

enum class LeaseState { held, suspended, lost };

// LeaseHold is the state of a lease as its holder knows it.
struct LeaseHold {
  std::chrono::nanoseconds renewed{};  // monotonic, before the last successful renewal was sent
  bool taken = false;                  // another server has taken the lease
};
// Returns the state of the lease. A tenth of the duration is a margin for clocks of different
// speed.
LeaseState lease_state(const LeaseHold& hold, Duration duration, std::chrono::nanoseconds now);

// The lease as a standby reads it.
struct LeaseView {
  uint64_t fencing = 0;
  std::string holder;
  bool expired = false;  // by the database's clock
};

// LeaseCandidate watches the lease for a standby server, and takes it when it becomes free.
//
// Threads: confined to one.
class LeaseCandidate {
 public:
  // `name` is shown to other servers: "box-1 (127.0.0.1:4566), process 17". Lifetime: the clock
  // outlives it.
  LeaseCandidate(PostgresSettings postgres, LeaseSettings settings, std::string name, Clock& clock);
  ~LeaseCandidate();

  struct Taken {
    uint64_t fencing;
    std::chrono::nanoseconds at;  // monotonic, before it was requested
  };
  // Takes the lease if it is free or has expired, and ends a transaction that the previous holder
  // has left open. Returns nullopt if another server holds the lease. Errors: those of the
  // connection; the next call opens another.
  Result<std::optional<Taken>> try_take();
  // Returns the lease as of the last call.
  const LeaseView& seen() const { return seen_; }

 private:
  Result<std::optional<Taken>> take(postgres::Connection& connection);
  Result<void> read_lease(postgres::Connection& connection);

  const PostgresSettings postgres_;
  const LeaseSettings settings_;
  const std::string name_;
  Clock& clock_;
  LeaseView seen_;
  std::unique_ptr<postgres::Connection> connection_;
};

// WriterLease renews a lease until it is destroyed; then it releases the lease, so that a standby
// takes over at once.
class WriterLease {
 public:
  // `lost` is called once, on its own thread, when another server has taken the lease; it must not
  // block. Lifetime: the clock outlives it.
  WriterLease(PostgresSettings postgres, LeaseSettings settings, LeaseCandidate::Taken taken,
              Clock& clock, std::function<void(const std::string& why)> lost);
  ~WriterLease();
  WriterLease(const WriterLease&) = delete;

  uint64_t fencing() const { return fencing_; }
  LeaseState state() const;
  // Returns why this server does not act at present; "" while it holds the lease.
  std::string why_not() const;

 private:
  void renew_until_stopped();
  void renew_once();
  Result<bool> renew();
  Result<void> release();

  const PostgresSettings postgres_;
  const LeaseSettings settings_;
  const uint64_t fencing_;
  Clock& clock_;
  const std::function<void(const std::string&)> lost_;
  std::unique_ptr<postgres::Connection> connection_;  // confined to the thread

  mutable Mutex mutex_;
  ConditionVariable changed_;
  LeaseHold hold_ GUARDED_BY(mutex_);
  std::string failure_ GUARDED_BY(mutex_);  // of the last renewal
  bool stopped_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace trainyard::ledger
