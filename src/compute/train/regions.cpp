// How a trainer's region meets the others: its leader does, and tells the region's other ranks.
#include <algorithm>
#include <cstdio>

#include "base/arithmetic.hpp"
#include "base/text.hpp"
#include "train/trainer.hpp"

namespace trainyard::train {

using local_sgd::RegionOptions;
using local_sgd::Regions;
using local_sgd::RegionTraffic;

int64_t steps_after(uint64_t rounds, int64_t steps_of_round, int64_t steps) {
  const auto done = saturating_mul<uint64_t>(rounds, uint64_t(steps_of_round));
  return int64_t(std::min(done, uint64_t(steps)));
}

// The charter is the number of steps: regions with unlike numbers of rows would count them unlike.
Result<void> Trainer::join_regions(RegionOptions options) {
  Met met;
  if (group_.rank() == 0) {
    options.outer = settings_.regions.outer;
    options.coding = settings_.regions.coding;
    options.charter = std::to_string(steps_);
    auto joined = Regions::join(std::move(options), model_.parameters);
    if (!joined) {
      group_.abandon(joined.error().message);
      return std::move(joined).error();
    }
    regions_ = *std::move(joined);
    const auto steps = parse_int(regions_->charter());
    if (!steps || *steps < 1) {
      group_.abandon("the other regions are no trainers");
      return corrupt("the other regions' charter is no number of steps");
    }
    if (*steps > steps_max) {
      group_.abandon("the other regions train for too long");
      return corrupt("the other regions' charter says " + std::to_string(*steps) + " steps, and at most " +
                     std::to_string(steps_max) + " can be");
    }
    met = {regions_->round(), *steps, regions_->size(), false};
  }
  TRY(follow(met));
  return ok();
}

Result<bool> Trainer::meet_regions() {
  Met met;
  if (group_.rank() == 0) {
    const auto round = regions_->average(model_.parameters, rows_since_meeting_);
    for (const std::string& line : regions_->take_news()) print_(line);
    if (!round && round.error().kind != Kind::cancelled) {
      group_.abandon(round.error().message);
      return round.error();
    }
    met = {regions_->round(), steps_, regions_->size(), !round};
    if (round) {
      const RegionTraffic traffic = regions_->traffic();
      print_("round=" + std::to_string(round->number) + " regions=" + std::to_string(round->regions) +
             (round->adopted ? " adopted" : "") + " region_bytes_sent=" + std::to_string(traffic.sent) +
             " region_bytes_received=" + std::to_string(traffic.received));
    }
  }
  return follow(met);
}

// Every rank of the region goes where the leader is now.
Result<bool> Trainer::follow(Met met) {
  TRY(group_.broadcast(std::as_writable_bytes(std::span(&met, 1)), 0).in("what the regions' leader says"));
  if (met.stopped) return true;
  TRY(group_.broadcast(std::as_writable_bytes(std::span(model_.parameters)), 0)
          .in("what the regions learned"));
  steps_ = met.steps;
  steps_done_ = steps_after(met.round, settings_.regions.steps, steps_);
  rows_since_meeting_ = 0;
  return false;
}

Result<void> Trainer::leave_regions() {
  if (!regions_) return ok();
  TRY(regions_->finish());
  const RegionTraffic traffic = regions_->traffic();
  // What a ring of float32 would have carried over this region's link, both ways, after every step.
  const double regions = double(settings_.regions.all());
  const double allreduce = 2 * 2 * (regions - 1) / regions * sizeof(float) *
                           double(model_.shape.parameters()) * double(steps_done_);
  char text[160];
  std::snprintf(text, sizeof text, "between regions: rounds=%llu bytes=%llu share_of_allreduce=%.5f",
                (unsigned long long)regions_->round(), (unsigned long long)(traffic.sent + traffic.received),
                double(traffic.sent + traffic.received) / allreduce);
  print_(text);
  return ok();
}

RegionTraffic Trainer::traffic() const { return regions_ ? regions_->traffic() : RegionTraffic{}; }

}  // namespace trainyard::train
