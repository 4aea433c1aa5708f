#include <gtest/gtest.h>

#include "operations/testing/operation_caller.hpp"
#include "shapes/trainyard.hpp"
#include "trainyard_api/operations.hpp"

namespace trainyard::api::trainyard_api {
namespace {

namespace own = shapes::trainyard;

struct ConsoleTokens : OperationsWorld, ::testing::Test {
  ConsoleTokens() : OperationsWorld(trainyard_api::add_console) {}
  void issue() {
    services.issue_console_token = [](const Context& of) {
      return ConsoleToken{"token of " + of.principal.name, of.now + 5min};
    };
  }
};

TEST_F(ConsoleTokens, AreForThePrincipalOfTheRequest) {
  issue();
  auto out = call<own::CreateConsoleSession>({});
  ASSERT_TRUE(out);
  EXPECT_EQ(out->token, "token of owner");
  EXPECT_EQ(out->expiration_time, clock.now() + 5min);
}

TEST_F(ConsoleTokens, AreNotIssuedOnBehalfOfOthers) {
  issue();
  context.principal.peer_key_id = "AKIAPEER";
  EXPECT_FALSE(call<own::CreateConsoleSession>({}));
  context.principal.peer_key_id.clear();
  context.principal.invoked_by = "arn:aws:trainyard:eu-west-1:123456789012:campaign/streets";
  EXPECT_FALSE(call<own::CreateConsoleSession>({}));
}

TEST_F(ConsoleTokens, NeedAConsole) {
  auto out = call<own::CreateConsoleSession>({});
  ASSERT_FALSE(out);
  EXPECT_NE(out.failure(own::kService).message.find("./yard build"), std::string::npos);
}

}  // namespace
}  // namespace trainyard::api::trainyard_api
