#include "wire/codec.hpp"

#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/check.hpp"
#include "base/text.hpp"
#include "domain/json_fields.hpp"

namespace trainyard::wire {
namespace {

// -- the two sides of one description ---------------------------------------------------------------

class Writer {
 public:
  std::string bytes;

  template <class T>
  void integer(T value) {
    using Unsigned = std::make_unsigned_t<T>;
    char little[sizeof(T)];
    for (size_t i = 0; i < sizeof(T); ++i) little[i] = char(uint8_t(uint64_t(Unsigned(value)) >> (8 * i)));
    bytes.append(little, sizeof little);
  }
  void operator()(const char*, uint32_t value) { integer(value); }
  void operator()(const char*, uint64_t value) { integer(value); }
  void operator()(const char*, int value) { integer(int32_t(value)); }
  void operator()(const char*, bool value) { integer(uint8_t(value)); }
  void operator()(const char*, double value) { integer(std::bit_cast<uint64_t>(value)); }
  void operator()(const char*, Instant value) { integer(to_milliseconds(value)); }
  void operator()(const char*, Duration value) { integer(int64_t(value.count())); }
  void operator()(const char*, const std::string& value) {
    integer(uint32_t(value.size()));
    bytes += value;
  }
  template <class E>
  void choice(const char*, E value, E) {
    integer(uint8_t(value));
  }
  template <class T, class Each>
  void optional(const char*, const std::optional<T>& value, Each each) {
    integer(uint8_t(value.has_value()));
    if (value) each(*value);
  }
  template <class T, class Each>
  void list(const char*, const std::vector<T>& values, size_t, Each each) {
    integer(uint32_t(values.size()));
    for (const T& value : values) each(value);
  }
};

// After the first fault every read gives zeros, and the fault stays.
class Reader {
 public:
  Reader(std::string_view payload, std::string_view message) : rest_(payload), message_(message) {}

  void operator()(const char* field, uint32_t& value) { value = integer<uint32_t>(field); }
  void operator()(const char* field, uint64_t& value) { value = integer<uint64_t>(field); }
  void operator()(const char* field, int& value) { value = integer<int32_t>(field); }
  void operator()(const char* field, bool& value) {
    const uint8_t byte = integer<uint8_t>(field);
    if (byte > 1) fault(field, "is neither 0 nor 1");
    value = byte == 1;
  }
  void operator()(const char* field, double& value) {
    value = std::bit_cast<double>(integer<uint64_t>(field));
  }
  void operator()(const char* field, Instant& value) { value = from_milliseconds(integer<int64_t>(field)); }
  void operator()(const char* field, Duration& value) { value = Duration{integer<int64_t>(field)}; }
  void operator()(const char* field, std::string& value) {
    const size_t size = integer<uint32_t>(field);
    if (size > rest_.size()) return fault(field, "is cut short");
    value = rest_.substr(0, size);
    rest_.remove_prefix(size);
  }
  template <class E>
  void choice(const char* field, E& value, E last) {
    const uint8_t byte = integer<uint8_t>(field);
    if (byte > uint8_t(last)) return fault(field, "has no value " + std::to_string(byte));
    value = E(byte);
  }
  template <class T, class Each>
  void optional(const char* field, std::optional<T>& value, Each each) {
    bool present = false;
    (*this)(field, present);
    if (present) each(value.emplace());
  }
  // element_bytes_min bounds the memory that a hostile count can claim.
  template <class T, class Each>
  void list(const char* field, std::vector<T>& values, size_t element_bytes_min, Each each) {
    const size_t count = integer<uint32_t>(field);
    if (count > rest_.size() / element_bytes_min) return fault(field, "is cut short");
    values.resize(count);
    for (T& value : values) each(value);
  }

  Result<void> finish() {
    if (error_.empty() && !rest_.empty())
      error_ = std::string(message_) + " has " + std::to_string(rest_.size()) + " bytes too many";
    if (!error_.empty()) return corrupt(error_);
    return {};
  }

 private:
  template <class T>
  T integer(const char* field) {
    if (rest_.size() < sizeof(T)) {
      fault(field, "is cut short");
      return 0;
    }
    uint64_t value = 0;
    for (size_t i = 0; i < sizeof(T); ++i) value |= uint64_t(uint8_t(rest_[i])) << (8 * i);
    rest_.remove_prefix(sizeof(T));
    return T(value);
  }
  void fault(const char* field, const std::string& what) {
    rest_ = {};
    if (error_.empty()) error_ = std::string(message_) + "." + field + " " + what;
  }

