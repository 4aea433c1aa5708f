// Tests ledgers of earlier and later versions, and records that cannot be read.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "ledger/downgrade.hpp"
#include "ledger/ledger.hpp"
#include "ledger/set_aside.hpp"
#include "ledger/tables.hpp"
#include "ledger/testing/test_records.hpp"
#include "os/temporary_directory.hpp"
#include "sqlite/connection.hpp"

namespace trainyard::ledger {
namespace {

using domain::JobState;

TEST(LedgerFile, RejectsDatabasesOfOtherProgramsAndNewerVersions) {
  os::TemporaryDirectory directory;
  const std::string path = directory.path() + "/ledger.db";
  ASSERT_TRUE((*sqlite::Connection::open(path))->run("CREATE TABLE cats (name TEXT)"));
  EXPECT_EQ(open_sqlite(path).error().kind, Kind::conflict);
  const std::string newer = directory.path() + "/newer.db";
  ASSERT_TRUE(open_sqlite(newer));
  ASSERT_TRUE((*sqlite::Connection::open(newer))->run("PRAGMA user_version = 6"));
  const auto refused = open_sqlite(newer);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Kind::conflict);
  EXPECT_NE(refused.error().message.find("has version 6"), std::string::npos)
      << refused.error().message;
  EXPECT_EQ(open_sqlite(directory.path() + "/no/ledger.db").error().kind, Kind::not_found);
}

TEST(LedgerFile, SetsUnreadableRecordsAsideAndKeepsTheRest) {
  os::TemporaryDirectory directory;
  const std::string path = directory.path() + "/ledger.db";
  const ResourceRecord queue{"job_queue", {"us-east-1", "quick"}, 0, true, Json::object()};
  const ResourceRecord sound{"job_queue", {"us-east-1", "slow"}, 0, true, Json::object()};
  const auto check = [](const ResourceRecord& resource) -> Result<void> {
    return resource.body.is_object() ? Result<void>() : invalid("it is not an object");
  };
  ASSERT_TRUE((*open_sqlite(path))
                  ->commit({{a_command(1)},
                            {a_job(1, "a"), a_job(2, "not-json"), a_job(3, "no-phase"),
                             a_job(4, "of-an-unknown-state"), a_job(5, "over", JobState::completed),
                             a_job(6, "last")},
                            {},
                            {{queue}, {sound}}}));
  for (const char* statement :
       {"UPDATE jobs SET progress = 'nothing' WHERE number = 2",
        "UPDATE jobs SET progress = json_set(progress, '$.transitions', json_array()) WHERE number "
        "= 3",
        "UPDATE jobs SET progress = json_set(progress, '$.state', 'dreaming') WHERE number = 4",
        "UPDATE jobs SET progress = 'nothing' WHERE number = 5",
        "UPDATE jobs SET progress = json_set(progress, '$.attempts', 7) WHERE number = 6",
        "UPDATE nouns SET body = '[]' WHERE name = 'quick'",
        "INSERT INTO records VALUES ('user', 'ann', 3, 'nothing'), ('user', 'bob', 1, '{}'), "
        "('role', 'r', 0, '{}'), ('policy', 'p', 1, '[]'), ('policy', 'x', 'y', '{}')"})
    ASSERT_TRUE((*sqlite::Connection::open(path))->run(statement)) << statement;
  for (int start = 0; start < 2; ++start) {
    auto ledger = open_sqlite(path, kCommandsMax, nullptr, check);
    ASSERT_TRUE(ledger) << ledger.error().message;
    EXPECT_EQ((*ledger)->live_jobs()->size(), 1u);
    EXPECT_EQ((*ledger)->find_job({"us-east-1", "no-phase"}).error().kind, Kind::not_found);
    EXPECT_EQ((*ledger)->last_job_number(), 6u) << "their numbers are not assigned again";
    EXPECT_EQ((*ledger)->resources()->size(), 1u);
    JobQuery query;
    query.region = "us-east-1";
    EXPECT_EQ((*ledger)->list_jobs(query)->jobs.size(), 1u)
        << "a corrupt finished job fails no list";
    const auto aside = read_set_aside(path);
    ASSERT_TRUE(aside) << aside.error().message;
    ASSERT_EQ(aside->size(), 9u);
    const auto records = (*ledger)->records();
    ASSERT_TRUE(records) << records.error().message;
    EXPECT_EQ(records->all.size(), 1u) << "only bob's is readable";
    EXPECT_EQ(aside->at(0).name, "us-east-1/not-json");
    EXPECT_EQ(aside->at(0).reason, "ledger: a job's record is not JSON");
    EXPECT_EQ(aside->at(1).number, 3);
    EXPECT_EQ(aside->at(1).reason, "transitions must have at least one phase");
    EXPECT_EQ(aside->at(4).kind, "job_queue");
    EXPECT_EQ(aside->at(4).reason, "ledger: the record of a job_queue: it is not an object");
    std::set<std::string> others;
    for (size_t i = 5; i < aside->size(); ++i)
      others.insert(aside->at(i).kind + "/" + aside->at(i).name);
    EXPECT_EQ(others, (std::set<std::string>{"user/ann", "role/r", "policy/p", "policy/x"}));
  }
  const auto record =
      (*sqlite::Connection::open(path))
          ->integer("SELECT json_extract(record, '$.number') FROM set_aside WHERE number = 4");
  EXPECT_EQ(*record, 4) << "the whole row is kept";
}

TEST(LedgerFile, SetsNothingAsideIfAllRecordsAreReadable) {
  os::TemporaryDirectory directory;
  const std::string path = directory.path() + "/ledger.db";
  EXPECT_EQ(read_set_aside(path).error().kind, Kind::not_found);
  ASSERT_TRUE((*open_sqlite(path))->commit({{a_command(1)}, {a_job(1, "a")}, {}}));
  ASSERT_TRUE(open_sqlite(path));
  EXPECT_TRUE(read_set_aside(path)->empty());
}

// Removes what version 5 added, as if an earlier server had left the file.
void make_fourth_version(const std::string& path) {
  for (const char* statement : {"DROP TABLE records", "PRAGMA user_version = 4"})
    ASSERT_TRUE((*sqlite::Connection::open(path))->run(statement)) << statement;
}

// Also removes what version 4 added.
void make_third_version(const std::string& path) {
  make_fourth_version(path);
  for (const char* statement : {"DROP TABLE usages", "PRAGMA user_version = 3"})
    ASSERT_TRUE((*sqlite::Connection::open(path))->run(statement)) << statement;
}

TEST(LedgerFile, CopiesTheFileBeforeAMigrationAndExplainsTheDowngrade) {
  os::TemporaryDirectory directory;
  const std::string path = directory.path() + "/ledger.db";
  ASSERT_TRUE((*open_sqlite(path))->commit({{a_command(1)}, {a_job(1, "a")}, {}}));
  EXPECT_FALSE(std::filesystem::exists(copy_path(path, 3)));
  make_third_version(path);
  ASSERT_TRUE((*open_sqlite(path))->commit({{a_command(2)}, {a_job(2, "b")}, {}}));
  auto copy = sqlite::Connection::open(copy_path(path, 3), sqlite::Access::read);
  ASSERT_TRUE(copy) << copy.error().message;
  EXPECT_EQ(*(*copy)->integer("PRAGMA user_version"), 3);
  EXPECT_EQ(*(*copy)->integer("SELECT count(*) FROM jobs"), 1) << "as it was before";
  const int64_t present = *(*sqlite::Connection::open(path))->integer("PRAGMA user_version");
  ASSERT_TRUE((*sqlite::Connection::open(path))->run("PRAGMA user_version = 1000"));
  const auto refused = open_sqlite(path);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("trainyard downgrade --data " + directory.path()),
            std::string::npos)
      << refused.error().message;
  ASSERT_TRUE(
      (*sqlite::Connection::open(path))->run("PRAGMA user_version = " + std::to_string(present)));
}

