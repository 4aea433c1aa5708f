// Builds what endpoints receive: SNS's signed JSON bodies, HTTP headers, and mails.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "notify/message_signer.hpp"
#include "notify/record.hpp"

namespace trainyard::notify {

// An Outgoing is a message in the form in which a transport sends it to one endpoint.
struct Outgoing {
  Protocol protocol = Protocol::http;
  std::string endpoint;
  std::string subject;  // for mails
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};  // for HTTP requests
};

// The URLs of this server in notifications.
struct NotificationUrls {
  std::string base;  // "https://yard.lan:4566/_sns/": requests below it need no signature
  std::string certificate(const MessageSigner& signer) const;
  std::string confirm(const Subscription& subscription) const;
  std::string unsubscribe(const Subscription& subscription) const;
};

// Requires: the message is a notification or a confirmation.
Outgoing outgoing_of(const Message& message, const Subscription& subscription,
                     const NotificationUrls& urls, const MessageSigner& signer);

// Returns the text that the signature covers: the name and value of each signed member, a line
// each.
std::string signed_text(const Message& message, const Subscription& subscription,
                        const NotificationUrls& urls);

}  // namespace trainyard::notify
