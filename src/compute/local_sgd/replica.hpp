// What all regions of a circle hold alike after a round: parameters, outer state, charter. And what one region keeps to
// itself: how much its coding has forgotten.
//
// Equal replicas that apply equal bytes stay equal, bit for bit; digest() tells.
//
// Threads: confined to one. Errors: invalid, when what trained is no number any more; corrupt, when what another region
// sent does not fit; then nothing has changed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "local_sgd/messages.hpp"
#include "local_sgd/outer_optimiser.hpp"

namespace trainyard::local_sgd {

class Replica {
 public:
  Replica(std::vector<float> parameters, std::string charter, OuterSettings outer, Coding coding);

  uint64_t round() const { return round_; }
  uint64_t digest() const { return digest_; }
  const std::vector<float>& parameters() const { return parameters_; }  // of the last meeting
  const std::string& charter() const { return charter_; }

  // Where training by itself has brought this region, as what it offers. What the coding forgets is added to the next
  // offer. Requires: as many as parameters().
  Result<Offer> offer(std::span<const float> trained, double weight);
  // The mean of offers that start from here, as what all of them get. Requires: at least one.
  Result<Averaged> average(std::span<const Offer> offers);
  // One outer step.
  Result<void> apply(const Averaged& averaged);

  // Everything, or only its name for a region that has it already.
  Snapshot snapshot(uint64_t digest_there) const;
  Result<void> adopt(const Snapshot& snapshot);
  bool equals(const Snapshot& snapshot) const;

 private:
  // What is rounded away of `values` by the coding is left in `rest`, and what was left there before is added.
  std::string encode_with(std::vector<float>& rest, std::vector<float> values) const;
  void count_digest();

  const OuterOptimiser optimiser_;
  const Coding coding_;
  uint64_t round_ = 0;
  std::vector<float> parameters_;
  OuterState state_;
  std::string charter_;
  uint64_t digest_ = 0;
  std::vector<float> own_rest_;   // of our offers
  std::vector<float> mean_rest_;  // of the means that we made when we led
};

}  // namespace trainyard::local_sgd
