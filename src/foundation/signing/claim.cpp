#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "signing/signing.hpp"
#include "signing/target.hpp"

namespace trainyard::signing {
namespace {

constexpr std::string_view kHmac = "AWS4-HMAC-SHA256", kEcdsa = "AWS4-ECDSA-P256-SHA256";
constexpr size_t kSignedHeadersMax = 100;    // clients sign fewer than twenty
constexpr size_t kRegionSetBytesMax = 1024;  // twice the length of all names of AWS's regions

std::string_view header(const HeaderList& headers, std::string_view name) {
  for (const auto& [given, value] : headers)
    if (equals_ignoring_case(given, name)) return value;
  return "";
}

std::optional<Algorithm> algorithm_of(std::string_view name) {
  if (name == kHmac) return Algorithm::hmac;
  if (name == kEcdsa) return Algorithm::ecdsa;
  return std::nullopt;
}

struct Query {
  std::optional<std::string> algorithm, credential, date, expires, signed_headers, signature, token,
      payload, region_set;
};

Result<Query> read_query(std::string_view query) {
  Query out;
  const std::pair<std::string_view, std::optional<std::string>*> wanted[] = {
      {"x-amz-algorithm", &out.algorithm},
      {"x-amz-credential", &out.credential},
      {"x-amz-date", &out.date},
      {"x-amz-expires", &out.expires},
      {"x-amz-signedheaders", &out.signed_headers},
      {"x-amz-signature", &out.signature},
      {"x-amz-security-token", &out.token},
      {"x-amz-content-sha256", &out.payload},
      {"x-amz-region-set", &out.region_set}};
  for (const auto part : split(query, '&')) {
    if (part.size() < 6 || !equals_ignoring_case(part.substr(0, 6), "x-amz-")) continue;
    const auto equals = part.find('=');
    const std::string name = to_lower(part.substr(0, equals));
    for (const auto& [key, slot] : wanted) {
      if (name != key || equals == std::string_view::npos) continue;
      if (*slot) return invalid("query parameter " + std::string(key) + " is given twice");
      *slot = TRY(percent_decode(part.substr(equals + 1)));
    }
  }
  return out;
}

bool is_date(std::string_view text) {
  return text.size() == 8 && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Reads "AKIA.../20261120/eu-west-1/s3/aws4_request" or, for SigV4a,
// "AKIA.../20261120/s3/aws4_request". Requires: claim.algorithm is set.
Result<void> read_credential(std::string_view credential, Claim& claim) {
  const bool regional = claim.algorithm == Algorithm::hmac;
  const auto fault = [&] {
    return invalid("Credential must have exactly " + std::string(regional ? "5" : "4") +
                   " slash-delimited elements, e.g. keyid/date/" + (regional ? "region/" : "") +
                   "service/term, got '" + shorten(credential, 200) + "'");
  };
  // Key IDs contain no slash. If one did, it would be the part before the last four elements.
  std::string_view rest = credential;
  std::array<std::string_view, 4> last;  // date, region, service, term
  for (int i = 3; i >= 0; --i) {
    if (i == 1 && !regional) continue;
    const auto slash = rest.rfind('/');
    if (slash == std::string_view::npos) return fault();
    last[i] = rest.substr(slash + 1);
    rest = rest.substr(0, slash);
  }
  if (rest.empty() || !is_date(last[0]) || (regional && last[1].empty()) || last[2].empty() ||
      last[3] != "aws4_request")
    return fault();
  claim.access_key_id = rest;
  claim.date = last[0];
  claim.scope = {std::string(last[1]), std::string(last[2])};
  return ok();
}

Result<void> take_region_set(std::string_view set, Claim& claim) {
  if (claim.algorithm == Algorithm::hmac) return ok();
  if (set.empty())
    return invalid("AWS4-ECDSA-P256-SHA256 requires the parameter 'X-Amz-Region-Set'.");
  if (set.size() > kRegionSetBytesMax) return invalid("X-Amz-Region-Set is too long.");
  claim.region_set = set;
  return ok();
}

Result<void> read_signed_headers(std::string_view text, Claim& claim) {
  for (const auto name : split(text, ';')) {
    if (name.empty()) continue;
    if (claim.signed_headers.size() == kSignedHeadersMax)
      return invalid("more than " + std::to_string(kSignedHeadersMax) + " signed headers");
    claim.signed_headers.push_back(to_lower(name));
  }
  if (!std::is_sorted(claim.signed_headers.begin(), claim.signed_headers.end()))
    std::sort(claim.signed_headers.begin(), claim.signed_headers.end());
  if (std::find(claim.signed_headers.begin(), claim.signed_headers.end(), "host") ==
      claim.signed_headers.end())
    return invalid("'Host' or ':authority' must be a 'SignedHeader' in the AWS Authorization.");
  return ok();
}

Result<std::optional<Claim>> claim_of_query(const Query& query, const HeaderList& headers) {
  Claim claim;
  claim.in_query = true;
  const auto algorithm = algorithm_of(query.algorithm.value_or(""));
  if (!algorithm)
    return invalid("X-Amz-Algorithm only supports \"AWS4-HMAC-SHA256 and AWS4-ECDSA-P256-SHA256\"");
  claim.algorithm = *algorithm;
  if (!query.credential || !query.date || !query.signed_headers || !query.signature)
    return invalid(
        "AWS query-string parameters must include X-Amz-Algorithm, X-Amz-Credential, "
        "X-Amz-Signature, X-Amz-Date, X-Amz-SignedHeaders and X-Amz-Expires");
  TRY(read_credential(*query.credential, claim));
  TRY(read_signed_headers(*query.signed_headers, claim));
  TRY(take_region_set(query.region_set.value_or(std::string(header(headers, "x-amz-region-set"))),
                      claim));
  claim.signature = *query.signature;
  claim.signed_at = TRY(parse_basic_iso8601(*query.date));
  claim.session_token = query.token.value_or(std::string(header(headers, "x-amz-security-token")));
  if (query.expires) {
    const int64_t seconds = TRY(parse_int(*query.expires));
    if (seconds < 0) return invalid("X-Amz-Expires must be non-negative");
    if (std::chrono::seconds(std::min<int64_t>(seconds, int64_t(1) << 32)) > kPresignMax)
      return invalid("X-Amz-Expires must be less than a week (in seconds) that is 604800");
    claim.lifetime = std::chrono::seconds(seconds);
  }
  claim.payload_sha256 =
      query.payload.value_or(std::string(header(headers, "x-amz-content-sha256")));
  if (claim.payload_sha256.empty() && claim.scope.service == "s3")
    claim.payload_sha256 = kUnsignedPayload;
  return std::optional(std::move(claim));
}

}  // namespace

Result<std::optional<Claim>> read_claim(std::string_view target, const HeaderList& headers) {
  const std::string_view authorization = header(headers, "authorization");
  if (authorization.empty()) {
    const Query query = TRY(read_query(query_of(target)));
    if (!query.algorithm && !query.credential && !query.signature) return std::optional<Claim>();
    return claim_of_query(query, headers);
  }
  const std::string_view type = authorization.substr(0, authorization.find(' '));
  const auto algorithm = algorithm_of(type);
  if (!algorithm)
    return invalid("Unsupported authorization type: '" + shorten(type, 60) +
                   "'; this server accepts AWS4-HMAC-SHA256 and AWS4-ECDSA-P256-SHA256");
  Claim claim;
  claim.algorithm = *algorithm;
  bool credential = false, names = false;
  for (const auto part : split(authorization.substr(type.size()), ',')) {
    const std::string_view field = trim(part);
    const auto equals = field.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = field.substr(0, equals), value = field.substr(equals + 1);
    if (name == "Credential" && !credential) {
      TRY(read_credential(value, claim));
      credential = true;
    } else if (name == "SignedHeaders" && !names) {
      TRY(read_signed_headers(value, claim));
      names = true;
    } else if (name == "Signature") {
      claim.signature = value;
    }
  }
  if (!credential) return invalid("Authorization header requires 'Credential' parameter.");
  if (claim.signature.empty())
    return invalid("Authorization header requires 'Signature' parameter.");
  if (!names) return invalid("Authorization header requires 'SignedHeaders' parameter.");

  const std::string_view amz_date = header(headers, "x-amz-date");
  if (!amz_date.empty()) {
    claim.signed_at = TRY(parse_basic_iso8601(amz_date).in("X-Amz-Date"));
  } else {
    const std::string_view date = header(headers, "date");
    if (date.empty())
      return invalid(
          "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header.");
    claim.signed_at = TRY(parse_http_date(date).in("Date"));
  }
  if (to_basic_iso8601(claim.signed_at).substr(0, 8) != claim.date)
    return invalid(
        "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP");
  TRY(take_region_set(header(headers, "x-amz-region-set"), claim));
  claim.session_token = header(headers, "x-amz-security-token");
  claim.payload_sha256 = header(headers, "x-amz-content-sha256");
  return std::optional(std::move(claim));
}

Result<Claim> read_form_claim(const FormSignature& form) {
  if (form.algorithm != kHmac)
    return invalid("x-amz-algorithm only supports \"AWS4-HMAC-SHA256\", got '" +
                   shorten(form.algorithm, 60) + "'");
  Claim claim;
  claim.in_query = true;
  TRY(read_credential(form.credential, claim));
  claim.signed_at = TRY(parse_basic_iso8601(form.date).in("x-amz-date"));
  if (to_basic_iso8601(claim.signed_at).substr(0, 8) != claim.date)
    return invalid("x-amz-credential and x-amz-date have different dates");
  claim.lifetime = kPresignMax;
  claim.signature = form.signature;
  claim.session_token = form.token;
  claim.payload_sha256 = kUnsignedPayload;
  return claim;
}

bool region_set_includes(std::string_view set, std::string_view region) {
  for (const auto part : split(set, ',')) {
    std::string_view pattern = trim(part), text = region;
    // Each piece between asterisks is matched at its first occurrence, the last piece at the end.
    const size_t star = pattern.find('*');
    if (star == std::string_view::npos) {
      if (pattern == text) return true;
      continue;
    }
    if (!text.starts_with(pattern.substr(0, star))) continue;
    text.remove_prefix(star);
    pattern.remove_prefix(star + 1);
    bool fits = true;
    for (size_t next = pattern.find('*'); fits && next != std::string_view::npos;
         next = pattern.find('*')) {
      const size_t found = text.find(pattern.substr(0, next));
      fits = found != std::string_view::npos;
      if (fits) text.remove_prefix(found + next);
      pattern.remove_prefix(next + 1);
    }
    if (fits && text.ends_with(pattern)) return true;
  }
  return false;
}

}  // namespace trainyard::signing
