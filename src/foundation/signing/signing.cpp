#include "signing/signing.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.hpp"
#include "base/sha256.hpp"
#include "base/text.hpp"
#include "signing/asymmetric.hpp"
#include "signing/target.hpp"

namespace trainyard::signing {
namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256",
                           kEcdsaAlgorithm = "AWS4-ECDSA-P256-SHA256";
constexpr size_t kDigestBytes = 32;
constexpr size_t kBlockBytes = 64;  // block size of SHA-256, for HMAC

// Returns SHA-256 of OpenSSL. It is fetched once, because a look-up by name costs more than hashing
// a small request.
const EVP_MD* sha256() {
  static EVP_MD* const fetched = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  CHECK(fetched != nullptr, "OpenSSL's default provider has SHA-256");
  return fetched;
}

struct ContextFree {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
using HashContext = std::unique_ptr<EVP_MD_CTX, ContextFree>;

EVP_MD_CTX* thread_context() {
  thread_local const HashContext context{EVP_MD_CTX_new()};
  return context.get();
}

using Digest = std::array<char, kDigestBytes>;

// Returns the SHA-256 of the concatenated pieces.
Digest digest(std::initializer_list<std::string_view> pieces) {
  EVP_MD_CTX* const context = thread_context();
  Digest out;
  bool good = EVP_DigestInit_ex2(context, sha256(), nullptr) == 1;
  for (const auto piece : pieces)
    good = good && EVP_DigestUpdate(context, piece.data(), piece.size()) == 1;
  unsigned length = 0;
  good = good &&
         EVP_DigestFinal_ex(context, reinterpret_cast<unsigned char*>(out.data()), &length) == 1;
  CHECK(good && length == kDigestBytes, "hashing memory cannot fail");
  return out;
}

std::string_view view(const Digest& digest) { return {digest.data(), digest.size()}; }

// Computes an HMAC (RFC 2104) by two calls of digest(), without a context of OpenSSL.
Digest hmac(std::string_view key, std::string_view bytes) {
  std::array<char, kBlockBytes> inner{}, outer{};
  if (key.size() > kBlockBytes) {
    const Digest hashed = digest({key});
    std::memcpy(inner.data(), hashed.data(), hashed.size());
  } else {
    std::memcpy(inner.data(), key.data(), key.size());
  }
  for (size_t i = 0; i < kBlockBytes; ++i) {
    outer[i] = char(inner[i] ^ 0x5c);
    inner[i] = char(inner[i] ^ 0x36);
  }
  const Digest first = digest({{inner.data(), inner.size()}, bytes});
  return digest({{outer.data(), outer.size()}, view(first)});
}

// Removes ".", ".." and empty segments, by RFC 3986; a slash at the end stays.
std::string without_dots(std::string_view path) {
  std::vector<std::string_view> kept;
  for (const auto segment : split(path, '/')) {
    if (segment.empty() || segment == ".") continue;
    if (segment == "..") {
      if (!kept.empty()) kept.pop_back();
    } else {
      kept.push_back(segment);
    }
  }
  std::string out;
  for (const auto segment : kept) out.append("/").append(segment);
  if (out.empty() || (path.size() > 1 && path.ends_with('/'))) out += '/';
  return out;
}

// Returns the path as it is signed. S3 uses the path as the client encoded it (once); every other
// service normalises it and encodes it again.
std::string canonical_path(std::string_view target, std::string_view service) {
  const std::string_view path = path_of(target);
  if (path.empty() || path == "/") return "/";
  if (service == "s3") {
    // Encoded again from the decoded form, so that %7e and ~ are the same key and sign the same
    // text.
    auto decoded = percent_decode(path);
    return percent_encode(decoded ? *decoded : std::string(path), true);
  }
  return percent_encode(without_dots(path), true);
}

// Returns the parameters as they are signed: sorted by name and value, each encoded once, without
// X-Amz-Signature.
std::string canonical_query(std::string_view query) {
  if (query.empty()) return "";
  std::vector<std::pair<std::string, std::string>> parameters;
  for (const auto part : split(query, '&')) {
    if (part.empty()) continue;
    const auto equals = part.find('=');
    const auto encode = [](std::string_view raw) {
      auto decoded = percent_decode(raw);
      return percent_encode(decoded ? *decoded : std::string(raw));
    };
    std::string name = encode(part.substr(0, equals));
    if (name == "X-Amz-Signature") continue;
    parameters.emplace_back(std::move(name), equals == std::string_view::npos
                                                 ? std::string()
                                                 : encode(part.substr(equals + 1)));
  }
  std::sort(parameters.begin(), parameters.end());
  std::string out;
  for (const auto& [name, value] : parameters) {
    if (!out.empty()) out += '&';
    out.append(name).append("=").append(value);
  }
  return out;
}

// Appends a value without blanks at its ends, and with one blank for each run of blanks.
void append_folded(std::string& out, std::string_view value) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  const char* const end = value.data() + value.size();
  const char* next = std::find_if_not(value.data(), end, is_blank);
  while (next != end) {
    const char* const stop = std::find_if(next, end, is_blank);
    out.append(next, stop);
    next = std::find_if_not(stop, end, is_blank);
    if (next != end) out += ' ';
  }
}

// Returns one line for each signed header. Values of equal names are joined by commas, in the order
// of arrival.
std::string canonical_headers(const HeaderList& headers,
                              const std::vector<std::string>& signed_headers) {
  std::string out;
  for (const auto& name : signed_headers) {
    out.append(name).append(":");
    bool first = true;
    for (const auto& [given, value] : headers) {
      if (!equals_ignoring_case(given, name)) continue;
      if (!first) out += ',';
      first = false;
      append_folded(out, value);
    }
    out += '\n';
  }
  return out;
}

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const auto& name : names) {
    if (!out.empty()) out += ';';
    out += name;
  }
  return out;
}

