// Tests copies between a file and PostgreSQL.
#include "ledger/copy.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "ledger/set_aside.hpp"
#include "ledger/testing/test_postgres.hpp"
#include "ledger/testing/test_records.hpp"
#include "os/temporary_directory.hpp"
#include "sqlite/connection.hpp"

namespace trainyard::ledger {
namespace {

class LedgerCopy : public testing::Test {
 protected:
  // Every table has rows, with texts and numbers that are difficult to store.
  void fill(Ledger& ledger) {
    domain::Job array = a_batch_job(5, "array");
    array.account = "123456789012";
    array.spec.array.size = 4;
    array.note = "it's \"\xc3\xa9\" \\ \n\t";
    Batch batch{{}, {a_job(1, "a", domain::JobState::completed), array, child_of(array, 2)}, {}};
    for (uint64_t sequence = 1; sequence <= 2'500; ++sequence)
      batch.commands.push_back(a_command(sequence));
    batch.tags = {{"arn:a", {{"k", "v"}, {"empty", ""}}}};
    batch.resources = {{{std::string(kDefinitionKind), {"us-east-1", "d"}, 3, false, {{"n", 1.5}}}},
                       {{"job_queue", {"us-east-1", "q"}, 0, true, Json::object()}}};
    batch.usages = {
        {{{"eu-west-1", "q"}, "red"}, domain::Usage{1.0 / 3, from_milliseconds(-1), 0.1}}};
    batch.records = {
        {{"user", "ann"}, std::make_shared<const domain::Record>(domain::Record{7, {{"n", 1}}})}};
    const auto done = ledger.commit(batch);
    ASSERT_TRUE(done) << done.error().message;
  }
  Result<Copied> to_postgres(const std::string& from, const PostgresSettings& to) {
    TRY(prepare_postgres(to, a_test_owner()));
    return copy_to_postgres(from, to, TRY(take_test_lease(to)));
  }
  os::TemporaryDirectory directory_;
  const std::string file_ = directory_.path() + "/ledger.db",
                    other_ = directory_.path() + "/other.db";
  const PostgresSettings postgres_{new_test_postgres()};
};

TEST_F(LedgerCopy, HasEqualContentInBothDirections) {
  fill(**open_sqlite(file_));
  ASSERT_TRUE((*sqlite::Connection::open(file_))
                  ->run("UPDATE jobs SET progress = 'broken' WHERE number = 1 AND live = 0; UPDATE "
                        "jobs SET progress = 'broken' WHERE number = 8"));
  ASSERT_TRUE(open_sqlite(file_)) << "opening sets a record aside";
  ASSERT_EQ(read_set_aside(file_)->size(), 1u);
  const auto there = to_postgres(file_, postgres_);
  ASSERT_TRUE(there) << there.error().message;
  EXPECT_EQ(there->jobs, 2u);
  EXPECT_EQ(*checksum_of_postgres(postgres_), *checksum_of_file(file_));
  const auto back = copy_to_file(postgres_, other_);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->rows, there->rows);
  EXPECT_EQ(*checksum_of_file(other_), *checksum_of_file(file_));
  EXPECT_EQ(read_set_aside(other_)->size(), 1u);
  EXPECT_EQ(read_set_aside(postgres_)->size(), 1u);