  std::string_view rest_;
  std::string_view message_;
  std::string error_;
};

// -- the messages: their fields in order. What is described here is written by Writer and read by Reader
// ------------

template <class Side, class Id>
void attempt(Side& side, Id& id) {
  side("attempt.job", id.job);
  side("attempt.number", id.number);
}

template <class Side, class M>
void fields(Side& side, M& m) {
  using T = std::remove_const_t<M>;
  if constexpr (std::is_same_v<T, Hello>) {
    side("version", m.version);
    attempt(side, m.attempt);
    side("host", m.host);
    side("token", m.token);
  } else if constexpr (std::is_same_v<T, StateFact>) {
    side("number", m.number);
    side("at", m.at);
    side.choice("state", m.state, domain::HostState::lost);
    side("message", m.message);
    side.optional("exit_code", m.exit_code, [&](auto& code) { side("exit_code", code); });
    side.optional("fault", m.fault,
                  [&](auto& fault) { side.choice("fault", fault, domain::Fault::internal); });
    side("staged_model", m.staged_model);
    side("model_uri", m.model_uri);
    side("output_uri", m.output_uri);
    side.choice("stopped", m.stopped, domain::StopCause::max_pending);
  } else if constexpr (std::is_same_v<T, LogBatch>) {
    side("number", m.number);
    side.list("lines", m.lines, 12, [&](auto& line) {
      side("lines.at", line.at);
      side("lines.text", line.text);
    });
  } else if constexpr (std::is_same_v<T, MetricBatch>) {
    side("number", m.number);
    side.list("points", m.points, 21, [&](auto& point) {
      side("points.name", point.name);
      side("points.at", point.at);
      side("points.value", point.value);
      side("points.of_host", point.of_host);
    });
  } else if constexpr (std::is_same_v<T, Welcome>) {
    side("state_acknowledged", m.state_acknowledged);
    side("data_acknowledged", m.data_acknowledged);
  } else if constexpr (std::is_same_v<T, Refused>) {
    side("reason", m.reason);
  } else if constexpr (std::is_same_v<T, Acknowledge>) {
    side.choice("track", m.track, Track::data);
    side("number", m.number);
  } else if constexpr (std::is_same_v<T, Stop>) {
    side.choice("cause", m.cause, domain::StopCause::max_pending);
    side("grace", m.grace);
  } else if constexpr (std::is_same_v<T, Credentials>) {
    side("access_key_id", m.access_key_id);
    side("secret_access_key", m.secret_access_key);
    side("session_token", m.session_token);
    side("expires", m.expires);
  } else if constexpr (std::is_same_v<T, PeersDrained>) {
    side.list("staged_models", m.staged_models, 4, [&](auto& key) { side("staged_models", key); });
  } else if constexpr (std::is_same_v<T, Progress>) {
    side("what", m.what);
    side("done_bytes", m.done_bytes);
    side("total_bytes", m.total_bytes);
    side("finished", m.finished);
  } else if constexpr (std::is_same_v<T, OpenShell>) {
    side("shell", m.shell);
    side.list("command", m.command, 4, [&](auto& word) { side("command", word); });
    side("terminal", m.terminal);
    side("terminal_name", m.terminal_name);
    side("columns", m.columns);
    side("rows", m.rows);
  } else if constexpr (std::is_same_v<T, ShellData>) {
    side("shell", m.shell);
    side("payload", m.payload);
  } else {
    static_assert(std::is_same_v<T, Goodbye>, "every message is described");
  }
}

// The kind byte is the place in Message, from 1: new messages go to its end.
constexpr std::string_view kNames[] = {"Hello",   "StateFact",   "LogBatch",  "MetricBatch", "Welcome",
                                       "Refused", "Acknowledge", "Stop",      "Credentials", "PeersDrained",
                                       "Goodbye", "Progress",    "OpenShell", "ShellData"};
static_assert(std::size(kNames) == std::variant_size_v<Message>);

template <size_t index = 0>
Result<Message> decode_kind(size_t kind, std::string_view body) {
  if constexpr (index < std::variant_size_v<Message>) {
    if (kind != index) return decode_kind<index + 1>(kind, body);
    std::variant_alternative_t<index, Message> message;
    Reader reader(body, kNames[index]);
    fields(reader, message);
    TRY(reader.finish());
    return Message(std::move(message));
  } else {
    return corrupt("unknown message kind " + std::to_string(kind + 1));
  }
}

Result<domain::AttemptId> attempt_id_from_json(const Json& json) {
  if (!json.is_string()) return invalid("an attempt must be a string");
  return domain::parse_attempt_id(json.get<std::string>());
}

}  // namespace

std::string encode(const Message& message) {
  Writer writer;
  writer.integer(uint8_t(message.index() + 1));
  std::visit([&](const auto& m) { fields(writer, m); }, message);
  return std::move(writer.bytes);
}

void set_number(std::string& payload, uint64_t number) {
  Writer writer;
  writer.integer(number);
  CHECK(payload.size() > writer.bytes.size(), "an encoded batch");
  payload.replace(1, writer.bytes.size(), writer.bytes);
}

Result<Message> decode(std::string_view payload) {
  if (payload.empty()) return corrupt("a frame without a message kind");
  if (payload.size() > kFrameBytesMax)
    return corrupt("a frame of " + std::to_string(payload.size()) + " bytes; the most is " +
                   std::to_string(kFrameBytesMax));
  // Kind 0 wraps around to one that does not exist.
  return decode_kind(size_t(uint8_t(payload[0])) - 1, payload.substr(1));
}

std::string encode_order(const Order& order) {
  const Json json{{"version", order.version},
                  {"attempt", order.attempt.text()},
                  {"token", order.token},
                  {"host", order.host},
                  {"job", to_json(order.job)},
                  {"job_arn", order.job_arn},
                  {"account", order.account},
                  {"spec", to_json(order.spec)},
                  {"share", to_json(order.share)},
                  {"created", to_milliseconds(order.created)},
                  {"wire_address", order.wire_address},
                  {"api_address", order.api_address},
                  {"objects_endpoint", order.objects_endpoint},
                  {"image", to_json(order.image)},
                  {"outward", to_json(order.outward)},
                  {"file_systems", order.file_systems},
                  {"log_stream", order.log_stream},
                  {"runtime_left", order.runtime_left.count()},
                  {"stop_grace", order.stop_grace.count()},
                  {"stalled_after_seconds", order.stalled_after_seconds}};
  return dump(json, 2) + "\n";
}

Result<Order> decode_order(std::string_view bytes) {
  const Json json = TRY(parse_json(bytes).in("reading the order"));
  Order order;
  int64_t runtime_left = 0, stop_grace = order.stop_grace.count();
  order.version = 0;
  domain::Fields fields(json, "order");
  fields.read("version", order.version)
      .read("attempt", order.attempt, attempt_id_from_json)
      .read("token", order.token)
      .read("host", order.host)
      .read("job", order.job, domain::job_key_from_json)
      .read("job_arn", order.job_arn)
      .read("account", order.account)
      .read("spec", order.spec, domain::job_spec_from_json)
      .read("share", order.share, domain::share_from_json)
      .read("created", order.created)
      .read("wire_address", order.wire_address)
      .read("api_address", order.api_address)
      .read("objects_endpoint", order.objects_endpoint)
      .read("image", order.image, domain::image_from_json)
      .read("outward", order.outward, domain::outward_from_json)
      .read("file_systems", order.file_systems)
      .read("log_stream", order.log_stream)
      .read("runtime_left", runtime_left)
      .read("stop_grace", stop_grace)
      .read("stalled_after_seconds", order.stalled_after_seconds);
  const auto read = fields.result();
  if (!read) return corrupt(read.error().message);
  order.runtime_left = Duration{runtime_left};
  order.stop_grace = Duration{stop_grace};
  if (order.version != kVersion)
    return corrupt("the order is of version " + std::to_string(order.version) + "; this agent knows " +
                   std::to_string(kVersion));
  if (order.spec.groups.empty()) return corrupt("the order has no spec");
  if (order.attempt.job == 0) return corrupt("the order has no attempt");
  if (order.host >= order.spec.hosts())
    return corrupt("the order is for host " + std::to_string(order.host) + " of " +
                   std::to_string(order.spec.hosts()));
  return order;
}

}  // namespace trainyard::wire
