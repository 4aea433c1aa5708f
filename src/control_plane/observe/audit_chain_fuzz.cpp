// Checks any bytes as lines of an audit log, and runs lookups on them even if the chain is broken.
// decoder: src/control_plane/observe/audit_chain.cpp
#include <cstddef>
#include <cstdint>

#include "base/check.hpp"
#include "base/text.hpp"
#include "observe/audit_chain.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard;
  using namespace trainyard::observe;
  AuditChain chain(std::nullopt);
  // All attributes, with values of events in the corpus.
  const std::pair<AuditAttribute, std::string> wanted[] = {
      {AuditAttribute::event_id, "1"},        {AuditAttribute::event_name, "CreateBucket"},
      {AuditAttribute::username, "ana"},      {AuditAttribute::event_source, "s3.amazonaws.com"},
      {AuditAttribute::read_only, "false"},   {AuditAttribute::access_key_id, "AKIA1"},
      {AuditAttribute::resource_name, "one"}, {AuditAttribute::resource_type, "AWS::S3::Bucket"}};
  for (const std::string_view line : split({reinterpret_cast<const char*>(data), size}, '\n')) {
    const auto parsed = parse_json(line);
    if (parsed) {
      for (const auto& each : wanted) (void)matches(*parsed, {from_milliseconds(0), {}, each});
    }
    if (parsed && parsed->is_object() && !parsed->empty()) {
      AuditChain other(first_digest());
      CHECK(bool(other.check(format_audit_line(dump(*parsed), first_digest()))),
            "a written line passes the check");
    }
    if (!chain.check(line)) break;
    CHECK(chain.digest() == line_digest(line), "the chain has the digest of the line");
  }
  return 0;
}
