// A Replica is the state that is equal in all regions of a group after a round: parameters, outer
// state, charter. It also stores the rounding errors of the coding, which differ between regions.
//
// Equal replicas that apply equal bytes stay equal, bit for bit; digest() compares them.
//
// Threads: confined to one. Errors: invalid, if a trained parameter is NaN or infinite; corrupt, if
// a message of another region does not fit this state. After an error nothing has changed.
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
  const std::vector<float>& parameters() const { return parameters_; }  // after the last round
  const std::string& charter() const { return charter_; }

  // Encodes the outer gradient of this region, whose parameters are now `trained`. The rounding
  // errors of the coding are added to the next offer. Requires: `trained` has the size of
  // parameters().
  Result<Offer> offer(std::span<const float> trained, double weight);
  // Encodes the mean of offers that were computed from this state. Requires: at least one.
  Result<Averaged> average(std::span<const Offer> offers);
  // Applies one outer step.
  Result<void> apply(const Averaged& averaged);

  // Returns the complete state, or a snapshot without it for a region whose digest is equal.
  Snapshot snapshot(uint64_t digest_there) const;
  Result<void> restore(const Snapshot& snapshot);
  bool equals(const Snapshot& snapshot) const;

 private:
  // Encodes the sum of `values` and `rest`; sets `rest` to the rounding errors.
  std::string encode_with(std::vector<float>& rest, std::vector<float> values) const;
  void update_digest();

  const OuterOptimiser optimiser_;
  const Coding coding_;
  uint64_t round_ = 0;
  std::vector<float> parameters_;
  OuterState state_;
  std::string charter_;
  uint64_t digest_ = 0;
  std::vector<float> own_rest_;   // rounding errors of this region's offers
  std::vector<float> mean_rest_;  // rounding errors of the means that this region sent as leader
};

}  // namespace trainyard::local_sgd
