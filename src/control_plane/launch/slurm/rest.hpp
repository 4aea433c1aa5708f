// Implements the interface Slurm by slurmrestd, its REST server, with a JWT as identity.
//
// Jobs of other accounts are submitted with the same token and the account's name, which slurmctld
// accepts if the token belongs to root or to SlurmUser.
//
// Versions of the API differ in the forms of their fields; rest_answers.hpp has a table of them.
// The token is read again from its file for each request, so that another program may renew it.
//
// Threads and errors: as slurm.hpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "launch/rest_request.hpp"
#include "launch/slurm/rest_answers.hpp"
#include "launch/slurm/slurm.hpp"

namespace trainyard::launch {

struct SlurmRest {
  std::string url;      // "http://slurm.lan:6820", without a path
  std::string version;  // of the API: a row of kRestVersions
  std::string user;     // of the token
  std::string token_file;
};

// Errors: invalid (an unknown version).
Result<std::unique_ptr<Slurm>> slurm_by_rest(SlurmRest rest, SendRest send, Clock& clock);
}  // namespace trainyard::launch
