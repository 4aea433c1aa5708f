#include "shapes/cloudwatch.hpp"

#include "alarms/dashboards.hpp"
#include "cloudwatch/dashboard_body.hpp"
#include "cloudwatch/operations.hpp"
#include "operations/testing/operation_caller.hpp"

namespace trainyard::api::cloudwatch {
namespace {

namespace aws = shapes::cloudwatch;

struct DashboardWorld : OperationsWorld {
  std::unique_ptr<alarms::Dashboards> dashboards =
      std::move(*alarms::Dashboards::open(directory.path() + "/alarms"));
  DashboardWorld() : OperationsWorld(add_operations) { services.dashboards = dashboards.get(); }
  std::string refuse(const std::string& body, const std::string& name = "d") {
    return refusal<aws::PutDashboard>({.dashboard_name = name, .dashboard_body = body});
  }
};

constexpr const char* kText =
    R"({"widgets":[{"type":"text","x":0,"y":7,"width":3,"height":3,"properties":{"markdown":"x"}}]})";

TEST(DashboardOperations, ReturnADashboardAsItWasPut) {
  DashboardWorld world;
  for (const char* name : {"test1", "test2", "other"}) {
    const auto out =
        world.call<aws::PutDashboard>({.dashboard_name = name, .dashboard_body = kText});
    ASSERT_TRUE(out) << out.failure(aws::kService).message;
    EXPECT_TRUE((*out).dashboard_validation_messages->empty());
  }
  const auto one = world.call<aws::GetDashboard>({.dashboard_name = "test1"});
  EXPECT_EQ((*one).dashboard_body, kText);
  EXPECT_EQ((*one).dashboard_arn, "arn:aws:cloudwatch::123456789012:dashboard/test1");
  const auto all = world.call<aws::ListDashboards>({.dashboard_name_prefix = "test"});
  ASSERT_EQ((*all).dashboard_entries->size(), 2u);
  EXPECT_EQ((*all).dashboard_entries->at(0).size, int64_t(std::string(kText).size()));
  EXPECT_EQ(world.refusal<aws::DeleteDashboards>({.dashboard_names = {{"test1", "none"}}}),
            "ResourceNotFound: Dashboard none does not exist");
  EXPECT_EQ(world.call<aws::ListDashboards>({})->dashboard_entries->size(), 3u);
  EXPECT_TRUE(world.call<aws::DeleteDashboards>({.dashboard_names = {{"test1", "test2"}}}));
  EXPECT_EQ(world.refusal<aws::GetDashboard>({.dashboard_name = "test1"}),
            "ResourceNotFound: Dashboard test1 does not exist");
  EXPECT_EQ(world.refusal<aws::DeleteDashboards>({.dashboard_names = std::vector<std::string>()}),
            "InvalidParameterValue: The parameter DashboardNames must have at least one name.");
}

TEST(DashboardOperations, RejectInvalidDashboards) {
  DashboardWorld world;
  EXPECT_EQ(world.refuse("{\"InvalidJson\": true"),
            "InvalidParameterInput: The field DashboardBody must be a valid JSON object: It is not "
            "a JSON object");
  EXPECT_EQ(world.refuse(kText, "with blank").substr(0, 60),
            "InvalidParameterInput: The value with blank for field Dashbo");
  EXPECT_EQ(world.refuse(std::string(alarms::kDashboardBytesMax + 1, ' ')),
            "InvalidParameterInput: The field DashboardBody must not have more than 1048576 bytes");
  std::string big = std::string(R"({"widgets":[],"x":")");
  big += std::string(alarms::kDashboardBytesMax - big.size() - 2, 'x') + "\"}";
  EXPECT_TRUE(world.call<aws::PutDashboard>({.dashboard_name = "big", .dashboard_body = big}));
  EXPECT_EQ(world.call<aws::GetDashboard>({.dashboard_name = "big"})->dashboard_body, big);
}

TEST(DashboardBody, NamesThePathOfFaultsAndWarnings) {
  const auto first = [](std::string_view body) {
    const auto check = check_body(body);
    if (!check.errors.empty()) return check.errors[0].path + " " + check.errors[0].message;
    if (!check.warnings.empty())
      return "warning " + check.warnings[0].path + " " + check.warnings[0].message;
    return std::string("valid");
  };
  EXPECT_EQ(first(kText), "valid");
  EXPECT_EQ(first("[]"), " It is not a JSON object");
  EXPECT_EQ(first("{}"), " Should have required property 'widgets'");
  EXPECT_EQ(first(R"({"widgets":{}})"), "/widgets Should be array");
  EXPECT_EQ(first(R"({"widgets":[1]})"), "/widgets/0 Should be object");
  EXPECT_EQ(first(R"({"widgets":[{}]})"), "/widgets/0 Should have required property 'type'");
  EXPECT_EQ(first(R"({"widgets":[{"type":"text"}]})"),
            "/widgets/0 Should have required property 'properties'");
  EXPECT_EQ(first(R"({"widgets":[{"type":"text","properties":{}}]})"),
            "/widgets/0/properties Should have required property 'markdown'");
  EXPECT_EQ(first(R"({"widgets":[{"type":"text","properties":{"markdown":1}}]})"),
            "/widgets/0/properties/markdown Should be string");
  EXPECT_EQ(first(R"({"widgets":[{"type":"text","width":25,"properties":{"markdown":"x"}}]})"),
            "/widgets/0/width Should be <= 24");
  EXPECT_EQ(first(R"({"widgets":[{"type":"text","x":1.5,"properties":{"markdown":"x"}}]})"),
            "/widgets/0/x Should be integer");
  EXPECT_EQ(first(R"({"widgets":[{"type":"pie","properties":{}}]})"),
            "warning /widgets/0/type The widget type is unknown and is not shown");
  EXPECT_EQ(first(R"({"widgets":[{"type":"metric","properties":{"metrics":{}}}]})"),
            "/widgets/0/properties/metrics Should be array");
  std::string many = R"({"widgets":[{})";
  for (int i = 0; i < 100; ++i) many += ",{}";
  EXPECT_EQ(check_body(many + "]}").errors.size(), kFaultsMax);
}

}  // namespace
}  // namespace trainyard::api::cloudwatch
