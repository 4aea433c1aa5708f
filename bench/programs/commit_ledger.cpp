// Measures the throughput of the ledger: commands committed in groups, as control does under load,
// next to the same commands committed one by one. Durability is equal: one fsync per group, or one
// per command.
//
//   commit_ledger DIRECTORY      prints a line of JSON for each round

#include <cstdio>
#include <memory>
#include <string>

#include "base/json.hpp"
#include "ledger/ledger.hpp"
#include "os/files.hpp"
#include "os/machine_clock.hpp"

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

Result<double> commands_per_second(const std::string& path, uint64_t group) {
  auto ledger = TRY(ledger::open_sqlite(path));
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
    TRY(ledger->commit(batch));
  }
  return double(kCommands) / (double((clock.monotonic() - began).count()) / 1e9);
}

Result<void> main_of(const std::string& directory) {
  for (int round = 0; round < kRounds; ++round) {
    for (const uint64_t group : {kGroup, uint64_t(1)}) {
      const std::string path =
          directory + "/" + std::to_string(round) + "-" + std::to_string(group);
      TRY(os::make_directories(path));
      const double rate = TRY(commands_per_second(path + "/ledger.db", group));
      std::printf("%s\n", dump(Json{{"side", group == 1 ? "peer" : "ours"},
                                    {"round", round},
                                    {"commands_per_second", rate}})
                              .c_str());
    }
  }
  return {};
}

}  // namespace
}  // namespace trainyard::bench

int main(int argc, char** argv) {
  if (argc != 2 || argv[1][0] == '-') {
    std::fprintf(stderr, "usage: commit_ledger DIRECTORY\n");
    return 2;
  }
  const auto done = trainyard::bench::main_of(argv[1]);
  if (!done) std::fprintf(stderr, "commit_ledger: %s\n", done.error().message.c_str());
  return done ? 0 : 1;
}