// Formats "20261120/eu-west-1/s3/aws4_request" or, without a region (SigV4a),
// "20261120/s3/aws4_request".
std::string scope_text(std::string_view date, const Scope& scope) {
  std::string text(date);
  if (!scope.region.empty()) text.append("/").append(scope.region);
  return text.append("/").append(scope.service).append("/aws4_request");
}

struct ToSign {
  std::string_view method, target;
  const HeaderList& headers;
  const std::vector<std::string>& signed_headers;
  std::string_view payload_sha256;
  std::string_view time;  // "20261120T094500Z"
  const Scope& scope;
  Algorithm algorithm = Algorithm::hmac;
};

constexpr size_t kCanonicalBytesUsual = 800;

std::string string_to_sign(const ToSign& request) {
  std::string canonical;
  canonical.reserve(kCanonicalBytesUsual);
  canonical.append(request.method)
      .append("\n")
      .append(canonical_path(request.target, request.scope.service))
      .append("\n");
  canonical.append(canonical_query(query_of(request.target))).append("\n");
  canonical.append(canonical_headers(request.headers, request.signed_headers)).append("\n");
  canonical.append(joined(request.signed_headers)).append("\n").append(request.payload_sha256);
  std::string text(request.algorithm == Algorithm::hmac ? kAlgorithm : kEcdsaAlgorithm);
  text.append("\n")
      .append(request.time)
      .append("\n")
      .append(scope_text(request.time.substr(0, 8), request.scope));
  return text.append("\n").append(to_hex(view(digest({canonical}))));
}

std::string signature_of(const ToSign& request, std::string_view key) {
  return to_hex(view(hmac(key, string_to_sign(request))));
}

}  // namespace

std::string sha256_hex(std::string_view bytes) { return to_hex(view(digest({bytes}))); }

std::string hmac_sha256(std::string_view key, std::string_view bytes) {
  return std::string(view(hmac(key, bytes)));
}

