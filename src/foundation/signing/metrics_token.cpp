#include "signing/metrics_token.hpp"

#include "base/text.hpp"
#include "signing/signing.hpp"

namespace trainyard::signing {
namespace {

constexpr std::string_view kPrefix = "trainyard-";
constexpr size_t kDigits = 64;

}  // namespace

std::string metrics_token(std::string_view access_key_id, std::string_view secret_access_key,
                          TokenUse use) {
  const std::string head =
      std::string(kPrefix) + std::string(kTokenUses.text(use)) + "." + std::string(access_key_id);
  return head + "." + to_hex(hmac_sha256(secret_access_key, "metrics token 1\n" + head));
}

std::optional<ParsedToken> parse_metrics_token(std::string_view token) {
  if (token.size() > kTokenBytesMax || !token.starts_with(kPrefix)) return std::nullopt;
  token.remove_prefix(kPrefix.size());
  const size_t first = token.find('.');
  const size_t last = token.rfind('.');
  if (first == token.npos || last <= first + 1 || token.size() - last - 1 != kDigits)
    return std::nullopt;
  const auto use = kTokenUses.parse(token.substr(0, first));
  if (!use) return std::nullopt;
  return ParsedToken{*use, std::string(token.substr(first + 1, last - first - 1))};
}

}  // namespace trainyard::signing
