// Classifies requests of the console, reads their parameters, and defines the headers of responses.
//
// The console shares the port with S3, where /console is also the address of a bucket with that
// name. A signed request is never the console's, except the one that signs in; S3 would reject an
// unsigned request in any case.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "net/http_server.hpp"

namespace trainyard::api::console {

enum class Page {
  none,      // not the console's
  document,  // a page, or a file of one
  session,   // /console/session: GET describes it, POST opens it, DELETE closes it
  call,      // /console/api/SERVICE/OPERATION
  rights,    // /console/rights: which calls the principal may make
  events,    // /console/events
  data,      // /console/objects: buckets and objects of S3
  unknown,   // below /console, but with another path or method
};

struct PageRequest {
  Page page = Page::none;
  std::string_view path;                // after "/console/": "assets/main.js"
  std::string_view service, operation;  // of a call
};

// Lifetime: the result refers to the head.
PageRequest read_page_request(const net::RequestHead& head);

// Returns the decoded value of a query parameter, or "" if it is absent or malformed.
std::string query_value(const net::RequestHead& head, std::string_view name);

// Returns the secret in the session's cookie, or "".
std::string_view session_cookie(const net::RequestHead& head);
// Formats a Set-Cookie header. `secret` "": it removes the cookie. `tls`: browsers send the cookie
// over TLS only.
std::string format_session_cookie(std::string_view secret, bool tls);

// Returns whether a page of this origin sent the request, by headers that browsers set and pages
// cannot. A request without them does not come from a page.
bool is_same_origin(const net::RequestHead& head);
// Returns whether a page of another origin sent the request. For GET requests, which may have
// neither header if a page of this origin sends them.
bool is_other_origin(const net::RequestHead& head);

// Adds the headers that every response of the console has.
void add_security_headers(net::Headers& headers);

}  // namespace trainyard::api::console
