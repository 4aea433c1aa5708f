// Implements CloudTrail's LookupEvents, which reads the audit log.
#include "shapes/cloudtrail.hpp"

#include "audit/audit.hpp"
#include "observe/audit_chain.hpp"

namespace trainyard::api {
namespace {

namespace aws = shapes::cloudtrail;
using observe::AuditAttribute;

constexpr std::pair<std::string_view, AuditAttribute> kAttributes[] = {
    {"EventId", AuditAttribute::event_id},
    {"EventName", AuditAttribute::event_name},
    {"ReadOnly", AuditAttribute::read_only},
    {"Username", AuditAttribute::username},
    {"ResourceType", AuditAttribute::resource_type},
    {"ResourceName", AuditAttribute::resource_name},
    {"EventSource", AuditAttribute::event_source},
    {"AccessKeyId", AuditAttribute::access_key_id},
};

Failure invalid_lookup(std::string_view what, std::string message) {
  return {400, "Invalid" + std::string(what) + "Exception", std::move(message)};
}

aws::Event view_of(const Json& record) {
  aws::Event event;
  event.event_id = string_or(record, "eventID");
  event.event_name = string_or(record, "eventName");
  event.event_source = string_or(record, "eventSource");
  event.read_only = record.value("readOnly", false) ? "true" : "false";
  event.username = observe::username_of(record);
  if (const auto at = parse_iso8601(string_or(record, "eventTime"))) event.event_time = *at;
  if (const auto identity = record.find("userIdentity");
      identity != record.end() && identity->is_object())
    event.access_key_id = string_or(*identity, "accessKeyId");
  event.resources.emplace();
  if (const auto resources = record.find("resources");
      resources != record.end() && resources->is_array())
    for (const Json& one : *resources) {
      if (!one.is_object()) continue;
      aws::Resource& resource = event.resources->emplace_back();
      resource.resource_type = string_or(one, "type");
      resource.resource_name = string_or(one, "ARN");
    }
  event.cloud_trail_event = dump(record);
  return event;
}

Outcome<observe::AuditQuery> query_of(const aws::LookupEventsRequest& in) {
  observe::AuditQuery query;
  query.filter.from = in.start_time;
  query.filter.to = in.end_time;
  if (in.start_time && in.end_time && *in.start_time > *in.end_time)
    return invalid_lookup("TimeRange", "The start time is after the end time.");
  if (in.lookup_attributes && in.lookup_attributes->size() > 1)
    return invalid_lookup("LookupAttributes", "You can specify only one lookup attribute.");
  if (in.lookup_attributes && !in.lookup_attributes->empty()) {
    const auto& wanted = in.lookup_attributes->front();
    for (const auto& [name, attribute] : kAttributes)
      if (name == *wanted.attribute_key)
        query.filter.attribute = {attribute, *wanted.attribute_value};
  }
  if (in.max_results) query.count_max = size_t(*in.max_results);
  if (in.next_token) query.token = *in.next_token;
  return query;
}

}  // namespace

void add_cloudtrail(OperationTable& table, observe::AuditLog* audit) {
  table.add<aws::LookupEvents>(
      [audit](const Context&,
              const aws::LookupEventsRequest& in) -> Outcome<aws::LookupEventsResponse> {
        aws::LookupEventsResponse out;
        out.events.emplace();
        auto query = TRY(query_of(in));
        if (!audit) return out;
        TRY(audit->flush());
        const auto page = audit->lookup(query);
        if (!page && page.error().kind == Kind::invalid)
          return invalid_lookup(
              "NextToken", "A token that was not returned by this server: " + page.error().message);
        if (!page) return page.error();
        for (const Json& record : page->events) out.events->push_back(view_of(record));
        if (!page->next_token.empty()) out.next_token = page->next_token;
        return out;
      });
}

}  // namespace trainyard::api
