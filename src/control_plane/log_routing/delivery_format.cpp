#include "log_routing/delivery_format.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <optional>
#include <set>

#include "base/fnv.hpp"
#include "base/json.hpp"
#include "contract/aws_texts.hpp"

namespace trainyard::log_routing {
namespace {

constexpr std::string_view kDefaultSuffix = "{region}/{yyyy}/{MM}/{dd}";
constexpr std::string_view kDefaultDelimiter = "\t";
constexpr std::string_view kMissing = "-";

// A variable of a suffix, and its name in Hive's form.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kVariables{{
    {"account-id", "aws-account-id"},
    {"region", "aws-region"},
    {"service", "service"},
    {"yyyy", "year"},
    {"MM", "month"},
    {"dd", "day"},
    {"HH", "hour"},
}};

const std::pair<std::string_view, std::string_view>* find_variable(std::string_view name) {
  const auto found =
      std::ranges::find(kVariables, name, [](const auto& each) { return each.first; });
  return found == kVariables.end() ? nullptr : &*found;
}

// Returns the value of a variable. `basic`: the time in the basic format 20261128T031000Z.
std::string value_of(std::string_view variable, const ObjectName& name, const std::string& basic) {
  if (variable == "account-id") return name.account;
  if (variable == "region") return name.region;
  if (variable == "service") return name.service;
  if (variable == "yyyy") return basic.substr(0, 4);
  if (variable == "MM") return basic.substr(4, 2);
  if (variable == "dd") return basic.substr(6, 2);
  return basic.substr(9, 2);
}

std::string expand_suffix(std::string_view suffix, const ObjectName& name,
                          const std::string& basic) {
  std::string out;
  while (!suffix.empty()) {
    const size_t open = std::min(suffix.find('{'), suffix.size());
    out.append(suffix.substr(0, open));
    suffix.remove_prefix(open);
    if (suffix.empty()) break;
    const size_t close = suffix.find('}');
    const std::string_view variable = suffix.substr(1, close - 1);
    if (name.hive_path) out.append(find_variable(variable)->second).append("=");
    out.append(value_of(variable, name, basic));
    suffix.remove_prefix(close + 1);
  }
  return out;
}

// Removes leading slashes, and ends the directory with one slash.
std::string directory(std::string text) {
  while (text.starts_with('/')) text.erase(0, 1);
  if (!text.empty() && !text.ends_with('/')) text += '/';
  return text;
}

std::optional<Json> event_field(const std::string& field, const observe::StreamKey& stream,
                                const observe::LogEvent& event) {
  if (field == "timestamp") return Json(to_iso8601(event.at));
  if (field == "ingestion_time") return Json(to_iso8601(event.ingested));
  if (field == "log_group") return Json(stream.group);
  if (field == "log_stream") return Json(stream.stream);
  if (field == "message") return Json(event.message);
  return {};
}

// Returns a value as part of a line: without line breaks, and without the delimiter unless that is
// a space. It needs one pass: if a space that replaces a delimiter completes another delimiter,
// that is replaced, too.
std::string plain_value(const Json& value, std::string_view delimiter) {
  const std::string text = value.is_string() ? value.get<std::string>() : dump(value);
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    out += c == '\n' || c == '\r' ? ' ' : c;
    while (delimiter != " " && out.ends_with(delimiter)) {
      out.resize(out.size() - delimiter.size());
      out += ' ';
    }
  }
  return out.empty() ? std::string(kMissing) : out;
}

}  // namespace

