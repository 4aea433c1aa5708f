// The lines of the audit log: one record in CloudTrail's format a line, each with the digest of the line before it.
//
// A changed, removed, inserted or moved line breaks the chain at the line behind it. Lines removed from the end break
// nothing: compare the digest of the last line with one that was kept elsewhere.
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

// A member of each record in addition to CloudTrail's: the SHA-256 of the previous line without its newline, in hex.
constexpr std::string_view kPreviousDigest = "previousDigest";
// Of the first line of all.
std::string first_digest();
// In hex.
std::string line_digest(std::string_view line);

// The line of a record, without a newline: the record with the digest of the previous line as its last member.
// Requires: record is the text of a JSON object with members, on one line.
std::string format_audit_line(std::string_view record, const std::string& previous_digest);

// Walks over lines in their order.
class AuditChain {
 public:
  // Continues behind a line with this digest; without one, the first line may name any.
  explicit AuditChain(std::optional<std::string> previous_digest) : digest_(std::move(previous_digest)) {}

  // Errors: corrupt: not a record, or the previous line is not the one that it names.
  Result<void> check(std::string_view line);

  // Of the last line checked.
  const std::optional<std::string>& digest() const { return digest_; }
  uint64_t lines() const { return lines_; }

 private:
  std::optional<std::string> digest_;
  uint64_t lines_ = 0;
};

// LookupEvents' attributes, in the order of the model.
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

// Records that lack what is asked for do not match.
bool matches(const Json& event, const AuditFilter& filter);
// The user's name; of a session, the session's. Empty: the record has none.
std::string username_of(const Json& event);

}  // namespace trainyard::observe
