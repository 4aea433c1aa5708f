// Measures the same allreduce with MPI (Open MPI or MPICH, depending on the compiler wrapper);
// mpirun starts the ranks.
//
//   mpirun -np RANKS reduce_with_mpi BYTES
#include <mpi.h>

#include <cstring>

#include "bench/collectives_loop.hpp"

int main(int argc, char** argv) {
  using namespace trainyard;
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const size_t bytes = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1024;
  std::vector<float> values(bytes / sizeof(float));
  const double microseconds = bench::median_microseconds(
      bench::Loop::for_bytes(bytes),
      [&](int round) { std::memset(values.data(), round % 3, bytes); },
      [] { MPI_Barrier(MPI_COMM_WORLD); },
      [&] {
        MPI_Allreduce(MPI_IN_PLACE, values.data(), int(values.size()), MPI_FLOAT, MPI_SUM,
                      MPI_COMM_WORLD);
      });
  if (rank == 0) bench::print_microseconds("peer", microseconds);
  MPI_Finalize();
  return 0;
}
