// An allreduce by our own collectives, between processes of this machine.
//
//   reduce_with_ours RANKS BYTES TYPE WAY [PLANS]     TYPE f32 f16 bf16; WAY ordinary registered tcp, or start:
//   the time from the first fork until all have met
//   reduce_with_ours RANKS BYTES TYPE hosts RANK ADDRESS,ADDRESS,.. [PLANS]     one rank, alone on its host
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <sstream>
#include <string>

#include "bench/collectives_loop.hpp"
#include "bench/must.hpp"
#include "collectives/group.hpp"

namespace {

using namespace trainyard;
using namespace trainyard::collectives;

using bench::must;

// As mpirun does for its ranks while there are cores for all.
void bind_to_core(int rank, int ranks) {
  const int cores = int(sysconf(_SC_NPROCESSORS_ONLN));
  if (ranks > cores) return;
  cpu_set_t own;
  CPU_ZERO(&own);
  CPU_SET(size_t(rank), &own);
  (void)sched_setaffinity(0, sizeof own, &own);
}

// A network of hosts is slow, and steady.
constexpr bench::Loop between_hosts{1, 5};

void play(int rank, const TcpOptions& options, size_t bytes, Type type, const std::string& way) {
  const bool registered = way == "registered";
  const bench::Loop loop = way == "hosts" ? between_hosts : bench::Loop::for_bytes(bytes);
  if (way != "hosts") bind_to_core(rank, int(options.endpoints.size()));
  auto mine = options;
  mine.rank = rank;
  const auto group = must(join_over_tcp(mine));
  std::vector<std::byte> ordinary(registered ? 0 : bytes);
  const auto memory = registered ? must(group->allocate(bytes)) : std::span(ordinary);
  const BufferView values{memory.data(), bytes / bytes_of(type), type};
  Call call = calls::allreduce(values);
  if (registered) call.chunk_bytes = size_t{4} << 20;
  const double microseconds = bench::median_microseconds(
      loop, [&](int round) { std::memset(memory.data(), round % 3, bytes); }, [&] { must(group->barrier()); },
      [&] { must(group->run(call)); });
  if (rank == 0 || way == "hosts") bench::print_microseconds("ours", microseconds);
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
  if (way == "hosts") {
    if (argc < 7) return 2;
    std::istringstream addresses(argv[6]);
    for (std::string address; std::getline(addresses, address, ',');)
      options.endpoints.push_back({address, 7830});
    if (int(options.endpoints.size()) != ranks) return 2;
  }
  // An address of loopback that nobody else uses now.
  const int own = int(getpid());
  for (int rank = 0; rank < ranks && way != "hosts"; ++rank) {
    options.endpoints.push_back({"127." + std::to_string(1 + own / 250 % 250) + "." +
                                     std::to_string(1 + own % 250) + "." + std::to_string(1 + rank),
                                 7830});
  }
  options.shared_value = "bench";
  options.join_deadline = 30s;
  options.silence_max = 30s;
  options.share_memory = way != "tcp" && way != "hosts";
  options.group.deterministic = true;
  const int plans = way == "hosts" ? 7 : 5;
  if (argc > plans) options.group.plans = argv[plans];
  const Type of = type == "f16" ? Type::f16 : type == "bf16" ? Type::bf16 : Type::f32;
  const auto began = std::chrono::steady_clock::now();
  const auto run = [&](int rank) {
    if (way == "start") return start(rank, options, began);
    play(rank, options, bytes, of, way);
  };
  if (way == "hosts") {
    run(std::atoi(argv[5]));
    return 0;
  }
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
