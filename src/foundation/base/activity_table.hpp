// Lays out the activity table of a host: a file of fixed size, in which the ranks of a job count
// their collectives, and entry the output of the ranks that it starts. The agent reads it, and
// takes the time of each change itself; a job can write to all of it.
//
//   table = slot * kActivitySlots      slot = rank and one, collectives, bytes of output, reserved
//
// Each number is 64 bits, little-endian, and aligned, so that a rank may map the file and count
// with one atomic operation. A slot whose first number is 0 is free. A writer takes the slot of its
// rank, else it changes a free one from 0 to its rank and one.
//
// Threads: pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace trainyard {

inline constexpr const char* kActivityVariable = "TRAINYARD_ACTIVITY";  // the file's path
// Ranks of one host; further ones are not shown.
inline constexpr size_t kActivitySlots = 512;
inline constexpr uint64_t kActivityRankMax = 1'000'000;  // as collectives/launch.cpp

struct ActivitySlot {
  uint64_t rank_and_one = 0;
  uint64_t collectives = 0;
  uint64_t output_bytes = 0;
  uint64_t reserved = 0;
};
inline constexpr size_t kActivityBytes = kActivitySlots * sizeof(ActivitySlot);

// Returns the slots in use: the first one of each rank, and none of ranks beyond the limit. Fewer
// bytes are a shorter table.
std::vector<ActivitySlot> read_activity(std::string_view bytes);

}  // namespace trainyard