std::string record_text(const observe::StreamKey& stream, const observe::LogEvent& event,
                        DeliveryFormat format, const DeliveryOptions& options) {
  const bool only_event_fields = options.fields.empty();
  if (format == DeliveryFormat::raw || (only_event_fields && format == DeliveryFormat::plain)) {
    std::string text = event.message;
    while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
    return text;
  }
  static const std::vector<std::string> kEventFields{"timestamp", "log_group", "log_stream",
                                                     "message"};
  const std::vector<std::string>& fields = only_event_fields ? kEventFields : options.fields;
  const auto message = only_event_fields ? Result<Json>(Json()) : parse_json(event.message);
  const auto find = [&](const std::string& field) -> std::optional<Json> {
    if (message && message->is_object())
      if (const auto found = message->find(field); found != message->end()) return Json(*found);
    return event_field(field, stream, event);
  };
  if (format == DeliveryFormat::json) {
    nlohmann::ordered_json out = nlohmann::ordered_json::object();
    for (const std::string& field : fields)
      if (auto value = find(field)) out[field] = *std::move(value);
    return out.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  }
  const std::string_view delimiter =
      options.delimiter.empty() ? kDefaultDelimiter : std::string_view(options.delimiter);
  std::string line;
  for (const std::string& field : fields) {
    if (&field != &fields.front()) line += delimiter;
    const auto value = find(field);
    line += value ? plain_value(*value, delimiter) : std::string(kMissing);
  }
  return line;
}

Result<BucketPrefix> parse_bucket_arn(std::string_view arn) {
  constexpr std::string_view kStart = contract::kBucketArnStart;
  if (!arn.starts_with(kStart)) return invalid("invalid ARN of a bucket: " + std::string(arn));
  arn.remove_prefix(kStart.size());
  const size_t slash = std::min(arn.find('/'), arn.size());
  BucketPrefix place{std::string(arn.substr(0, slash)), ""};
  // Without its first slash, the prefix would differ from the authorised prefix.
  if (arn.substr(slash).starts_with("//"))
    return invalid("Invalid destinationResourceArn: the prefix of bucket " + place.bucket +
                   " begins with '/'.");
  if (slash < arn.size()) place.prefix = directory(std::string(arn.substr(slash + 1)));
  if (place.bucket.empty()) return invalid("invalid ARN of a bucket: " + std::string(arn));
  return place;
}

Result<void> check_options(const DeliveryOptions& options) {
  if (options.delimiter.find_first_of("\r\n") != std::string::npos)
    return invalid("Invalid fieldDelimiter: it contains a line break.");
  std::set<std::string_view> fields;
  for (const std::string& field : options.fields)
    if (!fields.insert(field).second)
      return invalid("Invalid recordFields: " + field + " is repeated.");
  std::string_view suffix = options.suffix;
  const std::string whole(suffix);
  while (!suffix.empty()) {
    const size_t open = std::min(suffix.find('{'), suffix.size());
    const std::string_view literal = suffix.substr(0, open);
    if (literal.find('}') != std::string_view::npos ||
        std::ranges::any_of(literal, [](char c) { return uint8_t(c) < 0x20 || c == 0x7f; }))
      return invalid("Invalid suffixPath: " + whole);
    suffix.remove_prefix(open);
    if (suffix.empty()) break;
    const size_t close = suffix.find('}');
    if (close == std::string_view::npos || !find_variable(suffix.substr(1, close - 1)))
      return invalid("Invalid suffixPath: " + whole +
                     ". Its variables are {account-id}, {region}, {service}, {yyyy}, {MM}, {dd} "
                     "and {HH}.");
    suffix.remove_prefix(close + 1);
  }
  return ok();
}

std::string object_key(const ObjectName& name) {
  const std::string basic = to_basic_iso8601(name.at);
  const std::string fixed = "AWSLogs/" + name.account + "/" + name.service + "/";
  std::string suffix =
      expand_suffix(name.suffix.empty() ? kDefaultSuffix : name.suffix, name, basic);
  // As on AWS, a suffix may repeat the fixed part. A fixed part with another account is not
  // replaced, since only keys below the account's part are authorised (api/auth).
  const bool whole = suffix.starts_with("AWSLogs/" + name.account + "/") ||
                     suffix.starts_with("AWSLogs/aws-account-id=" + name.account + "/");
  std::string folder = whole ? directory(suffix) : fixed + directory(suffix);
  char hash[17];
  std::snprintf(hash, sizeof hash, "%016llx",
                static_cast<unsigned long long>(fnv1a_step(fnv1a(name.stream), name.position)));
  return name.prefix + folder + name.account + "_" + name.service + "_" + name.region + "_" +
         name.delivery + "_" + basic.substr(0, 13) + "Z_" + std::string(hash, 16) + ".log.gz";
}

}  // namespace trainyard::log_routing
