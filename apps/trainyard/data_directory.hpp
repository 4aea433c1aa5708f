// DataDirectory is the directory with all data of a server. One server at a time may use it;
// several may if their ledger is in PostgreSQL (ledger_role.hpp), and then one of them writes to
// it.
//
//   VERSION           format of the directory; a newer one is rejected
//   lock              held by the server (or by doctor --clean); shared by servers of one ledger
//   setup             held by a server that starts, while another may start
//   identity.json     account, access keys, the secret that signs temporary keys (0600)
//   sealing.key       encrypts the secret access keys in the ledger (0600)
//   server.json       address of the running (or last) server, for `env`
//   tls/              ca.pem and the server's certificate
//   clients/          files for clients: endpoints.json, the SageMaker SDK's config, botocore's
//                     plugin
//   ledger-owner      id of this directory, for a ledger in PostgreSQL
//   writer            process that wrote that ledger last, with its fencing number
//   writer.lock       held while that changes
//   notifications.db  topics, rules and pending deliveries; notify/ has the key that signs them
//   alarms/           alarms and dashboards
//   campaigns.db      campaigns; catalogue.db is the embedded catalogue
//   ledger.db objects/ logs/ metrics/ audit/ file_systems/ images/ attempts/ agents.sock
//
// Threads: confined to main. Errors: conflict (another server holds it; newer version), denied,
// corrupt, exhausted.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "base/result.hpp"
#include "operations/services.hpp"
#include "os/files.hpp"
#include "os/shared_lock.hpp"

namespace trainyard::apps {

inline constexpr int kDataVersion = 1;

struct Identity {
  std::string account;
  std::vector<policy::ConfiguredKey> keys;  // `env` uses the first
  std::string temporary_key_secret;         // 32 bytes
};

// Returns $TRAINYARD_DATA, else ~/.local/share/trainyard.
std::string default_data_directory();

// Rejects a directory of the account `stored` that is used with the account `configured`: jobs,
// queues and users are stored under the account's id. "" = not known yet. Errors: conflict.
Result<void> check_account(const std::string& directory, const std::string& stored,
                           const std::string& configured);

enum class DirectoryUse { alone, with_standbys };

class DataDirectory {
 public:
  // Creates the directory (0700) if it is missing, and takes its lock. With standbys, only one
  // server at a time is between open() and finish_setup().
  static Result<DataDirectory> open(const std::string& path,
                                    DirectoryUse use = DirectoryUse::alone);
  // Lets the next server start: all files that it reads exist now.
  void finish_setup() { setup_.reset(); }

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

  // Reads the key that encrypts secrets in the ledger; generates it at the first start.
  Result<std::string> sealing_key(Random& random) const;

  // Reads the identity. The first start generates the account and key, unless the config has them.
  // The config's keys take precedence, and are not stored, so keys that are removed from it stop
  // working.
  // Errors: also conflict, if the directory's account differs from the config's `account`.
  Result<Identity> identity(const std::string& account,
                            const std::vector<policy::ConfiguredKey>& keys, Random& random) const;

 private:
  explicit DataDirectory(std::string path) : path_(std::move(path)) {}
  Result<void> lock(DirectoryUse use);

  std::string path_;
  std::optional<os::FileLock> lock_, setup_;
  std::optional<os::SharedLock> shared_;
};

// The address of a server for clients. `serve` writes it, and `env` reads it.
struct ServerRecord {
  std::string endpoint;       // the value of AWS_ENDPOINT_URL
  std::string host_and_port;  // "127.0.0.1:4566"
  std::string region;
  std::string objects_endpoint;  // "" unless an external object store is configured
  std::string config_file;       // absolute; "": the server has no configuration file
  policy::ConfiguredKey key;
  std::string agents_endpoint;        // of the object store, for agents on this machine
  std::string metrics_host_and_port;  // "" without server.metrics_listen
};
Result<void> write_server_record(const std::string& data_directory, const ServerRecord& record);
Result<ServerRecord> read_server_record(const std::string& data_directory);

// These functions read files of a data directory while its server may be running. Errors:
// not_found, before the first start.
Result<Identity> read_identity(const std::string& data_directory);
Result<std::string> read_sealing_key(const std::string& data_directory);

}  // namespace trainyard::apps
