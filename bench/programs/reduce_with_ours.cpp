// An allreduce by our own collectives, between processes of this machine.
//
//   reduce_with_ours RANKS BYTES TYPE WAY [PLANS]     TYPE f32 f16 bf16; WAY ordinary registered tcp, or start:
//   the time from the first fork until all have met
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "bench/collectives_loop.hpp"
#include "collectives/group.hpp"

namespace {

using namespace trainyard;
using namespace trainyard::collectives;

template <class T>
T must(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "reduce_with_ours: %s\n", result.error().message.c_str());
    std::_Exit(1);
  }
  return std::move(result).value();
}
void must(Result<void> result) {
  if (result) return;
  std::fprintf(stderr, "reduce_with_ours: %s\n", result.error().message.c_str());
  std::_Exit(1);
}

// As mpirun does for its ranks while there are cores for all.
void bind_to_core(int rank, int ranks) {
  const int cores = int(sysconf(_SC_NPROCESSORS_ONLN));
  if (ranks > cores) return;
  cpu_set_t own;
  CPU_ZERO(&own);
  CPU_SET(size_t(rank), &own);
  (void)sched_setaffinity(0, sizeof own, &own);
}

void play(int rank, const TcpOptions& options, size_t bytes, Type type, bool registered) {
  bind_to_core(rank, int(options.endpoints.size()));
  auto mine = options;
  mine.rank = rank;
  const auto group = must(join_over_tcp(mine));
  std::vector<std::byte> ordinary(registered ? 0 : bytes);
  const auto memory = registered ? must(group->allocate(bytes)) : std::span(ordinary);
  const Numbers values{memory.data(), bytes / bytes_of(type), type};
  const double microseconds = bench::median_microseconds(
      bench::Loop::for_bytes(bytes), [&](int round) { std::memset(memory.data(), round % 3, bytes); },
      [&] { must(group->barrier()); }, [&] { must(group->run(calls::allreduce(values))); });
  if (rank == 0) bench::print_microseconds("ours", microseconds);
  must(group->barrier());
}

// How long it takes until all ranks are processes that have met.
void start(int rank, const TcpOptions& options, std::chrono::steady_clock::time_point began) {
  auto mine = options;
  mine.rank = rank;
  const auto group = must(join_over_tcp(mine));
  must(group->barrier());
  if (rank != 0) return;
  bench::print_microseconds(
      "ours", std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - began).count());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr, "reduce_with_ours RANKS BYTES TYPE WAY [PLANS]\n");
    return 2;
  }
  const int ranks = std::atoi(argv[1]);
  const size_t bytes = std::strtoull(argv[2], nullptr, 10);
  const std::string type = argv[3];
  const std::string way = argv[4];
  TcpOptions options;
  // An address of loopback that nobody else uses now.
  const int own = int(getpid());
  for (int rank = 0; rank < ranks; ++rank) {
    options.endpoints.push_back({"127." + std::to_string(1 + own / 250 % 250) + "." +
                                     std::to_string(1 + own % 250) + "." + std::to_string(1 + rank),
                                 7830});
  }
  options.shared_value = "bench";
  options.join_deadline = 30s;
  options.silence_max = 30s;
  options.share_memory = way != "tcp";
  options.group.deterministic = true;
  if (argc > 5) options.group.plans = argv[5];
  const Type of = type == "f16" ? Type::f16 : type == "bf16" ? Type::bf16 : Type::f32;
  const auto began = std::chrono::steady_clock::now();
  const auto run = [&](int rank) {
    if (way == "start") return start(rank, options, began);
    play(rank, options, bytes, of, way == "registered");
  };
  for (int rank = 1; rank < ranks; ++rank) {
    if (fork() == 0) {
      run(rank);
      return 0;
    }
  }
  run(0);
  int failed = 0;
  for (int status = 0; wait(&status) > 0;) failed += status != 0;
  return failed;
}
