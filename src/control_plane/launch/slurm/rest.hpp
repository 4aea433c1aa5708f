// Slurm by slurmrestd, its REST server, with a JWT as identity.
//
// Versions of the API differ in the forms of their fields; rest_answers.hpp has a table of them.
// The token is read again from its file for each request, so that another program may renew it.
//
// Threads and errors: as slurm.hpp.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/time.hpp"
#include "launch/slurm/rest_answers.hpp"
#include "launch/slurm/slurm.hpp"

namespace trainyard::launch {

struct RestRequest {
  std::string method;  // GET, POST or DELETE
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
};

struct RestAnswer {
  int status = 0;
  std::string body;
};

// Sends a request over HTTP. Errors: unavailable, denied, exhausted.
using SendRest = std::function<Result<RestAnswer>(const RestRequest&)>;

struct SlurmRest {
  std::string url;      // "http://slurm.lan:6820", without a path
  std::string version;  // of the API: a row of kRestVersions
  std::string user;     // of the token
  std::string token_file;
};

// Errors: invalid (an unknown version).
Result<std::unique_ptr<Slurm>> slurm_by_rest(SlurmRest rest, SendRest send, Clock& clock);
// Sends by libcurl.
SendRest send_by_curl(const std::string& ca_bundle);

}  // namespace trainyard::launch
