// Training in regions that slow links join: each trains by itself, and seldom they average what they have learned.
//
//   auto regions = TRY(Regions::join({.leaders = {{"eu.example", 7840}, {"us.example", 7840}}, .region = 0,
//                                     .shared_value = secret}, parameters));
//   while (regions->round() < rounds) {
//     train(parameters, 100 steps);                       // inside the region, as fast as it goes
//     TRY(regions->average(parameters, rows_seen));       // now the same in all regions, bit for bit
//   }
//   TRY(regions->finish());
//
// One rank of each region holds this, its leader; it hands the parameters on to its region's other ranks (Group::broadcast).
// Against an allreduce of float32 gradients after each step, which costs 2 (regions - 1) * 4 P bytes between regions, a
// round of H steps costs 2 (regions - 1) * 2 P with two-byte codings: 1/(2 H) of it.
//
// A region may vanish at any time: the others go on without it. When it comes back (with parameters of the same number) it
// gets theirs and goes on with them: round() then says where they are. council.hpp has the rules.
//
// Threads: confined to one.
// Errors:  unavailable, naming the regions that never came; conflict, when another region refuses us; invalid, when what
//          was trained is no number any more; cancelled.
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

struct RegionOptions {
  std::vector<collectives::Endpoint> leaders;  // by region; the same everywhere. At most regions_max
  int region = 0;                              // which of them we are
  std::string shared_value;                    // the secret; as TcpOptions has it
  bool encrypt = false;          // what crosses the links, as TcpOptions has it; the same everywhere
  OuterSettings outer;           // the same everywhere
  Coding coding = Coding::bf16;  // of what we send
  // What the region that founds wants all to know, say how many rounds there are. Limit: charter_bytes_max.
  std::string charter;
  // How long others may take to come up. After it regions_min are enough to begin, where that many are there; and a
  // region that is not let in by then gives up.
  Duration join_deadline = 10min;
  int regions_min = 0;  // 0: all of them
  // How long a region that lives may keep the others waiting before they go on without it.
  Duration round_timeout = 10min;
  std::function<bool()> cancelled;  // asked while waiting; may be empty
};

struct Round {
  uint64_t number = 0;   // that are over now
  int regions = 0;       // that took part, or go on together
  bool adopted = false;  // what we brought was not used: the others were further, or we were away
};

struct RegionTraffic {
  uint64_t sent = 0;  // bytes over the links between regions, all headers but TCP's and TLS's own
  uint64_t received = 0;
};

class Regions {
 public:
  // Meets the others. `parameters` become theirs where they have begun already, else those of the first region.
  static Result<std::unique_ptr<Regions>> join(RegionOptions options, std::span<float> parameters);
  ~Regions();  // leaves; the others go on

  // Offers what `parameters` have become, with a weight (samples seen since the last time), and takes the regions' mean,
  // or whatever the others hold when they are further.
  Result<Round> average(std::span<float> parameters, double weight);
  // After the last round: stays until every region that lives has it too.
  Result<void> finish();

  uint64_t round() const;
  const std::string& charter() const;
  // All that are in the circle, ourselves included.
  int size() const;
  RegionTraffic traffic() const;
  // Lines for people since the last call: who came, who went and why.
  std::vector<std::string> take_news();

 private:
  class Impl;
  explicit Regions(std::unique_ptr<Impl> inside);
  std::unique_ptr<Impl> impl_;
};

// What a round costs on all links together, in bytes, counted at the senders.
size_t round_bytes(Coding coding, size_t parameters, int regions);

}  // namespace trainyard::local_sgd
