// Declares the helpers of CloudWatch Logs' operations: errors, ARNs, tokens of pages.
//
// Threads: pure functions. Errors: those of the service.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "observe/log_definitions.hpp"
#include "observe/logs.hpp"
#include "operations/context.hpp"
#include "operations/services.hpp"
#include "operations/table.hpp"
#include "protocol/errors.hpp"

namespace trainyard::api::logs {

inline constexpr const char* kBadToken = "The specified nextToken is invalid.";
inline constexpr const char* kNoGroup = "The specified log group does not exist.";
inline constexpr size_t kListDefault = 50;  // items of a page, as AWS
inline constexpr size_t kTagsMax = 50;      // of a resource, as AWS

// Converts errors of observe and of filters to those of CloudWatch Logs.
std::variant<Failure, Error> translated(Error error);

// Like TRY, for results of observe.
#define TRY_LOGS(expression)                                               \
  ({                                                                       \
    auto logs_result_ = (expression);                                      \
    if (!logs_result_) return translated(std::move(logs_result_).error()); \
    std::move(logs_result_).value();                                       \
  })

Failure limit_exceeded(std::string message);  // LimitExceededException

std::string group_arn(const Context& context, const std::string& group);
// "arn:aws:logs:REGION:ACCOUNT:KIND:NAME".
std::string arn_of(const Context& context, std::string_view kind, const std::string& name);
// Returns the name in an ARN that arn_of() makes; nothing for any other ARN.
std::optional<std::string> name_in_arn(const Context& context, std::string_view kind,
                                       const std::string& arn);

// Converts errors of deliveries to those of CloudWatch Logs.
std::variant<Failure, Error> delivery_failure(Error error);

// Like TRY, for results of deliveries.
#define TRY_DELIVERY(expression)                                                         \
  ({                                                                                     \
    auto delivery_result_ = (expression);                                                \
    if (!delivery_result_) return delivery_failure(std::move(delivery_result_).error()); \
    std::move(delivery_result_).value();                                                 \
  })

// Returns the log group of a request that has its name or its identifier, which is the name or an
// ARN.
Outcome<std::string> group_of(const Context& context, const std::optional<std::string>& name,
                              const std::optional<std::string>& identifier);

// ListPosition is where the next page of a list begins: after this name and, in a list ordered by
// time, this time.
struct ListPosition {
  int64_t at = 0;
  std::string name;
};
std::string list_token(const ListPosition& position);
Outcome<ListPosition> list_position(const std::string& token);

// Cuts a list, which is ordered by `name_of`, to the page after `token`. Returns the token of the
// next page.
template <class T, class NameOf>
Outcome<std::optional<std::string>> cut_page(std::vector<T>& items, size_t limit,
                                             const std::optional<std::string>& token,
                                             const NameOf& name_of) {
  if (token) {
    const auto position = TRY(list_position(*token));
    std::erase_if(items, [&](const T& item) { return name_of(item) <= position.name; });
  }
  if (items.size() <= limit) return std::optional<std::string>();
  items.resize(limit);
  return std::optional(list_token({0, name_of(items.back())}));
}

// Does the same for lists of deliveries, which have another error for an invalid token.
template <class T, class NameOf>
Outcome<std::optional<std::string>> cut_delivery_page(std::vector<T>& items, size_t limit,
                                                      const std::optional<std::string>& token,
                                                      const NameOf& name_of) {
  if (token && !list_position(*token)) return validation_exception(kBadToken);
  return cut_page(items, limit, token, name_of);
}

void add_groups(OperationTable& table, const Services& services);
void add_queries(OperationTable& table, const Services& services);
void add_query_definitions(OperationTable& table, const Services& services);
void add_metric_filters(OperationTable& table, const Services& services);
void add_subscriptions(OperationTable& table, const Services& services);
void add_destinations(OperationTable& table, const Services& services);
void add_delivery_sources(OperationTable& table, const Services& services);
void add_delivery_destinations(OperationTable& table, const Services& services);
void add_deliveries(OperationTable& table, const Services& services);
void add_tags(OperationTable& table, const Services& services);
void add_exports(OperationTable& table, const Services& services);
void add_resource_policies(OperationTable& table, const Services& services);

}  // namespace trainyard::api::logs
