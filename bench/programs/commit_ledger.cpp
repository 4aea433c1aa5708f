// Measures the throughput of the ledger: commands that are committed in groups, as by the control
// module under load, next to the same commands committed one by one. Durability is equal: one fsync
// per group, or one per command.
//
//   commit_ledger DIRECTORY             groups next to single commands, in SQLite
//   commit_ledger DIRECTORY URL GROUP   PostgreSQL next to SQLite, in groups of that size
//
// Prints a line of JSON for each side of each round.

#include <cstdio>
#include <memory>
#include <string>

#include "base/json.hpp"
#include "base/text.hpp"
#include "ledger/lease.hpp"
#include "ledger/ledger.hpp"
#include "ledger/postgres_ledger.hpp"
#include "os/files.hpp"
#include "os/machine_clock.hpp"
#include "postgres/connection.hpp"

namespace trainyard::bench {
namespace {

constexpr int kRounds = 7;
constexpr uint64_t kCommands = 1024;
constexpr uint64_t kGroup = 64;  // the batch of 64 clients that wait for their responses

domain::Job job(uint64_t number) {
  domain::Job one;
  one.number = number;
  one.key = {"us-east-1", "job-" + std::to_string(number)};
  one.account = "123456789012";
  one.spec.image = "trainyard/host";
  one.spec.groups = {{"homogeneousCluster", "ml.m5.large", 2}};
  one.spec.request = Json{{"TrainingJobName", one.key.name}, {"Padding", std::string(1500, 'x')}};
  return one;
}

Result<double> commands_per_second(ledger::Ledger& ledger, uint64_t group) {
  os::MachineClock clock;
  const auto began = clock.monotonic();
  for (uint64_t sequence = 1; sequence <= kCommands;) {
    ledger::Batch batch;
    for (uint64_t i = 0; i < group; ++i, ++sequence) {
      domain::Job one = job(sequence);
      batch.commands.push_back({sequence, clock.now(), "create",
                                Json{{"job", one.key.name}, {"request", one.spec.request}}});
      batch.jobs.push_back(std::move(one));
    }
    TRY(ledger.commit(batch));
  }
  return double(kCommands) / (double((clock.monotonic() - began).count()) / 1e9);
}

Result<double> of_sqlite(const std::string& directory, int round, uint64_t group) {
  const std::string path = directory + "/" + std::to_string(round) + "-" + std::to_string(group);
  TRY(os::make_directories(path));
  const auto ledger = TRY(ledger::open_sqlite(path + "/ledger.db"));
  return commands_per_second(*ledger, group);
}

// Requires: the database has nothing else.
Result<double> of_postgres(const std::string& url, uint64_t group) {
  TRY(TRY(postgres::Connection::open({url}))
          ->run_script("DROP SCHEMA IF EXISTS trainyard_ledger CASCADE"));
  const ledger::PostgresSettings settings{url};
  TRY(ledger::prepare_postgres(settings, {"123456789012", "bench", "bench"}));
  os::MachineClock clock;
  const ledger::LeaseSettings lease_settings;
  ledger::LeaseCandidate candidate(settings, lease_settings, "bench", clock);
  const auto taken = TRY(candidate.try_take());
  if (!taken) return unavailable("the lease is held by " + candidate.seen().holder);
  // Renews the lease meanwhile, like a server.
  const ledger::WriterLease lease(settings, lease_settings, *taken, clock,
                                  [](const std::string&) {});
  const auto ledger = TRY(ledger::open_postgres(settings, lease.fencing()));
  return commands_per_second(*ledger, group);
}

void print(bool ours, int round, double rate) {
  std::printf(
      "%s\n",
      dump(Json{{"side", ours ? "ours" : "peer"}, {"round", round}, {"commands_per_second", rate}})
          .c_str());
}

Result<void> compare_groups(const std::string& directory) {
  for (int round = 0; round < kRounds; ++round)
    for (const uint64_t group : {kGroup, uint64_t(1)})
      print(group != 1, round, TRY(of_sqlite(directory, round, group)));
  return {};
}

Result<void> compare_databases(const std::string& directory, const std::string& url,
                               uint64_t group) {
  for (int round = 0; round < kRounds; ++round) {
    print(true, round, TRY(of_postgres(url, group)));
    print(false, round, TRY(of_sqlite(directory, round, group)));
  }
  return {};
}

}  // namespace
}  // namespace trainyard::bench

int main(int argc, char** argv) {
  const auto group = argc == 4 ? trainyard::parse_int(argv[3]) : trainyard::Result<int64_t>(1);
  if ((argc != 2 && argc != 4) || argv[1][0] == '-' || !group || *group < 1) {
    std::fprintf(stderr, "usage: commit_ledger DIRECTORY [URL GROUP]\n");
    return 2;
  }
  const auto done = argc == 2
                        ? trainyard::bench::compare_groups(argv[1])
                        : trainyard::bench::compare_databases(argv[1], argv[2], uint64_t(*group));
  if (!done) std::fprintf(stderr, "commit_ledger: %s\n", done.error().message.c_str());
  return done ? 0 : 1;
}
