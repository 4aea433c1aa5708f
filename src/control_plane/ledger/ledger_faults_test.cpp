// Tests the ledger on a disk that fails.
#include <gtest/gtest.h>

#include <cerrno>

#include "base/file_faults.hpp"
#include "ledger/ledger.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::ledger {
namespace {

domain::Job a_named_job(uint64_t number, const std::string& name) {
  domain::Job job;
  job.number = number;
  job.key = {"us-east-1", name};
  job.spec.groups = {{"homogeneousCluster", "ml.m5.large", 1}};
  job.created = job.modified = from_milliseconds(int64_t(number));
  job.transitions = {{domain::Phase::starting, "", job.created, {}}};
  return job;
}

CommandRecord a_command(uint64_t sequence) {
  return {sequence, from_milliseconds(5), "create", {{"n", sequence}}};
}

// Fails each step of three commits in turn. Acknowledged commits must be there when the ledger is
// opened again, and after a failed sync no commit may be acknowledged.
void fail_each_step(int error_number) {
  os::TemporaryDirectory directory;
  bool a_sync_failed = false;
  for (uint64_t nth = 1;; ++nth) {
    ASSERT_LT(nth, 500u);
    const std::string path = directory.path() + "/" + std::to_string(nth) + ".db";
    ASSERT_TRUE((*open_sqlite(path))->commit({{a_command(1)}, {a_named_job(1, "job-1")}, {}, {}}));
    NthFileFault faults(nth, error_number);
    auto ledger = *open_sqlite(path, kCommandsMax, &faults);
    faults.arm();
    std::vector<uint64_t> acknowledged{1};
    for (uint64_t number = 2; number <= 4; ++number) {
      const Batch batch{{a_command(ledger->last_sequence() + 1)},
                        {a_named_job(number, "job-" + std::to_string(number))},
                        {},
                        {}};
      auto done = ledger->commit(batch);
      if (!done && ledger->failure().empty()) {
        EXPECT_NE(faults.failed(), FileStep::sync);
        done = ledger->commit(batch);  // the disk was full for a moment
        EXPECT_TRUE(done) << done.error().message;
      }
      if (done)
        acknowledged.push_back(number);
      else
        EXPECT_EQ(done.error().kind, Kind::unavailable) << done.error().message;
    }
    if (faults.struck() && faults.failed() == FileStep::sync) {
      a_sync_failed = true;
      EXPECT_LT(acknowledged.size(), 4u) << "a commit was acknowledged after a failed sync";
      EXPECT_FALSE(ledger->failure().empty());
    }
    ledger.reset();
    ledger = *open_sqlite(path);
    for (const uint64_t number : acknowledged) EXPECT_TRUE(ledger->find_job(number)) << nth;
    EXPECT_TRUE(ledger->commit(
        {{a_command(ledger->last_sequence() + 1)}, {a_named_job(9, "after")}, {}, {}}));
    if (!faults.struck()) break;
  }
  EXPECT_TRUE(a_sync_failed);
}

TEST(LedgerFaults, AcceptsNoCommitAfterAFailedSyncAndLosesNothingAcknowledged) {
  fail_each_step(EIO);
}

TEST(LedgerFaults, WorksAgainAfterAFullDiskAndLosesNothingAcknowledged) { fail_each_step(ENOSPC); }

// SQLite does not report such a failed sync: the commit that caused the checkpoint "succeeds".
TEST(LedgerFaults, AcceptsNoCommitAfterAFailedSyncOfACheckpoint) {
  class DatabaseFile final : public FileFaults {
   public:
    FileFault before(FileStep step, const std::string& path, size_t) override {
      return {step == FileStep::sync && path.ends_with(".db") ? EIO : 0, 0};
    }
  } faults;
  os::TemporaryDirectory directory;
  const std::string path = directory.path() + "/ledger.db";
  ASSERT_TRUE((*open_sqlite(path))->commit({{a_command(1)}, {a_named_job(1, "small")}, {}, {}}));
  auto ledger = *open_sqlite(path, kCommandsMax, &faults);
  domain::Job large = a_named_job(2, "large");
  // SQLite's log is checkpointed at 4 MiB
  large.spec.environment["LARGE"] = std::string(6 << 20, 'x');
  const auto done = ledger->commit({{a_command(2)}, {large}, {}, {}});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, Kind::unavailable);
  EXPECT_NE(ledger->failure().find(path), std::string::npos);
  EXPECT_FALSE(ledger->commit({{a_command(2)}, {a_named_job(3, "next")}, {}, {}}));
  ledger.reset();
  ledger = *open_sqlite(path);
  EXPECT_TRUE(ledger->find_job(1));
  EXPECT_FALSE(ledger->find_job(3));
}

}  // namespace
}  // namespace trainyard::ledger
