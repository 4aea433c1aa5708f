// Implements the regions of a Trainer. The leader averages with the other regions, and broadcasts
// the result to the other ranks of its region.
#include <algorithm>
#include <cstdio>

#include "base/arithmetic.hpp"
#include "base/text.hpp"
#include "train/trainer.hpp"

namespace trainyard::train {

using local_sgd::LocalSgd;
using local_sgd::LocalSgdOptions;
using local_sgd::RegionTraffic;

int64_t steps_after(uint64_t rounds, int64_t steps_of_round, int64_t steps) {
  const auto done = saturating_mul<uint64_t>(rounds, uint64_t(steps_of_round));
  return int64_t(std::min(done, uint64_t(steps)));
}

// The charter is the number of steps, since regions with different numbers of rows would compute
// different numbers.
Result<void> Trainer::join_regions(LocalSgdOptions options) {
  RoundResult result;
  if (group_.rank() == 0) {
    options.outer = settings_.regions.outer;
    options.coding = settings_.regions.coding;
    options.charter = std::to_string(steps_);
    auto joined = LocalSgd::join(std::move(options), model_.parameters);
    if (!joined) {
      group_.abandon(joined.error().message);
      return std::move(joined).error();
    }
    regions_ = *std::move(joined);
    const auto steps = parse_int(regions_->charter());
    if (!steps || *steps < 1) {
      group_.abandon("the other regions run another program");
      return corrupt("invalid charter of the other regions: expected a number of steps");
    }
    if (*steps > kStepsMax) {
      group_.abandon("the charter of the other regions has too many steps");
      return corrupt("invalid charter of the other regions: " + std::to_string(*steps) +
                     " steps; the maximum is " + std::to_string(kStepsMax));
    }
    result = {regions_->round(), *steps, regions_->size(), false};
  }
  TRY(apply(result));
  return ok();
}

Result<bool> Trainer::average_regions() {
  RoundResult result;
  if (group_.rank() == 0) {
    const auto round = regions_->average(model_.parameters, rows_since_round_);
    for (const std::string& line : regions_->take_news()) print_(line);
    if (!round && round.error().kind != Kind::cancelled) {
      group_.abandon(round.error().message);
      return round.error();
    }
    result = {regions_->round(), steps_, regions_->size(), !round};
    if (round) {
      const RegionTraffic traffic = regions_->traffic();
      print_("round=" + std::to_string(round->number) +
             " regions=" + std::to_string(round->regions) + (round->caught_up ? " adopted" : "") +
             " region_bytes_sent=" + std::to_string(traffic.sent) +
             " region_bytes_received=" + std::to_string(traffic.received));
    }
  }
  return apply(result);
}

// Sets every rank of the region to the state of the leader.
Result<bool> Trainer::apply(RoundResult result) {
  TRY(group_.broadcast(std::as_writable_bytes(std::span(&result, 1)), 0)
          .in("broadcasting the result of the round"));
  if (result.stopped) return true;
  TRY(group_.broadcast(std::as_writable_bytes(std::span(model_.parameters)), 0)
          .in("broadcasting the averaged parameters"));
  steps_ = result.steps;
  steps_done_ = steps_after(result.round, settings_.regions.steps, steps_);
  rows_since_round_ = 0;
  return false;
}

Result<void> Trainer::leave_regions() {
  if (!regions_) return ok();
  TRY(regions_->finish());
  const RegionTraffic traffic = regions_->traffic();
  // The bytes that a ring allreduce of float32 after every step would have sent and received over
  // the link of this region.
  const double regions = double(settings_.regions.all());
  const double allreduce = 2 * 2 * (regions - 1) / regions * sizeof(float) *
                           double(model_.shape.parameters()) * double(steps_done_);
  char text[160];
  std::snprintf(
      text, sizeof text, "between regions: rounds=%llu bytes=%llu share_of_allreduce=%.5f",
      (unsigned long long)regions_->round(), (unsigned long long)(traffic.sent + traffic.received),
      double(traffic.sent + traffic.received) / allreduce);
  print_(text);
  return ok();
}

RegionTraffic Trainer::traffic() const { return regions_ ? regions_->traffic() : RegionTraffic{}; }

}  // namespace trainyard::train
