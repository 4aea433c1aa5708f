#include "dispatch/unsigned_form.hpp"

#include <gtest/gtest.h>

namespace trainyard::api {
namespace {

// Returns the status and the code of the response to a form that arrives in pieces; "more" before
// that.
std::string answer(std::vector<std::string> pieces, bool whole = true) {
  UnsignedForm form;
  Route route;
  route.protocol = Protocol::query;
  EXPECT_TRUE(UnsignedForm::is(route, {}));
  for (size_t i = 0; i < pieces.size(); ++i)
    if (const auto failure = form.feed(pieces[i], whole && i + 1 == pieces.size(), route))
      return std::to_string(failure->status) + " " + failure->code + ": " + failure->message;
  return "more";
}

TEST(UnsignedForms, NameUnsupportedOperations) {
  const std::string expected =
      "400 UnknownOperationException: AssumeRoleWithSAML is not offered by this version; see "
      "docs/compatibility.md";
  EXPECT_EQ(answer({"Action=AssumeRoleWithSAML&Version=2011-06-15&SAMLAssertion=x"}), expected);
  EXPECT_EQ(answer({"Version=2011-06-15&Action=AssumeRoleWith", "SAML"}), expected);
  EXPECT_EQ(answer({"Action=AssumeRoleWithSAML&"}, false), expected) << "the rest is not needed";
}

TEST(UnsignedForms, OtherOperationsNeedASignature) {
  for (const char* name : {"GetCallerIdentity", "CreateUser", "DescribeVpcs", "RunInstances"})
    EXPECT_NE(answer({std::string("Action=") + name}).find("Missing Authentication Token"),
              std::string::npos)
        << name << ": " << answer({std::string("Action=") + name});
}

TEST(UnsignedForms, HaveNoSignature) {
  net::RequestHead head;
  Route route;
  EXPECT_FALSE(UnsignedForm::is(route, head)) << "another protocol";
  route.protocol = Protocol::query;
  EXPECT_TRUE(UnsignedForm::is(route, head));
  head.headers.add("Authorization",
                   "AWS4-HMAC-SHA256 Credential=AKIA/20261124/us-east-1/sns/aws4_request");
  EXPECT_FALSE(UnsignedForm::is(route, head)) << "of a service that is not here";
}

TEST(UnsignedForms, AreRejectedIfTheNameComesTooLate) {
  EXPECT_EQ(answer({"Version=1&Act", "ion=AssumeRole"}, false), "more");
  EXPECT_EQ(answer({""}),
            "400 UnknownOperationException: The requested operation is not offered by this "
            "version; see docs/compatibility.md");
  EXPECT_EQ(answer({"Action=Nonsense"}),
            "400 UnknownOperationException: Nonsense is not offered by this version; see "
            "docs/compatibility.md");
  EXPECT_TRUE(answer({"NoAction=AssumeRoleWithSAML"}).starts_with("400 Unknown"));
}

}  // namespace
}  // namespace trainyard::api
