// Signed asks of an S3 endpoint, over connections that are kept for the next one. What may pass is tried again.
//
// Threads: Client is called from many; an Opened is confined to one at a time.
// Errors: what the endpoint refused, with the ask's words; unavailable after attempts_max; corrupt when an answer
//         cannot be read.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.hpp"
#include "base/xml.hpp"
#include "objects/s3_client.hpp"
#include "objects/s3_client/connection.hpp"

namespace trainyard::objects {

using Fields = std::vector<std::pair<std::string, std::string>>;

struct Ask {
  std::string method;
  std::string bucket;
  std::string key;
  Fields query;
  Fields headers;
  std::string_view body;
  bool repeatable = true;  // doing it twice is as doing it once

  std::string words() const;  // for people
};

class Client {
 public:
  Client(S3Settings settings, std::string authority, Clock& clock)
      : settings_(std::move(settings)), authority_(std::move(authority)), clock_(clock) {}

  const S3Settings& settings() const { return settings_; }
  Clock& clock() { return clock_; }

  // A connection that goes back when it is dropped.
  struct Return {
    Client* client;
    void operator()(Connection* connection) const {
      client->give_back(std::unique_ptr<Connection>(connection));
    }
  };
  using Loan = std::unique_ptr<Connection, Return>;

  // The whole answer, of an ask that succeeded.
  Result<HttpAnswer> ask(const Ask& what);
  Result<XmlElement> ask_for_xml(const Ask& what);
  // The head of an answer that succeeded; its body is to be read from the connection.
  struct Opened {
    Loan connection;
    HttpHead head;
  };
  Result<Opened> open(const Ask& what);

 private:
  template <class Send>
  Result<HttpAnswer> attempts(Connection& connection, const Ask& what, Send send);
  std::string target_of(const Ask& what) const;
  HttpRequest request_of(const Ask& what, const std::string& target);
  Loan borrow();
  void give_back(std::unique_ptr<Connection> connection);

  const S3Settings settings_;
  const std::string authority_;  // host and port, as the Host header says it
  Clock& clock_;
  std::mutex mu_;
  std::vector<std::unique_ptr<Connection>> idle_;  // guarded by mu_
};

}  // namespace trainyard::objects
