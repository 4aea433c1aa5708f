#include "capi/trainyard_local_sgd.h"

#include <memory>
#include <span>
#include <string>

#include "capi/conversion.hpp"
#include "local_sgd/local_sgd.hpp"

using namespace trainyard;
using capi::report;
using local_sgd::LocalSgd;
using local_sgd::LocalSgdOptions;

struct trainyard_regions {
  std::unique_ptr<LocalSgd> regions;
};

namespace {

Result<LocalSgdOptions> options_from(const trainyard_regions_join* join) {
  TRY(capi::check_size(join, "trainyard_regions_join"));
  LocalSgdOptions options;
  for (int region = 0; region < join->regions; ++region)
    options.leaders.push_back({join->hosts[region], join->ports[region]});
  options.region = join->region;
  options.shared_value = capi::text_from(join->secret);
  options.outer = {join->learning_rate, join->momentum};
  if (join->coding) options.coding = TRY(local_sgd::parse_coding(join->coding));
  options.charter = capi::text_from(join->charter);
  options.regions_min = join->regions_min;
  options.encrypt = join->encrypt != 0;
  if (join->join_deadline_ms > 0) options.join_deadline = Duration(join->join_deadline_ms);
  if (join->round_timeout_ms > 0) options.round_timeout = Duration(join->round_timeout_ms);
  return options;
}

}  // namespace

extern "C" {

trainyard_kind trainyard_regions_open(const trainyard_regions_join* join, float* parameters,
                                      size_t count, trainyard_regions** regions, char* message) {
  auto options = options_from(join);
  if (!options) return report(options.error(), message);
  if (!parameters || !regions)
    return report(invalid("parameters and regions must not be null"), message);
  auto joined = LocalSgd::join(*std::move(options), std::span(parameters, count));
  if (!joined) return report(joined.error(), message);
  *regions = new trainyard_regions{*std::move(joined)};
  return TRAINYARD_OK;
}

void trainyard_regions_free(trainyard_regions* regions) { delete regions; }

trainyard_kind trainyard_regions_average(trainyard_regions* regions, float* parameters,
                                         size_t count, double weight, trainyard_round* round,
                                         char* message) {
  const auto averaged = regions->regions->average(std::span(parameters, count), weight);
  if (!averaged) return report(averaged.error(), message);
  if (round) *round = {averaged->number, averaged->regions, averaged->caught_up ? 1 : 0};
  return TRAINYARD_OK;
}

trainyard_kind trainyard_regions_finish(trainyard_regions* regions, char* message) {
  return report(regions->regions->finish(), message);
}

uint64_t trainyard_regions_round(const trainyard_regions* regions) {
  return regions->regions->round();
}
const char* trainyard_regions_charter(const trainyard_regions* regions) {
  return regions->regions->charter().c_str();
}
void trainyard_regions_traffic(const trainyard_regions* regions, uint64_t* sent,
                               uint64_t* received) {
  const auto traffic = regions->regions->traffic();
  if (sent) *sent = traffic.sent;
  if (received) *received = traffic.received;
}

}  // extern "C"