struct Sha256::State {
  HashContext context{EVP_MD_CTX_new()};
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  CHECK(EVP_DigestInit_ex2(state_->context.get(), sha256(), nullptr) == 1,
        "SHA-256 needs no outside resource");
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::add(std::string_view bytes) {
  CHECK(EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size()) == 1,
        "hashing memory cannot fail");
}

std::string Sha256::finish_hex() {
  Digest out;
  unsigned length = 0;
  CHECK(EVP_DigestFinal_ex(state_->context.get(), reinterpret_cast<unsigned char*>(out.data()),
                           &length) == 1,
        "finish_hex is called once");
  return to_hex(view(out));
}

std::string signing_key(std::string_view secret_access_key, std::string_view date,
                        const Scope& scope) {
  const Digest day = hmac(std::string("AWS4").append(secret_access_key), date);
  const Digest region = hmac(view(day), scope.region);
  const Digest service = hmac(view(region), scope.service);
  return std::string(view(hmac(view(service), "aws4_request")));
}

HeaderList sign(std::string_view method, std::string_view target, const HeaderList& headers,
                std::string_view payload_sha256, const Keys& keys, const Scope& scope,
                Instant now) {
  const std::string time = to_basic_iso8601(now);
  HeaderList added{{"X-Amz-Date", time}};
  if (!keys.session_token.empty()) added.emplace_back("X-Amz-Security-Token", keys.session_token);
  added.emplace_back("x-amz-content-sha256", std::string(payload_sha256));

  HeaderList all = headers;
  std::erase_if(all, [&](const auto& field) {
    return std::any_of(added.begin(), added.end(), [&](const auto& other) {
      return equals_ignoring_case(field.first, other.first);
    });
  });
  all.insert(all.end(), added.begin(), added.end());
  std::vector<std::string> names;
  for (const auto& [name, value] : all) names.push_back(to_lower(name));
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());

  const std::string date = time.substr(0, 8);
  const std::string signature =
      signature_of({method, target, all, names, payload_sha256, time, scope},
                   signing_key(keys.secret_access_key, date, scope));
  std::string authorization(kAlgorithm);
  authorization.append(" Credential=")
      .append(keys.access_key_id)
      .append("/")
      .append(scope_text(date, scope));
  authorization.append(", SignedHeaders=")
      .append(joined(names))
      .append(", Signature=")
      .append(signature);
  added.emplace_back("Authorization", std::move(authorization));
  return added;
}

std::string presign(std::string_view method, std::string_view target, std::string_view host,
                    const Keys& keys, const Scope& scope, Instant now, Duration lifetime) {
  const std::string time = to_basic_iso8601(now);
  const std::string date = time.substr(0, 8);
  std::string out(target);
  const auto add = [&](std::string_view name, std::string_view value) {
    out += out.find('?') == std::string::npos ? '?' : '&';
    out.append(name).append("=").append(percent_encode(value));
  };
  add("X-Amz-Algorithm", kAlgorithm);
  add("X-Amz-Credential", keys.access_key_id + "/" + scope_text(date, scope));
  add("X-Amz-Date", time);
  add("X-Amz-Expires",
      std::to_string(std::chrono::duration_cast<std::chrono::seconds>(lifetime).count()));
  add("X-Amz-SignedHeaders", "host");
  if (!keys.session_token.empty()) add("X-Amz-Security-Token", keys.session_token);
  const HeaderList headers{{"host", std::string(host)}};
  const std::vector<std::string> names{"host"};
  // S3 accepts any body with a presigned URL; other services use the hash of an empty body.
  const std::string payload =
      scope.service == "s3" ? std::string(kUnsignedPayload) : sha256_hex("");
  add("X-Amz-Signature", signature_of({method, out, headers, names, payload, time, scope},
                                      signing_key(keys.secret_access_key, date, scope)));
  return out;
}

