#include "wire/codec.hpp"

#include <algorithm>
#include <iterator>
#include <type_traits>

#include "base/bytes/fields.hpp"
#include "base/check.hpp"
#include "base/json_record.hpp"
#include "base/text.hpp"
#include "domain/json_forms.hpp"

namespace trainyard::wire {
namespace {

template <class Side, class Id>
void attempt_fields(Side& side, Id& id) {
  side("attempt.job", id.job);
  side("attempt.number", id.number);
}

template <class M, class T>
concept Is = std::is_same_v<std::remove_const_t<M>, T>;

// One function for each message describes its fields in their order. A new field goes last.

template <class Side>
void fields(Side& side, Is<Hello> auto& m) {
  side("version", m.version);
  attempt_fields(side, m.attempt);
  side("host", m.host);
  side("token", m.token);
  side.added("oldest", m.oldest, m.version >= 2);
  const bool allocated = m.version >= 2 && m.allocation != 0;
  side.added("allocation", m.allocation, allocated);
  side.added("served", m.served, allocated);
}

template <class Side>
void fields(Side& side, Is<StateFact> auto& m) {
  side("number", m.number);
  side("at", m.at);
  // Agents do not report `placed`. An unknown state becomes it: the fact is counted, and changes
  // nothing.
  side.choice_or("state", m.state, domain::HostState::lost, domain::HostState::placed);
  side("message", m.message);
  side.optional("exit_code", m.exit_code, [&](auto& code) { side("exit_code", code); });
  side.optional("fault", m.fault, [&](auto& fault) {
    side.choice_or("fault", fault, domain::Fault::lost, domain::Fault::internal);
  });
  side("staged_model", m.staged_model);
  side("model_uri", m.model_uri);
  side("output_uri", m.output_uri);
  side.choice_or("stopped", m.stopped, domain::StopCause::main_ended, domain::StopCause::user);
  side.added("address", m.address, !m.address.empty());
}

template <class Side>
void fields(Side& side, Is<LogBatch> auto& m) {
  side("number", m.number);
  side.list("lines", m.lines, 12, [&](auto& line) {
    side("lines.at", line.at);
    side("lines.text", line.text);
  });
}

template <class Side>
void fields(Side& side, Is<MetricBatch> auto& m) {
  side("number", m.number);
  side.list("points", m.points, 21, [&](auto& point) {
    side("points.name", point.name);
    side("points.at", point.at);
    side("points.value", point.value);
    side("points.of_host", point.of_host);
  });
}

template <class Side>
void fields(Side& side, Is<Welcome> auto& m) {
  side("state_acknowledged", m.state_acknowledged);
  side("data_acknowledged", m.data_acknowledged);
  side.added("version", m.version, m.version >= 2);
  side.added("now", m.now, m.version >= 2 && m.now != Instant{});
}

template <class Side>
void fields(Side& side, Is<Refused> auto& m) {
  side("reason", m.reason);
}

template <class Side>
void fields(Side& side, Is<Acknowledge> auto& m) {
  side.choice_or("track", m.track, Track::data, Track::other);
  side("number", m.number);
}

template <class Side>
void fields(Side& side, Is<Stop> auto& m) {
  // The host must stop for any cause, even an unknown one.
  side.choice_or("cause", m.cause, domain::StopCause::main_ended, domain::StopCause::user);
  side("grace", m.grace);
}

template <class Side>
void fields(Side& side, Is<Credentials> auto& m) {
  side("access_key_id", m.access_key_id);
  side("secret_access_key", m.secret_access_key);
  side("session_token", m.session_token);
  side("expires", m.expires);
}

template <class Side>
void fields(Side& side, Is<PeersDrained> auto& m) {
  side.list("staged_models", m.staged_models, 4, [&](auto& key) { side("staged_models", key); });
}

template <class Side>
void fields(Side& side, Is<Progress> auto& m) {
  side("what", m.what);
  side("done_bytes", m.done_bytes);
  side("total_bytes", m.total_bytes);
  side("finished", m.finished);
}

template <class Side>
void fields(Side& side, Is<OpenShell> auto& m) {
  side("shell", m.shell);
  side.list("command", m.command, 4, [&](auto& word) { side("command", word); });
  side("terminal", m.terminal);
  side("terminal_name", m.terminal_name);
  side("columns", m.columns);
  side("rows", m.rows);
}

template <class Side>
void fields(Side& side, Is<ShellData> auto& m) {
  side("shell", m.shell);
  side("payload", m.payload);
}

template <class Side>
void fields(Side&, Is<Goodbye> auto&) {}

template <class Side>
void fields(Side&, Is<MainRuns> auto&) {}

template <class Side, class Calls>
void calls_fields(Side& side, Calls& calls) {
  side("calls.rank", calls.rank);
  side("calls.group", calls.group);
  side("calls.group_rank", calls.group_rank);
  side("calls.group_ranks", calls.group_ranks);
  side("calls.completed", calls.completed);
  side("calls.kind", calls.kind);
  side("calls.bytes", calls.bytes);
  side("calls.label", calls.label);
  side("calls.unchanged", calls.unchanged);
  side("calls.since_beat", calls.since_beat);
  side("calls.inside_us", calls.inside_us);
  side("calls.outside_us", calls.outside_us);
  side("calls.loading_us", calls.loading_us);
  side.list("calls.links", calls.links, 20, [&](auto& link) {
    side("calls.links.peer", link.peer);
    side("calls.links.busy_us", link.busy_us);
    side("calls.links.busy_bytes", link.busy_bytes);
  });
}

template <class Side>
void fields(Side& side, Is<Activity> auto& m) {
  const auto age = [&](const char* name, auto& value) {
    side.optional(name, value, [&](auto& duration) { side(name, duration); });
  };
  age("output", m.output);
  side.list("ranks", m.ranks, 14, [&](auto& each) {
    side("ranks.rank", each.rank);
    age("ranks.output", each.output);
    age("ranks.collective", each.collective);
    side("ranks.collectives", each.collectives);
  });
  const bool described = !m.calls.empty();
  side.added_list(
      "calls", m.calls, 89, [&](auto& each) { calls_fields(side, each); }, described);
  side.added("idle", m.idle, described);
}

template <class Side>
void fields(Side& side, Is<Idle> auto& m) {
  side("time_left", m.time_left);
  side("keeps_host", m.keeps_host);
}

template <class Side>
void fields(Side& side, Is<NextOrder> auto& m) {
  side("order", m.order);
  side("same_host", m.same_host);
}

template <class Side>
void fields(Side&, Is<Unknown> auto&) {}

constexpr const char* kNames[] = {"Hello",       "StateFact",    "LogBatch",    "MetricBatch",
                                  "Welcome",     "Refused",      "Acknowledge", "Stop",
                                  "Credentials", "PeersDrained", "Goodbye",     "Progress",
                                  "OpenShell",   "ShellData",    "MainRuns",    "Activity",
                                  "Idle",        "NextOrder",    "Unknown"};
constexpr size_t kKinds = std::size(kNames) - 1;  // without Unknown, which has no number
static_assert(std::size(kNames) == std::variant_size_v<Message>);
static_assert(std::is_same_v<std::variant_alternative_t<kKinds, Message>, Unknown>);

constexpr auto kDescribe = [](auto& side, auto& message) {
  fields(side, message);
  side.skip_rest();
};

constexpr auto kIdentity = json_record<AgentIdentity>("identity", [](auto& side, auto& identity) {
  side("certificate", identity.certificate);
  side("key", identity.key);
});

constexpr auto kOrder = json_record<Order>("order", [](auto& side, auto& order) {
  side("version", order.version);
  side("attempt", order.attempt, domain::kAttemptIdForm);
  side("token", order.token);
  side("host", order.host);
  side("job", order.job, domain::job_key_from_json);
  side("job_arn", order.job_arn);
  side("account", order.account);
  side("spec", order.spec, domain::job_spec_from_json);
  side("share", order.share, domain::share_from_json);
  side("created", order.created);
  side("issued", order.issued);
  side("wire_address", order.wire_address);
  side("api_address", order.api_address);
  side("objects_endpoint", order.objects_endpoint);
  side.if_set("authority", order.authority);
  side.if_set("identity", order.identity, kIdentity);
  side("image", order.image, domain::image_from_json);
  side("outward", order.egress_settings, domain::egress_settings_from_json);
  side("file_systems", order.file_systems);
  side("variables", order.variables);
  side("log_stream", order.log_stream);
  side("runtime_left", order.runtime_left);
  side("stop_grace", order.stop_grace);
  side("stalled_after_seconds", order.stalled_after_seconds);
  side("reuse_host", order.reuse_host);
  side("best_effort_isolation", order.best_effort_isolation);
  side("copy_channels", order.copy_channels);
  side("shared_user_id", order.shared_user_id);
  side("shared_group_id", order.shared_group_id);
  side("wire_version", order.wire_version);
});

}  // namespace

std::string encode(const Message& message) {
  CHECK(!std::holds_alternative<Unknown>(message), "Unknown is never sent");
  return encode_kind(message, kDescribe);
}

void set_number(std::string& payload, uint64_t number) {
  FieldWriter writer;
  writer.integer(number);
  CHECK(payload.size() > writer.bytes.size(), "an encoded batch");
  payload.replace(1, writer.bytes.size(), writer.bytes);
}

Result<Message> decode(std::string_view payload) {
  if (payload.size() > kFrameBytesMax)
    return corrupt("receiving a frame of " + std::to_string(payload.size()) +
                   " bytes: the limit is " + std::to_string(kFrameBytesMax));
  if (!payload.empty())
    if (const auto kind = uint8_t(payload[0]); kind == 0 || kind > kKinds)
      return Message(Unknown{kind});
  return decode_kind<Message>(payload, kNames, kDescribe);
}

namespace {
std::string range_text(uint32_t oldest, uint32_t latest) {
  return oldest >= latest ? "version " + std::to_string(latest)
                          : "versions " + std::to_string(oldest) + " to " + std::to_string(latest);
}
}  // namespace

std::string versions_text(const Hello& hello) { return range_text(hello.oldest, hello.version); }

Result<uint32_t> common_version(const Hello& hello) {
  const uint32_t common = std::min(hello.version, kVersion);
  // A Hello of version 1 has no `oldest`: its agent supports version 1 only.
  const uint32_t oldest = hello.version < 2 ? hello.version : hello.oldest;
  if (common >= oldest && common >= kVersionOldest) return common;
  return conflict("the agent speaks " + range_text(oldest, hello.version) +
                  " of the protocol between server and agents, and the server " +
                  range_text(kVersionOldest, kVersion) +
                  ": start the server and its agents from releases that have one in common");
}

Hello hello_of(const Order& order) {
  return {std::min(kVersion, order.wire_version), order.attempt, order.host, order.token};
}

std::string encode_order(const Order& order) { return dump(kOrder.write(order), 2) + "\n"; }

Result<Order> decode_order(std::string_view bytes) {
  const Json json = TRY(parse_json(bytes).in("reading the order"));
  // Checked first, because an order of another version cannot be interpreted.
  if (const auto version = int_at(json, "version"); version && *version != kOrderVersion)
    return conflict("the order has version " + std::to_string(*version) +
                    ", but this agent reads version " + std::to_string(kOrderVersion) +
                    "; start the server and its agents from one release");
  Order order;
  order.version = 0;
  order.wire_version = kVersionOldest;
  if (const auto read = kOrder.read_into(json, order); !read) return corrupt(read.error().message);
  if (order.version == 0) return corrupt("invalid order: the version is missing");
  if (order.spec.groups.empty()) return corrupt("invalid order: the spec is missing");
  if (order.attempt.job == 0) return corrupt("invalid order: the attempt is missing");
  if (order.host >= order.spec.hosts())
    return corrupt("the order is for host " + std::to_string(order.host) + " of " +
                   std::to_string(order.spec.hosts()));
  return order;
}

}  // namespace trainyard::wire
