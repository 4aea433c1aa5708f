#include "trainyard/data_directory.hpp"

#include <sys/stat.h>

#include <filesystem>

#include "base/complete_record.hpp"
#include "base/text.hpp"
#include "os/environment.hpp"
#include "signing/sealed_text.hpp"

namespace trainyard::apps {
namespace {

constexpr size_t kTemporaryKeySecretBytes = 32;
constexpr size_t kSmallFileBytesMax = 1 << 20;
constexpr Duration kSetupMax = 30s;  // the longest wait while another server makes its keys

struct HexForm {
  using Value = std::string;
  static Json write(const std::string& bytes) { return to_hex(bytes); }
  static Result<void> read_into(const Json& json, std::string& bytes) {
    if (!json.is_string()) return invalid("must be a string in hex");
    bytes = TRY(from_hex(json.get<std::string>()));
    return {};
  }
};

constexpr auto kKey = complete(json_record<policy::ConfiguredKey>("key", [](auto& side, auto& key) {
  side("id", key.id);
  side("secret", key.secret);
}));

constexpr auto kIdentity =
    complete(json_record<Identity>("identity", [](auto& side, auto& identity) {
      side("account", identity.account);
      side("keys", identity.keys, kKey);
      side("temporary_key_secret", identity.temporary_key_secret, HexForm());
    }));

constexpr auto kServerRecord =
    complete(json_record<ServerRecord>("server", [](auto& side, auto& record) {
      side("endpoint", record.endpoint);
      side("host_and_port", record.host_and_port);
      side("region", record.region);
      side("objects_endpoint", record.objects_endpoint);
      side("config_file", record.config_file);
      side("key", record.key, kKey);
      side("agents_endpoint", record.agents_endpoint);
      side("metrics_host_and_port", record.metrics_host_and_port);
    }));

std::string make_account(Random& random) {
  std::string account;
  for (int digit = 0; digit < 12; ++digit)
    account += char('0' + (digit == 0 ? 1 + random.number() % 9 : random.number() % 10));
  return account;
}

// Generates a key of the same form as AWS's, which clients and scanners recognize.
policy::ConfiguredKey make_key(Random& random) {
  constexpr std::string_view kIdAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
  constexpr std::string_view kSecretAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  policy::ConfiguredKey key{"AKIA", ""};
  for (int i = 0; i < 16; ++i) key.id += kIdAlphabet[random.number() % kIdAlphabet.size()];
  for (int i = 0; i < 40; ++i)
    key.secret += kSecretAlphabet[random.number() % kSecretAlphabet.size()];
  return key;
}

Result<Identity> identity_of(const std::string& text, const std::string& path) {
  const Json json = TRY(parse_json(text).in("reading " + path));
  return kIdentity.read(json).in("reading " + path);
}

}  // namespace

Result<void> check_account(const std::string& directory, const std::string& stored,
                           const std::string& configured) {
  if (stored.empty() || configured.empty() || stored == configured) return {};
  return conflict("the data directory " + directory + " belongs to the account " + stored +
                  ", but account_id of the config is " + configured +
                  ": its jobs, queues and users would not be found. Set account_id = \"" + stored +
                  "\" or remove the line, or give the other account a data directory of its own "
                  "with --data");
}

std::string default_data_directory() {
  if (auto chosen = os::environment_variable("TRAINYARD_DATA"); !chosen.empty()) return chosen;
  const std::string home = os::environment_variable("HOME");
  return (home.empty() ? "/root" : home) + "/.local/share/trainyard";
}

Result<void> DataDirectory::lock(DirectoryUse use) {
  const std::string doing = "taking the data directory " + path_;
  if (use == DirectoryUse::alone) {
    lock_ = TRY(os::FileLock::take_after_death(path_ + "/lock").in(doing));
    return {};
  }
  shared_ = TRY(os::SharedLock::take(path_ + "/lock").in(doing));
  setup_ = TRY(os::FileLock::take_within(path_ + "/setup", kSetupMax).in(doing));
  return {};
}

Result<DataDirectory> DataDirectory::open(const std::string& path, DirectoryUse use) {
  TRY(os::make_directories(path, 0700).in("making the data directory"));
  const std::string absolute = std::filesystem::canonical(path).string();
  if (::chmod(absolute.c_str(), 0700) != 0)
    return from_errno("closing the data directory " + absolute + " to others");
  DataDirectory directory(absolute);
  TRY(directory.lock(use));

  const std::string version_file = absolute + "/VERSION";
  if (!os::exists(version_file)) {
    TRY(os::write_file_durably(version_file, std::to_string(kDataVersion) + "\n"));
  } else {
    const std::string text = TRY(os::read_file(version_file, kSmallFileBytesMax));
    const auto version = parse_int(trim(text));
    if (!version)
      return corrupt("the data directory " + absolute + " has an invalid VERSION file: '" +
                     shorten(trim(text), 40) + "'");
    if (*version > kDataVersion)
      return conflict("the data directory " + absolute +
                      " was written by a newer trainyard (format " + std::to_string(*version) +
                      ", this program reads up to " + std::to_string(kDataVersion) +
                      "): use that version, or another --data");
  }
  return directory;
}

Result<Identity> DataDirectory::identity(const std::string& account,
                                         const std::vector<policy::ConfiguredKey>& keys,
                                         Random& random) const {
  Identity identity;
  const std::string path = file("identity.json");
  std::string before;
  if (os::exists(path)) {
    before = TRY(os::read_file(path, kSmallFileBytesMax));
    identity = TRY(identity_of(before, path));
  }
  TRY(check_account(path_, identity.account, account));
  if (!account.empty()) identity.account = account;
  if (!keys.empty()) identity.keys = keys;
  if (identity.account.empty()) identity.account = make_account(random);
  if (identity.keys.empty()) identity.keys.push_back(make_key(random));
  if (identity.temporary_key_secret.size() != kTemporaryKeySecretBytes)
    identity.temporary_key_secret = TRY(from_hex(random.hex(kTemporaryKeySecretBytes)));
  Identity stored = identity;
  if (!keys.empty()) stored.keys.clear();
  const std::string after = dump(kIdentity.write(stored), 2) + "\n";
  if (after != before) TRY(os::write_file_durably(path, after, 0600));
  return identity;
}

Result<std::string> DataDirectory::sealing_key(Random& random) const {
  const std::string path = file("sealing.key");
  if (!os::exists(path)) {
    const std::string made = random.hex(signing::kSealingKeyBytes);
    TRY(os::write_file_durably(path, made + "\n", 0600));
  }
  return read_sealing_key(path_);
}

Result<Identity> read_identity(const std::string& data_directory) {
  const std::string path = data_directory + "/identity.json";
  return identity_of(TRY(os::read_file(path, kSmallFileBytesMax)), path);
}

Result<std::string> read_sealing_key(const std::string& data_directory) {
  const std::string path = data_directory + "/sealing.key";
  const std::string text = TRY(os::read_file(path, kSmallFileBytesMax));
  auto key = from_hex(trim(text));
  if (!key || key->size() != signing::kSealingKeyBytes)
    return corrupt(
        path + " must hold " + std::to_string(signing::kSealingKeyBytes) +
        " bytes in hex: restore it from a backup, or remove it and create all access keys again");
  return *std::move(key);
}

Result<void> write_server_record(const std::string& data_directory, const ServerRecord& record) {
  return os::write_file_durably(data_directory + "/server.json",
                                dump(kServerRecord.write(record), 2) + "\n", 0600);
}

Result<ServerRecord> read_server_record(const std::string& data_directory) {
  const std::string path = data_directory + "/server.json";
  const auto text = os::read_file(path, kSmallFileBytesMax);
  if (!text && text.error().kind == Kind::denied)
    return denied("reading " + path + ": permission denied: run the command as the user of the " +
                  "server, or set the variables that `trainyard env` prints for you");
  if (!text)
    return not_found("no server record found in " + data_directory +
                     ": start `trainyard serve --data " + data_directory + "` first");
  const Json json = TRY(parse_json(*text).in("reading " + path));
  return kServerRecord.read(json).in("reading " + path);
}

}  // namespace trainyard::apps
