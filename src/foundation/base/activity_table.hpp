// Lays out the activity table of a host: a file of fixed size, in which the ranks of a job count
// their collectives, and entry the output of the ranks that it starts. The agent reads it, and
// takes the time of each change itself; a job can write to all of it.
//
//   table = slot * kActivitySlots, record * kActivitySlots
//   slot  = rank and one, collectives, bytes of output, reserved
//
// Each number is 64 bits, little-endian, and aligned, so that a rank may map the file and count
// with one atomic operation. A slot whose first number is 0 is free. A writer takes the slot of its
// rank, else it changes a free one from 0 to its rank and one. The record with the number of a slot
// describes the calls of that rank in its largest group. Agents of earlier releases make a table
// without records.
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
inline constexpr size_t kActivityBytes = kActivitySlots * sizeof(ActivitySlot);  // of the slots

// Links of one rank whose loads are measured: as many as a tree or a ring needs.
inline constexpr size_t kCallLinks = 4;
struct CallLink {
  uint64_t peer_and_one = 0;  // a rank of the group; 0: free
  uint64_t busy_ns = 0;       // while bytes for it were on their way, and its window was open
  uint64_t busy_bytes = 0;    // that it received in this time
};

// The kinds of calls, by their numbers in a record. 0: the rank is outside of calls.
enum class CallKind : uint8_t {
  none,
  allreduce,
  reduce_scatter,
  all_gather,
  broadcast,
  reduce,
  gather,
  scatter,
  all_to_all,
  barrier,
  named_tensors,  // some were submitted, and wait for those of other ranks
  other
};
// Returns the name of a kind: "allreduce". A later release's kinds are "collective".
std::string_view to_string(CallKind kind);

// The calls of one rank in a group. Its writer is one process; a reader may see fields of two
// calls, and therefore trusts what does not change for a while.
struct CallRecord {
  uint64_t writer = 0;  // a number that its writer has chosen; 0: free
  uint64_t group = 0;   // a number that all ranks of the group have, and hardly any other group
  uint64_t ranks = 0;   // of the group; 0: it has ended
  uint64_t rank = 0;    // in the group
  uint64_t completed = 0;
  uint64_t kind = 0;  // CallKind of the current call
  uint64_t bytes = 0;
  // A digest of the call, equal on all ranks that make the same call. 0: calls have no order.
  uint64_t label = 0;
  uint64_t beats = 0;                      // advances while the rank is inside a call and alive
  uint64_t inside_ns = 0, outside_ns = 0;  // in completed calls, and between calls
  uint64_t loading_ns = 0;                 // of outside_ns, while the program waited for its input
  CallLink links[kCallLinks];
};
inline constexpr size_t kActivityTableBytes = kActivityBytes + kActivitySlots * sizeof(CallRecord);

struct RankRecord {
  uint64_t rank = 0;  // that its launcher gave to it
  CallRecord calls;
};

// Returns the slots in use: the first one of each rank, and none of ranks beyond the limit. Fewer
// bytes are a shorter table.
std::vector<ActivitySlot> read_activity(std::string_view bytes);
// Returns the records of these slots that describe a group of at least two ranks, with ranks within
// the limit.
std::vector<RankRecord> read_calls(std::string_view bytes);

}  // namespace trainyard
