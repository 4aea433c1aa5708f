// Builds what endpoints receive: SNS's JSON bodies with their signature, headers of HTTP, and
// mails.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "notify/message_signer.hpp"
#include "notify/record.hpp"

namespace trainyard::notify {

// A transport sends it to one endpoint.
struct Outgoing {
  Protocol protocol = Protocol::http;
  std::string endpoint;
  std::string subject;  // for mails
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};  // for HTTP requests
};

// The URLs of this server in notifications.
struct NotificationUrls {
  std::string base;  // "https://yard.lan:4566/_sns/": pages without a signature are below it
  std::string certificate(const MessageSigner& signer) const;
  std::string confirm(const Subscription& subscription) const;
  std::string unsubscribe(const Subscription& subscription) const;
};

// Requires: the message is a notification or a confirmation.
Outgoing outgoing_of(const Message& message, const Subscription& subscription,
                     const NotificationUrls& urls, const MessageSigner& signer);

// The text that the signature covers: names and values of the signed members, a line each.
std::string signed_text(const Message& message, const Subscription& subscription,
                        const NotificationUrls& urls);

}  // namespace trainyard::notify
