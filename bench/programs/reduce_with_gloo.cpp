// Measures the same allreduce with Gloo, over TCP on loopback: Gloo has no other transport between
// processes of a machine.
//
//   reduce_with_gloo RANKS BYTES DIRECTORY
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "bench/collectives_loop.hpp"

namespace {

void run_rank(int rank, int ranks, size_t bytes, const std::string& directory) {
  using namespace trainyard;
  gloo::transport::tcp::attr attributes;
  attributes.iface = "lo";
  auto device = gloo::transport::tcp::CreateDevice(attributes);
  gloo::rendezvous::FileStore store(directory);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
  context->connectFullMesh(store, device);
  std::vector<float> values(bytes / sizeof(float));
  gloo::BarrierOptions barrier(context);
  const double microseconds = bench::median_microseconds(
      bench::Loop{bytes <= 65536 ? 50 : 3, bytes <= 65536 ? 300 : 15},
      [&](int round) { std::memset(values.data(), round % 3, bytes); },
      [&] { gloo::barrier(barrier); },
      [&] {
        gloo::AllreduceOptions options(context);
        options.setOutput(values.data(), values.size());
        options.setReduceFunction(
            static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::sum<float>));
        gloo::allreduce(options);
      });
  if (rank == 0) bench::print_microseconds("peer", microseconds);
  gloo::barrier(barrier);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int ranks = std::atoi(argv[1]);
  const size_t bytes = std::strtoull(argv[2], nullptr, 10);
  for (int rank = 1; rank < ranks; ++rank) {
    if (fork() == 0) {
      run_rank(rank, ranks, bytes, argv[3]);
      std::_Exit(0);
    }
  }
  run_rank(0, ranks, bytes, argv[3]);
  while (wait(nullptr) > 0) {
  }
  return 0;
}
