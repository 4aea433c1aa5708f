// Makes bearer tokens for metrics from access keys, for programs that cannot sign requests, such as
// Prometheus.
//
//   trainyard-scrape.AKIAIOSFODNN7EXAMPLE.<64 hex digits>
//
// The digits are an HMAC-SHA256 of the token's use and of the key's id, with the secret access key.
// So a token is good for that use only, does not reveal the secret, needs no storage, and ends with
// its key.
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
// Reads the parts of a token without verifying it. Nothing: the text has another form.
std::optional<ParsedToken> parse_metrics_token(std::string_view token);

}  // namespace trainyard::signing
