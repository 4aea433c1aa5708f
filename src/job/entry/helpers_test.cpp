#include "entry/helpers.hpp"

#include <gtest/gtest.h>

namespace trainyard::entry {
namespace {

struct Row {
  const char* about;
  Variables variables;
  int rank;
  int local_rank;
};

const Row kRows[] = {
    {"no launcher", {}, 0, 0},
    {"Open MPI, which sets PMIx' variable too",
     {{"OMPI_COMM_WORLD_RANK", "5"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}, {"PMIX_RANK", "6"}},
     5,
     1},
    {"PMIx", {{"PMIX_RANK", "3"}}, 3, 0},
    {"MPICH", {{"PMI_RANK", "2"}, {"MPI_LOCALRANKID", "1"}}, 2, 1},
    {"variables that programs set for torch",
     {{"RANK", "7"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "3"}},
     0,
     0},
    {"no number", {{"OMPI_COMM_WORLD_RANK", "x"}, {"PMIX_RANK", "4"}}, 4, 0},
};

TEST(Helpers, ReadTheRankOfTheMpiLauncher) {
  for (const Row& row : kRows) {
    const MpiRank found = mpi_rank_in(row.variables);
    EXPECT_EQ(found.rank, row.rank) << row.about;
    EXPECT_EQ(found.local_rank, row.local_rank) << row.about;
  }
}

}  // namespace
}  // namespace trainyard::entry
