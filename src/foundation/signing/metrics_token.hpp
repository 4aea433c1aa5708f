// Makes and parses bearer tokens for metrics, for programs that cannot sign requests, such as
// Prometheus. A token is derived from an access key:
//
//   trainyard-scrape.AKIAIOSFODNN7EXAMPLE.<64 hex digits>
//
// The digits are an HMAC-SHA256 of the token's use and of the access key ID, with the secret access
// key. A token is therefore valid for one use only, does not reveal the secret, is not stored, and
// becomes invalid with its key.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/enum_table.hpp"

namespace trainyard::signing {

enum class TokenUse { scrape, write };
inline constexpr EnumTable<TokenUse> kTokenUses{
    "use of a token", {{TokenUse::scrape, "scrape"}, {TokenUse::write, "write"}}};

inline constexpr size_t kTokenBytesMax = 1024;

struct ParsedToken {
  TokenUse use = TokenUse::scrape;
  std::string access_key_id;
};

std::string metrics_token(std::string_view access_key_id, std::string_view secret_access_key,
                          TokenUse use);
// Parses a token without verifying it. Returns nullopt if the text has another form.
std::optional<ParsedToken> parse_metrics_token(std::string_view token);

}  // namespace trainyard::signing
