// Parses a text as a policy document, and checks a form against it. The lines before the document
// are the form's fields, "name=value".
// decoder: src/api/auth/post_policy.cpp
#include <cstddef>
#include <cstdint>

#include "auth/post_policy.hpp"
#include "base/check.hpp"
#include "base/text.hpp"

using namespace trainyard;
using namespace trainyard::api;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  NameValues fields;
  while (!text.empty() && text.front() != '{' && fields.size() < 100) {
    const std::string_view line = text.substr(0, text.find('\n'));
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) break;
    fields.emplace_back(to_lower(line.substr(0, equals)), std::string(line.substr(equals + 1)));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  const auto policy = parse_post_policy(text);
  if (!policy) return 0;
  const Instant now = *parse_basic_iso8601("20151229T000000Z");
  const bool fits = bool(check_post_policy(*policy, fields, "bucket", now));
  CHECK(!fits || now <= policy->expiration, "an expired policy accepts no form");
  fields.emplace_back("x-amz-never-named-\x01", "");
  const auto more = check_post_policy(*policy, fields, "bucket", now);
  CHECK(!fits || !more || text.find("x-amz-never-named-") != std::string_view::npos,
        "a field without a condition is rejected");
  return 0;
}
