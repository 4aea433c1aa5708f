// Writes and checks the lines of the audit log. A line is one record in CloudTrail's format, with
// the digest of the previous line.
//
// A changed, removed, inserted or moved line breaks the chain at the next line. The removal of the
// last lines is not detected, unless the digest of the last line was stored elsewhere.
//
// Threads: plain values and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/json.hpp"
#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::observe {

// A member of each record in addition to CloudTrail's: the SHA-256 of the previous line without its
// newline, in hex.
constexpr std::string_view kPreviousDigest = "previousDigest";
// Returns the previous digest of the first line of a log.
std::string first_digest();
// Returns the line's digest in hex.
std::string line_digest(std::string_view line);

// Formats the line of a record, without a newline: the record with the digest of the previous line
// as its last member.
// Requires: record is the text of a JSON object with members, on one line.
std::string format_audit_line(std::string_view record, const std::string& previous_digest);

// An AuditChain checks lines in their order.
class AuditChain {
 public:
  // Continues after a line with this digest. Without one, the first line may have any previous
  // digest.
  explicit AuditChain(std::optional<std::string> previous_digest)
      : digest_(std::move(previous_digest)) {}

  // Checks the next line. Errors: corrupt, if it is not a record, or its previousDigest is not the
  // digest of the previous line.
  Result<void> check(std::string_view line);

  // Returns the digest of the last checked line.
  const std::optional<std::string>& digest() const { return digest_; }
  uint64_t lines() const { return lines_; }

 private:
  std::optional<std::string> digest_;
  uint64_t lines_ = 0;
};

// The attributes of LookupEvents, in the order of the model.
enum class AuditAttribute {
  event_id,
  event_name,
  read_only,
  username,
  resource_type,
  resource_name,
  event_source,
  access_key_id
};

struct AuditFilter {
  std::optional<Instant> from, to;  // both inclusive
  std::optional<std::pair<AuditAttribute, std::string>> attribute;
};

// Returns whether a record matches. Records without the attribute of the filter do not match.
bool matches(const Json& event, const AuditFilter& filter);
// Returns the name of the user or of the session; "" if the record has none.
std::string username_of(const Json& event);

}  // namespace trainyard::observe
