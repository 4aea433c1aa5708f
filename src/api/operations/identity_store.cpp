#include "operations/identity_store.hpp"

#include <array>
#include <utility>

#include "base/complete_record.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "base/thread_safety.hpp"
#include "operations/commit_records.hpp"
#include "policy/identity_records.hpp"
#include "signing/sealed_text.hpp"

namespace trainyard::api {
namespace {

constexpr std::string_view kUseRecord = "access_key_use";
// Retries of one change after commits by other writers of records.
constexpr int kConflictsMax = 10;
constexpr size_t kUsesAtOnceMax = 500;     // written in one change of records
constexpr Duration kUseResolution = 1min;  // of a last use, so that a busy key rarely changes it
constexpr size_t kSecretBytes = 30;        // 40 characters of base64, as on AWS
constexpr size_t kIdLetters = 16;          // after "AKIA"
constexpr std::string_view kIdAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

std::string random_letters(Random& random, size_t count) {
  std::string bytes(count, '\0');
  random.fill(std::as_writable_bytes(std::span(bytes)));
  for (char& c : bytes) c = kIdAlphabet[uint8_t(c) % kIdAlphabet.size()];
  return bytes;
}

std::string random_secret(Random& random) {
  std::string bytes(kSecretBytes, '\0');
  random.fill(std::as_writable_bytes(std::span(bytes)));
  return to_base64(bytes);
}

constexpr auto kKeyUse = complete(json_record<KeyUse>("key use", [](auto& side, auto& use) {
  side("at", use.at);
  side("region", use.region);
  side("service", use.service);
}));

std::optional<KeyUse> use_of(const Json& json) {
  auto use = kKeyUse.read(json);
  return use ? std::optional(*std::move(use)) : std::nullopt;
}

}  // namespace

IdentityStore::IdentityStore(control::Control& control, std::string sealing_key,
                             policy::Identities seed, Random& random)
    : control_(control),
      sealing_key_(std::move(sealing_key)),
      random_(random),
      seed_(std::move(seed)) {}

std::shared_ptr<const policy::Identities> IdentityStore::snapshot() const {
  auto records = control_.records();
  const MutexLock lock(mutex_);
  if (records_ != records) {
    // Another thread has already joined newer records.
    if (records_ && records->version < records_->version) return joined_;
    joined_ = join(seed_, *records);
    records_ = std::move(records);
  }
  return joined_;
}

void IdentityStore::set_configured(policy::Identities seed) {
  const MutexLock lock(mutex_);
  seed_ = std::move(seed);
  records_ = nullptr;
}

std::shared_ptr<const policy::Identities> IdentityStore::join(
    const policy::Identities& seed, const domain::Records& records) const {
  policy::Identities joined = seed;
  const policy::Unseal unseal = [this](const std::string& sealed, const std::string& key_id) {
    return signing::unseal(sealing_key_, sealed, key_id);
  };
  for (const auto& [key, record] : records.all) {
    const auto added = policy::add_record(joined, key, record->document, unseal);
    if (!added && set_aside_.insert(key).second)
      log(Level::error, "api", "a record of an identity was set aside",
          {{"record", key.first + "/" + key.second}, {"why", added.error().message}});
  }
  return std::make_shared<const policy::Identities>(std::move(joined));
}

Result<void> IdentityStore::change(const std::function<Result<void>(policy::Identities&)>& edit) {
  const MutexLock exclusive(changing_);
  for (int conflicts = 0;; ++conflicts) {
    const auto records = control_.records();
    std::shared_ptr<const policy::Identities> before;
    {
      const MutexLock lock(mutex_);
      before = records_ == records ? joined_ : join(seed_, *records);
    }
    policy::Identities after = *before;
    TRY(edit(after));
    control::RecordsRequest requested;
    requested.expected = records->version;
    for (auto& each : policy::difference(*before, after)) {
      if (!each.document && each.name.first == policy::kKeyRecord)
        requested.writes.push_back({{std::string(kUseRecord), each.name.second}, std::nullopt});
      requested.writes.push_back({std::move(each.name), std::move(each.document)});
    }
    if (requested.writes.empty()) return {};
    const auto committed = commit_records(control_, std::move(requested));
    if (committed) return {};
    if (committed.error().kind != Kind::conflict) return committed.error();
    // `edit` reports conflicts with existing identities, so this conflict is a commit by another
    // writer.
    if (conflicts == kConflictsMax)
      return unavailable("identities are being changed by others: try again");
  }
}

policy::AccessKey IdentityStore::make_key(std::string user, Instant now) {
  policy::AccessKey key;
  key.id = "AKIA" + random_letters(random_, kIdLetters);
  key.user = std::move(user);
  key.secret = random_secret(random_);
  key.sealed_secret = signing::seal(sealing_key_, key.secret, key.id, random_);
  key.created = now;
  return key;
}

std::string IdentityStore::make_id(std::string_view prefix) {
  return std::string(prefix) + random_letters(random_, 17);
}

void IdentityStore::key_used(std::string_view id, Instant at, std::string_view region,
                             std::string_view service) {
  const MutexLock lock(uses_mutex_);
  const auto found = uses_.find(id);
  if (found != uses_.end() && at < found->second.at + kUseResolution &&
      found->second.service == service)
    return;
  uses_.insert_or_assign(std::string(id), KeyUse{at, std::string(region), std::string(service)});
  unwritten_.emplace(id);
}

std::optional<KeyUse> IdentityStore::last_use(const std::string& id) const {
  {
    const MutexLock lock(uses_mutex_);
    if (const auto found = uses_.find(id); found != uses_.end()) return found->second;
  }
  const auto records = control_.records();
  const auto found = records->all.find({std::string(kUseRecord), id});
  return found == records->all.end() ? std::nullopt : use_of(found->second->document);
}

Result<void> IdentityStore::write_uses() {
  const MutexLock exclusive(changing_);
  const auto identities = snapshot();
  control::RecordsRequest requested;
  std::vector<std::string> written;
  {
    const MutexLock lock(uses_mutex_);
    for (const std::string& id : unwritten_) {
      if (written.size() == kUsesAtOnceMax) break;
      written.push_back(id);
      if (identities->find_key(id))
        requested.writes.push_back(
            {{std::string(kUseRecord), id}, kKeyUse.write(uses_.find(id)->second)});
    }
    for (const std::string& id : written) unwritten_.erase(id);
  }
  if (requested.writes.empty()) return {};
  requested.expected = control_.records()->version;
  const auto committed = commit_records(control_, std::move(requested));
  if (committed) return {};
  const MutexLock lock(uses_mutex_);
  unwritten_.insert(written.begin(), written.end());
  return committed.error();
}

}  // namespace trainyard::api
