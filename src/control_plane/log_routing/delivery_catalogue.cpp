#include "log_routing/delivery_catalogue.hpp"

#include <algorithm>
#include <set>

#include "contract/aws_texts.hpp"
#include "log_routing/delivery_format.hpp"

namespace trainyard::log_routing {
namespace {

using observe::DefinitionKind;

constexpr const char* kGroupLogType = "APPLICATION_LOGS";  // the type of groups and training jobs
constexpr size_t kPrefixBytesMax = 512;  // with the path below it, a key fits into 1,024 bytes
constexpr size_t kTagsMax = 50;          // of a resource, as on AWS
constexpr size_t kIdBytes = 8;

// RecordTraits defines the stored kind of a type of record, and the error for unknown names.
template <class Record>
struct RecordTraits;
template <>
struct RecordTraits<DeliverySource> {
  static constexpr auto kKind = DefinitionKind::delivery_source;
  static constexpr size_t kCountMax = kDeliverySourcesMax;
  static constexpr const char* kUnknown =
      "Requested Delivery Source does not exist in this account.";
};
template <>
struct RecordTraits<DeliveryDestination> {
  static constexpr auto kKind = DefinitionKind::delivery_destination;
  static constexpr size_t kCountMax = kDeliveryDestinationsMax;
  static constexpr const char* kUnknown =
      "Requested Delivery Destination does not exist in this account.";
};
template <>
struct RecordTraits<LogDelivery> {
  static constexpr auto kKind = DefinitionKind::delivery;
  static constexpr size_t kCountMax = kDeliveriesMax;
  static constexpr const char* kUnknown = "Requested Delivery does not exist in this account.";
};

// Returns part `number`, from 0, of an ARN: arn:aws:SERVICE:REGION:ACCOUNT:RESOURCE.
std::string_view arn_part(std::string_view arn, int number) {
  for (int i = 0; i < number; ++i) {
    const size_t colon = arn.find(':');
    if (colon == std::string_view::npos) return {};
    arn.remove_prefix(colon + 1);
  }
  return number == 5 ? arn : arn.substr(0, arn.find(':'));
}

// Returns whether a path of edges leads from `start` to `end`.
bool leads_to(const std::vector<std::pair<GroupName, GroupName>>& edges, const GroupName& start,
              const GroupName& end) {
  std::set<GroupName> seen;
  std::vector<GroupName> to_visit{start};
  while (!to_visit.empty()) {
    const GroupName group = std::move(to_visit.back());
    to_visit.pop_back();
    if (group == end) return true;
    if (!seen.insert(group).second) continue;
    for (const auto& [from, to] : edges)
      if (from == group) to_visit.push_back(to);
  }
  return false;
}

}  // namespace

DeliveryCatalogue::DeliveryCatalogue(observe::Logs& logs, objects::Objects& objects,
                                     const LogTargets& targets,
                                     std::vector<ExternalSource> external, Random& random)
    : logs_(logs),
      objects_(objects),
      targets_(targets),
      external_(std::move(external)),
      random_(random) {}

template <class Record>
Result<Record> DeliveryCatalogue::find(const std::string& region, const std::string& name) {
  const auto found = TRY(logs_.definitions().find(region, RecordTraits<Record>::kKind, "", name));
  if (!found) return not_found(RecordTraits<Record>::kUnknown);
  return Record::from(found->body);
}

template <class Record>
Result<NamedRecords<Record>> DeliveryCatalogue::list(const std::string& region) {
  NamedRecords<Record> out;
  for (const auto& each : TRY(logs_.definitions().list(region, RecordTraits<Record>::kKind, "")))
    out.emplace_back(each.name, TRY(Record::from(each.body)));
  return out;
}

template <class Record>
Result<void> DeliveryCatalogue::put(const std::string& region, const std::string& name,
                                    const Record& record) {
  return logs_.definitions().put(region, RecordTraits<Record>::kKind, {"", name, record.text()},
                                 RecordTraits<Record>::kCountMax);
}

// -- sources

std::string DeliveryCatalogue::service_of(const DeliverySource& source) {
  return std::string(arn_part(source.resource_arn, 2));
}

std::optional<SourceStreams> DeliveryCatalogue::streams_of(const std::string& region,
                                                           const DeliverySource& source) const {
  const std::string& arn = source.resource_arn;
  for (const ExternalSource& each : external_)
    if (each.arn == arn) return SourceStreams{each.group, ""};
  if (const auto group = targets_.group_of(arn); group && group->region == region)
    return SourceStreams{group->group, ""};
  const std::string jobs = contract::training_job_arn(targets_.account(), region, "");
  if (arn.starts_with(jobs) && arn.size() > jobs.size())
    return SourceStreams{std::string(contract::kTrainingLogGroup), arn.substr(jobs.size()) + "/"};
  return {};
}

Result<void> DeliveryCatalogue::check_source(const std::string& region,
                                             const DeliverySource& source) {
  const auto streams = streams_of(region, source);
  if (!streams)
    return not_found(
        "Resource " + source.resource_arn +
        " does not exist. (A delivery source is a log group or a training job of this server, or a "
        "resource in [log_sources] of its configuration.)");
  const auto external = std::ranges::find(external_, source.resource_arn, &ExternalSource::arn);
  const std::string log_type = external == external_.end() ? kGroupLogType : external->log_type;
  if (source.log_type != log_type)
    return invalid("Log type " + source.log_type + " is not supported for " + source.resource_arn +
                   ". Supported: " + log_type + ".");
  if (external != external_.end()) return ok();  // clients may create its group later
  if (streams->stream_prefix.empty()) {
    TRY(logs_.group(region, streams->group));
    return ok();
  }
  auto found = logs_.streams(region, streams->group, streams->stream_prefix);
  if (found && found->empty())
    return not_found("Resource " + source.resource_arn + " does not exist, or has no logs yet.");
  if (!found) return std::move(found).error();
  return ok();
}

Result<void> DeliveryCatalogue::put_source(const std::string& region, const std::string& name,
                                           DeliverySource source) {
  const MutexLock lock(changing_);
  auto before = find<DeliverySource>(region, name);
  if (!before && before.error().kind != Kind::not_found) return std::move(before).error();
  if (before && before->resource_arn != source.resource_arn)
    return conflict(
        "Update to existing Delivery Source with new ResourceId is not allowed. Please create a "
        "new Delivery Source instead.");
  TRY(check_source(region, source));
  if (before && source.tags.empty()) source.tags = before->tags;
  return put(region, name, source);
}

Result<DeliverySource> DeliveryCatalogue::source(const std::string& region,
                                                 const std::string& name) {
  return find<DeliverySource>(region, name);
}

Result<NamedRecords<DeliverySource>> DeliveryCatalogue::sources(const std::string& region) {
  return list<DeliverySource>(region);
}

Result<void> DeliveryCatalogue::remove_source(const std::string& region, const std::string& name) {
  const MutexLock lock(changing_);
  TRY(find<DeliverySource>(region, name));
  for (const auto& [id, each] : TRY(list<LogDelivery>(region)))
    if (each.source == name)
      return conflict("Delivery Source " + name + " is used by the delivery " + id +
                      ". Delete that first.");
  return logs_.definitions().remove(region, DefinitionKind::delivery_source, "", name);
}

// -- destinations

Result<DeliveryType> DeliveryCatalogue::type_of(const std::string& resource_arn) const {
  if (resource_arn.starts_with(contract::kBucketArnStart)) {
    if (TRY(parse_bucket_arn(resource_arn)).prefix.size() > kPrefixBytesMax)
      return invalid("Invalid destinationResourceArn: the prefix after the bucket has more than " +
                     std::to_string(kPrefixBytesMax) + " bytes.");
    return DeliveryType::s3;
  }
  const auto target = targets_.find(resource_arn);
  if (!target)
    return invalid(
        "Invalid destinationResourceArn: " + resource_arn +
        ". (A delivery destination is a bucket or a log group of this server, or a webhook of its "
        "configuration.)");
  return target->webhook.empty() ? DeliveryType::log_group : DeliveryType::webhook;
}

Result<std::vector<std::pair<GroupName, GroupName>>> DeliveryCatalogue::edges() {
  std::vector<std::pair<GroupName, GroupName>> out;
  for (const auto& [region, stored] : TRY(logs_.definitions().all(DefinitionKind::delivery))) {
    const auto delivery = TRY(LogDelivery::from(stored.body));
    const auto from = streams_of(region, TRY(find<DeliverySource>(region, delivery.source)));
    const auto to = targets_.group_of(
        TRY(find<DeliveryDestination>(region, delivery.destination)).resource_arn);
    if (from && to) out.emplace_back(GroupName{region, from->group}, *to);
  }
  return out;
}

Result<void> DeliveryCatalogue::check_no_cycle(const GroupName& from, const GroupName& to) {
  if (leads_to(TRY(edges()), to, from))
    return invalid("Cannot deliver log group " + from.group + " to log group " + to.group +
                   ": with the existing deliveries from " + to.group + " to " + from.group +
                   ", it would form a cycle. Choose another destination.");
  return ok();
}

Result<DeliveryDestination> DeliveryCatalogue::put_destination(const std::string& region,
                                                               const std::string& name,
                                                               DeliveryDestination destination) {
  const MutexLock lock(changing_);
  auto before = find<DeliveryDestination>(region, name);
  if (!before && before.error().kind != Kind::not_found) return std::move(before).error();
  destination.type = TRY(type_of(destination.resource_arn));
  if (before) {
    if (destination.format && destination.format != before->format)
      return invalid(
          "Update to existing Delivery Destination with new Output Format is not allowed. Please "
          "create a new Delivery Destination instead.");
    if (destination.type != before->type)
      return invalid(
          "Update to existing Delivery Destination with another type of resource is not allowed. "
          "Please create a new Delivery Destination instead.");
    destination.format = before->format;
    destination.policy = before->policy;
    if (destination.tags.empty()) destination.tags = before->tags;
    if (const auto to = targets_.group_of(destination.resource_arn))
      for (const auto& [id, each] : TRY(list<LogDelivery>(region))) {
        if (each.destination != name) continue;
        const auto from = streams_of(region, TRY(find<DeliverySource>(region, each.source)));
        if (from) TRY(check_no_cycle({region, from->group}, *to));
      }
  }
  TRY(put(region, name, destination));
  return destination;
}

Result<DeliveryDestination> DeliveryCatalogue::destination(const std::string& region,
                                                           const std::string& name) {
  return find<DeliveryDestination>(region, name);
}

Result<NamedRecords<DeliveryDestination>> DeliveryCatalogue::destinations(
    const std::string& region) {
  return list<DeliveryDestination>(region);
}

Result<void> DeliveryCatalogue::set_policy(const std::string& region, const std::string& name,
                                           const std::string& policy) {
  const MutexLock lock(changing_);
  auto destination = TRY(find<DeliveryDestination>(region, name));
  destination.policy = policy;
  return put(region, name, destination);
}

Result<void> DeliveryCatalogue::remove_destination(const std::string& region,
                                                   const std::string& name) {
  const MutexLock lock(changing_);
  TRY(find<DeliveryDestination>(region, name));
  for (const auto& [id, each] : TRY(list<LogDelivery>(region)))
    if (each.destination == name)
      return conflict("Delivery Destination " + name + " is used by the delivery " + id +
                      ". Delete that first.");
  return logs_.definitions().remove(region, DefinitionKind::delivery_destination, "", name);
}

// -- deliveries

Result<std::string> DeliveryCatalogue::create(const std::string& region, LogDelivery delivery) {
  const MutexLock lock(changing_);
  const auto source = TRY(find<DeliverySource>(region, delivery.source));
  const auto destination = TRY(find<DeliveryDestination>(region, delivery.destination));
  TRY(check_source(region, source));
  TRY(check_options(delivery.options));
  for (const auto& [id, each] : TRY(list<LogDelivery>(region)))
    if (each.source == delivery.source &&
        TRY(find<DeliveryDestination>(region, each.destination)).type == destination.type)
      return conflict(
          "Delivery already exists for this Delivery Source with the same Delivery Destination "
          "Type.");
  if (destination.type == DeliveryType::s3) {
    const auto place = TRY(parse_bucket_arn(destination.resource_arn));
    auto bucket = objects_.head_bucket(place.bucket);
    if (!bucket && bucket.error().kind != Kind::not_found) return std::move(bucket).error();
    if (!bucket)
      return not_found("The bucket " + place.bucket + " of the Delivery Destination " +
                       delivery.destination + " does not exist.");
  }
  if (const auto to = targets_.group_of(destination.resource_arn)) {
    TRY(logs_.group(to->region, to->group));
    TRY(check_no_cycle({region, streams_of(region, source)->group}, *to));
  }
  const std::string id = random_.hex(kIdBytes);
  TRY(put(region, id, delivery));
  return id;
}

Result<LogDelivery> DeliveryCatalogue::delivery(const std::string& region, const std::string& id) {
  return find<LogDelivery>(region, id);
}

Result<NamedRecords<LogDelivery>> DeliveryCatalogue::deliveries(const std::string& region) {
  return list<LogDelivery>(region);
}

Result<void> DeliveryCatalogue::update(const std::string& region, const std::string& id,
                                       const std::function<void(DeliveryOptions&)>& change) {
  const MutexLock lock(changing_);
  auto delivery = TRY(find<LogDelivery>(region, id));
  change(delivery.options);
  TRY(check_options(delivery.options));
  return put(region, id, delivery);
}

Result<void> DeliveryCatalogue::remove(const std::string& region, const std::string& id) {
  const MutexLock lock(changing_);
  TRY(find<LogDelivery>(region, id));
  return logs_.definitions().remove(region, DefinitionKind::delivery, "", id);
}

// -- tags

template <class Record>
Result<void> DeliveryCatalogue::change_tags_of(const std::string& region, const std::string& name,
                                               const ChangeTags& change) {
  auto record = TRY(find<Record>(region, name));
  TRY(change(record.tags));
  if (record.tags.size() > kTagsMax)
    return exhausted("A resource can have at most " + std::to_string(kTagsMax) + " tags.");
  return put(region, name, record);
}

Result<void> DeliveryCatalogue::change_tags(const std::string& region, DefinitionKind kind,
                                            const std::string& name, const ChangeTags& change) {
  const MutexLock lock(changing_);
  if (kind == DefinitionKind::delivery_source)
    return change_tags_of<DeliverySource>(region, name, change);
  if (kind == DefinitionKind::delivery_destination)
    return change_tags_of<DeliveryDestination>(region, name, change);
  return change_tags_of<LogDelivery>(region, name, change);
}

Result<std::map<std::string, std::string>> DeliveryCatalogue::tags(const std::string& region,
                                                                   DefinitionKind kind,
                                                                   const std::string& name) {
  if (kind == DefinitionKind::delivery_source) return TRY(source(region, name)).tags;
  if (kind == DefinitionKind::delivery_destination) return TRY(destination(region, name)).tags;
  return TRY(delivery(region, name)).tags;
}

}  // namespace trainyard::log_routing
