#include "trainyard/data_directory.hpp"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "base/json.hpp"
#include "base/text.hpp"
#include "signing/sealed_text.hpp"

namespace trainyard::apps {
namespace {

constexpr size_t kTemporaryKeySecretBytes = 32;
constexpr size_t kSmallFileBytesMax = 1 << 20;

Json to_json(const std::vector<policy::ConfiguredKey>& keys) {
  Json list = Json::array();
  for (const auto& key : keys) list.push_back({{"id", key.id}, {"secret", key.secret}});
  return list;
}

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

}  // namespace

std::string default_data_directory() {
  if (const char* chosen = std::getenv("TRAINYARD_DATA"); chosen && *chosen) return chosen;
  const char* home = std::getenv("HOME");
  return std::string(home && *home ? home : "/root") + "/.local/share/trainyard";
}

Result<DataDirectory> DataDirectory::open(const std::string& path) {
  TRY(os::make_directories(path, 0700).in("making the data directory"));
  const std::string absolute = std::filesystem::canonical(path).string();
  if (::chmod(absolute.c_str(), 0700) != 0)
    return from_errno("closing the data directory " + absolute + " to others");
  auto lock = TRY(os::FileLock::take_after_death(absolute + "/lock")
                      .in("taking the data directory " + absolute));

  const std::string version_file = absolute + "/VERSION";
  if (!os::exists(version_file)) {
    TRY(os::write_file_durably(version_file, std::to_string(kDataVersion) + "\n"));
  } else {
    const std::string text = TRY(os::read_file(version_file, kSmallFileBytesMax));
    const auto version = parse_int(trim(text));
    if (!version)
      return corrupt("the data directory " + absolute + " has a VERSION file that says '" +
                     shorten(trim(text), 40) + "'");
    if (*version > kDataVersion)
      return conflict("the data directory " + absolute +
                      " was written by a newer trainyard (format " + std::to_string(*version) +
                      ", this program knows up to " + std::to_string(kDataVersion) +
                      "): use that program, or another --data");
  }
  return DataDirectory(absolute, std::move(lock));
}

Result<Identity> DataDirectory::identity(const std::string& account,
                                         const std::vector<policy::ConfiguredKey>& keys,
                                         Random& random) const {
  Identity identity;
  const std::string path = file("identity.json");
  std::string before;
  if (os::exists(path)) {
    before = TRY(os::read_file(path, kSmallFileBytesMax));
    const Json json = TRY(parse_json(before).in("reading " + path));
    identity.account = TRY(string_at(json, "account").in("reading " + path));
    identity.temporary_key_secret =
        TRY(from_hex(TRY(string_at(json, "temporary_key_secret").in("reading " + path))));
    for (const auto& key : json.value("keys", Json::array()))
      identity.keys.push_back({TRY(string_at(key, "id").in("reading " + path)),
                               TRY(string_at(key, "secret").in("reading " + path))});
  }
  if (!account.empty()) identity.account = account;
  if (!keys.empty()) identity.keys = keys;
  if (identity.account.empty()) identity.account = make_account(random);
  if (identity.keys.empty()) identity.keys.push_back(make_key(random));
  if (identity.temporary_key_secret.size() != kTemporaryKeySecretBytes)
    identity.temporary_key_secret = TRY(from_hex(random.hex(kTemporaryKeySecretBytes)));
  const std::vector<policy::ConfiguredKey> made_up =
      keys.empty() ? identity.keys : std::vector<policy::ConfiguredKey>();
  const Json json{{"account", identity.account},
                  {"keys", to_json(made_up)},
                  {"temporary_key_secret", to_hex(identity.temporary_key_secret)}};
  const std::string after = dump(json, 2) + "\n";
  if (after != before) TRY(os::write_file_durably(path, after, 0600));
  return identity;
}

Result<std::string> DataDirectory::sealing_key(Random& random) const {
  const std::string path = file("sealing.key");
  if (!os::exists(path)) {
    const std::string made = random.hex(signing::kSealingKeyBytes);
    TRY(os::write_file_durably(path, made + "\n", 0600));
  }
  const std::string text = TRY(os::read_file(path, kSmallFileBytesMax));
  auto key = from_hex(trim(text));
  if (!key || key->size() != signing::kSealingKeyBytes)
    return corrupt(
        path + " must hold " + std::to_string(signing::kSealingKeyBytes) +
        " bytes in hex: restore it from a backup, or remove it and make all access keys again");
  return *std::move(key);
}

Result<void> write_server_record(const std::string& data_directory, const ServerRecord& record) {
  const Json json{{"endpoint", record.endpoint},
                  {"host_and_port", record.host_and_port},
                  {"region", record.region},
                  {"objects_endpoint", record.objects_endpoint},
                  {"key", {{"id", record.key.id}, {"secret", record.key.secret}}}};
  return os::write_file_durably(data_directory + "/server.json", dump(json, 2) + "\n", 0600);
}

Result<ServerRecord> read_server_record(const std::string& data_directory) {
  const std::string path = data_directory + "/server.json";
  const auto text = os::read_file(path, kSmallFileBytesMax);
  if (!text)
    return not_found("no server record found in " + data_directory +
                     ": start `trainyard serve --data " + data_directory + "` first");
  const Json json = TRY(parse_json(*text).in("reading " + path));
  ServerRecord record;
  record.endpoint = TRY(string_at(json, "endpoint").in("reading " + path));
  record.host_and_port = TRY(string_at(json, "host_and_port").in("reading " + path));
  record.region = TRY(string_at(json, "region").in("reading " + path));
  record.objects_endpoint = TRY(string_at(json, "objects_endpoint").in("reading " + path));
  const Json key = json.value("key", Json::object());
  record.key = {TRY(string_at(key, "id").in("reading " + path)),
                TRY(string_at(key, "secret").in("reading " + path))};
  return record;
}

}  // namespace trainyard::apps