TEST(LedgerFile, RestoresTheCopyAndKeepsTheReplacedFile) {
  os::TemporaryDirectory directory;
  const std::string path = directory.path() + "/ledger.db";
  ASSERT_TRUE((*open_sqlite(path))->commit({{a_command(1)}, {a_job(1, "a")}, {}}));
  EXPECT_EQ(restore_copy(path).error().kind, Kind::not_found) << "it never had another version";
  make_third_version(path);
  ASSERT_TRUE((*open_sqlite(path))->commit({{a_command(2)}, {a_job(2, "b")}, {}}));
  const auto restored = restore_copy(path);
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_EQ(restored->version, 3);
  {
    auto back = *sqlite::Connection::open(path, sqlite::Access::read);
    EXPECT_EQ(*back->integer("PRAGMA user_version"), 3);
    EXPECT_EQ(*back->integer("SELECT count(*) FROM jobs"), 1);
    auto kept = *sqlite::Connection::open(restored->kept_copy, sqlite::Access::read);
    EXPECT_EQ(*kept->integer("SELECT count(*) FROM jobs"), 2);
  }
  auto again = open_sqlite(path);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ((*again)->find_job(1)->key.name, "a");
  EXPECT_EQ((*again)->find_job(2).error().kind, Kind::not_found);
  const std::string foreign = directory.path() + "/cats.db";
  ASSERT_TRUE((*sqlite::Connection::open(foreign))->run("CREATE TABLE cats (name TEXT)"));
  EXPECT_FALSE(restore_copy(foreign));
}

