// DeliveryCatalogue stores delivery sources, delivery destinations and deliveries, and decides
// which may exist: each source has logs on this server, each destination can be written, and no
// events can travel in a circle.
//
// The source of a delivery is a log group, a training job, or a resource outside this server whose
// logs clients put into a group that the configuration names.
//
// Threads: callable from anywhere; changes are made one after another. A change is durable when it
// returns. Errors: not_found, conflict, invalid and exhausted (a limit, or a full disk), with
// messages for the client; those of observe. Lifetime: logs, objects and targets outlive it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "base/result.hpp"
#include "base/thread_safety.hpp"
#include "log_routing/delivery_records.hpp"
#include "log_routing/targets.hpp"
#include "objects/objects.hpp"
#include "observe/log_definitions.hpp"
#include "observe/logs.hpp"

namespace trainyard::log_routing {

// A resource outside this server, as the configuration describes it.
struct OutsideSource {
  std::string arn, log_type;
  std::string group;  // into which clients put its logs
};

// The streams with the logs of a delivery source.
struct SourceStreams {
  std::string group, stream_prefix;
};

template <class Record>
using NamedRecords = std::vector<std::pair<std::string, Record>>;  // by name

class DeliveryCatalogue {
 public:
  DeliveryCatalogue(observe::Logs& logs, objects::Objects& objects, const LogTargets& targets,
                    std::vector<OutsideSource> outside, Random& random);

  Result<void> put_source(const std::string& region, const std::string& name,
                          DeliverySource source);
  Result<DeliverySource> source(const std::string& region, const std::string& name);
  Result<NamedRecords<DeliverySource>> sources(const std::string& region);
  Result<void> remove_source(const std::string& region, const std::string& name);

  // The type follows from the resource. Tags and the policy of an earlier one stay, unless new tags
  // are given.
  Result<DeliveryDestination> put_destination(const std::string& region, const std::string& name,
                                              DeliveryDestination destination);
  Result<DeliveryDestination> destination(const std::string& region, const std::string& name);
  Result<NamedRecords<DeliveryDestination>> destinations(const std::string& region);
  // "": without a policy.
  Result<void> set_policy(const std::string& region, const std::string& name,
                          const std::string& policy);
  Result<void> remove_destination(const std::string& region, const std::string& name);

  // Returns the delivery's id.
  Result<std::string> create(const std::string& region, LogDelivery delivery);
  Result<LogDelivery> delivery(const std::string& region, const std::string& id);
  Result<NamedRecords<LogDelivery>> deliveries(const std::string& region);
  Result<void> update(const std::string& region, const std::string& id,
                      const std::function<void(DeliveryOptions&)>& change);
  // Its positions stay: Deliveries::remove() removes both.
  Result<void> remove(const std::string& region, const std::string& id);

  // Changes the tags of a source, destination or delivery; an error of `change` changes nothing.
  using ChangeTags = std::function<Result<void>(std::map<std::string, std::string>&)>;
  Result<void> change_tags(const std::string& region, observe::DefinitionKind kind,
                           const std::string& name, const ChangeTags& change);
  Result<std::map<std::string, std::string>> tags(const std::string& region,
                                                  observe::DefinitionKind kind,
                                                  const std::string& name);

  // The service in the ARN of a source's resource: "sagemaker".
  static std::string service_of(const DeliverySource& source);
  // Unset: the resource is not one of this server, or of its configuration.
  std::optional<SourceStreams> streams_of(const std::string& region,
                                          const DeliverySource& source) const;
  // The type of a destination. Errors: invalid.
  Result<DeliveryType> type_of(const std::string& resource_arn) const;

 private:
  template <class Record>
  Result<Record> find(const std::string& region, const std::string& name);
  template <class Record>
  Result<NamedRecords<Record>> list(const std::string& region);
  template <class Record>
  Result<void> put(const std::string& region, const std::string& name, const Record& record)
      REQUIRES(changing_);
  template <class Record>
  Result<void> change_tags_of(const std::string& region, const std::string& name,
                              const ChangeTags& change) REQUIRES(changing_);
  Result<void> check_source(const std::string& region, const DeliverySource& source);
  Result<void> check_no_circle(const GroupName& from, const GroupName& to) REQUIRES(changing_);
  Result<std::vector<std::pair<GroupName, GroupName>>> edges() REQUIRES(changing_);

  observe::Logs& logs_;
  objects::Objects& objects_;
  const LogTargets& targets_;
  const std::vector<OutsideSource> outside_;
  Random& random_;
  Mutex changing_;  // held from the checks of a change to its end
};

}  // namespace trainyard::log_routing
