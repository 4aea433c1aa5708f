// RestRequest is a request to a scheduler's REST server. SendRest sends it over HTTP, and is a
// parameter of the launchers, so that their tests need no server.
//
// Threads: a SendRest is confined to one at a time.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::launch {

struct RestRequest {
  std::string method;  // GET, POST, PATCH or DELETE
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  // Receives the body of an answer of status 2xx, which is then not in the RestAnswer: "" when it
  // begins, then each piece. Returns false to end the request. Empty: the body is read whole.
  std::function<bool(std::string_view piece)> receive = {};
  Duration answer_limit{};  // for the whole answer; 0: kRestAnswerMax
  // The request ends with the error `cancelled` when this descriptor is readable; -1: none.
  int interrupt_descriptor = -1;
};

inline constexpr Duration kRestAnswerMax = 30s;

struct RestAnswer {
  int status = 0;
  std::string body;
};

// Errors: unavailable, denied, exhausted, cancelled.
using SendRest = std::function<Result<RestAnswer>(const RestRequest&)>;
// Returns another SendRest of the same server, for another thread.
using OpenSendRest = std::function<SendRest()>;

// Certificates and keys in PEM, as text.
struct RestIdentity {
  std::string ca;                // the CA of the server's certificate; "": the system's
  std::string certificate, key;  // the client's; "": none
};

// Return a SendRest that uses libcurl.
SendRest send_by_curl(const std::string& ca_bundle);
SendRest send_by_curl(const RestIdentity& identity);

}  // namespace trainyard::launch