// Also removes what version 3 added.
void make_second_version(const std::string& path) {
  make_third_version(path);
  for (const char* statement :
       {"DROP INDEX jobs_by_created", "DROP INDEX jobs_by_status", "DROP INDEX jobs_by_queue",
        "DROP INDEX jobs_by_batch_status", "DROP INDEX jobs_by_parent", "DROP INDEX jobs_arrays",
        "ALTER TABLE jobs DROP COLUMN parent", "ALTER TABLE jobs DROP COLUMN reserved",
        "ALTER TABLE jobs DROP COLUMN batch_status",
        "CREATE INDEX jobs_by_created ON jobs (region, created, name)",
        "CREATE INDEX jobs_by_status ON jobs (region, status_order, name)",
        "CREATE INDEX jobs_by_queue ON jobs (region, queue, created, name)",
        "PRAGMA user_version = 2"})
    ASSERT_TRUE((*sqlite::Connection::open(path))->run(statement)) << statement;
}

TEST(LedgerFile, MigratesTheFirstVersion) {
  os::TemporaryDirectory directory;
  const std::string path = directory.path() + "/ledger.db";
  ASSERT_TRUE((*open_sqlite(path))->commit({{a_command(1)}, {a_job(1, "a")}, {}, {}}));
  make_second_version(path);
  for (const char* statement : {"DROP TABLE nouns", "DROP INDEX jobs_by_queue",
                                "ALTER TABLE jobs DROP COLUMN queue", "PRAGMA user_version = 1"})
    ASSERT_TRUE((*sqlite::Connection::open(path))->run(statement)) << statement;
  auto ledger = open_sqlite(path);
  ASSERT_TRUE(ledger) << ledger.error().message;
  JobQuery query;
  query.region = "us-east-1";
  query.queue = "";
  EXPECT_EQ((*ledger)->list_jobs(query)->jobs.size(), 1u);
  EXPECT_TRUE((*ledger)->resources());
  ledger = open_sqlite(path);
  EXPECT_TRUE(ledger) << "it opens again after the migration";
}

TEST(LedgerFile, MigratesTheThirdVersionWithoutUsage) {
  os::TemporaryDirectory directory;
  const std::string path = directory.path() + "/ledger.db";
  ASSERT_TRUE((*open_sqlite(path))->commit({{a_command(1)}, {a_job(1, "a")}, {}, {}}));
  make_third_version(path);
  auto ledger = open_sqlite(path);
  ASSERT_TRUE(ledger) << ledger.error().message;
  EXPECT_TRUE((*ledger)->usages()->empty());
  EXPECT_EQ((*ledger)->find_job(1)->key.name, "a");
}

TEST(LedgerFile, MigratesTheFourthVersionWithoutRecords) {
  os::TemporaryDirectory directory;
  const std::string path = directory.path() + "/ledger.db";
  ASSERT_TRUE((*open_sqlite(path))->commit({{a_command(1)}, {a_job(1, "a")}, {}, {}}));
  make_fourth_version(path);
  auto ledger = open_sqlite(path);
  ASSERT_TRUE(ledger) << ledger.error().message;
  EXPECT_TRUE((*ledger)->records()->all.empty());
  EXPECT_EQ((*ledger)->find_job(1)->key.name, "a");
}

TEST(LedgerFile, MigratesTheStatusesOfBatchJobsOfTheSecondVersion) {
  os::TemporaryDirectory directory;
  const std::string path = directory.path() + "/ledger.db";
  std::vector<domain::Job> jobs;
  for (const JobState state :
       {JobState::waiting, JobState::waiting, JobState::active, JobState::active,
        JobState::stopping, JobState::completed, JobState::failed, JobState::stopped})
    jobs.push_back(a_batch_job(jobs.size() + 1, "job-" + std::to_string(jobs.size() + 1), state));
  jobs[1].awaits = {1};
  jobs[3].attempts.back().training_started = from_milliseconds(7);
  jobs[4].attempts = {domain::Attempt(), jobs[3].attempts.back()};
  jobs[4].attempts.front().state = domain::AttemptState::ended;
  jobs[4].attempts.front().ended = from_milliseconds(6);
  jobs.push_back(a_job(9, "no batch job"));
  ASSERT_TRUE((*open_sqlite(path))->commit({{a_command(1)}, jobs, {}, {}}));
  make_second_version(path);
  auto ledger = *open_sqlite(path);
  for (const domain::Job& job : jobs) {
    if (!job.spec.queue) continue;
    JobQuery query;
    query.region = "us-east-1";
    query.queue = "quick";
    query.stage = domain::stage_of(job);
    const auto found = ledger->list_jobs(query);
    ASSERT_TRUE(found);
    EXPECT_TRUE(std::ranges::any_of(found->jobs, [&](const auto& each) {
      return each.number == job.number;
    })) << job.key.name;
    EXPECT_TRUE(std::ranges::all_of(found->jobs, [&](const auto& each) {
      return domain::stage_of(each) == query.stage;
    })) << job.key.name;
  }
}

}  // namespace
}  // namespace trainyard::ledger
