// Sends notifications to endpoints over HTTP. Since users choose the endpoints, it connects only to
// addresses that may_connect() accepts, and follows no redirects.
//
// The address is checked when the connection is made, so a name that resolves to another address
// after an earlier check has no effect.
//
// Threads: callable from anywhere; a call blocks its thread at most as long as the limits say.
// Errors: in the result.
#pragma once

#include <string>
#include <vector>

#include "base/time.hpp"
#include "notify/envelope.hpp"
#include "notify/ip_block.hpp"

namespace trainyard::notify {

enum class SendResult {
  delivered,
  retry,   // no response, or a temporary error such as 429 or 5xx
  refused  // a permanent error: another status, a forbidden address, an invalid URL
};

struct Sent {
  SendResult result = SendResult::delivered;
  std::string what;  // the reason if it was not delivered, for the log
};

struct HttpSenderSettings {
  std::vector<IpBlock> allowed;  // in addition to the public internet
  std::string ca_bundle;         // PEM file; "": the system's
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

// Checks the endpoint of a subscription: the scheme of its protocol (http:// or https://), a host,
// and no user, fragment or control characters. Errors: invalid.
Result<void> check_http_endpoint(Protocol protocol, const std::string& endpoint);
// Returns "u.example" for "https://u.example:8443/x?y". Requires: the endpoint was checked.
std::string host_of(const std::string& endpoint);

}  // namespace trainyard::notify
