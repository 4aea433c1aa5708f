// DeliveryCatalogue stores delivery sources, delivery destinations and deliveries, and checks them:
// each source has logs on this server, each destination can be written, and deliveries between log
// groups form no cycle.
//
// The source of a delivery is a log group, a training job, or an external resource. For external
// resources, the configuration names the log group into which clients put the logs.
//
// Threads: callable from anywhere; changes are made one after another. A change is durable when the
// function returns. Errors: not_found, conflict, invalid and exhausted (a limit, or a full disk),
// with messages for the client, and the errors of observe. Lifetime: logs, objects and targets
// outlive the catalogue.
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

// A resource that this server does not manage, as the configuration describes it.
struct ExternalSource {
  std::string arn, log_type;
  std::string group;  // clients put its logs here
};

// The streams with the logs of a delivery source.
struct SourceStreams {
  std::string group, stream_prefix;
};

template <class Record>
using NamedRecords = std::vector<std::pair<std::string, Record>>;  // sorted by name

class DeliveryCatalogue {
 public:
  DeliveryCatalogue(observe::Logs& logs, objects::Objects& objects, const LogTargets& targets,
                    std::vector<ExternalSource> external, Random& random);

  Result<void> put_source(const std::string& region, const std::string& name,
                          DeliverySource source);
  Result<DeliverySource> source(const std::string& region, const std::string& name);
  Result<NamedRecords<DeliverySource>> sources(const std::string& region);
  Result<void> remove_source(const std::string& region, const std::string& name);

  // Creates or replaces a destination; its resource determines its type. A replaced destination
  // keeps its policy, and its tags unless new ones are given.
  Result<DeliveryDestination> put_destination(const std::string& region, const std::string& name,
                                              DeliveryDestination destination);
  Result<DeliveryDestination> destination(const std::string& region, const std::string& name);
  Result<NamedRecords<DeliveryDestination>> destinations(const std::string& region);
  // Sets the destination's policy; "" removes it.
  Result<void> set_policy(const std::string& region, const std::string& name,
                          const std::string& policy);
  Result<void> remove_destination(const std::string& region, const std::string& name);

  // Creates a delivery. Returns its id.
  Result<std::string> create(const std::string& region, LogDelivery delivery);
  Result<LogDelivery> delivery(const std::string& region, const std::string& id);
  Result<NamedRecords<LogDelivery>> deliveries(const std::string& region);
  Result<void> update(const std::string& region, const std::string& id,
                      const std::function<void(DeliveryOptions&)>& change);
  // Removes the delivery, but not its positions in streams: Deliveries::remove() removes both.
  Result<void> remove(const std::string& region, const std::string& id);

  // Changes the tags of a source, destination or delivery; an error of `change` changes nothing.
  using ChangeTags = std::function<Result<void>(std::map<std::string, std::string>&)>;
  Result<void> change_tags(const std::string& region, observe::DefinitionKind kind,
                           const std::string& name, const ChangeTags& change);
  Result<std::map<std::string, std::string>> tags(const std::string& region,
                                                  observe::DefinitionKind kind,
                                                  const std::string& name);

  // Returns the service in the ARN of the source's resource: "sagemaker".
  static std::string service_of(const DeliverySource& source);
  // Returns the streams that have the source's logs. Returns nullopt if neither this server nor its
  // configuration has the resource.
  std::optional<SourceStreams> streams_of(const std::string& region,
                                          const DeliverySource& source) const;
  // Returns the type of a destination with this resource. Errors: invalid.
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
  Result<void> check_no_cycle(const GroupName& from, const GroupName& to) REQUIRES(changing_);
  Result<std::vector<std::pair<GroupName, GroupName>>> edges() REQUIRES(changing_);

  observe::Logs& logs_;
  objects::Objects& objects_;
  const LogTargets& targets_;
  const std::vector<ExternalSource> external_;
  Random& random_;
  Mutex changing_;  // held during a change, including its checks
};

}  // namespace trainyard::log_routing
