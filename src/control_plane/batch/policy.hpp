// Defines the resources of AWS Batch by which jobs share a queue: scheduling policies, quota
// shares, consumable resources and service environments. Queues are in catalog.hpp.
//
// The member `request` of a resource is the client's request, with the members of AWS Batch;
// Describe returns it.
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

// The weight of a share, or of all shares that begin with a prefix ("UserA*"). A lower weight means
// more capacity: a share of weight 0.125 gets eight times the capacity of a share of weight 1.
struct ShareWeight {
  std::string pattern;
  double weight = 1;
};

// Specifies how the jobs of a queue share its capacity. Jobs of a queue without a policy start in
// the order of submission.
struct SchedulingPolicy {
  domain::JobKey key;
  enum class Kind { fair_share, quota_shares } kind = Kind::fair_share;
  int64_t decay_seconds = 0;  // decay time of usage; 0: kDecaySecondsDefault
  // (reservation_percent / 100)^(number of active shares) of the capacity is kept for inactive
  // shares.
  int64_t reservation_percent = 0;
  std::vector<ShareWeight> weights;
  Json request = Json::object();

  // Returns the weight of the first pattern that matches the share; 1 if none does.
  double weight_of(std::string_view share) const;
  int64_t decay() const;  // in seconds, with the default
};

// Limits how many units are used at a time. The unit is "NUM_INSTANCES" (instances of any type) or
// an instance type.
struct CapacityLimit {
  std::string unit;
  int64_t capacity = 0;
};
inline constexpr std::string_view kInstancesUnit = "NUM_INSTANCES";

// Limits the instances that the training jobs of its queues may use at a time.
struct ServiceEnvironment {
  domain::JobKey key;
  bool enabled = true;
  std::vector<CapacityLimit> limits;
  Json request = Json::object();
};

// A part of a queue with its own capacity. The name in its key is "QUEUE/SHARE".
struct QuotaShare {
  domain::JobKey key;
  bool enabled = true;  // accepts new jobs
  std::vector<CapacityLimit> limits;
  // reserve: other shares cannot use its idle capacity. lend: they can. lend_and_borrow: it can
  // also use theirs.
  enum class Strategy { reserve, lend, lend_and_borrow } strategy = Strategy::reserve;
  std::optional<int64_t> borrow_percent;  // of its own limits; nullopt: unlimited
  bool preempts_within = false;           // its jobs may preempt its jobs with a lower priority
  Json request = Json::object();

  std::string queue() const;  // "QUEUE"
  std::string name() const;   // "SHARE"
};
std::string quota_share_name(std::string_view queue, std::string_view share);  // "QUEUE/SHARE"

// A resource that jobs need in addition to machines: licences, tokens of an API.
struct ConsumableResource {
  domain::JobKey key;
  bool replenishable = true;  // true: attempts return it when they end; false: they use it up
  int64_t total = 0;          // if not replenishable: the remaining quantity
  Instant created;
  // The client tokens of the last updates, by which a repeated update is recognised.
  std::vector<std::string> tokens = {};

  // The change that an update requests: first `set`, then `add`. Not stored.
  std::optional<int64_t> set = {};
  int64_t add = 0;
  std::string token = {};
};

inline constexpr size_t kPoliciesMax = 500;            // per region, as AWS
inline constexpr size_t kServiceEnvironmentsMax = 50;  // per region, as compute environments
inline constexpr size_t kQuotaSharesOfQueueMax = 20;   // as many as AWS's snapshot of a queue lists
// Per region: each change copies the catalog.
inline constexpr size_t kConsumableResourcesMax = 5'000;
inline constexpr size_t kWeightsMax = 500;                           // per policy, as AWS
inline constexpr size_t kShareNameMax = 255;                         // letters and digits, as AWS
inline constexpr int64_t kDecaySecondsDefault = 600;                 // as AWS
inline constexpr int64_t kDecaySecondsMax = 604'800;                 // a week, as AWS
inline constexpr int64_t kReservationPercentMax = 99;                // as AWS
inline constexpr double kWeightMin = 0.0001, kWeightMax = 999.9999;  // as AWS
// Clients repeat an update within seconds; fewer updates than this happen in that time.
inline constexpr size_t kUpdateTokensKept = 64;

std::string_view to_string(QuotaShare::Strategy);  // "LEND_AND_BORROW"
Result<QuotaShare::Strategy> parse_strategy(std::string_view);

// Returns the resource after an update; an update whose token was applied before changes nothing.
// Errors: invalid, if the total would be negative or above its limit.
Result<ConsumableResource> updated(ConsumableResource current, const ConsumableResource& change);

// Checks that no share matches two weights. Errors: invalid, naming both.
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
