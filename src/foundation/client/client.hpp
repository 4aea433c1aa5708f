// Calls the API of a Trainyard or AWS server with signed requests. It supports AWS's JSON
// protocols, the REST protocol of Batch, and the query protocol of IAM, STS and EC2, whose answers
// are converted to JSON (query.hpp). Lists in EC2's requests are not supported.
//
// Repeatable calls are retried after connection errors and 5xx, with growing pauses, so that a
// client that watches a job survives a restart of the server.
//
// Threads: a Client is confined to one thread at a time. Errors: the server's own message, with the
// kind that fits the name of its error; unavailable, if the server cannot be reached. Requires: the
// program ignores SIGPIPE.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "signing/signing.hpp"

namespace trainyard::client {

struct Settings {
  std::string endpoint;  // "http://127.0.0.1:4566"
  std::string region;
  signing::Keys keys;
  std::string ca_bundle;         // PEM file; "" = the system's
  int attempts_max = 6;          // with the pauses below about 6 s: the time of a restart
  Duration first_pause = 200ms;  // before the second attempt; doubled after each attempt
  Duration connect_limit = 5s;
  Duration answer_limit = 65s;  // a little more than the server's own deadline
};

// The called service.
enum class Service { sagemaker, logs, cloudwatch, trainyard, batch, iam, sts, ec2 };

// Describes the shell to open.
struct ShellRequest {
  std::string job;
  uint32_t host = 0;                 // index of the host in its gang
  std::vector<std::string> command;  // empty: a login shell
  bool terminal = true;              // false: bytes are transferred unchanged
  std::string terminal_name;         // $TERM
  uint32_t columns = 80, rows = 24;
};

// Transfers bytes in both directions after an upgrade. Threads: confined to one.
class Connection {
 public:
  virtual ~Connection() = default;  // closes it
  // Returns a descriptor that can be polled for readability.
  virtual int descriptor() const = 0;
  // Returns the bytes that have arrived; "": none. Errors: unavailable, also after the peer closed.
  virtual Result<std::string> read() = 0;
  virtual Result<void> write(std::string_view bytes) = 0;
};

class Client {
 public:
  virtual ~Client() = default;
  virtual Result<Json> call(Service service, std::string_view operation, const Json& input) = 0;
  // Opens a shell and returns its upgraded connection. Protocol: docs/formats/shell.md.
  virtual Result<std::unique_ptr<Connection>> open_shell(const ShellRequest& request) = 0;
  virtual const Settings& settings() const = 0;
};

// Sends nothing yet. Errors: invalid, for the endpoint or missing keys.
Result<std::unique_ptr<Client>> open_client(Settings settings, Clock& clock);

// -- pure functions, exposed for tests -----------------------------------------------------------

struct Answer {
  int status = 0;
  std::string body;
};
// Converts an unsuccessful answer into an error.
Error error_of(const Answer& answer, std::string_view operation);
// True if repeating the operation has the same effect as calling it once.
bool is_repeatable(std::string_view operation);

}  // namespace trainyard::client
