// Makes the handler of the console, in front of the API's handler: pages below /console are the
// console's, all other requests pass through.
//
// A page's requests have the current rights of the session's principal (api_call.hpp). A browser
// signs in by a request that is signed with an access key, whose secret stays in the browser, or by
// a one-time token of CreateConsoleSession. Both give it a session, as a cookie that scripts cannot
// read.
//
// Without a session, every page is the sign-in page, and every other request gets the same error,
// which reveals nothing about the server.
//
// Threads: as net::Handler; stop() from any thread. Lifetime: settings, services, sessions, feed
// and api outlive it. Errors: none.
#pragma once

#include <memory>

#include "console/assets.hpp"
#include "console/job_feed.hpp"
#include "console/session_table.hpp"
#include "net/http_server.hpp"
#include "operations/services.hpp"

namespace trainyard::api::console {

class Console : public net::Handler {
 public:
  // Ends the event streams. Call it before the HTTP server stops, which waits for them.
  virtual void stop() = 0;
};

struct ConsoleParts {
  const Settings& settings;
  const Services& services;
  SessionTable& sessions;
  const JobFeed& feed;
  net::Handler& api;
};

std::unique_ptr<Console> make_console(const ConsoleParts& parts, Assets assets);

// Describes the principal of a request, for a token that opens a session for it.
SignedIn signed_in_by(const Context& context);

}  // namespace trainyard::api::console
