// Reads any text as a request: a line "METHOD TARGET", then one header per line.
// Verifies its signature, then signs it: signatures that we make must verify.
// decoder: src/foundation/signing/signing.cpp src/foundation/signing/claim.cpp
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/check.hpp"
#include "base/text.hpp"
#include "signing/signing.hpp"

using namespace trainyard;

// Returns true for a header name that the server accepts and a client may sign.
static bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_';
  });
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto lines = split(text, '\n');
  const auto blank = lines[0].find(' ');
  const std::string_view method = lines[0].substr(0, blank);
  const std::string_view target =
      blank == std::string_view::npos ? "/" : lines[0].substr(blank + 1);
  signing::HeaderList headers;
  for (size_t i = 1; i < lines.size() && i < 200; ++i) {
    const auto colon = lines[i].find(':');
    if (colon == std::string_view::npos) continue;
    headers.emplace_back(std::string(lines[i].substr(0, colon)),
                         std::string(lines[i].substr(colon + 1)));
  }
  const Instant now = *parse_basic_iso8601("20261120T094500Z");
  const std::string secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
  const auto claim = signing::read_claim(target, headers);
  if (claim && *claim) (void)signing::verify(method, target, headers, **claim, secret, now);
  if (claim && *claim)
    (void)signing::verify(method, target, headers, **claim, secret, (*claim)->signed_at);

  if (claim && *claim) (void)signing::region_set_includes((*claim)->region_set, "eu-west-1");

  // Reads the same headers as the fields of a POST form.
  const auto field = [&](std::string_view name) {
    for (const auto& [given, value] : headers)
      if (equals_ignoring_case(given, name)) return value;
    return std::string();
  };
  const auto form = signing::read_form_claim({field("x-amz-algorithm"), field("x-amz-credential"),
                                              field("x-amz-date"), field("x-amz-security-token"),
                                              field("x-amz-signature")});
  if (form)
    (void)signing::check_form_signature(*form, target, signing::verification_key(secret, *form),
                                        now);

  // Signs and verifies the request, if it has no signature.
  if (!claim || *claim || target.find('#') != std::string_view::npos) return 0;
  const signing::Keys keys{"AKID", secret, size % 2 ? "token" : ""};
  const signing::Scope scope{"eu-west-1", size % 3 ? "s3" : "sagemaker"};
  auto signed_headers = headers;
  std::erase_if(signed_headers, [](const auto& field) {
    return !is_name(field.first) || to_lower(field.first).starts_with("x-amz-") ||
           equals_ignoring_case(field.first, "authorization");
  });
  if (signed_headers.size() > 50) return 0;
  signed_headers.emplace_back("host", "127.0.0.1");
  signing::Sha256 body;
  body.add(text);
  for (auto& field :
       signing::sign(method, target, signed_headers, body.finish_hex(), keys, scope, now))
    signed_headers.push_back(field);
  const auto own = signing::read_claim(target, signed_headers);
  CHECK(own && *own, "a signed request has a readable signature");
  CHECK(bool(signing::verify(method, target, signed_headers, **own, secret, now)),
        "the signature of a signed request verifies");
  if (to_lower(target).find("x-amz-") != std::string::npos) return 0;
  const std::string url = signing::presign(method, target, "127.0.0.1", keys, scope, now, 60s);
  const signing::HeaderList plain{{"Host", "127.0.0.1"}};
  auto presigned = signing::read_claim(url, plain);
  CHECK(presigned && *presigned, "a presigned URL has a readable signature");
  if ((*presigned)->payload_sha256.empty()) (*presigned)->payload_sha256 = signing::sha256_hex("");
  CHECK(bool(signing::verify(method, url, plain, **presigned, secret, now)),
        "the signature of a presigned URL verifies");
  return 0;
}
