// Any bytes as lines of an audit log: they follow on each other or do not; lookups read them all the same.
// decoder: src/observe/audit_chain.cpp
#include <cstddef>
#include <cstdint>

#include "base/check.hpp"
#include "base/text.hpp"
#include "observe/audit_chain.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard;
  using namespace trainyard::observe;
  AuditChain chain(std::nullopt);
  AuditFilter filter{from_milliseconds(0), {}, {{AuditAttribute::resource_name, "one"}}};
  for (const std::string_view line : split({reinterpret_cast<const char*>(data), size}, '\n')) {
    const auto parsed = parse_json(line);
    if (parsed) {
      (void)matches(*parsed, filter);
      (void)matches(*parsed, {{}, {}, {{AuditAttribute::username, "ana"}}});
    }
    if (parsed && parsed->is_object()) {
      AuditChain other(first_digest());
      CHECK(bool(other.check(format_audit_line(*parsed, first_digest()))), "what is written is read");
    }
    if (!chain.check(line)) break;
    CHECK(chain.digest() == line_digest(line), "the digest is the line's");
  }
  return 0;
}
