// The data directory: everything that a server remembers, in one place that one server at a time may hold.
//
//   VERSION           format of all below; a newer one is refused
//   lock              held by the server (or by doctor --clean)
//   identity.json     account, access keys, the secret that signs temporary keys (0600)
//   sealing.key       encrypts the secret access keys in the ledger (0600)
//   server.json       how the running (or last) server is reached: what `env` reads
//   tls/              ca.pem and the server's certificate
//   clients/          what clients are pointed to: endpoints.json, the SageMaker SDK's config, botocore's plugin
//   ledger.db objects/ logs/ metrics/ images/ attempts/ agents.sock
//
// Threads: confined to main. Errors: conflict (another server holds it; newer version), denied, corrupt, exhausted.
#pragma once

#include <string>
#include <vector>

#include "base/random.hpp"
#include "base/result.hpp"
#include "operations/services.hpp"
#include "os/files.hpp"

namespace trainyard::apps {

inline constexpr int kDataVersion = 1;

struct Identity {
  std::string account;
  std::vector<policy::ConfiguredKey> keys;  // the first is the one that `env` hands out
  std::string temporary_key_secret;         // 32 bytes
};

// $TRAINYARD_DATA, else ~/.local/share/trainyard.
std::string default_data_directory();

class DataDirectory {
 public:
  // Creates it when missing (0700) and takes its lock.
  static Result<DataDirectory> open(const std::string& path);

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

  // Reads the key that encrypts secrets in the ledger; generates it at the first start.
  Result<std::string> sealing_key(Random& random) const;

  // Reads the identity, making up at the first start what the config (account and keys) does not fix. What the config
  // fixes wins. Its keys are not written down: those that are removed from it stop working.
  Result<Identity> identity(const std::string& account, const std::vector<policy::ConfiguredKey>& keys,
                            Random& random) const;

 private:
  DataDirectory(std::string path, os::FileLock lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  std::string path_;
  os::FileLock lock_;
};

// The address of a server for clients: written by serve, read by env.
struct ServerRecord {
  std::string endpoint;       // what AWS_ENDPOINT_URL becomes
  std::string host_and_port;  // "127.0.0.1:4566"
  std::string region;
  std::string objects_endpoint;  // "" unless an external object store is configured
  policy::ConfiguredKey key;
};
Result<void> write_server_record(const std::string& data_directory, const ServerRecord& record);
Result<ServerRecord> read_server_record(const std::string& data_directory);

}  // namespace trainyard::apps
