#include "ledger/lease.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "ledger/testing/test_records.hpp"
#include "os/machine_clock.hpp"
#include "postgres/testing/test_server.hpp"

namespace trainyard::ledger {
namespace {

using std::chrono::nanoseconds;

TEST(LeaseState, DependsOnlyOnTheLastRenewalAndTheNumber) {
  struct Case {
    bool taken;
    Duration since;
    LeaseState expected;
  };
  for (const Case& each : {Case{false, 0ms, LeaseState::held},
                           {false, 2'699ms, LeaseState::held},
                           {false, 2'700ms, LeaseState::suspended},
                           {false, 3'000ms, LeaseState::suspended},
                           {false, 24h, LeaseState::suspended},
                           {true, 0ms, LeaseState::lost},
                           {true, 24h, LeaseState::lost}})
    EXPECT_EQ(lease_state({nanoseconds(5s), each.taken}, 3s, nanoseconds(5s + each.since)),
              each.expected)
        << each.since.count();
}

TEST(AfterLoss, DependsOnTheLastSequenceNumber) {
  EXPECT_EQ(after_loss(7, 9, 7, false), AfterLoss::not_committed);
  EXPECT_EQ(after_loss(7, 9, 7, true), AfterLoss::not_committed);
  EXPECT_EQ(after_loss(7, 9, 9, false), AfterLoss::committed);
  EXPECT_EQ(after_loss(7, 9, 9, true), AfterLoss::restart);
  EXPECT_EQ(after_loss(7, 9, 8, false), AfterLoss::restart) << "another program has written";
  EXPECT_EQ(after_loss(7, 9, 6, false), AfterLoss::restart) << "an older backup was restored";
  EXPECT_EQ(after_loss(7, 7, 7, false), AfterLoss::not_committed);
}

// Waits while the lease is in that state, and returns the next state.
LeaseState state_after(const WriterLease& lease, LeaseState state) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  auto seen = lease.state();
  while (seen == state && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    seen = lease.state();
  }
  return seen;
}

class LeaseOnPostgres : public testing::Test {
 protected:
  LeaseOnPostgres() {
    const auto made = prepare_postgres(postgres_, {"1", "d", "m"});
    EXPECT_TRUE(made) << made.error().message;
  }
  LeaseCandidate candidate(const std::string& name, Duration duration = 1h) {
    return {postgres_, {duration, 10ms, 10ms}, name, clock_};
  }
  void expire() {
    server_.run("UPDATE trainyard_ledger.lease SET expires = clock_timestamp()", database_);
  }
  postgres::TestServer& server_ = postgres::TestServer::shared();
  const std::string database_ = server_.new_database();
  const PostgresSettings postgres_{server_.url(database_)};
  os::MachineClock clock_;
};

TEST_F(LeaseOnPostgres, HasOneHolder) {
  auto a = candidate("a"), b = candidate("b");
  const auto first = a.try_take();
  ASSERT_TRUE(first) << first.error().message;
  ASSERT_TRUE(*first);
  EXPECT_EQ((*first)->fencing, 1u);
  const auto second = b.try_take();
  ASSERT_TRUE(second);
  EXPECT_FALSE(*second);
  EXPECT_EQ(b.seen().holder, "a");
  expire();
  const auto third = b.try_take();
  ASSERT_TRUE(third && *third);
  EXPECT_EQ((*third)->fencing, 2u);
  EXPECT_FALSE(*a.try_take());
}

TEST_F(LeaseOnPostgres, CanBeTakenAtOnceAfterItsRelease) {
  auto a = candidate("a"), b = candidate("b");
  bool renewed = false;
  {
    const auto taken = *a.try_take();
    WriterLease lease(postgres_, {1h, 10ms, 10ms}, *taken, clock_,
                      [](const std::string&) { FAIL() << "no other server has taken it"; });
    EXPECT_EQ(lease.state(), LeaseState::held);
    // The first renewal replaces the expiry.
    expire();
    auto connection = *postgres::Connection::open({postgres_.url});
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!renewed && std::chrono::steady_clock::now() < deadline)
      renewed =
          connection->run({"SELECT (expires > clock_timestamp())::int FROM trainyard_ledger.lease"})
              ->integer(0, 0) == 1;
    EXPECT_TRUE(renewed);
    EXPECT_FALSE(*b.try_take());
  }
  EXPECT_TRUE(*b.try_take());
}

TEST_F(LeaseOnPostgres, NotifiesAWriterThatIsReplaced) {
  auto a = candidate("a"), b = candidate("b");
  std::string why;
  Mutex mutex;
  ConditionVariable reported;
  const auto taken = *a.try_take();
  // The writer does not renew before the other server has taken the lease.
  expire();
  ASSERT_TRUE(*b.try_take());
  WriterLease lease(postgres_, {1h, 10ms, 10ms}, *taken, clock_, [&](const std::string& text) {
    const MutexLock lock(mutex);
    why = text;
    reported.notify_one();
  });
  MutexLock lock(mutex);
  reported.wait_for(lock, std::chrono::seconds(60), [&] { return !why.empty(); });
  EXPECT_EQ(lease.state(), LeaseState::lost);
  EXPECT_NE(why.find("another server"), std::string::npos);
  EXPECT_EQ(lease.why_not(), why);
}

TEST_F(LeaseOnPostgres, IsSuspendedWhileTheDatabaseIsUnreachable) {
  postgres::TestServer own;
  const PostgresSettings settings{own.url("postgres")};
  ASSERT_TRUE(prepare_postgres(settings, {"1", "d", "m"}));
  LeaseCandidate a(settings, {2s, 10ms, 10ms}, "a", clock_);
  const auto taken = *a.try_take();
  WriterLease lease(settings, {2s, 10ms, 10ms}, *taken, clock_,
                    [](const std::string&) { FAIL() << "no other server has taken it"; });
  own.stop();
  EXPECT_EQ(state_after(lease, LeaseState::held), LeaseState::suspended);
  EXPECT_NE(lease.why_not().find("does not answer"), std::string::npos) << lease.why_not();
  own.start();
  EXPECT_EQ(state_after(lease, LeaseState::suspended), LeaseState::held);
}

TEST_F(LeaseOnPostgres, AFencedWriterCannotCommit) {
  auto a = candidate("a"), b = candidate("b");
  auto first = *open_postgres(postgres_, (*a.try_take())->fencing);
  ASSERT_TRUE(first->commit({{a_command(1)}, {a_job(1, "a")}, {}}));
  expire();
  const auto taken = *b.try_take();
  const auto refused = first->commit({{a_command(2)}, {a_job(2, "b")}, {}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Kind::unavailable) << refused.error().message;
  EXPECT_NE(first->failure().find("another server"), std::string::npos) << first->failure();
  auto second = *open_postgres(postgres_, taken->fencing);
  EXPECT_EQ(second->last_sequence(), 1u);
  EXPECT_TRUE(second->commit({{a_command(2)}, {a_job(2, "c")}, {}}));
  EXPECT_EQ(first->find_job(2)->key.name, "c") << "it may still read";
  EXPECT_FALSE(open_postgres(postgres_, 1)) << "the fencing number is outdated";
}

TEST_F(LeaseOnPostgres, AFencedWriterFailsIfItsNumbersAreInUse) {
  auto a = candidate("a"), b = candidate("b");
  auto first = *open_postgres(postgres_, (*a.try_take())->fencing);
  ASSERT_TRUE(first->commit({{a_command(1)}, {a_job(1, "a")}, {}}));
  expire();
  auto second = *open_postgres(postgres_, (*b.try_take())->fencing);
  ASSERT_TRUE(second->commit({{a_command(2)}, {a_job(2, "b")}, {}}));
  const auto refused = first->commit({{a_command(2)}, {a_job(2, "c")}, {}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Kind::unavailable) << refused.error().message;
  EXPECT_NE(first->failure().find("another server"), std::string::npos) << first->failure();
  EXPECT_EQ(second->find_job(2)->key.name, "b");
}

// A server that is stopped between two statements of a commit keeps the lease's row locked.
TEST_F(LeaseOnPostgres, EndsTheOpenTransactionOfAStoppedWriter) {
  auto a = candidate("a"), b = candidate("b");
  const auto fencing = (*a.try_take())->fencing;
  auto stopped = *postgres::Connection::open(
      {postgres_.url, "", "trainyard writer " + std::to_string(fencing)});
  ASSERT_TRUE(stopped->run_script(
      "SET search_path TO trainyard_ledger; BEGIN; SELECT 1 FROM lease FOR KEY SHARE; INSERT INTO "
      "commands VALUES (1, 1, 'create', '{}')"));
  // A ledger in another database of the server has a writer with the same fencing number.
  auto elsewhere = *postgres::Connection::open(
      {server_.url(server_.new_database()), "", "trainyard writer " + std::to_string(fencing)});
  expire();
  std::optional<LeaseCandidate::Taken> taken;
  for (int tries = 0; tries < 100 && !taken; ++tries) taken = *b.try_take();
  ASSERT_TRUE(taken);
  EXPECT_FALSE(stopped->run({"COMMIT"}));
  EXPECT_TRUE(elsewhere->run({"SELECT 1"}));
  auto ledger = *open_postgres(postgres_, taken->fencing);
  EXPECT_EQ(ledger->last_sequence(), 0u);
  EXPECT_TRUE(ledger->commit({{a_command(1)}, {a_job(1, "a")}, {}}));
}

}  // namespace
}  // namespace trainyard::ledger
