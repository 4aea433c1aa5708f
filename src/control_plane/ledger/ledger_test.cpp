#include "ledger/ledger.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "base/random.hpp"
#include "ledger/set_aside.hpp"
#include "ledger/tables.hpp"
#include "ledger/testing/test_postgres.hpp"
#include "ledger/testing/test_records.hpp"
#include "os/temporary_directory.hpp"
#include "sqlite/connection.hpp"

namespace trainyard::ledger {
namespace {

using domain::JobState;

enum class Database { file, memory, postgres };

// Tests the contract of every implementation, each with an empty database.
class LedgerTest : public testing::TestWithParam<Database> {
 protected:
  std::unique_ptr<Ledger> open() {
    auto ledger = GetParam() == Database::postgres ? open_test_postgres(postgres_)
                  : GetParam() == Database::memory ? open_sqlite(":memory:")
                                                   : open_sqlite(directory_.path() + "/ledger.db");
    EXPECT_TRUE(ledger) << ledger.error().message;
    return *std::move(ledger);
  }
  static std::vector<std::string> names(const JobPage& page) {
    std::vector<std::string> names;
    for (const auto& job : page.jobs) names.push_back(job.key.name);
    return names;
  }
  os::TemporaryDirectory directory_;
  PostgresSettings postgres_{GetParam() == Database::postgres ? new_test_postgres() : ""};
};
INSTANTIATE_TEST_SUITE_P(OfEachDatabase, LedgerTest,
                         testing::Values(Database::file, Database::memory, Database::postgres),
                         [](const auto& info) {
                           return info.param == Database::file     ? "file"
                                  : info.param == Database::memory ? "memory"
                                                                   : "postgres";
                         });

TEST_P(LedgerTest, RemembersJobsAndTags) {
  auto ledger = open();
  EXPECT_EQ(ledger->last_sequence(), 0u);
  ASSERT_TRUE(ledger->commit({{a_command(1)},
                              {a_job(1, "a"), a_job(2, "b", JobState::completed)},
                              {{"arn:a", {{"k", "v"}}}}}));
  EXPECT_EQ(ledger->last_sequence(), 1u);
  EXPECT_EQ(ledger->last_job_number(), 2u);
  EXPECT_EQ(ledger->live_jobs()->size(), 1u);
  EXPECT_EQ(ledger->find_job({"us-east-1", "b"})->state, JobState::completed);
  EXPECT_EQ(ledger->find_job(1)->key.name, "a");
  EXPECT_EQ(ledger->find_job({"eu-west-1", "b"}).error().kind, Kind::not_found);
  EXPECT_EQ(ledger->tags("arn:a")->at(0).value, "v");
  EXPECT_TRUE(ledger->tags("arn:b")->empty());
  ASSERT_TRUE(
      ledger->commit({{a_command(2)}, {a_job(1, "a", JobState::stopped)}, {{"arn:a", {}}}}));
  EXPECT_TRUE(ledger->live_jobs()->empty());
  EXPECT_TRUE(ledger->tags("arn:a")->empty());
  EXPECT_EQ(ledger->find_job(1)->spec.hosts(), 1u) << "an update does not change the spec";
}

TEST_P(LedgerTest, ABatchIsAllOrNothing) {
  auto ledger = open();
  ASSERT_TRUE(ledger->commit({{a_command(1)}, {a_job(1, "a")}, {}}));
  const auto twice = ledger->commit({{a_command(2)}, {a_job(2, "b"), a_job(3, "a")}, {}});
  ASSERT_FALSE(twice) << "a job's name is never used again";
  EXPECT_EQ(twice.error().kind, Kind::conflict);
  EXPECT_FALSE(ledger->find_job(2));
  EXPECT_EQ(ledger->last_sequence(), 1u);
  EXPECT_EQ(ledger->commit({{a_command(4)}, {}, {}}).error().message,
            "ledger: command 4 is out of order: expected 2");
  ASSERT_TRUE(ledger->commit({{a_command(2)}, {a_job(2, "b")}, {}}));
}

TEST_P(LedgerTest, ListsEachJobOnceOverPagesInEveryOrder) {
  auto ledger = open();
  Batch batch;
  const JobState states[] = {JobState::waiting, JobState::completed, JobState::failed,
                             JobState::active};
  for (uint64_t n = 1; n <= 23; ++n)
    batch.jobs.push_back(
        a_job(n, "job-" + std::to_string(n * 7 % 23), states[n % 4], int64_t(1000 + n / 3)));
  batch.jobs.push_back(a_job(24, "elsewhere"));
  batch.jobs.back().key.region = "eu-west-1";
  ASSERT_TRUE(ledger->commit(batch));
  for (const auto sort : {JobQuery::Sort::name, JobQuery::Sort::created, JobQuery::Sort::state})
    for (const bool descending : {false, true}) {
      JobQuery query;
      query.region = "us-east-1";
      query.sort = sort;
      query.descending = descending;
      query.jobs_max = 1000;
      const auto whole = names(*ledger->list_jobs(query));
      EXPECT_EQ(whole.size(), 23u);
      query.jobs_max = 4;
      std::vector<std::string> paged;
      for (int page = 0; page < 7; ++page) {
        const auto found = ledger->list_jobs(query);
        ASSERT_TRUE(found);
        for (const auto& name : names(*found)) paged.push_back(name);
        query.token = found->next_token;
        if (query.token.empty()) break;
      }
      EXPECT_EQ(paged, whole);
    }
}

TEST_P(LedgerTest, FiltersJobs) {
  auto ledger = open();
  ASSERT_TRUE(ledger->commit(
      {{},
       {a_job(1, "alpha", JobState::completed, 10), a_job(2, "beta", JobState::active, 20),
        a_job(3, "alphabet", JobState::failed, 30)},
       {}}));
  const auto found = [&](auto&& change) {
    JobQuery query;
    query.region = "us-east-1";
    query.descending = false;
    change(query);
    return names(*ledger->list_jobs(query));
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(found([](JobQuery& q) { q.name_contains = "alpha"; }), (Names{"alpha", "alphabet"}));
  EXPECT_EQ(found([](JobQuery& q) { q.name_contains = "%"; }), Names{});
  EXPECT_EQ(found([](JobQuery& q) {
              q.names = {"alphabet", "alpha", "alph"};
            }),
            (Names{"alpha", "alphabet"}));
  EXPECT_EQ(found([](JobQuery& q) {
              q.names = {"beta", "alpha"};
              q.name_contains = "bet";
            }),
            Names{"beta"});
  EXPECT_EQ(found([](JobQuery& q) { q.created_after = from_milliseconds(10); }),
            (Names{"beta", "alphabet"}));
  EXPECT_EQ(found([](JobQuery& q) { q.created_before = from_milliseconds(20); }), Names{"alpha"});
  EXPECT_EQ(found([](JobQuery& q) { q.modified_after = from_milliseconds(20); }),
            Names{"alphabet"});
  EXPECT_EQ(found([](JobQuery& q) { q.modified_before = from_milliseconds(11); }), Names{"alpha"});
  EXPECT_EQ(found([](JobQuery& q) {
              q.states = {JobState::active, JobState::failed};
            }),
            (Names{"beta", "alphabet"}));
  EXPECT_EQ(found([](JobQuery& q) { q.sort = JobQuery::Sort::state; }),
            (Names{"alpha", "alphabet", "beta"}));
}

TEST_P(LedgerTest, FindsJobsOfQueuesByDisplayNameAndPrefixOfTheirId) {
  auto ledger = open();
  const auto batch_job = [](uint64_t number, const std::string& id, const std::string& name) {
    domain::Job job = a_batch_job(number, id, JobState::active);
    job.spec.display_name = name;
    return job;
  };
  ASSERT_TRUE(
      ledger->commit({{},
                      {batch_job(1, "4b7d-1", "digits"), batch_job(2, "4b7d-2", "letters"),
                       batch_job(3, "0aaa-3", "digits"), batch_job(4, "14b7-4", "more-digits"),
                       a_job(5, "digits", JobState::active, 5)},
                      {}}));
  const auto found = [&](auto&& change) {
    JobQuery query;
    query.region = "us-east-1";
    query.descending = false;
    change(query);
    return names(*ledger->list_jobs(query));
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(found([](JobQuery& q) { q.display_name = "digits"; }), (Names{"4b7d-1", "0aaa-3"}));
  EXPECT_EQ(found([](JobQuery& q) { q.display_name = q.id_prefix = "4b7d"; }),
            (Names{"4b7d-1", "4b7d-2"}));
  EXPECT_EQ(found([](JobQuery& q) { q.display_name = "digit"; }), Names{});
  EXPECT_EQ(found([](JobQuery& q) { q.name_contains = "digits"; }), Names{"digits"});
  EXPECT_EQ(found([](JobQuery& q) {
              q.name_contains = "digits";
              q.or_display_name_contains = true;
            }),
            (Names{"4b7d-1", "0aaa-3", "14b7-4", "digits"}));
}

// A tenant's text must not fail the lists of all tenants.
TEST_P(LedgerTest, FindsJobsWithANulCharacterByDisplayName) {
  auto ledger = open();
  domain::Job plain = a_batch_job(1, "4b7d-1"), nul = a_batch_job(2, "4b7d-2"),
              escaped = a_batch_job(3, "4b7d-3");
  for (domain::Job* job : {&plain, &nul, &escaped}) job->spec.display_name = "digits";
  nul.spec.environment["TEXT"] = std::string("a\0b", 3);
  escaped.spec.environment["TEXT"] = "a\\u0000\\";
  ASSERT_TRUE(ledger->commit({{}, {plain, nul, escaped}, {}}));
  EXPECT_EQ(ledger->find_job(2)->spec.environment["TEXT"], std::string("a\0b", 3));
  JobQuery query;
  query.region = "us-east-1";
  query.descending = false;
  query.display_name = "digits";
  const auto found = ledger->list_jobs(query);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(names(*found), (std::vector<std::string>{"4b7d-1", "4b7d-2", "4b7d-3"}));
}

TEST_P(LedgerTest, RejectsTokensOfOtherLists) {
  auto ledger = open();
  for (const char* token : {"x", "bm8=", "WzEsMiwzLDRd"}) {
    JobQuery query;
    query.token = token;
    EXPECT_EQ(ledger->list_jobs(query).error().kind, Kind::invalid) << token;
  }
}

TEST_P(LedgerTest, ReplaysCommandsInOrder) {
  auto ledger = open();
  ASSERT_TRUE(ledger->commit({{a_command(1), a_command(2)}, {}, {}}));
  ASSERT_TRUE(ledger->commit({{a_command(3)}, {}, {}}));
  uint64_t expected = 0;
  ASSERT_TRUE(ledger->replay([&](const CommandRecord& command) -> Result<void> {
    EXPECT_EQ(command.sequence, ++expected);
    EXPECT_EQ(command.body["n"], expected);
    EXPECT_EQ(command.at, from_milliseconds(5));
    return {};
  }));
  EXPECT_EQ(expected, 3u);
  EXPECT_EQ(ledger->replay([](const CommandRecord&) -> Result<void> { return cancelled("enough"); })
                .error()
                .kind,
            Kind::cancelled);
}

TEST(LedgerFile, DropsTheOldestCommands) {
  os::TemporaryDirectory directory;
  const std::string path = directory.path() + "/ledger.db";
  auto ledger = *open_sqlite(path, 2'000);
  uint64_t last = 0;
  for (int commit = 0; commit < 50; ++commit) {
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
  EXPECT_EQ(first + count - 1, 5'000u);
  EXPECT_GE(count, 2'000u);
  EXPECT_LT(count, 2'000u + kCommandsDroppedAtOnce + 100);
  ledger.reset();
  EXPECT_EQ((*open_sqlite(path))->last_sequence(), 5'000u);
}

TEST_P(LedgerTest, KeepsRecords) {
  auto ledger = open();
  const domain::RecordKey ann{"user", "ann"}, bob{"user", "bob"};
  const auto record = [](uint64_t revision) {
    return std::make_shared<const domain::Record>(domain::Record{revision, {{"n", revision}}});
  };
  ASSERT_TRUE(
      ledger->commit({{a_command(1)}, {}, {}, {}, {}, {{ann, record(1)}, {bob, record(1)}}}));
  ASSERT_TRUE(ledger->commit({{a_command(2)}, {}, {}, {}, {}, {{ann, record(2)}, {bob, nullptr}}}));
  const auto records = ledger->records();
  ASSERT_TRUE(records);
  ASSERT_EQ(records->all.size(), 1u);
  EXPECT_EQ(records->all.at(ann)->revision, 2u);
  EXPECT_EQ(records->all.at(ann)->document, (Json{{"n", 2}}));
}

TEST(LedgerFile, ReadsRecordsWhileAServerWrites) {
  os::TemporaryDirectory directory;
  const std::string path = directory.path() + "/ledger.db";
  EXPECT_EQ(read_records(path).error().kind, Kind::not_found);
  auto ledger = *open_sqlite(path);
  const domain::RecordKey ann{"user", "ann"};
  const auto record = std::make_shared<const domain::Record>(domain::Record{1, {{"n", 1}}});
  ASSERT_TRUE(ledger->commit({{a_command(1)}, {}, {}, {}, {}, {{ann, record}}}));
  const auto records = read_records(path);
  ASSERT_TRUE(records) << records.error().message;
  EXPECT_EQ(records->all.at(ann)->document, (Json{{"n", 1}}));
}

TEST(LedgerFile, NamesACorruptRecord) {
  os::TemporaryDirectory directory;
  const std::string path = directory.path() + "/ledger.db";
  auto ledger = *open_sqlite(path);
  ASSERT_TRUE(
      (*sqlite::Connection::open(path))
          ->run("INSERT INTO records (kind, name, revision, body) VALUES ('user', 'ann', 1, '[')"));
  EXPECT_EQ(ledger->records().error().kind, Kind::corrupt);
  EXPECT_NE(ledger->records().error().message.find("user/ann"), std::string::npos);
}

TEST_P(LedgerTest, KeepsTheUsageOfShares) {
  auto ledger = open();
  const domain::ShareKey red{{"eu-west-1", "q"}, "red"}, alice{{}, "alice"};
  const domain::Usage tenth{0.1, from_milliseconds(7)}, third{1.0 / 3, from_milliseconds(1), 0.7};
  ASSERT_TRUE(ledger->commit({{a_command(1)}, {}, {}, {}, {{red, tenth}, {alice, third}}}));
  EXPECT_EQ(*ledger->usages(), (domain::Usages{{red, tenth}, {alice, third}}))
      << "all bits are equal";
  ASSERT_TRUE(ledger->commit({{a_command(2)}, {}, {}, {}, {{red, {}}, {alice, tenth}}}));
  EXPECT_EQ(*ledger->usages(), (domain::Usages{{alice, tenth}}));
}

TEST_P(LedgerTest, FindsJobsByQueue) {
  auto ledger = open();
  domain::Job queued = a_job(2, "b");
  queued.spec.queue.emplace();
  queued.spec.contract = domain::Contract::plain;
  queued.spec.queue->name = "quick";
  ASSERT_TRUE(ledger->commit({{a_command(1)}, {a_job(1, "a"), queued}, {}, {}}));
  const auto found = [&](std::optional<std::string> queue) {
    JobQuery query;
    query.region = "us-east-1";
    query.queue = std::move(queue);
    query.descending = false;
    return names(*ledger->list_jobs(query));
  };
  EXPECT_EQ(found({}), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(found(""), (std::vector<std::string>{"a"}));
  EXPECT_EQ(found("quick"), (std::vector<std::string>{"b"}));
  EXPECT_EQ(found("slow"), (std::vector<std::string>{}));
}

domain::Job an_array(uint64_t number, const std::string& name, uint32_t size) {
  domain::Job job = a_batch_job(number, name);
  job.account = "123456789012";
  job.spec.array.size = size;
  job.spec.request["echo"] = std::string(1'000, 'x');
  return job;
}

TEST_P(LedgerTest, StoresTheChildrenOfAnArray) {
  auto ledger = open();
  const domain::Job array = an_array(5, "array", 4);
  Batch batch{{a_command(1)}, {a_job(1, "a"), array}, {}, {}};
  for (const uint32_t index : {0u, 1u, 3u}) batch.jobs.push_back(child_of(array, index));
  batch.jobs.back().state = JobState::failed;
  ASSERT_TRUE(ledger->commit(batch));
  EXPECT_EQ(ledger->last_job_number(), 9u)
      << "the number of the child that is not created yet is reserved";

  const auto child = ledger->find_job({"us-east-1", "array:1"});
  ASSERT_TRUE(child);
  EXPECT_EQ(to_json(*child), to_json(child_of(array, 1)));
  EXPECT_EQ(to_json(*ledger->find_job(7)), to_json(*child));
  EXPECT_EQ(ledger->live_jobs()->size(), 4u);
  EXPECT_EQ(ledger->live_jobs()->back().spec.request, array.spec.request);

  JobQuery all;
  all.region = "us-east-1";
  all.descending = false;
  EXPECT_EQ(names(*ledger->list_jobs(all)), (std::vector<std::string>{"a", "array"}));
  all.stage = domain::Stage::failed;
  EXPECT_TRUE(ledger->list_jobs(all)->jobs.empty());

  const auto numbers = [&](ChildQuery query) {
    query.array = 5;
    std::vector<domain::JobNumber> found;
    const auto children = ledger->children(query);
    for (const auto& each : *children) found.push_back(each.number);
    return found;
  };
  using Numbers = std::vector<domain::JobNumber>;
  EXPECT_EQ(numbers({}), (Numbers{6, 7, 9}));
  EXPECT_EQ(numbers({.first = 1, .end = 3}), (Numbers{7}));
  EXPECT_EQ(numbers({.children_max = 2}), (Numbers{6, 7}));
  EXPECT_EQ(numbers({.stage = domain::Stage::failed}), (Numbers{9}));

  const auto counts = ledger->count_children(5);
  ASSERT_TRUE(counts);
  EXPECT_EQ(counts->in(domain::Stage::runnable), 2u);
  EXPECT_EQ(counts->in(domain::Stage::failed), 1u);
  EXPECT_EQ(counts->all(), 3u);
  EXPECT_EQ(ledger->count_children(1)->all(), 0u);

  EXPECT_EQ(ledger->find_array_of(8)->number, 5u);
  EXPECT_EQ(ledger->find_array_of(9)->number, 5u);
  EXPECT_EQ(ledger->find_array_of(5).error().kind, Kind::not_found);
  EXPECT_EQ(ledger->find_array_of(10).error().kind, Kind::not_found);
}

TEST(LedgerFile, NeverAssignsNumbersThatAnArrayHasReserved) {
  os::TemporaryDirectory directory;
  const std::string path = directory.path() + "/ledger.db";
  ASSERT_TRUE(
      (*open_sqlite(path))->commit({{a_command(1)}, {an_array(5, "array", 10'000)}, {}, {}}));
  auto ledger = *open_sqlite(path);
  EXPECT_EQ(ledger->last_job_number(), 10'005u);
  ASSERT_TRUE(ledger->commit({{a_command(2)}, {a_job(10'006, "next")}, {}, {}}));
  ledger = *open_sqlite(path);
  EXPECT_EQ(ledger->last_job_number(), 10'006u);
}

// Ten thousand children then take only some megabytes.
TEST(LedgerFile, DoesNotRepeatTheSpecOfAnArrayInTheRowsOfItsChildren) {
  os::TemporaryDirectory directory;
  const std::string path = directory.path() + "/ledger.db";
  const domain::Job array = an_array(5, "array", 10);
  ASSERT_TRUE((*open_sqlite(path))->commit({{a_command(1)}, {array, child_of(array, 0)}, {}, {}}));
  auto connection = *sqlite::Connection::open(path);
  EXPECT_GT(*connection->integer("SELECT length(spec) FROM jobs WHERE number = 5"), 1'000);
  EXPECT_LT(
      *connection->integer("SELECT length(spec) + length(progress) FROM jobs WHERE number = 6"),
      600);
}

TEST_P(LedgerTest, RemembersQueuesEnvironmentsAndDefinitions) {
  auto ledger = open();
  const ResourceRecord environment{
      "compute_environment", {"us-east-1", "box"}, 0, true, {{"cpus_max", 3}}};
  const ResourceRecord queue{"job_queue", {"us-east-1", "quick"}, 0, true, Json::object()};
  Batch batch{{a_command(1)}, {}, {}, {{environment}, {queue}}};
  for (const char* name : {"a", "b"})
    for (const uint32_t revision : {1u, 2u})
      batch.resources.push_back(
          {{std::string(kDefinitionKind), {"us-east-1", name}, revision, revision == 2, {}}});
  ASSERT_TRUE(ledger->commit(batch));
  auto kept = ledger->resources();
  ASSERT_EQ(kept->size(), 2u) << "definitions are requested separately";
  EXPECT_EQ(kept->at(0).body, environment.body);
  EXPECT_EQ(kept->at(1).kind, "job_queue");
  EXPECT_EQ(kept->at(1).key, queue.key);
  ASSERT_TRUE(ledger->commit({{a_command(2)}, {}, {}, {{queue, true}}}));
  EXPECT_EQ(ledger->resources()->size(), 1u);

  DefinitionQuery query;
  query.region = "us-east-1";
  const auto found = [&] {
    std::string text;
    const auto definitions = ledger->definitions(query);
    for (const auto& each : *definitions)
      text += each.key.name + std::to_string(each.revision) + " ";
    return text;
  };
  EXPECT_EQ(found(), "a2 a1 b2 b1 ");
  query.after_name = "a";
  query.after_revision = 2;
  EXPECT_EQ(found(), "a1 b2 b1 ");
  query.active = true;
  EXPECT_EQ(found(), "b2 ");
  query = {};
  query.region = "us-east-1";
  query.name = "b";
  query.definitions_max = 1;
  EXPECT_EQ(found(), "b2 ");
  query.revision = 1;
  EXPECT_EQ(found(), "b1 ");
  query.region = "eu-west-1";
  EXPECT_EQ(found(), "");
}

TEST(LedgerFile, ReadersDoNotWaitForACommit) {
  os::TemporaryDirectory directory;
  const std::string path = directory.path() + "/ledger.db";
  auto ledger = *open_sqlite(path);
  ASSERT_TRUE(ledger->commit({{a_command(1)}, {a_job(1, "a")}, {}}));
  // Another connection holds the write lock, as commit() does while it syncs.
  auto writer = *sqlite::Connection::open(path);
  ASSERT_TRUE(writer->run("BEGIN IMMEDIATE"));
  ASSERT_TRUE(writer->run("UPDATE jobs SET state = 'failed'"));
  EXPECT_EQ(ledger->find_job(1)->state, JobState::waiting);
  ASSERT_TRUE(writer->run("COMMIT"));
}

TEST(LedgerFile, SharesConnectionsAmongManyReaders) {
  os::TemporaryDirectory directory;
  auto ledger = *open_sqlite(directory.path() + "/ledger.db");
  ASSERT_TRUE(ledger->commit({{a_command(1)}, {a_job(1, "a")}, {}}));
  std::vector<std::thread> threads;
  std::atomic<int> found = 0;
  for (size_t i = 0; i < kReadersMax * 2; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) found += bool(ledger->find_job(1));
    });
  for (uint64_t n = 2; n < 40; ++n)
    EXPECT_TRUE(ledger->commit({{a_command(n)}, {a_job(n, std::to_string(n))}, {}}));
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(found, int(kReadersMax * 2 * 50));
}

TEST(LedgerFile, ChangesNothingWhenTheDiskIsFull) {
  os::TemporaryDirectory directory;
  auto ledger = *open_sqlite(directory.path() + "/ledger.db");
  ASSERT_TRUE(ledger->commit({{a_command(1)}, {a_job(1, "a")}, {}}));
  // A file size limit simulates the full disk; its signal is ignored.
  struct rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  struct rlimit small = before;
  small.rlim_cur = 200 << 10;
  signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  domain::Job big = a_job(2, "big");
  big.note = std::string(2 << 20, 'x');
  const auto full = ledger->commit({{a_command(2)}, {big}, {}});
  setrlimit(RLIMIT_FSIZE, &before);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().kind, Kind::exhausted) << full.error().message;
  EXPECT_EQ(ledger->last_sequence(), 1u);
  EXPECT_FALSE(ledger->find_job(2));
  ASSERT_TRUE(ledger->commit({{a_command(2)}, {big}, {}})) << "there is free space again";
}

// A child process commits numbered batches and prints each number once it is acknowledged, until it
// is killed at a random time. Every printed number is in the ledger.
TEST(LedgerFile, AcknowledgedBatchesSurviveKill) {
  os::TemporaryDirectory directory;
  const std::string path = directory.path() + "/ledger.db";
  SeededRandom random(11);
  uint64_t acknowledged = 0;
  for (int round = 0; round < 20; ++round) {
    int pipe_ends[2];
    ASSERT_EQ(pipe(pipe_ends), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      close(pipe_ends[0]);
      auto ledger = open_sqlite(path);
      for (uint64_t n = ledger ? (*ledger)->last_sequence() + 1 : 0; ledger; ++n) {
        if (!(*ledger)->commit({{a_command(n)}, {a_job(n, "job-" + std::to_string(n))}, {}})) break;
        if (write(pipe_ends[1], &n, sizeof n) != sizeof n) break;
      }
      _exit(1);
    }
    close(pipe_ends[1]);
    // Killed after a random number of acknowledgements, at any point of its work.
    const uint64_t until = 1 + random.below(30);
    for (uint64_t seen = 0; seen < until; ++seen) {
      uint64_t n = 0;
      ASSERT_EQ(read(pipe_ends[0], &n, sizeof n), ssize_t(sizeof n));
      acknowledged = n;
    }
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status));
    for (uint64_t n = 0; read(pipe_ends[0], &n, sizeof n) == ssize_t(sizeof n);) acknowledged = n;
    close(pipe_ends[0]);
    auto ledger = open_sqlite(path);
    ASSERT_TRUE(ledger) << ledger.error().message;
    EXPECT_GE((*ledger)->last_sequence(), acknowledged);
    EXPECT_LE((*ledger)->last_sequence(), acknowledged + 1)
        << "at most one more commit was running";
    EXPECT_EQ((*ledger)->last_job_number(), (*ledger)->last_sequence())
        << "commands and tables agree";
    for (uint64_t n = 1; n <= acknowledged; n += 1 + n / 10)
      EXPECT_TRUE((*ledger)->find_job(n)) << n;
  }
}

}  // namespace
}  // namespace trainyard::ledger
