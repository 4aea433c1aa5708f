#include "console/session_table.hpp"

#include <algorithm>

#include "signing/signing.hpp"

namespace trainyard::api::console {
namespace {

constexpr size_t kSecretBytes = 32;
constexpr size_t kSecretDigits = 2 * kSecretBytes;

std::string hash_of(std::string_view secret) {
  // A secret of another length is unknown. It is not hashed, since a peer may send a long one.
  return secret.size() == kSecretDigits ? signing::sha256_hex(secret) : std::string();
}

Instant earliest(Instant usual, Instant limit) {
  return limit == Instant{} ? usual : std::min(usual, limit);
}

}  // namespace

void SessionTable::evict(Entries& entries, const SignedIn& who, size_t entries_max, Instant now) {
  std::erase_if(entries, [&](const auto& entry) { return entry.second.expires <= now; });
  const auto by_expiry = [](const auto& a, const auto& b) {
    return a.second.expires < b.second.expires;
  };
  const auto same = [&](const auto& entry) { return entry.second.arn == who.arn; };
  if (size_t(std::ranges::count_if(entries, same)) >= kSessionsPerPrincipal) {
    auto oldest = entries.end();
    for (auto at = entries.begin(); at != entries.end(); ++at)
      if (same(*at) && (oldest == entries.end() || by_expiry(*at, *oldest))) oldest = at;
    entries.erase(oldest);
  }
  if (entries.size() >= entries_max) entries.erase(std::ranges::min_element(entries, by_expiry));
}

ConsoleToken SessionTable::issue_token(SignedIn who, Instant now) {
  const std::string secret = random_.hex(kSecretBytes);
  const std::string hash = hash_of(secret);
  const MutexLock lock(mutex_);
  const Instant ends = who.expires;
  who.expires = earliest(now + kTokenLifetime, ends);
  const ConsoleToken token{secret, who.expires};
  evict(tokens_, who, kTokensMax, now);
  tokens_.insert_or_assign(hash, std::move(who));
  std::erase_if(ends_,
                [&](const auto& end) REQUIRES(mutex_) { return !tokens_.contains(end.first); });
  ends_[hash] = ends;
  return token;
}

std::optional<SignedIn> SessionTable::redeem(std::string_view token, Instant now) {
  const std::string hash = hash_of(token);
  const MutexLock lock(mutex_);
  auto found = tokens_.extract(hash);
  if (found.empty()) return {};
  const auto ends = ends_.extract(hash);
  if (found.mapped().expires <= now) return {};
  found.mapped().expires = ends.empty() ? Instant{} : ends.mapped();
  return std::move(found.mapped());
}

std::string SessionTable::open(SignedIn who, Instant now) {
  std::string secret = random_.hex(kSecretBytes);
  who.expires = earliest(now + kSessionLifetime, who.expires);
  const MutexLock lock(mutex_);
  evict(sessions_, who, kSessionsMax, now);
  sessions_.insert_or_assign(hash_of(secret), std::move(who));
  return secret;
}

std::optional<SignedIn> SessionTable::find(std::string_view id, Instant now) const {
  const std::string hash = hash_of(id);
  const MutexLock lock(mutex_);
  const auto found = sessions_.find(hash);
  if (found == sessions_.end() || found->second.expires <= now) return {};
  return found->second;
}

void SessionTable::close(std::string_view id) {
  const std::string hash = hash_of(id);
  const MutexLock lock(mutex_);
  sessions_.erase(hash);
}

}  // namespace trainyard::api::console
