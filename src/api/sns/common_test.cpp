#include "sns/common.hpp"

#include <gtest/gtest.h>

#include "notify/notifications.hpp"

namespace trainyard::api::sns {
namespace {

using notify::NotifyFault;

struct Row {
  NotifyFault fault;
  int status;
  const char* code;
};

const Row kRows[] = {
    {NotifyFault::no_topic, 404, "NotFound"},
    {NotifyFault::no_subscription, 404, "NotFound"},
    {NotifyFault::token, 400, "InvalidParameter"},
    {NotifyFault::topic_differs, 400, "InvalidParameter"},
    {NotifyFault::topic_limit, 403, "TopicLimitExceeded"},
    {NotifyFault::subscription_limit, 403, "SubscriptionLimitExceeded"},
    {NotifyFault::filter_policy, 400, "InvalidParameter"},
};

TEST(SnsErrors, HaveTheCodeOfTheFaultWithAnyMessage) {
  for (const Row& row : kRows)
    for (const char* message : {"Subscription limit exceeded", "the topics are too many"}) {
      const Failure failure = failure_for(exhausted(message, row.fault));
      EXPECT_EQ(failure.status, row.status) << row.code;
      EXPECT_EQ(failure.code, row.code) << message;
    }
}

}  // namespace
}  // namespace trainyard::api::sns
