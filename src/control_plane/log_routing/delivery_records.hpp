// Defines delivery sources, delivery destinations and deliveries, and how they are stored.
//
// A delivery sends the events of a named source to a named destination. Sources and destinations
// belong to a region.
//
// Threads: plain values. Errors: invalid.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::log_routing {

// Limits of one region, as on AWS for sources and deliveries.
inline constexpr size_t kDeliverySourcesMax = 1'000;
inline constexpr size_t kDeliveryDestinationsMax = 1'000;
inline constexpr size_t kDeliveriesMax = 1'000;

enum class DeliveryType { s3, log_group, webhook };
enum class DeliveryFormat { plain, json, raw };

struct DeliverySource {
  std::string resource_arn;
  std::string log_type;
  std::map<std::string, std::string> tags;

  std::string text() const;
  static Result<DeliverySource> from(std::string_view text);
};

struct DeliveryDestination {
  DeliveryType type = DeliveryType::s3;
  std::string resource_arn;  // a bucket with a prefix, a log group, or a stream of a webhook
  std::optional<DeliveryFormat> format;  // unset: plain
  std::string policy;                    // stored, but unused: it would grant other accounts access
  std::map<std::string, std::string> tags;

  std::string text() const;
  static Result<DeliveryDestination> from(std::string_view text);
};

struct DeliveryOptions {
  std::vector<std::string> fields;  // of each event, in this order; empty: the event as it is
  std::string delimiter;            // between fields in plain format; "": a tab
  std::string suffix;               // of S3 keys; "": the region and the day
  bool hive_path = false;
};

struct LogDelivery {
  std::string source, destination;  // names
  DeliveryOptions options;
  std::string owner;  // the principal whose storage quota objects count against
  std::map<std::string, std::string> tags;
  Instant created;  // earlier events are not delivered

  std::string text() const;
  static Result<LogDelivery> from(std::string_view text);
};

}  // namespace trainyard::log_routing
