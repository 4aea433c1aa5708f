// Trains in regions that are connected by slow links: each region trains separately, and all rarely
// average their parameters (local SGD).
//
//   auto regions = TRY(LocalSgd::join({.leaders = {{"eu.example", 7840}, {"us.example", 7840}},
//                                      .region = 0, .shared_value = secret}, parameters));
//   while (regions->round() < rounds) {
//     train(parameters, 100 steps);                       // within the region, over its fast links
//     TRY(regions->average(parameters, rows_seen));       // now equal in all regions, bit for bit
//   }
//   TRY(regions->finish());
//
// One rank of each region, the leader, owns a LocalSgd, and sends the parameters to the other ranks
// of its region (Group::broadcast). An allreduce of float32 gradients after each step costs 2
// (regions - 1) * 4 P bytes between regions; a round of H steps costs 2 (regions - 1) * 2 P with
// two-byte codings: 1/(2 H) of it.
//
// A region may be lost at any time: the others continue without it. When it rejoins (with the same
// number of parameters), it gets their parameters and continues with them; round() then returns
// their round. region_group.hpp has the rules.
//
// Threads: confined to one.
// Errors:  unavailable, naming the regions that did not join; conflict, if another region rejects
// this one; invalid, if a parameter is NaN or infinite; cancelled.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "collectives/group.hpp"
#include "local_sgd/coding.hpp"
#include "local_sgd/outer_optimiser.hpp"

namespace trainyard::local_sgd {

struct LocalSgdOptions {
  // by region; equal in all regions. At most kRegionsMax
  std::vector<collectives::Endpoint> leaders;
  int region = 0;                // index of this region in `leaders`
  std::string shared_value;      // the secret; as in TcpOptions
  bool encrypt = false;          // as in TcpOptions; equal in all regions
  OuterSettings outer;           // equal in all regions
  Coding coding = Coding::bf16;  // for the gradients that this region sends
  // Text that the founding region sends to all, for instance the number of rounds. Limit:
  // kCharterBytesMax.
  std::string charter;
  // The time that the other regions have to start. After it, regions_min regions suffice to begin,
  // and a region that has not been admitted fails.
  Duration join_deadline = 10min;
  int regions_min = 0;  // 0: all of them
  // The time after which the others continue without a region that is connected but sends nothing.
  Duration round_timeout = 10min;
  std::function<bool()> cancelled;  // called while waiting; may be empty
};

struct Round {
  uint64_t number = 0;  // completed rounds
  int regions = 0;      // members of the group when the round ended
  // this region's parameters were replaced by the others', because it was behind or not connected
  bool caught_up = false;
};

struct RegionTraffic {
  uint64_t sent = 0;  // bytes over the links between regions, without the overhead of TLS and TCP
  uint64_t received = 0;
};

class LocalSgd {
 public:
  // Joins the other regions. Sets `parameters` to theirs if they have already begun training, else
  // to the founding region's.
  static Result<std::unique_ptr<LocalSgd>> join(LocalSgdOptions options,
                                                std::span<float> parameters);
  ~LocalSgd();  // leaves the other regions, which continue

  // Averages `parameters` with the other regions, weighted by `weight` (samples since the last
  // round). If the others are ahead, sets `parameters` to theirs instead.
  Result<Round> average(std::span<float> parameters, double weight);
  // Call after the last round: waits until every reachable region has it too.
  Result<void> finish();

  uint64_t round() const;
  const std::string& charter() const;
  // Returns the number of members, including this region.
  int size() const;
  RegionTraffic traffic() const;
  // Returns the log lines since the last call: regions that connected, and regions that were lost,
  // with the reason.
  std::vector<std::string> take_news();

 private:
  class Impl;
  explicit LocalSgd(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Returns the number of bytes that a round sends on all links together.
size_t round_bytes(Coding coding, size_t parameters, int regions);

}  // namespace trainyard::local_sgd
