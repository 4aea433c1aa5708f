#include "auth/temporary_keys.hpp"

#include <array>

#include "base/check.hpp"
#include "base/sha256.hpp"
#include "base/text.hpp"
#include "signing/signing.hpp"

namespace trainyard::api {
namespace {

constexpr char kVersion = 2, kVersionWithoutAttempt = 1, kVersionOfDelegation = 3;
constexpr size_t kSealBytes = 32;
constexpr size_t kTokenBytesMax = 48 << 10;  // in base64; some 400 without session policies
constexpr size_t kFieldBytesMax = 2048;
constexpr std::string_view kPrefix = "ASIA";

void put_number(std::string& out, uint64_t value, int bytes) {
  for (int i = bytes - 1; i >= 0; --i) out += char(value >> (8 * i));
}

void put_text(std::string& out, std::string_view text) {
  CHECK(text.size() <= kFieldBytesMax, "each field is at most kFieldBytesMax bytes");
  put_number(out, text.size(), 2);
  out += text;
}

// Reads the output of put_number and put_text. `complete` becomes false when bytes are missing.
struct Cursor {
  std::string_view rest;
  bool complete = true;

  uint64_t number(size_t bytes) {
    if (rest.size() < bytes) return complete = false, 0;
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; ++i) value = value << 8 | static_cast<unsigned char>(rest[i]);
    rest.remove_prefix(bytes);
    return value;
  }
  std::string text() {
    const size_t size = number(2);
    if (!complete || rest.size() < size) return complete = false, std::string();
    std::string out(rest.substr(0, size));
    rest.remove_prefix(size);
    return out;
  }
};

std::string secret_of(const std::string& sealing_secret, std::string_view access_key_id) {
  return to_base64(signing::hmac_sha256(sealing_secret, "secret " + std::string(access_key_id)))
      .substr(0, 40);
}

std::string seal_of(const std::string& sealing_secret, std::string_view payload) {
  return signing::hmac_sha256(sealing_secret, std::string("session token ").append(payload));
}

}  // namespace

namespace {

// Makes new keys, and begins the payload of their token.
TemporaryKeys new_keys(const std::string& sealing_secret, char version, Instant expires,
                       Random& random, std::string& payload) {
  static constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
  TemporaryKeys keys;
  keys.access_key_id = kPrefix;
  std::array<std::byte, 16> bytes;
  random.fill(bytes);
  for (const auto byte : bytes)
    keys.access_key_id += kLetters[std::to_integer<unsigned>(byte) % 32];
  keys.secret_access_key = secret_of(sealing_secret, keys.access_key_id);
  keys.expires = expires;
  payload.assign(1, version);
  put_number(payload, static_cast<uint64_t>(to_milliseconds(keys.expires)), 8);
  put_text(payload, keys.access_key_id);
  return keys;
}

}  // namespace

TemporaryKeys issue_delegated_keys(const std::string& sealing_secret, std::string_view delegation,
                                   Instant now, Duration lifetime, Random& random) {
  std::string payload;
  TemporaryKeys keys =
      new_keys(sealing_secret, kVersionOfDelegation, now + lifetime, random, payload);
  payload += delegation;
  keys.session_token = to_base64(payload + seal_of(sealing_secret, payload));
  return keys;
}

TemporaryKeys issue_keys(const std::string& sealing_secret, const RoleSession& session, Instant now,
                         Duration lifetime, Random& random) {
  std::string payload;
  TemporaryKeys keys = new_keys(sealing_secret, kVersion, now + lifetime, random, payload);
  CHECK(session.policies.size() <= kSessionPoliciesMax, "at most kSessionPoliciesMax policies");
  put_text(payload, session.role_arn);
  put_text(payload, session.session_name);
  put_text(payload, session.job_region);
  put_text(payload, session.job_name);
  put_number(payload, session.job_number, 8);
  put_number(payload, session.attempt, 4);
  put_number(payload, session.assumed, 1);
  put_text(payload, session.person);
  put_text(payload, session.source_identity);
  put_number(payload, session.limited, 1);
  put_number(payload, session.policies.size(), 1);
  for (const auto& policy : session.policies) put_text(payload, policy);
  put_number(payload, static_cast<uint64_t>(to_milliseconds(now)), 8);
  keys.session_token = to_base64(payload + seal_of(sealing_secret, payload));
  return keys;
}

ResolvedKeys resolve_keys(const std::string& sealing_secret, std::string_view access_key_id,
                          std::string_view session_token, Instant now) {
  ResolvedKeys out;
  if (session_token.size() > kTokenBytesMax) return out;
  const auto bytes = from_base64(session_token);
  if (!bytes || bytes->size() <= kSealBytes) return out;
  const std::string_view payload = std::string_view(*bytes).substr(0, bytes->size() - kSealBytes);
  const std::string_view seal = std::string_view(*bytes).substr(payload.size());
  if (!equal_in_constant_time(seal, seal_of(sealing_secret, payload))) return out;

  // The seal is valid, so the payload has the layout above, unless an older version wrote it.
  Cursor cursor{payload};
  const uint64_t version = cursor.number(1);
  if (version == uint64_t(kVersionWithoutAttempt)) out.state = ResolvedKeys::State::expired;
  if (version != uint64_t(kVersion) && version != uint64_t(kVersionOfDelegation)) return out;
  const Instant expires = from_milliseconds(static_cast<int64_t>(cursor.number(8)));
  const std::string id = cursor.text();
  const auto resolve = [&] {
    if (!cursor.complete || id != access_key_id) return out;
    out.secret_access_key = secret_of(sealing_secret, id);
    out.state = now >= expires ? ResolvedKeys::State::expired : ResolvedKeys::State::valid;
    return out;
  };
  if (version == uint64_t(kVersionOfDelegation)) {
    out.delegation = cursor.rest;
    return out.delegation.empty() ? out : resolve();
  }
  RoleSession& session = out.session;
  session.expires = expires;
  session.role_arn = cursor.text();
  session.session_name = cursor.text();
  session.job_region = cursor.text();
  session.job_name = cursor.text();
  session.job_number = cursor.number(8);
  session.attempt = static_cast<uint32_t>(cursor.number(4));
  session.assumed = cursor.number(1) != 0;
  session.person = cursor.text();
  session.source_identity = cursor.text();
  session.limited = cursor.number(1) != 0;
  const uint64_t policies = cursor.number(1);
  for (uint64_t i = 0; i < policies && cursor.complete; ++i)
    session.policies.push_back(cursor.text());
  session.issued = from_milliseconds(static_cast<int64_t>(cursor.number(8)));
  if (!cursor.rest.empty()) cursor.complete = false;
  return resolve();
}

}  // namespace trainyard::api
