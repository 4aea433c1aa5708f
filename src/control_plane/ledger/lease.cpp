#include "ledger/lease.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "ledger/on_postgres/set_aside.hpp"
#include "ledger/on_postgres/tables.hpp"

namespace trainyard::ledger {

namespace {

constexpr int kMarginParts = 10;

PostgresSettings impatient(PostgresSettings settings, Duration timeout) {
  settings.answer_timeout = std::min(settings.answer_timeout, timeout);
  return settings;
}

}  // namespace

LeaseState lease_state(const LeaseHold& hold, Duration duration, std::chrono::nanoseconds now) {
  if (hold.taken) return LeaseState::lost;
  return now - hold.renewed < duration - duration / kMarginParts ? LeaseState::held
                                                                 : LeaseState::suspended;
}

LeaseCandidate::LeaseCandidate(PostgresSettings postgres, LeaseSettings settings, std::string name,
                               Clock& clock)
    : postgres_(impatient(std::move(postgres), settings.duration)),
      settings_(settings),
      name_(std::move(name)),
      clock_(clock) {}

LeaseCandidate::~LeaseCandidate() = default;

Result<std::optional<LeaseCandidate::Taken>> LeaseCandidate::try_take() {
  if (!connection_) connection_ = TRY(on_postgres::connect(postgres_, "trainyard standby"));
  auto taken = take(*connection_);
  // If the transaction fails, closing the connection rolls it back.
  if (!taken) connection_.reset();
  return taken;
}

Result<void> LeaseCandidate::read_lease(postgres::Connection& connection) {
  const postgres::Rows rows = TRY(connection.run(
      {"SELECT fencing, holder, (expires <= clock_timestamp())::int FROM lease WHERE id = 1"}));
  if (rows.count() != 1) return corrupt("the ledger's table `lease` must have one row");
  seen_ = {uint64_t(rows.integer(0, 0)), rows.text(0, 1), rows.integer(0, 2) == 1};
  return {};
}

Result<std::optional<LeaseCandidate::Taken>> LeaseCandidate::take(
    postgres::Connection& connection) {
  TRY(read_lease(connection));
  if (!seen_.expired) return std::optional<Taken>();
  const auto before = clock_.monotonic();
  TRY(connection.run({"BEGIN"}));
  TRY(connection.run({"SET LOCAL lock_timeout TO '300ms'"}));
  // Waits for the transaction of the previous holder, which also locks the row.
  const auto locked = connection.run({"SELECT fencing FROM lease WHERE id = 1 FOR UPDATE"});
  if (!locked && locked.error().is(postgres::Fault::lock)) {
    TRY(connection.run({"ROLLBACK"}));
    TRY(connection.run(on_postgres::end_writer(seen_.fencing)));
    return std::optional<Taken>();  // the next call finds the row free
  }
  if (!locked) return locked.error();
  const postgres::Rows rows = TRY(connection.run(
      {"UPDATE lease SET fencing = fencing + 1, holder = $1, expires = clock_timestamp() + $2 * "
       "interval '1 millisecond' WHERE id = 1 AND expires <= clock_timestamp() RETURNING fencing",
       {name_, int64_t(settings_.duration.count())}}));
  TRY(connection.run({"COMMIT"}));
  if (rows.count() != 1) return std::optional<Taken>();
  return std::optional(Taken{uint64_t(rows.integer(0, 0)), before});
}

WriterLease::WriterLease(PostgresSettings postgres, LeaseSettings settings,
                         LeaseCandidate::Taken taken, Clock& clock,
                         std::function<void(const std::string& why)> lost)
    : postgres_(impatient(std::move(postgres), settings.duration)),
      settings_(settings),
      fencing_(taken.fencing),
      clock_(clock),
      lost_(std::move(lost)) {
  hold_.renewed = taken.at;
  thread_ = std::thread([this] { renew_until_stopped(); });
}

WriterLease::~WriterLease() {
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_one();
  thread_.join();
  if (state() != LeaseState::held) return;
  if (const auto released = release(); !released)
    log(Level::warning, "ledger", "the lease was not released; a standby waits until it expires",
        {{"why", released.error().message}});
}

Result<void> WriterLease::release() {
  if (!connection_) connection_ = TRY(on_postgres::connect(postgres_, "trainyard lease"));
  TRY(connection_->run({"UPDATE lease SET expires = '-infinity' WHERE id = 1 AND fencing = $1",
                        {int64_t(fencing_)}}));
  return {};
}

LeaseState WriterLease::state() const {
  const auto now = clock_.monotonic();
  const MutexLock lock(mutex_);
  return lease_state(hold_, settings_.duration, now);
}

std::string WriterLease::why_not() const {
  switch (state()) {
    case LeaseState::held:
      return "";
    case LeaseState::lost:
      return on_postgres::kFenced;
    case LeaseState::suspended:
      break;
  }
  const MutexLock lock(mutex_);
  return "the ledger's PostgreSQL server does not answer" +
         (failure_.empty() ? "" : ": " + failure_);
}

void WriterLease::renew_until_stopped() {
  for (;;) {
    {
      MutexLock lock(mutex_);
      changed_.wait_for(lock, settings_.renew_every, [&]() REQUIRES(mutex_) { return stopped_; });
      if (stopped_) return;
    }
    renew_once();
    if (state() == LeaseState::lost) return lost_(on_postgres::kFenced);
  }
}

void WriterLease::renew_once() {
  const auto before = clock_.monotonic();
  const auto renewed = renew();
  if (!renewed) connection_.reset();
  const MutexLock lock(mutex_);
  if (!renewed) {
    if (failure_.empty())
      log(Level::error, "ledger", "the lease was not renewed; retrying",
          {{"why", renewed.error().message}});
    failure_ = renewed.error().message;
    return;
  }
  if (!failure_.empty()) log(Level::info, "ledger", "the lease is renewed again");
  failure_.clear();
  if (*renewed)
    hold_.renewed = before;
  else
    hold_.taken = true;
}

// Returns false if another server has taken the lease.
Result<bool> WriterLease::renew() {
  if (!connection_) connection_ = TRY(on_postgres::connect(postgres_, "trainyard lease"));
  const postgres::Rows rows = TRY(connection_->run(
      {"UPDATE lease SET expires = clock_timestamp() + $1 * interval '1 millisecond' WHERE id = 1 "
       "AND fencing = $2",
       {int64_t(settings_.duration.count()), int64_t(fencing_)}}));
  return rows.changed() == 1;
}

}  // namespace trainyard::ledger
