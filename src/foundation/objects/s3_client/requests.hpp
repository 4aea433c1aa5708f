// Sends signed requests to an S3 endpoint over reused connections, and retries temporary failures.
//
// Threads: Client is callable from anywhere; an Opened is confined to one at a time.
// Errors: the endpoint's refusal, with a description of the request; unavailable after
// attempts_max; corrupt, if an answer cannot be decoded.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/thread_safety.hpp"
#include "base/time.hpp"
#include "base/xml.hpp"
#include "objects/s3_client.hpp"
#include "objects/s3_client/connection.hpp"

namespace trainyard::objects {

using Fields = std::vector<std::pair<std::string, std::string>>;

struct S3Request {
  std::string method;
  std::string bucket;
  std::string key;
  Fields query;
  Fields headers;
  std::string_view body;
  bool repeatable = true;  // sending it twice has the same effect as once
  // When it becomes true, no further attempt is made; nullptr: never. Must outlive the request.
  const std::atomic<bool>* abandoned = nullptr;

  std::string text() const;  // for messages: "PUT s3://bucket/key"
};

class Client {
 public:
  Client(S3Settings settings, std::string authority, Clock& clock)
      : settings_(std::move(settings)), authority_(std::move(authority)), clock_(clock) {}

  const S3Settings& settings() const { return settings_; }
  Clock& clock() { return clock_; }

  // Returns a connection to the idle ones, where other code would destroy it.
  struct Return {
    Client* client;
    void operator()(Connection* connection) const {
      client->give_back(std::unique_ptr<Connection>(connection));
    }
  };
  using Loan = std::unique_ptr<Connection, Return>;

  // Sends a request and returns the whole answer. Errors: of an unsuccessful answer too.
  Result<HttpAnswer> send(const S3Request& what);
  Result<XmlElement> send_for_xml(const S3Request& what);
  // A successful answer: its header is decoded, its body can be read from the connection.
  struct Opened {
    Loan connection;
    HttpHead head;
  };
  Result<Opened> open(const S3Request& what);

 private:
  template <class Send>
  Result<HttpAnswer> attempts(Connection& connection, const S3Request& what, Send send);
  std::string target_of(const S3Request& what) const;
  HttpRequest request_of(const S3Request& what, const std::string& target);
  Loan borrow();
  void give_back(std::unique_ptr<Connection> connection);

  const S3Settings settings_;
  const std::string authority_;  // host and port, as in the Host header
  Clock& clock_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Connection>> idle_ GUARDED_BY(mutex_);
};

}  // namespace trainyard::objects
