// AccessRow is a line of the access table (access_table.hpp). kLogRows are the lines of CloudWatch
// Logs.
//
// Threads: constants. Errors: none.
#pragma once

#include <string_view>

#include "auth/logs_accesses.hpp"

namespace trainyard::api {

struct AccessRow {
  std::string_view service, operations;  // operations: names, separated by spaces
  std::string_view action;               // "" = the operation's own name
  std::string_view resource;             // "" = the operation is allowed to every principal
};

inline constexpr AccessRow kLogRows[] = {
    {"logs", "CreateLogGroup", "", "arn:aws:logs:{region}:{account}:log-group:{logGroupName}"},
    {"logs", "CreateLogStream PutLogEvents", "",
     "arn:aws:logs:{region}:{account}:log-group:{logGroupName}:log-stream:{logStreamName}"},
    {"logs", "DescribeLogGroups", "",
     "arn:aws:logs:{region}:{account}:log-group:{logGroupNamePrefix?}"},
    {"logs", "DescribeLogStreams GetLogEvents FilterLogEvents", "", kLogStreams},
    {"logs",
     "DeleteLogGroup PutRetentionPolicy DeleteRetentionPolicy TagLogGroup UntagLogGroup "
     "ListTagsLogGroup PutMetricFilter DeleteMetricFilter PutSubscriptionFilter "
     "DescribeSubscriptionFilters DeleteSubscriptionFilter",
     "", "arn:aws:logs:{region}:{account}:log-group:{logGroupName}"},
    {"logs", "DeleteLogStream", "",
     "arn:aws:logs:{region}:{account}:log-group:{logGroupName}:log-stream:{logStreamName}"},
    {"logs", "TagResource UntagResource ListTagsForResource", "", "{resourceArn}"},
    {"logs", "DescribeMetricFilters", "",
     "arn:aws:logs:{region}:{account}:log-group:{logGroupName?}"},
    // A query reads all streams of its groups.
    {"logs", "StartQuery GetLogGroupFields", "", kLogGroups},
    {"logs", "GetLogRecord", "", kLogRecord},
    // The operations also check which principal started the query.
    {"logs",
     "GetQueryResults StopQuery DescribeQueries PutQueryDefinition DescribeQueryDefinitions "
     "DeleteQueryDefinition TestMetricFilter DescribeDestinations PutResourcePolicy "
     "DescribeResourcePolicies DeleteResourcePolicy DescribeExportTasks CancelExportTask",
     "", "*"},
    {"logs", "CreateExportTask", "", "arn:aws:logs:{region}:{account}:log-group:{logGroupName}"},
    {"logs", "CreateExportTask", "s3:PutObject", kExportedLogs},
    // The server sends later with its own rights, so the principal must have these rights.
    {"logs", "PutSubscriptionFilter PutDestination PutDeliveryDestination", "", kLogTargets},
    {"logs", "PutDestination PutDestinationPolicy DeleteDestination", "",
     "arn:aws:logs:{region}:{account}:destination:{destinationName}"},
    {"logs", "PutDeliverySource GetDeliverySource DeleteDeliverySource", "",
     "arn:aws:logs:{region}:{account}:delivery-source:{name}"},
    {"logs", "PutDeliverySource", "", kDeliveredLogs},
    {"logs", "PutDeliveryDestination GetDeliveryDestination DeleteDeliveryDestination", "",
     "arn:aws:logs:{region}:{account}:delivery-destination:{name}"},
    {"logs",
     "PutDeliveryDestinationPolicy GetDeliveryDestinationPolicy DeleteDeliveryDestinationPolicy",
     "", "arn:aws:logs:{region}:{account}:delivery-destination:{deliveryDestinationName}"},
    {"logs", "CreateDelivery", "", "arn:aws:logs:{region}:{account}:delivery:*"},
    {"logs", "CreateDelivery", "",
     "arn:aws:logs:{region}:{account}:delivery-source:{deliverySourceName}"},
    {"logs", "CreateDelivery", "", "{deliveryDestinationArn}"},
    {"logs", "GetDelivery UpdateDeliveryConfiguration DeleteDelivery", "",
     "arn:aws:logs:{region}:{account}:delivery:{id}"},
    {"logs", "DescribeDeliverySources DescribeDeliveryDestinations DescribeDeliveries", "", "*"},
};

}  // namespace trainyard::api
