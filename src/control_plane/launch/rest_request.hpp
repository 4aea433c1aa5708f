// RestRequest is a request to a scheduler's REST server. SendRest sends it over HTTP, and is a
// parameter of the launchers, so that their tests need no server.
//
// Threads: a SendRest is confined to one at a time.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace trainyard::launch {

struct RestRequest {
  std::string method;  // GET, POST, PATCH or DELETE
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
};

struct RestAnswer {
  int status = 0;
  std::string body;
};

// Errors: unavailable, denied, exhausted.
using SendRest = std::function<Result<RestAnswer>(const RestRequest&)>;

// Certificates and keys in PEM, as text.
struct RestIdentity {
  std::string ca;                // the CA of the server's certificate; "": the system's
  std::string certificate, key;  // the client's; "": none
};

// Return a SendRest that uses libcurl.
SendRest send_by_curl(const std::string& ca_bundle);
SendRest send_by_curl(const RestIdentity& identity);

}  // namespace trainyard::launch
