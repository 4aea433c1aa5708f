// Makes the handler of SNS's pages, in front of another handler: it answers requests below /_sns/,
// and forwards all others. No bucket can have that name.
//
//   GET /_sns/SimpleNotificationService-<hex>.pem    the certificate of signatures
//   GET /_sns/?Action=ConfirmSubscription&TopicArn=..&Token=..
//   GET /_sns/?Action=Unsubscribe&SubscriptionArn=..&Token=..
//
// Endpoints request them without a signature: their permission is the token, which only the
// endpoint has received. Every other request below the path gets the same response, which reveals
// nothing.
//
// Threads: as net::Handler. Lifetime: notifications and the next handler outlive it. Errors: none.
#pragma once

#include <memory>
#include <string>

#include "net/http_server.hpp"
#include "notify/notifications.hpp"

namespace trainyard::api::sns {

inline constexpr std::string_view kPagesPath = "/_sns/";

std::unique_ptr<net::Handler> make_pages(notify::Notifications& notifications, net::Handler& next);

}  // namespace trainyard::api::sns
