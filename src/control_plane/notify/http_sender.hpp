// Sends notifications to endpoints over HTTP, for which the server vouches: it never connects to an
// address that may_connect() rejects, whatever a name resolves to, and follows no redirect.
//
// The address is checked when the connection is made, so a name that resolves to another address
// between a check and its use gains nothing.
//
// Threads: callable from anywhere; each call blocks its thread for at most the limit. Errors: in
// the result.
#pragma once

#include <string>
#include <vector>

#include "base/time.hpp"
#include "notify/envelope.hpp"
#include "notify/ip_block.hpp"

namespace trainyard::notify {

enum class SendResult {
  delivered,
  retry,   // the endpoint did not answer, or with 429 or 5xx
  refused  // it will never accept this: other answers, forbidden addresses, an invalid URL
};

struct Sent {
  SendResult result = SendResult::delivered;
  std::string what;  // why not, for the log
};

struct HttpSenderSettings {
  std::vector<IpBlock> allowed;  // blocks beyond the public internet
  std::string ca_bundle;         // PEM file, in addition to none: "" = the system's
  Duration connect_limit = 5s;
  Duration answer_limit = 15s;  // as on AWS
};

class HttpSender {
 public:
  explicit HttpSender(HttpSenderSettings settings) : settings_(std::move(settings)) {}
  Sent send(const Outgoing& outgoing) const;

 private:
  const HttpSenderSettings settings_;
};

// Checks the endpoint of a subscription: http:// or https:// as its protocol is, a host, and no
// user, fragment or control characters. Errors: invalid.
Result<void> check_http_endpoint(Protocol protocol, const std::string& endpoint);
// "https://u.example:8443/x?y" -> "u.example". Requires: the endpoint was checked.
std::string host_of(const std::string& endpoint);

}  // namespace trainyard::notify
