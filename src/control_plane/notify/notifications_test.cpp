#include "notify/notifications.hpp"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "base/text.hpp"
#include "notify/testing/notify_world.hpp"
#include "sqlite/connection.hpp"

namespace trainyard::notify {
namespace {

struct NotificationsTest : ::testing::Test, NotifyWorld {
  NotificationsTest() {
    EXPECT_TRUE(open());
    topic();
  }
  size_t deliver() { return all->deliverer().attempt_due(); }
};

// Verifies a signature as SDKs do: with the certificate's key, SHA-256 and PKCS#1 v1.5.
bool verifies(const std::string& certificate, const std::string& text,
              const std::string& signature) {
  BIO* const bio = BIO_new_mem_buf(certificate.data(), int(certificate.size()));
  X509* const x509 = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
  EVP_MD_CTX* const context = EVP_MD_CTX_new();
  const std::string bytes = *from_base64(signature);
  const bool good =
      EVP_DigestVerifyInit(context, nullptr, EVP_sha256(), nullptr, X509_get0_pubkey(x509)) == 1 &&
      EVP_DigestVerify(context, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                       reinterpret_cast<const unsigned char*>(text.data()), text.size()) == 1;
  EVP_MD_CTX_free(context);
  X509_free(x509);
  BIO_free(bio);
  return good;
}

TEST_F(NotificationsTest, CreatesATopicOnce) {
  EXPECT_EQ(all->create_topic({.arn = kTopic})->created, clock.now());
  const auto differs = all->create_topic({.arn = kTopic, .attributes = {{"DisplayName", "x"}}});
  ASSERT_FALSE(differs);
  EXPECT_TRUE(differs.error().is(NotifyFault::topic_differs));
  EXPECT_TRUE(all->delete_topic(kTopic));
  EXPECT_TRUE(all->delete_topic(kTopic));
  EXPECT_TRUE(publish("x").error().is(NotifyFault::no_topic));
}

TEST_F(NotificationsTest, SendsOnlyToConfirmedSubscriptions) {
  Subscription wanted;
  wanted.topic = kTopic;
  wanted.protocol = Protocol::https;
  wanted.endpoint = "https://u.example/";
  const auto made = all->subscribe(wanted);
  ASSERT_TRUE(made);
  ASSERT_TRUE(publish("too early"));
  EXPECT_EQ(deliver(), 1u);
  ASSERT_EQ(sent.size(), 1u);
  const Json body = *parse_json(sent[0].body);
  EXPECT_EQ(body["Type"], "SubscriptionConfirmation");
  EXPECT_EQ(body["Token"], made->token);
  EXPECT_EQ(body["SubscribeURL"], "https://yard:4566/_sns/?Action=ConfirmSubscription&TopicArn=" +
                                      percent_encode(kTopic) + "&Token=" + made->token);
  EXPECT_TRUE(all->confirm(kTopic, "x" + made->token, false).error().is(NotifyFault::token));
  ASSERT_TRUE(all->confirm(kTopic, made->token, false));
  EXPECT_TRUE(all->confirm(kTopic, made->token, false)) << "a second confirmation succeeds";
  ASSERT_TRUE(publish("now"));
  EXPECT_EQ(deliver(), 1u);
  EXPECT_EQ((*parse_json(sent[1].body))["Message"], "now");
  // A second subscribe() returns the same subscription, and sends nothing.
  EXPECT_EQ(all->subscribe(wanted)->arn, made->arn);
  EXPECT_EQ(deliver(), 0u);
}

TEST_F(NotificationsTest, RemovesSubscriptionsNotConfirmedInTime) {
  Subscription wanted;
  wanted.topic = kTopic;
  wanted.endpoint = "http://u.example/";
  const auto made = all->subscribe(wanted);
  clock.advance(49h);
  EXPECT_TRUE(all->confirm(kTopic, made->token, false).error().is(NotifyFault::token));
  EXPECT_NE(all->subscribe(wanted)->arn, made->arn);
  EXPECT_EQ(all->catalogue()->subscriptions.size(), 1u);
}

TEST_F(NotificationsTest, SignsAsSdksVerify) {
  subscribe("https://u.example/");
  Message message;
  message.subject = "Hello";
  message.body = "a \"b\"\nc \xe2\x82\xac";
  message.attributes = {{"n", {"Number", "5"}}};
  const auto ids = all->publish(kTopic, {message});
  ASSERT_TRUE(ids);
  ASSERT_EQ(deliver(), 1u);
  const Json body = *parse_json(sent[0].body);
  EXPECT_EQ(body["SignatureVersion"], "2");
  EXPECT_EQ(body["MessageAttributes"]["n"]["Type"], "Number");
  const std::string text = "Message\n" + message.body + "\nMessageId\n" + ids->front() +
                           "\nSubject\nHello\nTimestamp\n" + body["Timestamp"].get<std::string>() +
                           "\nTopicArn\n" + kTopic + "\nType\nNotification\n";
  const std::string certificate = all->signer().certificate();
  EXPECT_TRUE(verifies(certificate, text, body["Signature"]));
  EXPECT_FALSE(verifies(certificate, text + "x", body["Signature"]));
  EXPECT_EQ(body["SigningCertURL"], "https://yard:4566/_sns/" + all->signer().file_name());
  // A restarted server has the same key.
  ASSERT_TRUE(reopen());
  EXPECT_EQ(all->signer().certificate(), certificate);
}

TEST_F(NotificationsTest, LimitsTheSubscriptionsOfATopic) {
  const auto subscribe_to = [&](size_t number) {
    Subscription wanted;
    wanted.topic = kTopic;
    wanted.endpoint = "https://a.example/" + std::to_string(number);
    return all->subscribe(wanted);
  };
  for (size_t number = 0; number < kTopicSubscriptionsMax; ++number)
    ASSERT_TRUE(subscribe_to(number)) << number;
  const auto above = subscribe_to(kTopicSubscriptionsMax);
  ASSERT_FALSE(above);
  EXPECT_TRUE(above.error().is(NotifyFault::subscription_limit));
  EXPECT_TRUE(subscribe_to(0)) << "an existing subscription is returned";
}

TEST_F(NotificationsTest, LimitsTheBytesOfPolicies) {
  const std::string policy = R"({"a":[")" + std::string((255 << 10) - 10, 'x') + R"("]})";
  ASSERT_EQ(policy.size(), size_t{255 << 10});
  size_t number = 0;
  const auto subscribe_as = [&](const std::string& creator, const std::string& filter) {
    Subscription wanted;
    wanted.topic = kTopic;
    wanted.endpoint = "https://a.example/" + std::to_string(++number);
    wanted.creator = creator;
    wanted.filter_policy = filter;
    return all->subscribe(wanted);
  };
  const auto is_full = [](const Result<Subscription>& made) {
    return !made && made.error().is(NotifyFault::subscription_limit);
  };
  const auto first = subscribe_as("a", policy);
  ASSERT_TRUE(first);
  for (const char* creator : {"a", "b", "c", "d"}) {
    for (size_t i = creator[0] == 'a'; i < 64; ++i) ASSERT_TRUE(subscribe_as(creator, policy)) << i;
    EXPECT_TRUE(is_full(subscribe_as(creator, policy))) << creator;
  }
  EXPECT_TRUE(subscribe_as("e", policy));
  EXPECT_TRUE(is_full(subscribe_as("e", policy))) << "64 MiB in all";
  EXPECT_TRUE(subscribe_as("e", ""));
  const auto change = [&](const std::string& to) {
    return all->change_subscription(first->arn, [&](Subscription& each) -> Result<void> {
      each.delivery_policy = to;
      return {};
    });
  };
  EXPECT_TRUE(change(""));
  EXPECT_FALSE(change(std::string(100 << 10, ' '))) << "a delivery policy counts, too";
  ASSERT_TRUE(all->unsubscribe(first->arn));
  EXPECT_TRUE(subscribe_as("a", policy));
  EXPECT_TRUE(reopen());
}

TEST_F(NotificationsTest, ConfirmsARepeatedSubscribeOnceAMinute) {
  Subscription wanted;
  wanted.topic = kTopic;
  wanted.protocol = Protocol::email;
  wanted.endpoint = "a@u.example";
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(all->subscribe(wanted));
  EXPECT_EQ(deliver(), 1u);
  clock.advance(59s);
  ASSERT_TRUE(all->subscribe(wanted));
  EXPECT_EQ(deliver(), 0u);
  clock.advance(1s);
  ASSERT_TRUE(all->subscribe(wanted));
  EXPECT_EQ(deliver(), 1u);
}

TEST_F(NotificationsTest, IgnoresRecordsThatCannotBeRead) {
  subscribe("https://u.example/");
  close();
  {
    const auto connection = *sqlite::Connection::open(directory.path() + "/notifications.db");
    ASSERT_TRUE(
        connection->run("INSERT INTO documents(kind, id, body) VALUES('topic', 'bad', '{'),"
                        "('rule', 'bad', '{}'), ('subscription', 'bad', '[]')"));
  }
  ASSERT_TRUE(open());
  EXPECT_EQ(all->catalogue()->topics.size(), 1u);
  EXPECT_EQ(all->catalogue()->subscriptions.size(), 1u);
  EXPECT_TRUE(all->catalogue()->rules.empty());
  ASSERT_TRUE(publish("x"));
  EXPECT_EQ(deliver(), 1u);
}

TEST_F(NotificationsTest, DeliversToOthersWhileATargetFails) {
  close();
  limits.pending = 50;
  ASSERT_TRUE(open());
  subscribe("https://fails.example/");
  const std::string other = std::string(kTopic) + "2";
  ASSERT_TRUE(all->create_topic({.arn = other}));
  Subscription page;
  page.topic = other;
  page.protocol = Protocol::command;
  page.endpoint = "page";
  ASSERT_TRUE(all->subscribe(page));
  for (int i = 0; i < 60; ++i) ASSERT_TRUE(publish("x"));
  EXPECT_EQ(all->counts().pending, 50u) << "further ones are dropped";
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(all->publish_to_topic(other, "", "y"));
  EXPECT_EQ(all->counts().pending, 50u + Deliverer::kPerTargetWhenFullMax);
  deliver();
  size_t pages = 0;
  for (const Outgoing& each : sent) pages += each.endpoint == "page";
  EXPECT_EQ(pages, Deliverer::kPerTargetWhenFullMax);
  ASSERT_TRUE(publish("x"));
  EXPECT_EQ(all->counts().pending, 1u);
}

TEST_F(NotificationsTest, SendsHeadersAndRawBodies) {
  const auto raw = subscribe("https://raw.example/", [](Subscription& each) { each.raw = true; });
  ASSERT_TRUE(publish("plain"));
  deliver();
  EXPECT_EQ(sent[0].body, "plain");
  const std::map<std::string, std::string> headers(sent[0].headers.begin(), sent[0].headers.end());
  EXPECT_EQ(headers.at("x-amz-sns-message-type"), "Notification");
  EXPECT_EQ(headers.at("x-amz-sns-topic-arn"), kTopic);
  EXPECT_EQ(headers.at("x-amz-sns-subscription-arn"), raw.arn);
  EXPECT_EQ(headers.at("x-amz-sns-rawdelivery"), "true");
}

TEST_F(NotificationsTest, FiltersByAttributesAndBody) {
  subscribe("https://attributes.example/", [](Subscription& each) {
    each.filter_policy = R"({"kind": ["red", {"prefix": "b"}], "size": [{"numeric": [">", 3]}]})";
  });
  subscribe("https://array.example/",
            [](Subscription& each) { each.filter_policy = R"({"list": ["x"]})"; });
  subscribe("https://body.example/", [](Subscription& each) {
    each.filter_policy = R"({"a": {"b": [1]}})";
    each.filters_body = true;
  });
  const auto receivers = [&](std::map<std::string, MessageAttribute> attributes,
                             const std::string& body) {
    sent.clear();
    Message message;
    message.body = body;
    message.attributes = std::move(attributes);
    EXPECT_TRUE(all->publish(kTopic, {message}));
    deliver();
    std::string hosts;
    for (const auto& each : sent) hosts += host_of(each.endpoint) + " ";
    return hosts;
  };
  EXPECT_EQ(receivers({}, "x"), "");
  EXPECT_EQ(receivers({{"kind", {"String", "red"}}, {"size", {"Number", "4"}}}, "x"),
            "attributes.example ");
  EXPECT_EQ(receivers({{"kind", {"String", "red"}}, {"size", {"String", "4"}}}, "x"), "");
  EXPECT_EQ(receivers({{"kind", {"String", "blue"}}, {"size", {"Number.int", "4"}}}, "x"),
            "attributes.example ");
  EXPECT_EQ(receivers({{"list", {"String.Array", R"(["w", "x"])"}}}, "x"), "array.example ");
  EXPECT_EQ(receivers({}, R"({"a": {"b": 1}})"), "body.example ");
  EXPECT_EQ(receivers({}, R"({"a": {"b": 2}})"), "");
}

TEST_F(NotificationsTest, RetriesUntilTheEndpointSucceeds) {
  subscribe("https://u.example/");
  answers["https://u.example/"] = std::vector<Sent>(5, Sent{SendResult::retry, "503"});
  ASSERT_TRUE(publish("x"));
  size_t attempts = 0;
  for (int i = 0; i < 100 && all->counts().pending > 0; ++i) {
    attempts += deliver();
    clock.advance(10s);
  }
  EXPECT_EQ(attempts, 6u);
  EXPECT_EQ(all->counts().pending, 0u);
  ASSERT_TRUE(reopen());
  EXPECT_EQ(all->counts().pending, 0u) << "a delivered message is not sent again";
}

TEST_F(NotificationsTest, EndsAfterARefusalAndAfterTheLastAttempt) {
  subscribe("https://u.example/");
  answers["https://u.example/"] = {Sent{SendResult::refused, "404"}};
  ASSERT_TRUE(publish("x"));
  EXPECT_EQ(deliver(), 1u);
  EXPECT_EQ(all->counts().pending, 0u);
  answers["https://u.example/"] = std::vector<Sent>(100, Sent{SendResult::retry, "503"});
  ASSERT_TRUE(publish("x"));
  size_t attempts = 0;
  for (int i = 0; i < 200 && all->counts().pending > 0; ++i) {
    attempts += deliver();
    clock.advance(15min);
  }
  EXPECT_EQ(attempts, kAttemptsMax);
  EXPECT_EQ(all->counts().pending, 0u);
}

TEST_F(NotificationsTest, KeepsAttemptsAcrossRestarts) {
  subscribe("https://u.example/");
  answers["https://u.example/"] = std::vector<Sent>(3, Sent{SendResult::retry, "503"});
  ASSERT_TRUE(publish("x"));
  EXPECT_EQ(deliver(), 3u);  // the first two retries have no pause
  ASSERT_TRUE(reopen());
  EXPECT_EQ(all->counts().pending, 1u);
  EXPECT_EQ(deliver(), 0u) << "its pause is not over";
  clock.advance(15s);
  EXPECT_EQ(deliver(), 1u);
  EXPECT_EQ(sent.back().endpoint, "https://u.example/");
}

TEST_F(NotificationsTest, DropsDeliveriesOfRemovedSubscriptions) {
  const auto made = subscribe("https://u.example/");
  ASSERT_TRUE(publish("x"));
  EXPECT_EQ(all->unsubscribe_by_token(made.arn, "guess").error().kind, Kind::denied);
  ASSERT_TRUE(all->unsubscribe_by_token(made.arn, made.unsubscribe_token));
  deliver();
  EXPECT_TRUE(sent.empty());
  EXPECT_EQ(all->counts().pending, 0u);
}

TEST_F(NotificationsTest, SendsTheBodyOfEachProtocol) {
  subscribe("https://u.example/");
  subscribe("a@u.example", [](Subscription& each) { each.protocol = Protocol::email; });
  Message message;
  message.body = "for all";
  message.bodies = {{"email", "for mail"}};
  ASSERT_TRUE(all->publish(kTopic, {message}));
  EXPECT_EQ(deliver(), 2u);
  for (const auto& each : sent)
    EXPECT_NE(each.body.find(each.protocol == Protocol::email ? "for mail" : "for all"),
              each.body.npos);
}

TEST_F(NotificationsTest, LosesNothingOnAFullDisk) {
  subscribe("https://u.example/");
  close();
  // Each disk operation fails once: the caller gets an error, or the message is stored.
  int failed = 0;
  for (uint64_t nth = 1; nth < 40; ++nth) {
    NthFileFault fault(nth, ENOSPC);
    faults = &fault;
    ASSERT_TRUE(open());
    const size_t before = all->counts().pending;
    fault.arm();
    const auto published = publish("x");
    failed += !published;
    EXPECT_EQ(all->counts().pending, before + (published ? 1 : 0));
    EXPECT_TRUE(published || !published.error().message.empty());
    close();
    faults = nullptr;
    ASSERT_TRUE(open());
    EXPECT_GE(all->counts().pending, before + (published ? 1 : 0)) << nth;
    close();
    if (!fault.struck()) break;
  }
  EXPECT_GT(failed, 0);
  ASSERT_TRUE(open());
}

TEST_F(NotificationsTest, SendsEventsToTheTargetsOfMatchingRules) {
  subscribe("https://u.example/", [](Subscription& each) { each.raw = true; });
  Rule rule;
  rule.arn = bus->rule_arn("eu-west-1", "failed");
  rule.pattern = R"({"detail": {"state": ["FAILED"]}})";
  ASSERT_TRUE(bus->put_rule(rule));
  ASSERT_TRUE(bus->change_rule(rule.arn, [&](Rule& each) {
    each.targets = {{.id = "log",
                     .arn = "arn:aws:logs:eu-west-1:1:log-group:/aws/events/x",
                     .kind = TargetKind::log_group},
                    {.id = "topic", .arn = kTopic, .input_path = "$.detail.state"},
                    {.id = "none", .arn = std::string(kTopic) + "2"}};
    return ok();
  }));
  const auto put = [&](const char* region, const char* state) {
    return bus->put({{.region = region,
                      .source = "own",
                      .detail_type = "t",
                      .time = clock.now(),
                      .detail = {{"state", state}}}});
  };
  ASSERT_TRUE(put("eu-west-1", "RUNNING"));
  ASSERT_TRUE(put("us-east-1", "FAILED"));
  EXPECT_EQ(deliver(), 0u);
  ASSERT_TRUE(put("eu-west-1", "FAILED"));
  ASSERT_TRUE(reopen()) << "the deliveries were stored before the restart";
  EXPECT_EQ(deliver(), 2u);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].body, "\"FAILED\"");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].first, "log");
  EXPECT_EQ((*parse_json(events[0].second))["detail"]["state"], "FAILED");
  // A disabled rule matches no events; a rule with targets is not deleted.
  ASSERT_TRUE(bus->change_rule(rule.arn, [](Rule& each) {
    each.enabled = false;
    return ok();
  }));
  ASSERT_TRUE(put("eu-west-1", "FAILED"));
  EXPECT_EQ(deliver(), 0u);
  EXPECT_EQ(bus->delete_rule(rule.arn).error().kind, Kind::conflict);
}

}  // namespace
}  // namespace trainyard::notify
