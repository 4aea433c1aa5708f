// Sends requests to an API server with the credentials that an exec plugin prints.
//
// The plugin runs before the first request, again shortly before its credentials expire, and once
// more when the API server rejects them (401), before the request is repeated. Between two runs is
// a pause, so that neither a plugin that fails nor credentials that are never accepted make each
// request start a program. A plugin has no terminal, a deadline and a limit of its output.
//
// Threads: the opened SendRests share the credentials. Each is confined to one thread at a time, as
// every SendRest; the plugin runs on the thread of the one that needs it, and the others wait.
// Errors: unavailable, when the plugin is missing, fails, is late, or prints no valid
// credentials (the message has the last line of its standard error); otherwise those of SendRest.
#pragma once

#include <functional>
#include <string>

#include "base/time.hpp"
#include "launch/kubernetes/exec_plugin.hpp"
#include "launch/rest_request.hpp"
#include "launch/run_program.hpp"

namespace trainyard::launch {

// A plugin may contact an identity provider. The launcher waits for it as for an API server.
inline constexpr Duration kExecRunMax = 30s;
// Credentials are renewed this long before they expire: longer than a request and a run take.
inline constexpr Duration kExecRenewBefore = 60s;
// The shortest time between two runs: rarely enough for an identity provider with a rate limit.
inline constexpr Duration kExecPause = 10s;

// Returns a SendRest with an identity: send_by_curl(), or a fake in tests.
using OpenRest = std::function<SendRest(const RestIdentity&)>;

// `ca` is the CA of the API server, in PEM. `clock` outlives the result.
OpenSendRest open_with_plugin(ExecPlugin plugin, std::string ca, OpenRest open, RunProgram run,
                              Clock& clock);

}  // namespace trainyard::launch
