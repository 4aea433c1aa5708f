#include "observe/audit_chain.hpp"

#include <openssl/sha.h>

#include <array>

#include "base/check.hpp"
#include "base/text.hpp"

namespace trainyard::observe {
namespace {

// Returns the text at a path of members; empty if there is none.
std::string text_at(const Json& event, std::initializer_list<const char*> path) {
  const Json* at = &event;
  for (const char* name : path) {
    if (!at->is_object()) return {};
    const auto found = at->find(name);
    if (found == at->end()) return {};
    at = &*found;
  }
  return at->is_string() ? at->get<std::string>() : std::string();
}

bool has_resource(const Json& event, AuditAttribute attribute, const std::string& wanted) {
  const auto found = event.find("resources");
  if (found == event.end() || !found->is_array()) return false;
  for (const Json& one : *found) {
    if (attribute == AuditAttribute::resource_type) {
      if (text_at(one, {"type"}) == wanted) return true;
      continue;
    }
    const std::string arn = text_at(one, {"ARN"});
    if (arn == wanted || (!wanted.empty() && arn.ends_with("/" + wanted)) ||
        (!wanted.empty() && arn.ends_with(":" + wanted)))
      return true;
  }
  return false;
}

bool has_attribute(const Json& event, AuditAttribute attribute, const std::string& wanted) {
  switch (attribute) {
    case AuditAttribute::event_id:
      return text_at(event, {"eventID"}) == wanted;
    case AuditAttribute::event_name:
      return text_at(event, {"eventName"}) == wanted;
    case AuditAttribute::username:
      return !wanted.empty() && username_of(event) == wanted;
    case AuditAttribute::event_source:
      return text_at(event, {"eventSource"}) == wanted;
    case AuditAttribute::access_key_id:
      return text_at(event, {"userIdentity", "accessKeyId"}) == wanted;
    case AuditAttribute::read_only: {
      const auto found = event.find("readOnly");
      return found != event.end() && found->is_boolean() &&
             wanted == (found->get<bool>() ? "true" : "false");
    }
    case AuditAttribute::resource_type:
    case AuditAttribute::resource_name:
      return has_resource(event, attribute, wanted);
  }
  return false;
}

}  // namespace

std::string first_digest() { return std::string(2 * SHA256_DIGEST_LENGTH, '0'); }

// Uses OpenSSL, which has the processor's SHA instructions: one digest is computed per recorded
// request.
std::string line_digest(std::string_view line) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  ::SHA256(reinterpret_cast<const unsigned char*>(line.data()), line.size(), digest.data());
  return to_hex({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

std::string format_audit_line(std::string_view record, const std::string& previous_digest) {
  CHECK(record.size() > 2 && record.starts_with('{') && record.ends_with('}'),
        "a record is an object");
  std::string line;
  line.reserve(record.size() + kPreviousDigest.size() + previous_digest.size() + 8);
  line.append(record.substr(0, record.size() - 1));
  line.append(",\"").append(kPreviousDigest).append("\":\"").append(previous_digest).append("\"}");
  return line;
}

Result<void> AuditChain::check(std::string_view line) {
  const auto event = parse_json(line);
  if (!event || !event->is_object()) return corrupt("not a record: " + shorten(to_utf8(line), 80));
  const std::string previous = text_at(*event, {kPreviousDigest.data()});
  if (previous.empty()) return corrupt("the record has no " + std::string(kPreviousDigest));
  if (digest_ && previous != *digest_)
    return corrupt("the record follows the line " + shorten(previous, 64) +
                   ", but the line before it is " + *digest_);
  digest_ = line_digest(line);
  ++lines_;
  return ok();
}

std::string username_of(const Json& event) {
  if (std::string name = text_at(event, {"userIdentity", "userName"}); !name.empty()) return name;
  const std::string arn = text_at(event, {"userIdentity", "arn"});
  const size_t slash = arn.rfind('/');
  return slash == std::string::npos ? std::string() : arn.substr(slash + 1);
}

bool matches(const Json& event, const AuditFilter& filter) {
  if (!event.is_object()) return false;
  if (filter.from || filter.to) {
    const auto at = parse_iso8601(text_at(event, {"eventTime"}));
    if (!at || (filter.from && *at < *filter.from) || (filter.to && *at > *filter.to)) return false;
  }
  return !filter.attribute ||
         has_attribute(event, filter.attribute->first, filter.attribute->second);
}

}  // namespace trainyard::observe
