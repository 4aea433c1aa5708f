// Implements the queries of Logs Insights, which run in the background.
#include <algorithm>
#include <map>

#include "base/text.hpp"
#include "insights/parser.hpp"
#include "insights/queries.hpp"
#include "logs/common.hpp"
#include "shapes/logs.hpp"

namespace trainyard::api::logs {
namespace {

namespace aws = shapes::logs;

constexpr size_t kGroupsMax = 50;
// How long StartQuery waits for the query, which saves clients of short queries a poll.
constexpr Duration kStartWait = 200ms;
constexpr int64_t kMillisecondsFrom = 100'000'000'000;  // as seconds, it is the year 5138
constexpr Duration kFieldsSpan = 15min;                 // read by GetLogGroupFields, as on AWS
constexpr size_t kFieldsEventsMax = 10'000;

constexpr std::pair<insights::QueryState, const char*> kStates[] = {
    {insights::QueryState::scheduled, "Scheduled"}, {insights::QueryState::running, "Running"},
    {insights::QueryState::complete, "Complete"},   {insights::QueryState::failed, "Failed"},
    {insights::QueryState::cancelled, "Cancelled"}, {insights::QueryState::timed_out, "Timeout"}};

const char* state_text(insights::QueryState state) {
  return std::ranges::find(kStates, state, [](const auto& each) { return each.first; })->second;
}

Failure no_query() { return resource_not_found("The specified query does not exist."); }

Failure malformed(const std::string& text, const insights::QueryFault& fault) {
  Failure failure{400, "MalformedQueryException", insights::describe_fault(text, fault)};
  failure.json_members =
      "\"queryCompileError\":" +
      dump({{"location", {{"startCharOffset", fault.begin}, {"endCharOffset", fault.end}}},
            {"message", fault.message}});
  return failure;
}

// Reads a time: clients send seconds or milliseconds.
Instant query_time(int64_t time) {
  constexpr int64_t kLast = 253'402'300'799'000;  // the year 9999
  return from_milliseconds(std::min(time < kMillisecondsFrom ? time * 1000 : time, kLast));
}

Outcome<std::vector<std::string>> groups_of(const Context& context,
                                            const aws::StartQueryRequest& in) {
  if (int(in.log_group_name.has_value()) + int(in.log_group_names.has_value()) +
          int(in.log_group_identifiers.has_value()) !=
      1)
    return invalid_parameter(
        "Exactly one of logGroupName, logGroupNames and logGroupIdentifiers must be specified.");
  std::vector<std::string> groups;
  if (in.log_group_name) groups.push_back(*in.log_group_name);
  if (in.log_group_names) groups = *in.log_group_names;
  if (in.log_group_identifiers)
    for (const std::string& identifier : *in.log_group_identifiers)
      groups.push_back(TRY(group_of(context, {}, identifier)));
  if (groups.empty() || groups.size() > kGroupsMax)
    return invalid_parameter("A query reads between 1 and " + std::to_string(kGroupsMax) +
                             " log groups.");
  std::ranges::sort(groups);
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  return groups;
}

Outcome<aws::StartQueryResponse> start_query(observe::Logs& logs, insights::Queries& queries,
                                             const Context& context,
                                             const aws::StartQueryRequest& in) {
  if (in.query_language.value_or("CWLI") != "CWLI")
    return invalid_parameter(
        "queryLanguage: only CWLI, the language of Logs Insights, is offered.");
  const auto groups = TRY(groups_of(context, in));
  for (const std::string& group : groups) TRY_LOGS(logs.group(context.region, group));
  if (*in.end_time < *in.start_time)
    return invalid_parameter("The end time must not be before the start time.");
  auto parsed = insights::parse_query(*in.query_string);
  if (const auto* fault = std::get_if<insights::QueryFault>(&parsed))
    return malformed(*in.query_string, *fault);
  insights::QueryRequest request{
      .region = context.region,
      .account = context.principal.account,
      .principal = context.principal.name,
      .principal_arn = context.principal.arn,
      .groups = groups,
      .text = *in.query_string,
      .query =
          std::make_shared<const insights::Query>(std::get<insights::Query>(std::move(parsed))),
      .from = query_time(*in.start_time),
      .to = query_time(*in.end_time),
      .rows_max = size_t(in.limit.value_or(int64_t(insights::kRowsMax)))};
  // An end in seconds includes the whole second.
  if (*in.end_time < kMillisecondsFrom) request.to += 999ms;
  auto id = queries.start(std::move(request));
  if (!id && id.error().kind == Kind::exhausted) return limit_exceeded(id.error().message);
  if (!id) return std::move(id).error();
  queries.wait(*id, kStartWait);
  return aws::StartQueryResponse{.query_id = *std::move(id)};
}

// Finds a query. Queries of other principals are unknown, except to the owner.
Outcome<insights::QueryReport> own_query(insights::Queries& queries, const Context& context,
                                         const std::string& id) {
  auto report = queries.find(id);
  if (!report || report->request.region != context.region) return no_query();
  if (!context.principal.owner() && report->request.principal != context.principal.name)
    return no_query();
  return *std::move(report);
}

Outcome<aws::GetQueryResultsResponse> query_results(insights::Queries& queries,
                                                    const Context& context,
                                                    const aws::GetQueryResultsRequest& in) {
  const auto report = TRY(own_query(queries, context, *in.query_id));
  aws::GetQueryResultsResponse out{.query_language = "CWLI", .status = state_text(report.state)};
  const auto& statistics = report.statistics;
  out.statistics = {.records_matched = double(statistics.matched),
                    .records_scanned = double(statistics.scanned),
                    .estimated_records_skipped = double(statistics.skipped),
                    .bytes_scanned = double(statistics.scanned_bytes),
                    .estimated_bytes_skipped = 0.0,
                    .log_groups_scanned = double(report.request.groups.size())};
  out.results.emplace();
  if (!report.rows) return out;
  out.statistics->result_count = double(report.rows->size());
  size_t first = 0;
  if (in.next_token) {
    const auto place = TRY(list_position(*in.next_token));
    if (place.at < 0 || size_t(place.at) > report.rows->size()) return invalid_parameter(kBadToken);
    first = size_t(place.at);
  }
  const size_t wanted = size_t(in.max_items.value_or(int64_t(insights::kRowsMax)));
  const size_t end =
      std::min(report.rows->size(), first + (wanted == 0 ? insights::kRowsMax : wanted));
  for (size_t i = first; i < end; ++i) {
    auto& row = out.results->emplace_back();
    for (const auto& [name, text] : (*report.rows)[i]) row.push_back({name, text});
  }
  if (end < report.rows->size()) out.next_token = list_token({int64_t(end), ""});
  return out;
}

Outcome<aws::DescribeQueriesResponse> describe_queries(insights::Queries& queries,
                                                       const Context& context,
                                                       const aws::DescribeQueriesRequest& in) {
  aws::DescribeQueriesResponse out;
  out.queries.emplace();
  if (in.query_language.value_or("CWLI") != "CWLI") return out;
  size_t skip = 0;
  if (in.next_token) skip = size_t(std::max<int64_t>(0, TRY(list_position(*in.next_token)).at));
  const size_t limit = size_t(in.max_results.value_or(1000));
  size_t seen = 0;
  for (const auto& report : queries.list(context.region)) {
    const auto& request = report.request;
    if (!context.principal.owner() && request.principal != context.principal.name) continue;
    if (in.log_group_name &&
        std::ranges::find(request.groups, *in.log_group_name) == request.groups.end())
      continue;
    if (in.status && *in.status != state_text(report.state)) continue;
    if (seen++ < skip) continue;
    if (out.queries->size() == limit) {
      out.next_token = list_token({int64_t(skip + limit), ""});
      break;
    }
    out.queries->push_back({.query_language = "CWLI",
                            .query_id = report.id,
                            .query_string = request.text,
                            .status = state_text(report.state),
                            .create_time = to_milliseconds(report.created),
                            .log_group_name = request.groups.front(),
                            .query_duration = report.took.count(),
                            .bytes_scanned = double(report.statistics.scanned_bytes),
                            .user_identity = request.principal_arn});
    if (out.queries->back().user_identity->empty()) out.queries->back().user_identity.reset();
  }
  return out;
}

Outcome<aws::GetLogRecordResponse> log_record(observe::Logs& logs, const Context& context,
                                              const aws::GetLogRecordRequest& in) {
  const auto event = TRY_LOGS(insights::find_record(logs, context.region, context.principal.account,
                                                    *in.log_record_pointer));
  aws::GetLogRecordResponse out;
  auto& record = out.log_record.emplace();
  for (const auto& [name, value] : insights::discover_fields(event.message))
    record.emplace(name, value.text());
  record.insert_or_assign("@message", event.message);
  record.insert_or_assign("@timestamp", std::to_string(event.at));
  record.insert_or_assign("@ingestionTime", std::to_string(event.ingested));
  record.insert_or_assign("@logStream", event.stream);
  record.insert_or_assign("@log", event.log);
  record.insert_or_assign("@ptr", *in.log_record_pointer);
  return out;
}

Outcome<aws::GetLogGroupFieldsResponse> group_fields(observe::Logs& logs, const Context& context,
                                                     const aws::GetLogGroupFieldsRequest& in) {
  const auto group = TRY(group_of(context, in.log_group_name, in.log_group_identifier));
  observe::FilterQuery query{.events_max = kFieldsEventsMax};
  // Around the given time, or before now.
  const Instant middle = in.time ? query_time(*in.time) : context.now - kFieldsSpan / 2;
  query.from = middle - kFieldsSpan / 2;
  query.to = middle + kFieldsSpan / 2 + 1ms;
  const auto page = TRY_LOGS(logs.filter(context.region, group, query));
  std::map<std::string, size_t> counts;
  for (const auto& found : page.events)
    for (const auto& [name, value] : insights::discover_fields(found.event.message))
      if (counts.size() < insights::kFieldsMax || counts.contains(name)) ++counts[name];
  if (!page.events.empty())
    for (const char* own : {"@message", "@timestamp", "@ingestionTime", "@logStream", "@log"})
      counts[own] = page.events.size();
  aws::GetLogGroupFieldsResponse out;
  out.log_group_fields.emplace();
  for (const auto& [name, count] : counts)
    out.log_group_fields->push_back(
        {.name = name, .percent = int64_t(count * 100 / page.events.size())});
  std::ranges::stable_sort(*out.log_group_fields,
                           [](const auto& a, const auto& b) { return *a.percent > *b.percent; });
  return out;
}

}  // namespace

void add_queries(OperationTable& table, const Services& services) {
  observe::Logs& logs = services.logs;
  table.add<aws::GetLogRecord>(
      [&logs](const Context& context, const auto& in) { return log_record(logs, context, in); });
  table.add<aws::GetLogGroupFields>(
      [&logs](const Context& context, const auto& in) { return group_fields(logs, context, in); });
  if (!services.queries) return;
  insights::Queries& queries = *services.queries;
  table.add<aws::StartQuery>([&logs, &queries](const Context& context, const auto& in) {
    return start_query(logs, queries, context, in);
  });
  table.add<aws::GetQueryResults>([&queries](const Context& context, const auto& in) {
    return query_results(queries, context, in);
  });
  table.add<aws::DescribeQueries>([&queries](const Context& context, const auto& in) {
    return describe_queries(queries, context, in);
  });
  table.add<aws::StopQuery>(
      [&queries](const Context& context,
                 const aws::StopQueryRequest& in) -> Outcome<aws::StopQueryResponse> {
        TRY(own_query(queries, context, *in.query_id));
        const auto stopped = queries.stop(*in.query_id);
        if (!stopped) return no_query();
        if (!*stopped) return invalid_parameter("Query is not running and cannot be stopped.");
        return aws::StopQueryResponse{.success = true};
      });
}

}  // namespace trainyard::api::logs
