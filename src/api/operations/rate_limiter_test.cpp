#include "operations/rate_limiter.hpp"

#include <gtest/gtest.h>

#include "shapes/services.hpp"

namespace trainyard::api {
namespace {

using namespace std::chrono_literals;

const shapes::OperationShape& operation(std::string_view service, std::string_view name) {
  for (const auto* each : all_services())
    for (const auto& shape : each->operations)
      if (each->name == service && shape.name == name) return shape;
  throw std::out_of_range("no such operation");
}

TEST(RateLimiter, ClassifiesOperations) {
  EXPECT_EQ(class_of(operation("sagemaker", "DescribeTrainingJob")), OperationClass::reads);
  EXPECT_EQ(class_of(operation("sagemaker", "ListTrainingJobs")), OperationClass::reads);
  EXPECT_EQ(class_of(operation("logs", "GetLogEvents")), OperationClass::reads);
  EXPECT_EQ(class_of(operation("sagemaker", "CreateTrainingJob")), OperationClass::changes);
  EXPECT_EQ(class_of(operation("batch", "SubmitJob")), OperationClass::changes);
  EXPECT_EQ(class_of(operation("s3", "GetObject")), OperationClass::objects);
  EXPECT_EQ(class_of(operation("s3", "PutObject")), OperationClass::objects);
}

TEST(RateLimiter, LimitsEachPrincipalAndClassSeparately) {
  RateLimiter limiter;
  RateLimits limits;
  limits.reads_per_second = 2;
  limits.changes_per_second = 1;
  limits.burst_seconds = 5;
  const auto admitted = [&](const std::string& who, OperationClass operations,
                            std::chrono::nanoseconds now) {
    int count = 0;
    while (count < 1000 && limiter.admit(who, operations, limits, now)) count++;
    return count;
  };
  EXPECT_EQ(admitted("alice", OperationClass::reads, 0s), 10);
  EXPECT_EQ(admitted("alice", OperationClass::changes, 0s), 5);
  EXPECT_EQ(admitted("bob", OperationClass::reads, 0s), 10);
  EXPECT_EQ(admitted("alice", OperationClass::reads, 3s), 6);
  EXPECT_EQ(admitted("alice", OperationClass::objects, 0s), 1000) << "0 is no limit";
}

TEST(RateLimiter, BoundsItsSize) {
  RateLimiter limiter;
  RateLimits limits;
  limits.reads_per_second = 1;
  for (int i = 0; i < 30'000; i++)
    EXPECT_TRUE(limiter.admit("user" + std::to_string(i), OperationClass::reads, limits, 0s));
  limits.reads_per_second = 0;
  EXPECT_TRUE(limiter.admit("user0", OperationClass::reads, limits, 0s))
      << "another config counts at once";
}

}  // namespace
}  // namespace trainyard::api
