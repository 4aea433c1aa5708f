// Tests the ledger on PostgreSQL with connections that are lost at every point of a commit.
#include <gtest/gtest.h>

#include <set>

#include "ledger/on_postgres/tables.hpp"
#include "ledger/testing/test_postgres.hpp"
#include "ledger/testing/test_records.hpp"
#include "postgres/testing/relay.hpp"

namespace trainyard::ledger {
namespace {

using postgres::Cut;
using postgres::Relay;
using postgres::TestServer;

class PostgresFaults : public testing::TestWithParam<Cut> {
 protected:
  PostgresFaults() { EXPECT_TRUE(prepare_postgres(direct_, a_test_owner())); }

  // A command and the job that it creates, of the same number.
  static Batch create(uint64_t number) {
    return {{a_command(number)}, {a_job(number, "job-" + std::to_string(number))}, {}};
  }
  // The sequence numbers in the database, with repetitions if there were any.
  std::vector<uint64_t> sequences(Ledger& ledger) {
    std::vector<uint64_t> found;
    EXPECT_TRUE(ledger.replay([&](const CommandRecord& command) -> Result<void> {
      found.push_back(command.sequence);
      return {};
    }));
    return found;
  }

  TestServer& server_ = TestServer::shared();
  const std::string database_ = server_.new_database();
  const PostgresSettings direct_{server_.url(database_)};
};
INSTANTIATE_TEST_SUITE_P(OfEachKind, PostgresFaults,
                         testing::Values(Cut::request, Cut::both, Cut::answer),
                         [](const auto& info) {
                           return info.param == Cut::request ? "request"
                                  : info.param == Cut::both  ? "both"
                                                             : "answer";
                         });

// Cuts the connection at each request of three commits in turn.
TEST_P(PostgresFaults, ACommitIsCarriedOutOnceAndAcknowledgedIfItsConnectionIsLost) {
  uint64_t number = 0;
  bool was_cut = true;
  for (uint64_t request = 1; was_cut; ++request) {
    ASSERT_LT(request, 200u);
    Relay relay(server_.socket());
    {
      auto ledger = open_postgres({TestServer::url_at(relay.socket_directory(), database_)},
                                  *take_test_lease(direct_));
      ASSERT_TRUE(ledger) << ledger.error().message;
      relay.cut_at(request, GetParam());
      for (int commit = 0; commit < 3; ++commit) {
        ++number;
        const auto done = (*ledger)->commit(create(number));
        ASSERT_TRUE(done) << request << ": " << done.error().message;
        EXPECT_EQ((*ledger)->last_sequence(), number);
      }
      EXPECT_EQ((*ledger)->failure(), "");
    }
    was_cut = relay.has_cut();
  }
  EXPECT_GT(number, 3 * 6u) << "there are at least two requests in each commit";
  auto ledger = *open_test_postgres(direct_);
  EXPECT_EQ(ledger->last_sequence(), number);
  EXPECT_EQ(sequences(*ledger).size(), number);
  for (uint64_t each = 1; each <= number; ++each) EXPECT_TRUE(ledger->find_job(each)) << each;
}

// An update takes one more request if the job is new.
TEST_P(PostgresFaults, AnUpdateIsCarriedOutOnceIfItsConnectionIsLost) {
  auto first = *open_test_postgres(direct_);
  ASSERT_TRUE(first->commit({{a_command(1)}, {a_job(1, "a")}, {}}));
  uint64_t sequence = 1;
  bool was_cut = true;
  for (uint64_t request = 1; was_cut; ++request) {
    ASSERT_LT(request, 200u);
    Relay relay(server_.socket());
    {
      auto ledger = *open_postgres({TestServer::url_at(relay.socket_directory(), database_)},
                                   *take_test_lease(direct_));
      relay.cut_at(request, GetParam());
      domain::Job job = a_job(1, "a");
      job.note = std::to_string(++sequence);
      ASSERT_TRUE(ledger->commit({{a_command(sequence)}, {job}, {}})) << request;
      EXPECT_EQ(ledger->find_job(1)->note, job.note);
    }
    was_cut = relay.has_cut();
  }
  EXPECT_GT(sequence, 3u);
}

TEST(PostgresFault, ReplacesASessionThatTheServerEnded) {
  auto& server = TestServer::shared();
  const PostgresSettings settings{new_test_postgres()};
  auto ledger = *open_test_postgres(settings);
  auto other = *postgres::Connection::open({settings.url});
  for (uint64_t number = 1; number <= 5; ++number) {
    ASSERT_TRUE(
        other->run({"SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE "
                    "pid <> pg_backend_pid() AND datname = current_database()"}));
    EXPECT_TRUE(ledger->commit({{a_command(number)}, {a_job(number, std::to_string(number))}, {}}));
    EXPECT_TRUE(ledger->find_job(number));
  }
  static_cast<void>(server);
}

TEST(PostgresFault, EndsNoSessionOfAnotherDatabaseAfterALostCommit) {
  const PostgresSettings settings{new_test_postgres()};
  auto ledger = *open_test_postgres(settings);  // with the number 1
  auto other = *postgres::Connection::open({new_test_postgres(), "", "trainyard writer 1"});
  auto observer = *postgres::Connection::open({settings.url});
  ASSERT_EQ(observer
                ->run({"SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE "
                       "application_name = 'trainyard writer 1' AND datname = current_database()"})
                ->count(),
            1u);
  ASSERT_TRUE(ledger->commit({{a_command(1)}, {a_job(1, "a")}, {}}));
  EXPECT_TRUE(other->run({"SELECT 1"}));
}

// While the database is not reachable, commits fail, and are not carried out later.
TEST(PostgresFault, KeepsAllAcknowledgedCommitsOverARestartOfTheServer) {
  TestServer own;
  const PostgresSettings settings{own.url("postgres")};
  auto ledger = *open_test_postgres(settings);
  ASSERT_TRUE(ledger->commit({{a_command(1)}, {a_job(1, "a")}, {}}));
  own.stop();
  const auto refused = ledger->commit({{a_command(2)}, {a_job(2, "b")}, {}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Kind::unavailable) << refused.error().message;
  EXPECT_EQ(ledger->find_job(1).error().kind, Kind::unavailable);
  EXPECT_EQ(ledger->failure(), "");
  own.start();
  ASSERT_TRUE(ledger->commit({{a_command(2)}, {a_job(2, "c")}, {}}));
  EXPECT_EQ(ledger->find_job(2)->key.name, "c");
  EXPECT_EQ(ledger->find_job(1)->key.name, "a");
}

// The state in memory does not include the commit, so the process must be restarted.
TEST(PostgresFault, AcceptsNoMoreCommitsIfAFailedCommitIsDurable) {
  auto& server = TestServer::shared();
  const std::string database = server.new_database();
  const PostgresSettings direct{server.url(database)};
  ASSERT_TRUE(prepare_postgres(direct, a_test_owner()));
  auto relay = std::make_unique<Relay>(server.socket());
  PostgresSettings through{TestServer::url_at(relay->socket_directory(), database)};
  // Opening takes less than this, even on a slow machine. The failing commit takes three times
  // this.
  through.answer_timeout = 3s;
  auto ledger = *open_postgres(through, *take_test_lease(direct));
  ASSERT_TRUE(ledger->commit({{a_command(1)}, {a_job(1, "a")}, {}}));
  // The commit takes two requests, since its statements are prepared. The last answer is delayed,
  // and new connections fail.
  relay->stall_after(2);
  const auto refused = ledger->commit({{a_command(2)}, {a_job(2, "b")}, {}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(ledger->failure(), "") << "the outcome is not known yet";
  relay->stall(false);
  const auto next = ledger->commit({{a_command(2)}, {a_job(2, "c")}, {}});
  ASSERT_FALSE(next);
  EXPECT_NE(ledger->failure().find("holds a commit that was reported as failed"), std::string::npos)
      << next.error().message;
  ledger.reset();
  ledger = *open_test_postgres(direct);
  EXPECT_EQ(ledger->last_sequence(), 2u);
  EXPECT_EQ(ledger->find_job(2)->key.name, "b");
}

TEST(PostgresFault, RejectsALedgerOfAnotherVersionOrOwner) {
  auto& server = TestServer::shared();
  const std::string database = server.new_database();
  const PostgresSettings settings{server.url(database)};
  const LedgerOwner owner = a_test_owner();
  ASSERT_TRUE(prepare_postgres(settings, owner));
  const auto message = [&](const LedgerOwner& of) {
    const auto refused = prepare_postgres(settings, of);
    EXPECT_FALSE(refused);
    return refused ? "" : refused.error().message;
  };
  LedgerOwner other = owner;
  other.account = "1";
  EXPECT_NE(message(other).find("belongs to the account 123456789012"), std::string::npos);
  other = owner;
  other.machine = "box-2";
  EXPECT_NE(message(other).find("trainyard ledger adopt"), std::string::npos) << message(other);
  ASSERT_TRUE(adopt_postgres(settings, other));
  EXPECT_TRUE(prepare_postgres(settings, other));
  EXPECT_NE(message(owner).find("on the machine box-2"), std::string::npos);
  other.account = "1";
  EXPECT_EQ(adopt_postgres(settings, other).error().kind, Kind::conflict);
  other.account = owner.account;
  for (const char* version : {"0", "2"}) {
    server.run(std::string("UPDATE trainyard_ledger.ledger SET version = ") + version, database);
    EXPECT_NE(message(other).find(std::string("has version ") + version), std::string::npos);
  }
  const auto absent = prepare_postgres({server.url("absent")}, owner);
  ASSERT_FALSE(absent);
  EXPECT_NE(absent.error().message.find("\"absent\" does not exist"), std::string::npos);
}

TEST(PostgresFault, SetsUnreadableRecordsAside) {
  auto& server = TestServer::shared();
  const std::string database = server.new_database();
  const PostgresSettings settings{server.url(database)};
  const auto check = [](const ResourceRecord& resource) -> Result<void> {
    return resource.body.is_object() ? Result<void>() : invalid("it is not an object");
  };
  ASSERT_TRUE((*open_test_postgres(settings))
                  ->commit({{a_command(1)},
                            {a_job(1, "a"), a_job(2, "not-json"), a_job(3, "last")},
                            {},
                            {{{"job_queue", {"us-east-1", "quick"}, 0, true, Json::array()}},
                             {{"job_queue", {"us-east-1", "slow"}, 0, true, Json::object()}}}}));
  server.run(
      "SET search_path TO trainyard_ledger; UPDATE jobs SET progress = 'nothing' WHERE number = 2; "
      "UPDATE jobs SET reserved = 7, progress = '{}' WHERE number = 3; INSERT INTO records VALUES "
      "('user', 'ann', 3, 'nothing'), ('user', 'bob', 1, '{}')",
      database);
  for (int start = 0; start < 2; ++start) {
    auto ledger = open_test_postgres(settings, kCommandsMax, check);
    ASSERT_TRUE(ledger) << ledger.error().message;
    EXPECT_EQ((*ledger)->live_jobs()->size(), 1u);
    EXPECT_EQ((*ledger)->last_job_number(), 10u) << "their numbers are not assigned again";
    EXPECT_EQ((*ledger)->resources()->size(), 1u);
    EXPECT_EQ((*ledger)->records()->all.size(), 1u);
  }
  const auto connection = *on_postgres::connect(settings, "a test");
  const auto rows =
      *connection->run({"SELECT kind, name, number, reason, record FROM set_aside "
                        "ORDER BY place"});
  ASSERT_EQ(rows.count(), 4u);
  EXPECT_EQ(rows.text(0, 1), "us-east-1/not-json");
  EXPECT_EQ(rows.text(0, 3), "ledger: a job's record is not JSON");
  EXPECT_EQ(parse_json(rows.text(0, 4))->at("number"), 2) << "the whole row is kept";
  EXPECT_EQ(rows.text(2, 3), "ledger: the record of a job_queue: it is not an object");
  EXPECT_EQ(rows.text(3, 1), "ann");
}

TEST(PostgresFault, DropsTheOldestCommands) {
  const PostgresSettings settings{new_test_postgres()};
  uint64_t last = 0;
  for (int start = 0; start < 2; ++start) {
    auto ledger = *open_test_postgres(settings, 2'000);
    for (int commit = 0; commit < 25; ++commit) {
      Batch batch;
      for (int n = 0; n < 100; ++n) batch.commands.push_back(a_command(++last));
      ASSERT_TRUE(ledger->commit(batch));
    }
    uint64_t count = 0, first = 0;
    ASSERT_TRUE(ledger->replay([&](const CommandRecord& command) -> Result<void> {
      if (count++ == 0) first = command.sequence;
      EXPECT_EQ(command.sequence, first + count - 1);
      return {};
    }));
    EXPECT_EQ(first + count - 1, last);
    EXPECT_GE(count, 2'000u);
    EXPECT_LT(count, 2'000u + kCommandsDroppedAtOnce + 100);
  }
}

}  // namespace
}  // namespace trainyard::ledger
