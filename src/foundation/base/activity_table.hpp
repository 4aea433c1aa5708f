// Defines the activity table of a host: a file of fixed size in which the ranks of a job count
// their collectives, and entry counts the output of the ranks that it starts. The agent reads it
// and records itself when a number changed. A job can write to all of it.
//
//   table  = slot * kActivitySlots, record * kActivitySlots
//   slot   = ActivitySlot
//   record = CallRecord
//
// Each number is 64 bits, little-endian and aligned, so a rank may map the file and count with one
// atomic operation. A slot whose first number is 0 is free. A writer uses the slot of its rank; if
// there is none, it changes the first number of a free slot from 0 to its rank plus one. Record i
// describes the calls of the rank in slot i, in its largest group. Agents of earlier releases make
// a table without records.
//
// Threads: pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace trainyard {

inline constexpr const char* kActivityVariable = "TRAINYARD_ACTIVITY";  // the file's path
// limit of ranks on one host; further ranks are not shown
inline constexpr size_t kActivitySlots = 512;
inline constexpr uint64_t kActivityRankMax = 1'000'000;  // as in collectives/launch.cpp

struct ActivitySlot {
  uint64_t rank_and_one = 0;  // the rank plus one; 0: free
  uint64_t collectives = 0;
  uint64_t output_bytes = 0;
  uint64_t reserved = 0;
};
inline constexpr size_t kActivityBytes = kActivitySlots * sizeof(ActivitySlot);  // slots only

// number of links of a rank whose loads are measured: as many as a tree or a ring needs
inline constexpr size_t kCallLinks = 4;
struct CallLink {
  uint64_t peer_and_one = 0;  // the peer's rank in the group plus one; 0: free
  // time in which bytes for the peer were in transit and its receive window was open
  uint64_t busy_ns = 0;
  uint64_t busy_bytes = 0;  // bytes that the peer received in this time
};

// The kinds of calls; the value is the number in a record. none: the rank is outside of calls.
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
  named_tensors,  // submitted tensors wait for those of other ranks
  other
};
// Returns the name of a kind: "allreduce". Kinds of later releases are named "collective".
std::string_view to_string(CallKind kind);

// Describes the calls of one rank in a group. One process writes it. A reader may see fields of two
// different calls, and should therefore use only values that stay unchanged for a while.
struct CallRecord {
  uint64_t writer = 0;  // a number that identifies the writing process; 0: free
  uint64_t group = 0;   // a number that identifies the group, equal on all its ranks
  uint64_t ranks = 0;   // number of ranks of the group; 0: the group has ended
  uint64_t rank = 0;    // the rank's number in the group
  uint64_t completed = 0;
  uint64_t kind = 0;  // CallKind of the current call
  uint64_t bytes = 0;
  // a digest of the call, equal on all ranks that make the same call; 0: calls have no order
  uint64_t label = 0;
  uint64_t beats = 0;                      // advances while the rank is inside a call and alive
  uint64_t inside_ns = 0, outside_ns = 0;  // time in completed calls, and between calls
  uint64_t loading_ns = 0;  // the part of outside_ns in which the program waited for its input
  CallLink links[kCallLinks];
};
inline constexpr size_t kActivityTableBytes = kActivityBytes + kActivitySlots * sizeof(CallRecord);

struct RankRecord {
  uint64_t rank = 0;  // the rank's number from its launcher
  CallRecord calls;
};

// Returns the used slots: the first one of each rank, without ranks above kActivityRankMax. Fewer
// bytes are a table with fewer slots.
std::vector<ActivitySlot> read_activity(std::string_view bytes);
// Returns the records of these slots that describe a group of at least two ranks, at most
// kActivityRankMax.
std::vector<RankRecord> read_calls(std::string_view bytes);

}  // namespace trainyard
