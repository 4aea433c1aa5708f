// Implements the operations on log streams and log events. Two habits of clients explain the
// tokens:
//
// SDKs list the streams of a job repeatedly without the token that they received, so a list by
// prefix returns all streams and no token. A client that follows a stream stops when it receives
// the same token again, so GetLogEvents always returns both tokens.
#include "shapes/logs.hpp"

#include <algorithm>
#include <cstdio>

#include "base/text.hpp"
#include "logs/common.hpp"
#include "logs/operations.hpp"

namespace trainyard::api::logs {
namespace {

namespace aws = shapes::logs;

// Limits that AWS documents, but that its model lacks.
constexpr size_t kEventBytesMax = 256 << 10;
constexpr size_t kPutBytesMax = 1 << 20;
constexpr size_t kEventOverheadBytes = 26;
constexpr Duration kPutSpanMax = 24h;
constexpr Duration kTooNew = 2h;
constexpr Duration kTooOld = 14 * 24h;
constexpr size_t kEventsDefault = 10'000;

std::optional<int64_t> milliseconds(const std::optional<Instant>& instant) {
  if (!instant) return {};
  return to_milliseconds(*instant);
}

std::optional<Instant> instant_of(const std::optional<int64_t>& milliseconds) {
  if (!milliseconds) return {};
  return from_milliseconds(*milliseconds);
}

// -- tokens

std::string event_token(char direction, uint64_t position) {
  char text[64];
  std::snprintf(text, sizeof text, "%c/%056llu", direction,
                static_cast<unsigned long long>(position));
  return text;
}

std::optional<uint64_t> position_of(std::string_view token) {
  if (token.size() != 58 || token[1] != '/') return {};
  const auto number = parse_int(token.substr(2));
  if (!number || *number < 0) return {};
  return uint64_t(*number);
}

// As on AWS, the token of a list by name is "GROUP@STREAM", the last stream of a page. A token of
// another group has no next page: "".
std::string stream_in_token(const std::string& group, const std::string& token) {
  return token.starts_with(group + "@") ? token.substr(group.size() + 1) : "";
}

// -- operations

Outcome<aws::DescribeLogStreamsResponse> describe_streams(
    observe::Logs& logs, const Context& context, const aws::DescribeLogStreamsRequest& in) {
  const auto group = TRY(group_of(context, in.log_group_name, in.log_group_identifier));
  const bool by_time = in.order_by.value_or("LogStreamName") == "LastEventTime";
  const bool by_prefix = in.log_stream_name_prefix.has_value();
  if (by_time && by_prefix)
    return invalid_parameter("Cannot order by LastEventTime with a logStreamNamePrefix.");
  auto streams =
      TRY_LOGS(logs.streams(context.region, group, in.log_stream_name_prefix.value_or("")));

  const auto place_of = [&](const observe::LogStreamInfo& stream) {
    return ListPosition{by_time && stream.last_event ? to_milliseconds(*stream.last_event) : 0,
                        stream.name};
  };
  const auto before = [&](const ListPosition& a, const ListPosition& b) {
    const bool less = std::tie(a.at, a.name) < std::tie(b.at, b.name);
    const bool greater = std::tie(b.at, b.name) < std::tie(a.at, a.name);
    return in.descending.value_or(false) ? greater : less;
  };
  std::ranges::sort(streams,
                    [&](const auto& a, const auto& b) { return before(place_of(a), place_of(b)); });

  aws::DescribeLogStreamsResponse out;
  if (!by_prefix) {
    if (in.next_token) {
      const auto place = by_time ? TRY(list_position(*in.next_token))
                                 : ListPosition{0, stream_in_token(group, *in.next_token)};
      std::erase_if(streams, [&](const auto& stream) { return !before(place, place_of(stream)); });
      if (place.name.empty()) streams.clear();
    }
    if (const size_t limit = size_t(in.limit.value_or(kListDefault)); streams.size() > limit) {
      streams.resize(limit);
      out.next_token =
          by_time ? list_token(place_of(streams.back())) : group + "@" + streams.back().name;
    }
  }
  out.log_streams.emplace();
  for (const auto& stream : streams)
    out.log_streams->push_back({.log_stream_name = stream.name,
                                .creation_time = to_milliseconds(stream.created),
                                .first_event_timestamp = milliseconds(stream.first_event),
                                .last_event_timestamp = milliseconds(stream.last_event),
                                .last_ingestion_time = milliseconds(stream.last_ingestion),
                                .arn = group_arn(context, group) + ":log-stream:" + stream.name,
                                .stored_bytes = int64_t(stream.stored_bytes)});
  return out;
}

Outcome<aws::GetLogEventsResponse> get_events(observe::Logs& logs, const Context& context,
                                              const aws::GetLogEventsRequest& in) {
  const auto group = TRY(group_of(context, in.log_group_name, in.log_group_identifier));
  observe::ReadQuery query{.from = instant_of(in.start_time),
                           .to = instant_of(in.end_time),
                           .forward = in.start_from_head.value_or(false),
                           .events_max = size_t(in.limit.value_or(kEventsDefault))};
  if (in.next_token) {
    query.position = position_of(*in.next_token);
    if (!query.position || ((*in.next_token)[0] != 'f' && (*in.next_token)[0] != 'b'))
      return invalid_parameter(kBadToken);
    query.forward = (*in.next_token)[0] == 'f';
  }
  auto page = logs.read({context.region, group, *in.log_stream_name}, query);
  if (!page && page.error().kind == Kind::invalid) return invalid_parameter(kBadToken);
  auto found = TRY_LOGS(std::move(page));
  aws::GetLogEventsResponse out;
  out.events.emplace();
  out.events->reserve(found.events.size());
  for (auto& event : found.events)
    out.events->push_back({.timestamp = to_milliseconds(event.at),
                           .message = std::move(event.message),
                           .ingestion_time = to_milliseconds(event.ingested)});
  out.next_forward_token = event_token('f', found.end);
  out.next_backward_token = event_token('b', found.begin);
  return out;
}

Outcome<aws::FilterLogEventsResponse> filter_events(observe::Logs& logs, const Context& context,
                                                    const aws::FilterLogEventsRequest& in) {
  const auto group = TRY(group_of(context, in.log_group_name, in.log_group_identifier));
  if (in.log_stream_names && in.log_stream_name_prefix)
    return invalid_parameter("logStreamNames and logStreamNamePrefix cannot both be specified.");
  if (!in.start_from_head.value_or(true))
    return invalid_parameter("startFromHead: only true, the earliest events first, is supported.");
  observe::FilterQuery query{.streams = in.log_stream_names.value_or(std::vector<std::string>{}),
                             .stream_prefix = in.log_stream_name_prefix.value_or(""),
                             .pattern = in.filter_pattern.value_or(""),
                             .from = instant_of(in.start_time),
                             .token = in.next_token.value_or(""),
                             .events_max = size_t(in.limit.value_or(kEventsDefault))};
  // Unlike in GetLogEvents, the range includes its end.
  if (in.end_time && *in.end_time < INT64_MAX) query.to = from_milliseconds(*in.end_time + 1);
  auto page = TRY_LOGS(logs.filter(context.region, group, query));
  aws::FilterLogEventsResponse out;
  out.events.emplace();
  out.events->reserve(page.events.size());
  for (auto& found : page.events)
    out.events->push_back({.log_stream_name = std::move(found.stream),
                           .timestamp = to_milliseconds(found.event.at),
                           .message = std::move(found.event.message),
                           .ingestion_time = to_milliseconds(found.event.ingested),
                           .event_id = std::move(found.id)});
  out.searched_log_streams.emplace();
  if (!page.next_token.empty()) out.next_token = page.next_token;
  return out;
}

Outcome<aws::PutLogEventsResponse> put_events(observe::Logs& logs, const Context& context,
                                              const aws::PutLogEventsRequest& in) {
  const auto& events = *in.log_events;
  size_t bytes = 0;
  for (size_t i = 0; i < events.size(); ++i) {
    const size_t event_bytes = events[i].message->size() + kEventOverheadBytes;
    if (event_bytes > kEventBytesMax)
      return invalid_parameter("Log event too large: " + std::to_string(event_bytes) +
                               " bytes exceeds limit of " + std::to_string(kEventBytesMax));
    bytes += event_bytes;
    if (i > 0 && *events[i].timestamp < *events[i - 1].timestamp)
      return invalid_parameter(
          "Log events in a single PutLogEvents request must be in chronological order.");
  }
  if (bytes > kPutBytesMax)
    return invalid_parameter("Upload too large: " + std::to_string(bytes) +
                             " bytes exceeds limit of " + std::to_string(kPutBytesMax));
  if (*events.back().timestamp - *events.front().timestamp > kPutSpanMax.count())
    return invalid_parameter(
        "The batch of log events in a single PutLogEvents request cannot span more than 24 hours.");

  // Older or newer events are rejected, and listed in the response.
  const int64_t oldest = to_milliseconds(context.now - kTooOld),
                newest = to_milliseconds(context.now + kTooNew);
  aws::RejectedLogEventsInfo rejected;
  std::vector<observe::LogEvent> accepted;
  for (size_t i = 0; i < events.size(); ++i) {
    if (*events[i].timestamp < oldest) {
      rejected.too_old_log_event_end_index = int64_t(i) + 1;
    } else if (*events[i].timestamp > newest) {
      if (!rejected.too_new_log_event_start_index)
        rejected.too_new_log_event_start_index = int64_t(i);
    } else {
      accepted.push_back(
          {from_milliseconds(*events[i].timestamp), context.now, *events[i].message});
    }
  }
  TRY_LOGS(logs.append({context.region, *in.log_group_name, *in.log_stream_name}, accepted));
  aws::PutLogEventsResponse out;
  if (accepted.size() != events.size()) out.rejected_log_events_info = rejected;
  // Old clients send this token with the next request. It is ignored.
  out.next_sequence_token = event_token('s', uint64_t(to_milliseconds(context.now))).substr(2);
  return out;
}

}  // namespace

void add_operations(OperationTable& table, const Settings&, const Services& services) {
  observe::Logs& logs = services.logs;
  table.add<aws::CreateLogStream>(
      [&logs](const Context& context,
              const aws::CreateLogStreamRequest& in) -> Outcome<aws::Nothing> {
        TRY_LOGS(logs.create_stream({context.region, *in.log_group_name, *in.log_stream_name}));
        return aws::Nothing{};
      });
  table.add<aws::DeleteLogStream>(
      [&logs](const Context& context,
              const aws::DeleteLogStreamRequest& in) -> Outcome<aws::Nothing> {
        TRY_LOGS(logs.delete_stream({context.region, *in.log_group_name, *in.log_stream_name}));
        return aws::Nothing{};
      });
  table.add<aws::DescribeLogStreams>([&logs](const Context& context, const auto& in) {
    return describe_streams(logs, context, in);
  });
  table.add<aws::GetLogEvents>(
      [&logs](const Context& context, const auto& in) { return get_events(logs, context, in); });
  table.add<aws::FilterLogEvents>(
      [&logs](const Context& context, const auto& in) { return filter_events(logs, context, in); });
  table.add<aws::PutLogEvents>(
      [&logs](const Context& context, const auto& in) { return put_events(logs, context, in); });
  add_groups(table, services);
  add_queries(table, services);
  add_query_definitions(table, services);
  add_metric_filters(table, services);
  add_subscriptions(table, services);
  add_destinations(table, services);
  add_delivery_sources(table, services);
  add_delivery_destinations(table, services);
  add_deliveries(table, services);
  add_tags(table, services);
  add_exports(table, services);
  add_resource_policies(table, services);
}

}  // namespace trainyard::api::logs