  auto ledger = *open_sqlite(other_);
  EXPECT_EQ(ledger->last_sequence(), 2'500u);
  EXPECT_EQ(ledger->last_job_number(), 9u);
  ASSERT_TRUE(ledger->commit({{a_command(2'501)}, {a_job(10, "next")}, {}}));
  EXPECT_NE(*checksum_of_file(other_), *checksum_of_file(file_)) << "it detects differences";
  auto moved = *open_test_postgres(postgres_);
  EXPECT_EQ(moved->last_job_number(), 9u);
  EXPECT_EQ(moved->find_job(5)->note, "it's \"\xc3\xa9\" \\ \n\t");
}

TEST_F(LedgerCopy, RejectsATargetWithContentAndLeavesItUnchanged) {
  fill(**open_sqlite(file_));
  ASSERT_TRUE((*open_sqlite(other_))->commit({{a_command(1)}, {a_job(1, "b")}, {}}));
  ASSERT_TRUE(to_postgres(file_, postgres_));
  const uint64_t before = *checksum_of_postgres(postgres_);
  const auto again = to_postgres(other_, postgres_);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().kind, Kind::conflict);
  EXPECT_NE(again.error().message.find("has a ledger with content"), std::string::npos);
  EXPECT_EQ(*checksum_of_postgres(postgres_), before);
  EXPECT_EQ(copy_to_file(postgres_, other_).error().kind, Kind::conflict);
  EXPECT_EQ((*open_sqlite(other_))->find_job(1)->key.name, "b");
}

TEST_F(LedgerCopy, LeavesTheTargetEmptyIfATextCannotBeStored) {
  fill(**open_sqlite(file_));
  ASSERT_TRUE((*sqlite::Connection::open(file_))
                  ->run("INSERT INTO records VALUES ('user', 'a' || char(0) || 'b', 1, '{}')"));
  const auto refused = to_postgres(file_, postgres_);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("NUL byte"), std::string::npos) << refused.error().message;
  auto ledger = *open_test_postgres(postgres_);
  EXPECT_EQ(ledger->last_sequence(), 0u);
}

TEST_F(LedgerCopy, ChangesNothingWithAnOutdatedFencingNumber) {
  fill(**open_sqlite(file_));
  ASSERT_TRUE(prepare_postgres(postgres_, a_test_owner()));
  const uint64_t fencing = *take_test_lease(postgres_);
  ASSERT_TRUE(take_test_lease(postgres_));
  EXPECT_EQ(copy_to_postgres(file_, postgres_, fencing).error().kind, Kind::conflict);
  EXPECT_EQ((*open_test_postgres(postgres_))->last_sequence(), 0u);
}

TEST_F(LedgerCopy, NamesAMissingSource) {
  EXPECT_EQ(to_postgres(file_, postgres_).error().kind, Kind::not_found);
  EXPECT_EQ(copy_to_file({new_test_postgres()}, other_).error().kind, Kind::not_found);
  EXPECT_FALSE(std::filesystem::exists(other_));
}

TEST_F(LedgerCopy, IsTheStateAtOneInstantWhileAWriterCommits) {
  auto ledger = *open_test_postgres(postgres_);
  fill(*ledger);
  std::atomic<bool> stopped = false;
  std::thread writing([&] {
    for (uint64_t n = 2'501; !stopped; ++n)
      EXPECT_TRUE(ledger->commit({{a_command(n)}, {a_job(n, "job-" + std::to_string(n))}, {}}));
  });
  for (int i = 0; i < 3; ++i) {
    const std::string path = directory_.path() + "/" + std::to_string(i) + ".db";
    EXPECT_TRUE(copy_to_file(postgres_, path));
    auto copy = *open_sqlite(path);
    const uint64_t last = copy->last_sequence();
    EXPECT_TRUE(last == 2'500 || copy->find_job(last)) << "commands and jobs agree";
    EXPECT_EQ(copy->find_job(last + 1).error().kind, Kind::not_found);
  }
  stopped = true;
  writing.join();
}

TEST_F(LedgerCopy, MovesAFileWithItsWriteAheadLog) {
  {
    const auto ledger = *open_sqlite(file_);
    fill(*ledger);
    // A killed server leaves the file like this.
    for (const char* part : {"", "-wal"}) std::filesystem::copy_file(file_ + part, other_ + part);
    ASSERT_GT(std::filesystem::file_size(other_ + "-wal"), 0u);
    EXPECT_EQ(move_file(file_, other_).error().kind, Kind::conflict) << "the target exists";
  }
  const std::string moved = directory_.path() + "/moved.db";
  const auto done = move_file(other_, moved);
  ASSERT_TRUE(done) << done.error().message;
  for (const std::string& gone : {other_, other_ + "-wal", other_ + "-shm", moved + "-wal"})
    EXPECT_FALSE(std::filesystem::exists(gone)) << gone;
  EXPECT_EQ(*checksum_of_file(moved), *checksum_of_file(file_));
  EXPECT_EQ(move_file(other_, file_).error().kind, Kind::conflict);
  EXPECT_EQ(move_file(other_, other_ + "2").error().kind, Kind::not_found);
}

}  // namespace
}  // namespace trainyard::ledger
