#include <gtest/gtest.h>

#include "base/testing/test_clock.hpp"
#include "base/text.hpp"
#include "notify/command_sender.hpp"
#include "notify/http_sender.hpp"
#include "notify/mail_sender.hpp"

namespace trainyard::notify {
namespace {

TEST(HttpSender, RefusesPrivateAddresses) {
  const HttpSender sender({});
  for (const char* endpoint :
       {"http://127.0.0.1:1/", "http://localhost:1/", "http://[::1]:1/", "http://0.0.0.0:1/",
        "http://2130706433:1/", "http://127.1:1/", "http://[::ffff:127.0.0.1]:1/"}) {
    const Sent sent = sender.send({Protocol::http, endpoint, "", "x"});
    EXPECT_EQ(sent.result, SendResult::refused) << endpoint;
    EXPECT_NE(sent.what.find("allow_networks"), sent.what.npos) << endpoint << ": " << sent.what;
  }
}

TEST(HttpSender, RetriesWhenTheConnectionIsRefused) {
  const HttpSender sender({.allowed = {*parse_ip_block("127.0.0.0/8")}, .ca_bundle = ""});
  EXPECT_EQ(sender.send({Protocol::http, "http://127.0.0.1:1/", "", "x"}).result,
            SendResult::retry);
}

TEST(HttpSender, RefusesOtherSchemes) {
  const HttpSender sender({.allowed = {*parse_ip_block("127.0.0.0/8")}, .ca_bundle = ""});
  for (const char* endpoint :
       {"file:///etc/passwd", "gopher://127.0.0.1:1/", "smtp://127.0.0.1:1/"})
    EXPECT_EQ(sender.send({Protocol::http, endpoint, "", "x"}).result, SendResult::refused)
        << endpoint;
}

TEST(Endpoint, MustBeAUrlOfItsProtocol) {
  for (const char* good : {"http://u.example", "http://u.example/x?y=z", "http://[fd00::1]:80/x",
                           "http://10.0.0.1:8080/"})
    EXPECT_TRUE(check_http_endpoint(Protocol::http, good)) << good;
  for (const char* bad : {"", "u.example", "https://u.example/", "http://", "http:///x",
                          "http://a:b@u.example/", "http://u.example/#x", "http://u.example/a b",
                          "http://u.example/\nx", "http://u.example\\@v.example/"})
    EXPECT_FALSE(check_http_endpoint(Protocol::http, bad)) << bad;
  EXPECT_FALSE(check_http_endpoint(Protocol::http, "http://u.example/" + std::string(3000, 'x')));
  EXPECT_EQ(host_of("https://U.example:8443/x"), "u.example");
  EXPECT_EQ(host_of("http://[fd00::1]:80/x"), "[fd00::1]");
}

TEST(Mail, GetsNoHeadersFromItsContent) {
  const std::string mail =
      mail_of({Protocol::email, "a@b.c\r\nBcc: x@y.z", "Subject\r\nBcc: x@y.z", "body\r\n.\r\n"},
              "from@b.c", kTestClockStart, "<1@b.c>");
  const auto end = mail.find("\r\n\r\n");
  ASSERT_NE(end, mail.npos);
  const std::string head = mail.substr(0, end);
  EXPECT_EQ(head.find("\r\nBcc:"), head.npos) << head;
  EXPECT_NE(head.find("Date: Thu, 20 Nov 2025 09:45:00 +0000"), head.npos) << head;
  EXPECT_EQ(*from_base64(trim(mail.substr(end))), "body\r\n.\r\n");
}

TEST(Mail, EncodesSubjectsBetweenCharacters) {
  std::string subject;
  for (int i = 0; i < 40; ++i) subject += "\xe2\x82\xac";
  const std::string mail =
      mail_of({Protocol::email, "a@b.c", subject, "x"}, "from@b.c", kTestClockStart, "<1@b.c>");
  std::string decoded;
  for (size_t at = 0; (at = mail.find("=?UTF-8?B?", at)) != mail.npos;) {
    at += 10;
    const std::string word = *from_base64(mail.substr(at, mail.find("?=", at) - at));
    EXPECT_TRUE(is_utf8(word));
    decoded += word;
  }
  EXPECT_EQ(decoded, subject);
  for (const auto line : split(mail, '\n')) EXPECT_LE(line.size(), 80u);
}

TEST(CommandSender, PassesTheMessageAsStandardInput) {
  const std::string path = ::testing::TempDir() + "/command_sender_test";
  const CommandSender sender(
      {{"keep",
        {{"/bin/sh", "-c", "cat > \"$0\"; echo \"$TRAINYARD_SUBJECT\" >> \"$0\"", path},
         {"alerts"}}},
       {"fail", {{"/bin/sh", "-c", "echo why >&2; exit 3"}, {"*"}}},
       {"none", {{"/does/not/exist"}, {"*"}}}});
  EXPECT_EQ(sender.send({Protocol::command, "keep", "Hello", "$(touch x); `y`"}).result,
            SendResult::delivered);
  FILE* const file = std::fopen(path.c_str(), "r");
  ASSERT_NE(file, nullptr);
  char text[100] = {};
  const size_t bytes = std::fread(text, 1, sizeof text, file);
  std::fclose(file);
  EXPECT_EQ(std::string(text, bytes), "$(touch x); `y`Hello\n");
  const Sent failed = sender.send({Protocol::command, "fail", "", "x"});
  EXPECT_EQ(failed.result, SendResult::retry);
  EXPECT_EQ(failed.what, "the command ended with status 3: why");
  EXPECT_EQ(sender.send({Protocol::command, "none", "", "x"}).result, SendResult::retry);
  EXPECT_EQ(sender.send({Protocol::command, "other", "", "x"}).result, SendResult::refused);
}

TEST(CommandSender, StartsCommandsOnlyForTheirTopics) {
  const CommandSender sender(
      {{"page", {{"/bin/true"}, {"alerts"}}}, {"any", {{"/bin/true"}, {"*"}}}});
  const auto check = [&](const char* command, const char* topic) {
    Subscription subscription;
    subscription.topic = std::string("arn:aws:sns:r:1:") + topic;
    subscription.endpoint = command;
    return bool(sender.check(subscription));
  };
  EXPECT_TRUE(check("page", "alerts"));
  EXPECT_FALSE(check("page", "other"));
  EXPECT_TRUE(check("any", "other"));
  EXPECT_FALSE(check("unknown", "alerts"));
}

}  // namespace
}  // namespace trainyard::notify
