// Measures an allreduce with our collectives, between processes of this machine or between hosts.
//
//   reduce_with_ours RANKS BYTES TYPE MODE [PLANS]
//       TYPE f32 f16 bf16; MODE ordinary registered tcp, or start: the time from the first fork
//       until all ranks have joined
//   reduce_with_ours RANKS BYTES TYPE hosts RANK ADDRESS,ADDRESS,.. [PLANS]
//       one rank, alone on its host
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

// Binds the rank to a core, as mpirun does when there are enough cores.
void bind_to_core(int rank, int ranks) {
  const int cores = int(sysconf(_SC_NPROCESSORS_ONLN));
  if (ranks > cores) return;
  cpu_set_t own;
  CPU_ZERO(&own);
  CPU_SET(size_t(rank), &own);
  (void)sched_setaffinity(0, sizeof own, &own);
}

// Operations between hosts are slow, and their times are stable, so few rounds suffice.
constexpr bench::Loop kBetweenHosts{1, 5};

void run_rank(int rank, const TcpOptions& options, size_t bytes, Type type,
              const std::string& mode) {
  const bool registered = mode == "registered";
  const bench::Loop loop = mode == "hosts" ? kBetweenHosts : bench::Loop::for_bytes(bytes);
  if (mode != "hosts") bind_to_core(rank, int(options.endpoints.size()));
  auto own = options;
  own.rank = rank;
  const auto group = must(join_over_tcp(own));
  std::vector<std::byte> ordinary(registered ? 0 : bytes);
  const auto memory = registered ? must(group->allocate(bytes)) : std::span(ordinary);
  const BufferView values{memory.data(), bytes / bytes_of(type), type};
  Call call = calls::allreduce(values);
  if (registered) call.chunk_bytes = size_t{4} << 20;
  const double microseconds = bench::median_microseconds(
      loop, [&](int round) { std::memset(memory.data(), round % 3, bytes); },
      [&] { must(group->barrier()); }, [&] { must(group->run(call)); });
  if (rank == 0 || mode == "hosts") bench::print_microseconds("ours", microseconds);
  must(group->barrier());
}

// Measures the time until all ranks have started and joined.
void start(int rank, const TcpOptions& options, std::chrono::steady_clock::time_point began) {
  auto own = options;
  own.rank = rank;
  const auto group = must(join_over_tcp(own));
  must(group->barrier());
  if (rank != 0) return;
  bench::print_microseconds(
      "ours",
      std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - began).count());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr, "usage: reduce_with_ours RANKS BYTES TYPE MODE [PLANS]\n");
    return 2;
  }
  const int ranks = std::atoi(argv[1]);
  const size_t bytes = std::strtoull(argv[2], nullptr, 10);
  const std::string type = argv[3];
  const std::string mode = argv[4];
  TcpOptions options;
  if (mode == "hosts") {
    if (argc < 7) return 2;
    std::istringstream addresses(argv[6]);
    for (std::string address; std::getline(addresses, address, ',');)
      options.endpoints.push_back({address, 7830});
    if (int(options.endpoints.size()) != ranks) return 2;
  }
  // Returns loopback addresses that no other process uses.
  const int own = int(getpid());
  for (int rank = 0; rank < ranks && mode != "hosts"; ++rank) {
    options.endpoints.push_back({"127." + std::to_string(1 + own / 250 % 250) + "." +
                                     std::to_string(1 + own % 250) + "." + std::to_string(1 + rank),
                                 7830});
  }
  options.shared_value = "bench";
  options.join_deadline = 30s;
  options.peer_timeout = 30s;
  options.share_memory = mode != "tcp" && mode != "hosts";
  options.group.deterministic = true;
  const int plans = mode == "hosts" ? 7 : 5;
  if (argc > plans) options.group.plans = argv[plans];
  const Type of = type == "f16" ? Type::f16 : type == "bf16" ? Type::bf16 : Type::f32;
  const auto began = std::chrono::steady_clock::now();
  const auto run = [&](int rank) {
    if (mode == "start") return start(rank, options, began);
    run_rank(rank, options, bytes, of, mode);
  };
  if (mode == "hosts") {
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