std::vector<std::string> headers_not_signed(const HeaderList& headers, const Claim& claim) {
  constexpr std::string_view kPrefix = "x-amz-";
  std::vector<std::string> missing;
  for (const auto& [name, value] : headers) {
    const bool amazon = name.size() > kPrefix.size() &&
                        equals_ignoring_case(name.substr(0, kPrefix.size()), kPrefix);
    if (!amazon && !equals_ignoring_case(name, "host")) continue;
    std::string lower = to_lower(name);
    if (claim.in_query && lower == "x-amz-content-sha256") continue;
    if (!std::binary_search(claim.signed_headers.begin(), claim.signed_headers.end(), lower))
      missing.push_back(std::move(lower));
  }
  return missing;
}

namespace {

Verdict check_times(const Claim& claim, Instant now) {
  if (claim.lifetime) {
    if (claim.signed_at > now + kSkewMax) return Verdict::skewed;
    if (now > claim.signed_at + *claim.lifetime) return Verdict::expired;
  } else if (claim.signed_at > now + kSkewMax || claim.signed_at < now - kSkewMax) {
    return Verdict::skewed;
  }
  return Verdict::valid;
}

}  // namespace

std::string verification_key(std::string_view secret_access_key, const Claim& claim) {
  if (claim.algorithm == Algorithm::ecdsa)
    return public_key_of(derive_private_key(claim.access_key_id, secret_access_key));
  return signing_key(secret_access_key, claim.date, claim.scope);
}

Verdict check_signature(std::string_view method, std::string_view target, const HeaderList& headers,
                        const Claim& claim, std::string_view signing_key, Instant now) {
  // Checks the times first, because they are cheap to check and not secret.
  if (const Verdict times = check_times(claim, now); times != Verdict::valid) return times;
  const std::string time = to_basic_iso8601(claim.signed_at);
  if (time.substr(0, 8) != claim.date) return Verdict::wrong_signature;
  if (!headers_not_signed(headers, claim).empty()) return Verdict::headers_not_signed;
  // If x-amz-content-sha256 is absent, the caller has set payload_sha256 to the hash of the body.
  // The signed scope of SigV4a has no region.
  const Scope scope{claim.algorithm == Algorithm::hmac ? claim.scope.region : "",
                    claim.scope.service};
  const ToSign request{method, target, headers,        claim.signed_headers, claim.payload_sha256,
                       time,   scope,  claim.algorithm};
  if (claim.algorithm == Algorithm::ecdsa) {
    const auto signature = from_hex(claim.signature);
    const bool good = signature && verify_ecdsa(signing_key, string_to_sign(request), *signature);
    return good ? Verdict::valid : Verdict::wrong_signature;
  }
  const std::string signature = signature_of(request, signing_key);
  return equal_in_constant_time(signature, claim.signature) ? Verdict::valid
                                                            : Verdict::wrong_signature;
}

Verdict check_form_signature(const Claim& claim, std::string_view policy,
                             std::string_view signing_key, Instant now) {
  if (const Verdict times = check_times(claim, now); times != Verdict::valid) return times;
  const std::string signature = to_hex(view(hmac(signing_key, policy)));
  return equal_in_constant_time(signature, claim.signature) ? Verdict::valid
                                                            : Verdict::wrong_signature;
}

Result<void> verify(std::string_view method, std::string_view target, const HeaderList& headers,
                    const Claim& claim, std::string_view secret_access_key, Instant now) {
  switch (check_signature(method, target, headers, claim,
                          verification_key(secret_access_key, claim), now)) {
    case Verdict::valid:
      return ok();
    case Verdict::skewed:
      return denied("Signature " +
                    std::string(claim.signed_at < now ? "expired: " : "not yet current: ") +
                    to_basic_iso8601(claim.signed_at) + " is more than 15 minutes from " +
                    to_basic_iso8601(now));
    case Verdict::expired:
      return denied("Request has expired");
    case Verdict::headers_not_signed:
      return denied("There were headers present in the request which were not signed: " +
                    joined(headers_not_signed(headers, claim)));
    case Verdict::wrong_signature:
      break;
  }
  return denied(
      "The request signature we calculated does not match the signature you provided. Check your "
      "AWS Secret Access Key and signing method. Consult the service documentation for details.");
}

}  // namespace trainyard::signing
