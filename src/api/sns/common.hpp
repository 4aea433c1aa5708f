// Declares the helpers of SNS's operations: ARNs, pages of lists, and errors.
//
// Threads: pure functions; the add functions are called before requests arrive. Private to this
// module.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "notify/notifications.hpp"
#include "operations/context.hpp"
#include "operations/services.hpp"
#include "operations/table.hpp"
#include "protocol/errors.hpp"
#include "shapes/sns.hpp"

namespace trainyard::api::sns {

namespace aws = shapes::sns;

inline constexpr size_t kListMax = 100;  // items of a page, as on AWS
inline constexpr size_t kTagsMax = 50;   // AWS's limit for a topic

void add_topics(OperationTable& table, const Settings& settings, const Services& services);
void add_subscriptions(OperationTable& table, const Settings& settings, const Services& services);
void add_publishing(OperationTable& table, const Services& services);

// Errors: InternalError, if the server has no notifications.
Outcome<notify::Notifications*> notifications_of(const Services& services);

// Converts an error of notify to SNS's failure.
Failure failure_for(const Error& error);

// Checks that an ARN names a topic of this account and region. Errors: InvalidParameter.
Outcome<Done> check_topic_arn(const Context& context, const std::string& arn);

// PageOf is the range of one page in a list that is ordered by key. The token is the last key of
// the previous page.
struct PageOf {
  size_t first = 0, end = 0;
  std::optional<std::string> next_token;
};
// Errors: InvalidParameter (the token).
Outcome<PageOf> page_of(const std::vector<std::string>& keys,
                        const std::optional<std::string>& token);

// Errors: InvalidParameter (a member that is missing, an invalid value).
Outcome<bool> read_bool(const std::string& name, const std::string& value);

}  // namespace trainyard::api::sns
