// Describes how jobs of AWS Batch share a queue, and what they need besides machines: scheduling policies, quota shares,
// consumable resources, service environments. Queues are in catalog.hpp.
//
// `request` of each holds the client's request with the members of AWS Batch, for Describe to echo.
//
// Threads: plain values; pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "domain/job.hpp"

namespace trainyard::batch {

// Of the jobs of this share, or of the shares that begin like this ("UserA*"). Lower gets more: a share of 0.125 gets
// eight times what one of 1 gets.
struct ShareWeight {
  std::string pattern;
  double weight = 1;
};

// How the jobs of a queue share what it has. A queue without one takes them in the order of submission.
struct SchedulingPolicy {
  domain::JobKey key;
  enum class Kind { fair_share, quota_shares } kind = Kind::fair_share;
  int64_t decay_seconds = 0;  // for how long what was used counts; 0: kDecaySecondsDefault
  int64_t reservation_percent =
      0;  // (this/100)^(active shares) of the capacity is kept for shares that are not active
  std::vector<ShareWeight> weights;
  Json request = Json::object();

  // 1 for shares that it does not name.
  double weight_of(std::string_view share) const;
  int64_t decay() const;
};

// So many of a unit: "NUM_INSTANCES", or an instance type.
struct CapacityLimit {
  std::string unit;
  int64_t capacity = 0;
};
inline constexpr std::string_view kInstancesUnit = "NUM_INSTANCES";

// For how many instances the training jobs of queues may be scheduled at once.
struct ServiceEnvironment {
  domain::JobKey key;
  bool enabled = true;
  std::vector<CapacityLimit> limits;
  Json request = Json::object();
};

// A queue in a queue, with a capacity of its own. Its key's name is "QUEUE/SHARE".
struct QuotaShare {
  domain::JobKey key;
  bool enabled = true;  // takes new jobs
  std::vector<CapacityLimit> limits;
  // What becomes of capacity that it does not use: others may not have it, may have it, and it may have theirs as well.
  enum class Strategy { reserve, lend, lend_and_borrow } strategy = Strategy::reserve;
  std::optional<int64_t> borrow_percent;  // of its own limits; nothing: as much as there is
  bool preempts_within = false;           // more urgent jobs of it take the place of its less urgent ones
  Json request = Json::object();

  std::string queue() const;  // "QUEUE"
  std::string name() const;   // "SHARE"
};
std::string quota_share_name(std::string_view queue, std::string_view share);  // "QUEUE/SHARE"

// Something that jobs need besides machines: licences, tokens of an API.
struct ConsumableResource {
  domain::JobKey key;
  bool replenishable = true;  // comes back when an attempt ends; else each attempt uses it up
  int64_t total = 0;          // what is left, when it is not replenishable: attempts take from it
  Instant created;
  std::vector<std::string> tokens = {};  // of the last updates, each of which is done once

  // What an update changes; nothing of it is kept.
  std::optional<int64_t> set = {};
  int64_t add = 0;
  std::string token = {};
};

inline constexpr size_t kPoliciesMax = 500;            // of a region, as AWS
inline constexpr size_t kServiceEnvironmentsMax = 50;  // of a region, as compute environments
inline constexpr size_t kQuotaSharesOfQueueMax = 20;   // as many as a snapshot lists
inline constexpr size_t kConsumableResourcesMax =
    5'000;                                             // of a region: the catalog is copied with each change
inline constexpr size_t kWeightsMax = 500;             // of a policy, as AWS
inline constexpr size_t kShareNameMax = 255;           // letters and numbers, as AWS
inline constexpr int64_t kDecaySecondsDefault = 600;   // as AWS
inline constexpr int64_t kDecaySecondsMax = 604'800;   // a week, as AWS
inline constexpr int64_t kReservationPercentMax = 99;  // as AWS
inline constexpr double kWeightMin = 0.0001, kWeightMax = 999.9999;  // as AWS
inline constexpr size_t kUpdateTokensKept =
    64;  // a client repeats within seconds; this many updates are not made in them

std::string_view to_string(QuotaShare::Strategy);  // "LEND_AND_BORROW"
Result<QuotaShare::Strategy> parse_strategy(std::string_view);

// The resource after an update of it. Errors: invalid, in words, when it would become negative.
Result<ConsumableResource> updated(ConsumableResource present, const ConsumableResource& change);

// Whether no share would match two of them. Errors: invalid, naming the two.
Result<void> check_weights(const std::vector<ShareWeight>& weights);

Json to_json(const SchedulingPolicy&);
Json to_json(const ServiceEnvironment&);
Json to_json(const QuotaShare&);
Json to_json(const ConsumableResource&);
Result<SchedulingPolicy> policy_from_json(const Json&);
Result<ServiceEnvironment> service_environment_from_json(const Json&);
Result<QuotaShare> quota_share_from_json(const Json&);
Result<ConsumableResource> consumable_from_json(const Json&);

}  // namespace trainyard::batch
