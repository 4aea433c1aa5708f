#include <gtest/gtest.h>

#include "operations/testing/operation_caller.hpp"
#include "s3/bucket_settings.hpp"
#include "s3/operations.hpp"
#include "s3/setting_checks.hpp"
#include "shapes/s3.hpp"

namespace trainyard::api::s3 {
namespace {

namespace s3 = shapes::s3;
using Texts = std::vector<std::string>;

const std::string kMalformed =
    "MalformedXML: The XML you provided was not well-formed or did not validate against our "
    "published schema";

struct SettingsWorld : OperationsWorld {
  SettingsWorld() : OperationsWorld(add_operations) {
    EXPECT_TRUE(call<s3::CreateBucket>({.bucket = "data"}));
  }
  template <class Operation>
  typename Operation::Output made(const typename Operation::Input& in) {
    auto out = call<Operation>(in);
    EXPECT_TRUE(out) << (out ? "" : out.failure(s3::kService).message);
    return out ? *std::move(out) : typename Operation::Output();
  }
  std::string refused(const s3::CORSRule& rule) {
    s3::CORSConfiguration cors;
    cors.cors_rules = {{rule}};
    return refusal<s3::PutBucketCors>({.bucket = "data", .cors_configuration = cors});
  }
  std::string refused(std::vector<s3::LifecycleRule> rules) {
    s3::PutBucketLifecycleConfigurationRequest in{.bucket = "data"};
    in.lifecycle_configuration.emplace().rules = std::move(rules);
    return refusal<s3::PutBucketLifecycleConfiguration>(in);
  }
  std::string refused(const s3::WebsiteConfiguration& website) {
    return refusal<s3::PutBucketWebsite>({.bucket = "data", .website_configuration = website});
  }
};

s3::CORSRule cors_rule() {
  s3::CORSRule rule;
  rule.allowed_methods = Texts{"GET"};
  rule.allowed_origins = Texts{"*"};
  return rule;
}

s3::LifecycleRule expiring(std::optional<std::string> id = std::nullopt) {
  s3::LifecycleRule rule;
  rule.id = std::move(id);
  rule.status = "Enabled";
  rule.filter.emplace().prefix = "logs/";
  rule.expiration.emplace().days = 7;
  return rule;
}

TEST(Settings, AreReturnedUnchanged) {
  SettingsWorld world;
  s3::CORSRule rule = cors_rule();
  rule.id = "one";
  rule.max_age_seconds = 10;
  s3::CORSConfiguration cors;
  cors.cors_rules = {{rule, cors_rule()}};
  world.made<s3::PutBucketCors>({.bucket = "data", .cors_configuration = cors});
  const auto read = world.made<s3::GetBucketCors>({.bucket = "data"});
  ASSERT_EQ(read.cors_rules->size(), 2u);
  EXPECT_EQ(read.cors_rules->at(0).id, "one");
  EXPECT_EQ(read.cors_rules->at(0).max_age_seconds, 10);
  EXPECT_FALSE(read.cors_rules->at(1).id);
  EXPECT_TRUE(world.control.stored_records->all.contains({"bucket_setting", "data/cors"}));
  world.made<s3::DeleteBucketCors>({.bucket = "data"});
  EXPECT_EQ(world.refusal<s3::GetBucketCors>({.bucket = "data"}),
            "NoSuchCORSConfiguration: The CORS configuration does not exist");
  world.made<s3::DeleteBucketCors>({.bucket = "data"});
  EXPECT_TRUE(world.control.stored_records->all.empty());
}

TEST(Settings, HaveTheDefaultsOfANewBucket) {
  SettingsWorld world;
  const auto refusal = [&]<class Get>(Get) { return world.refusal<Get>({.bucket = "data"}); };
  EXPECT_EQ(refusal(s3::GetBucketEncryption()),
            "ServerSideEncryptionConfigurationNotFoundError: The server side encryption "
            "configuration was not found");
  EXPECT_EQ(refusal(s3::GetBucketWebsite()),
            "NoSuchWebsiteConfiguration: The specified bucket does not have a website "
            "configuration");
  EXPECT_EQ(refusal(s3::GetPublicAccessBlock()),
            "NoSuchPublicAccessBlockConfiguration: The public access block configuration was not "
            "found");
  EXPECT_FALSE(world.made<s3::GetBucketLogging>({.bucket = "data"}).logging_enabled);
  EXPECT_FALSE(world.made<s3::GetBucketAccelerateConfiguration>({.bucket = "data"}).status);
  EXPECT_EQ(world.made<s3::GetBucketRequestPayment>({.bucket = "data"}).payer, "BucketOwner");
  EXPECT_EQ(world.made<s3::GetBucketOwnershipControls>({.bucket = "data"})
                .ownership_controls->rules->at(0)
                .object_ownership,
            "BucketOwnerEnforced");
}

TEST(Settings, NeedTheirBucketAndItsOwner) {
  SettingsWorld world;
  EXPECT_EQ(world.refusal<s3::GetBucketCors>({.bucket = "no-bucket"}),
            "NoSuchBucket: The specified bucket does not exist");
  EXPECT_EQ(world.refusal<s3::PutBucketRequestPayment>({.bucket = "no-bucket"}),
            "NoSuchBucket: The specified bucket does not exist");
  EXPECT_EQ(world.refusal<s3::DeleteBucketCors>(
                {.bucket = "data", .expected_bucket_owner = "999999999999"}),
            "AccessDenied: Access Denied");
  EXPECT_EQ(world.refusal<s3::PutBucketCors>({.bucket = "data"}), kMalformed);
}

TEST(Settings, AreDeletedWithTheirBucket) {
  SettingsWorld world;
  s3::CORSConfiguration cors;
  cors.cors_rules = {{cors_rule()}};
  ASSERT_TRUE(world.call<s3::CreateBucket>({.bucket = "data-2"}));
  for (const char* bucket : {"data", "data-2"})
    world.made<s3::PutBucketCors>({.bucket = bucket, .cors_configuration = cors});
  world.made<s3::DeleteBucket>({.bucket = "data"});
  EXPECT_FALSE(world.control.stored_records->all.contains({"bucket_setting", "data/cors"}));
  EXPECT_TRUE(world.control.stored_records->all.contains({"bucket_setting", "data-2/cors"}));
  EXPECT_EQ(BucketSettings(world.control).buckets_with(Setting::cors), Texts{"data-2"});
}

TEST(Cors, IsCheckedAsOnS3) {
  SettingsWorld world;
  s3::CORSRule rule = cors_rule();
  rule.allowed_methods = Texts{"GET", "PATCH"};
  EXPECT_EQ(world.refused(rule),
            "InvalidRequest: Found unsupported HTTP method in CORS config. Unsupported method is "
            "PATCH");
  rule = cors_rule();
  rule.allowed_origins = Texts{"https://*.*.org"};
  EXPECT_EQ(world.refused(rule),
            "InvalidRequest: AllowedOrigin \"https://*.*.org\" can not have more than one "
            "wildcard.");
  rule = cors_rule();
  rule.expose_headers = Texts{"x-*"};
  EXPECT_TRUE(
      world.refused(rule).starts_with("InvalidRequest: ExposeHeader \"x-*\" contains wildcard."));
  rule = cors_rule();
  rule.allowed_headers = Texts{"**"};
  EXPECT_TRUE(world.refused(rule).starts_with("InvalidRequest: AllowedHeader"));
  rule.allowed_methods.reset();
  EXPECT_EQ(world.refused(rule), kMalformed);
  s3::CORSConfiguration many;
  many.cors_rules = std::vector<s3::CORSRule>(kCorsRulesMax, cors_rule());
  world.made<s3::PutBucketCors>({.bucket = "data", .cors_configuration = many});
  many.cors_rules->push_back(cors_rule());
  EXPECT_EQ(world.refusal<s3::PutBucketCors>({.bucket = "data", .cors_configuration = many}),
            kMalformed);
}

TEST(LifecycleConfiguration, GetsIdsAndKeepsItsRules) {
  SettingsWorld world;
  s3::PutBucketLifecycleConfigurationRequest in{.bucket = "data"};
  in.lifecycle_configuration.emplace().rules = {{expiring(), expiring("mine")}};
  world.made<s3::PutBucketLifecycleConfiguration>(in);
  const auto rules = *world.made<s3::GetBucketLifecycleConfiguration>({.bucket = "data"}).rules;
  ASSERT_EQ(rules.size(), 2u);
  EXPECT_EQ(rules[0].id->size(), 48u);
  EXPECT_EQ(rules[1].id, "mine");
  EXPECT_EQ(rules[1].filter->prefix, "logs/");
  EXPECT_EQ(rules[1].expiration->days, 7);
}

TEST(LifecycleConfiguration, HasAtMostAThousandRules) {
  SettingsWorld world;
  s3::PutBucketLifecycleConfigurationRequest in{.bucket = "data"};
  in.lifecycle_configuration.emplace().rules =
      std::vector<s3::LifecycleRule>(kLifecycleRulesMax, expiring());
  world.made<s3::PutBucketLifecycleConfiguration>(in);
  in.lifecycle_configuration->rules->push_back(expiring());
  EXPECT_EQ(world.refusal<s3::PutBucketLifecycleConfiguration>(in), kMalformed);
  s3::LifecycleRule large = expiring();
  large.filter->prefix = std::string(1024, 'x');
  in.lifecycle_configuration->rules = std::vector<s3::LifecycleRule>(kLifecycleRulesMax, large);
  EXPECT_EQ(
      world.refusal<s3::PutBucketLifecycleConfiguration>(in),
      "InvalidArgument: the lifecycle configuration exceeds the 256 KiB that this server stores "
      "of it");
}

TEST(LifecycleConfiguration, KeepsTheSizeOfTransitions) {
  SettingsWorld world;
  s3::PutBucketLifecycleConfigurationRequest in{.bucket = "data"};
  in.lifecycle_configuration.emplace().rules = {{expiring()}};
  const auto put = [&] {
    const auto out = world.made<s3::PutBucketLifecycleConfiguration>(in);
    const auto read = world.made<s3::GetBucketLifecycleConfiguration>({.bucket = "data"});
    EXPECT_EQ(read.transition_default_minimum_object_size,
              out.transition_default_minimum_object_size);
    EXPECT_EQ(read.rules->size(), 1u);
    return read.transition_default_minimum_object_size.value_or("");
  };
  EXPECT_EQ(put(), "all_storage_classes_128K");
  in.transition_default_minimum_object_size = "varies_by_storage_class";
  EXPECT_EQ(put(), "varies_by_storage_class");
  in.transition_default_minimum_object_size = "small";
  EXPECT_TRUE(world.refusal<s3::PutBucketLifecycleConfiguration>(in).starts_with(
      "InvalidArgument: Invalid x-amz-transition-default-minimum-object-size header: small"));
}

TEST(Settings, HaveLimitedBytes) {
  SettingsWorld world;
  s3::WebsiteConfiguration website;
  website.index_document.emplace().suffix = std::string(20 * 1024, 'x');
  EXPECT_EQ(
      world.refused(website),
      "InvalidArgument: the website configuration exceeds the 20 KiB that this server stores of "
      "it");
  s3::CORSRule rule = cors_rule();
  rule.allowed_origins = Texts(40, "https://" + std::string(1500, 'x'));
  s3::CORSConfiguration cors;
  cors.cors_rules = {{rule}};
  world.made<s3::PutBucketCors>({.bucket = "data", .cors_configuration = cors});
  rule.allowed_origins = Texts(50, "https://" + std::string(1500, 'x'));
  EXPECT_EQ(
      world.refused(rule),
      "InvalidArgument: the cors configuration exceeds the 64 KiB that this server stores of it");
}

TEST(Settings, HaveALimitedNumber) {
  SettingsWorld world;
  auto many = std::make_shared<domain::Records>();
  for (size_t i = 0; i + 1 < kSettingsMax; ++i)
    many->all[{"bucket_setting", "bucket-" + std::to_string(i) + "/cors"}] =
        std::make_shared<const domain::Record>();
  many->all[{"aaa", "x"}] = many->all[{"zzz", "x"}] = std::make_shared<const domain::Record>();
  world.control.stored_records = many;
  s3::CORSConfiguration cors;
  cors.cors_rules = {{cors_rule()}};
  world.made<s3::PutBucketCors>({.bucket = "data", .cors_configuration = cors});
  world.made<s3::PutBucketCors>({.bucket = "data", .cors_configuration = cors});  // the same one
  s3::WebsiteConfiguration website;
  website.index_document.emplace().suffix = "index.html";
  EXPECT_EQ(
      world.refused(website),
      "InvalidArgument: the buckets of this server have 10000 settings in total, which is the "
      "limit: delete settings, or buckets with settings");
  world.made<s3::DeleteBucketCors>({.bucket = "data"});
  world.made<s3::PutBucketWebsite>({.bucket = "data", .website_configuration = website});
}

TEST(Settings, AreLimitedPerPrincipal) {
  SettingsWorld world;
  ASSERT_TRUE(world.call<s3::CreateBucket>({.bucket = "data-2"}));
  auto many = std::make_shared<domain::Records>();
  for (size_t i = 0; i + 1 < kSettingsOfPrincipalMax; ++i)
    many->all[{"bucket_setting", "bucket-" + std::to_string(i) + "/cors"}] =
        std::make_shared<const domain::Record>(domain::Record{1, Json{{"put_by", "eve"}}});
  world.control.stored_records = many;
  s3::PutBucketCorsRequest in{.bucket = "data"};
  in.cors_configuration.emplace().cors_rules = {{cors_rule()}};
  s3::PutBucketCorsRequest another = in;
  another.bucket = "data-2";
  const std::string full =
      "InvalidArgument: 'eve' has put 1000 bucket settings, which is the limit: delete settings, "
      "or "
      "buckets with settings";
  world.context.principal.name = "eve";
  world.made<s3::PutBucketCors>(in);
  EXPECT_EQ(world.refusal<s3::PutBucketCors>(another), full);
  world.made<s3::PutBucketCors>(in);  // replaces the previous one
  EXPECT_EQ(
      world.refusal<s3::CreateBucket>({.bucket = "data-3", .object_ownership = "ObjectWriter"}),
      full);
  EXPECT_FALSE(world.objects->head_bucket("data-3"));
  // Other principals are not affected. A setting with which one replaces eve's counts for the new
  // one.
  world.context.principal.name = "ann";
  world.made<s3::PutBucketCors>(in);
  world.context.principal.name = "eve";
  world.made<s3::PutBucketCors>(another);
  EXPECT_EQ(world.refusal<s3::PutBucketCors>(in), full);
  world.context.principal.kind = PrincipalKind::owner;
  world.made<s3::PutBucketCors>(in);
}

TEST(LifecycleConfiguration, IsCheckedAsOnS3) {
  SettingsWorld world;
  EXPECT_EQ(world.refused(std::vector<s3::LifecycleRule>()), kMalformed);
  EXPECT_EQ(world.refused({expiring("a"), expiring("a")}),
            "InvalidArgument: Rule ID must be unique. Found same ID for one or more rules");
  const auto refused = [&](const std::function<void(s3::LifecycleRule&)>& change) {
    s3::LifecycleRule rule = expiring("a");
    change(rule);
    return world.refused({rule});
  };
  EXPECT_EQ(refused([](auto& rule) { rule.id = std::string(256, 'x'); }),
            "InvalidArgument: ID length should not exceed allowed limit of 255");
  EXPECT_EQ(refused([](auto& rule) { rule.status = "On"; }), kMalformed);
  EXPECT_EQ(refused([](auto& rule) { rule.filter.reset(); }), kMalformed);
  EXPECT_EQ(refused([](auto& rule) { rule.prefix = "a"; }), kMalformed);
  EXPECT_EQ(refused([](auto& rule) { rule.filter->object_size_less_than = 5; }), kMalformed);
  EXPECT_EQ(refused([](auto& rule) { rule.expiration.reset(); }),
            "InvalidRequest: At least one action needs to be specified in a rule.");
  EXPECT_EQ(refused([](auto& rule) { rule.expiration->days = 0; }),
            "InvalidArgument: 'Days' for Expiration action must be a positive integer");
  EXPECT_EQ(refused([](auto& rule) { rule.expiration->days = int64_t(1) << 40; }), kMalformed);
  EXPECT_EQ(refused([](auto& rule) {
              rule.expiration->days.reset();
              rule.expiration->date = from_milliseconds(1);
            }),
            "InvalidArgument: 'Date' must be at midnight GMT");
  EXPECT_EQ(refused([](auto& rule) { rule.expiration->date = from_milliseconds(0); }), kMalformed);
  EXPECT_EQ(refused([](auto& rule) {
              rule.filter->prefix.reset();
              rule.filter->tag = s3::Tag{.key = "a", .value = "b"};
              rule.abort_incomplete_multipart_upload.emplace().days_after_initiation = 1;
            }),
            "InvalidRequest: AbortIncompleteMultipartUpload cannot be specified with Tags.");
  EXPECT_EQ(refused([](auto& rule) {
              rule.filter->prefix.reset();
              auto& both = rule.filter->and_.emplace();
              both.prefix = "a";
              both.tags = {{{.key = "a", .value = "b"}, {.key = "a", .value = "c"}}};
            }),
            "InvalidRequest: Duplicate Tag Keys are not allowed.");
  EXPECT_EQ(refused([](auto& rule) {
              rule.transitions = {{{.days = 1}}};  // no storage class
            }),
            kMalformed);
}

TEST(PublicAccessBlock, RejectsPublicPolicies) {
  SettingsWorld world;
  const auto policy = [](const std::string& principal, const std::string& more = "") {
    return R"({"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":)" + principal +
           R"(,"Action":"s3:GetObject","Resource":"arn:aws:s3:::data/*")" + more + "}]}";
  };
  s3::PutPublicAccessBlockRequest in{.bucket = "data"};
  in.public_access_block_configuration.emplace().block_public_policy = true;
  world.made<s3::PutPublicAccessBlock>(in);
  const auto block =
      *world.made<s3::GetPublicAccessBlock>({.bucket = "data"}).public_access_block_configuration;
  EXPECT_EQ(block.block_public_policy, true);
  EXPECT_EQ(block.block_public_acls, false) << "a flag that is left out is false";
  s3::PutPublicAccessBlockRequest empty{.bucket = "data"};
  empty.public_access_block_configuration.emplace();
  EXPECT_EQ(world.refusal<s3::PutPublicAccessBlock>(empty),
            "InvalidRequest: Must specify at least one configuration.");
  EXPECT_TRUE(world.refusal<s3::PutBucketPolicy>({.bucket = "data", .policy = policy("\"*\"")})
                  .starts_with("AccessDenied: "));
  const auto over_tls = policy("\"*\"", R"(,"Condition":{"Bool":{"aws:SecureTransport":"true"}})");
  EXPECT_TRUE(world.refusal<s3::PutBucketPolicy>({.bucket = "data", .policy = over_tls})
                  .starts_with("AccessDenied: "));
  world.made<s3::PutBucketPolicy>(
      {.bucket = "data",
       .policy = policy("\"*\"", R"(,"Condition":{"IpAddress":{"aws:SourceIp":"10.1.0.0/16"}})")});
  world.made<s3::PutBucketPolicy>(
      {.bucket = "data", .policy = policy(R"({"AWS":"arn:aws:iam::123456789012:root"})")});
  world.made<s3::DeletePublicAccessBlock>({.bucket = "data"});
  world.made<s3::PutBucketPolicy>({.bucket = "data", .policy = policy("\"*\"")});
}

TEST(Ownership, IsSetAtCreationAndCanBeChanged) {
  SettingsWorld world;
  world.made<s3::CreateBucket>({.bucket = "other", .object_ownership = "ObjectWriter"});
  const auto owner = [&] {
    return world.made<s3::GetBucketOwnershipControls>({.bucket = "other"})
        .ownership_controls->rules->at(0)
        .object_ownership;
  };
  EXPECT_EQ(owner(), "ObjectWriter");
  s3::PutBucketOwnershipControlsRequest in{.bucket = "other"};
  in.ownership_controls.emplace().rules = {{{.object_ownership = "BucketOwnerPreferred"}}};
  world.made<s3::PutBucketOwnershipControls>(in);
  EXPECT_EQ(owner(), "BucketOwnerPreferred");
  world.made<s3::DeleteBucketOwnershipControls>({.bucket = "other"});
  EXPECT_EQ(world.refusal<s3::GetBucketOwnershipControls>({.bucket = "other"}),
            "OwnershipControlsNotFoundError: The bucket ownership controls were not found");
  in.ownership_controls->rules->at(0).object_ownership = "Nobody";
  EXPECT_EQ(world.refusal<s3::PutBucketOwnershipControls>(in), kMalformed);
  EXPECT_EQ(world.refusal<s3::CreateBucket>({.bucket = "third", .object_ownership = "Nobody"}),
            "InvalidArgument: Invalid x-amz-object-ownership header: Nobody");
}

TEST(Encryption, KeepsTheAlgorithmAndRejectsKeys) {
  SettingsWorld world;
  s3::PutBucketEncryptionRequest in{.bucket = "data"};
  auto& by_default = in.server_side_encryption_configuration.emplace()
                         .rules.emplace()
                         .emplace_back()
                         .apply_server_side_encryption_by_default.emplace();
  by_default.sse_algorithm = "AES256";
  world.made<s3::PutBucketEncryption>(in);
  EXPECT_EQ(world.made<s3::GetBucketEncryption>({.bucket = "data"})
                .server_side_encryption_configuration->rules->at(0)
                .apply_server_side_encryption_by_default->sse_algorithm,
            "AES256");
  by_default.kms_master_key_id = "key";
  EXPECT_TRUE(world.refusal<s3::PutBucketEncryption>(in).starts_with(
      "InvalidArgument: a KMSMasterKeyID is not applicable"));
  by_default.sse_algorithm = "aws:kms";
  EXPECT_TRUE(world.refusal<s3::PutBucketEncryption>(in).starts_with("NotImplemented: "));
  in.server_side_encryption_configuration->rules->clear();
  EXPECT_EQ(world.refusal<s3::PutBucketEncryption>(in), kMalformed);
}

TEST(Website, NeedsAnIndexOrARedirect) {
  SettingsWorld world;
  s3::WebsiteConfiguration website;
  EXPECT_TRUE(world.refused(website).starts_with("InvalidArgument: A value for IndexDocument"));
  website.index_document.emplace().suffix = "a/b";
  EXPECT_EQ(world.refused(website), "InvalidArgument: The IndexDocument Suffix is not well formed");
  website.index_document->suffix = "index.html";
  world.made<s3::PutBucketWebsite>({.bucket = "data", .website_configuration = website});
  EXPECT_EQ(world.made<s3::GetBucketWebsite>({.bucket = "data"}).index_document->suffix,
            "index.html");
  website.redirect_all_requests_to.emplace().host_name = "example.org";
  EXPECT_TRUE(world.refused(website).starts_with("InvalidArgument: RedirectAllRequestsTo"));
  website.redirect_all_requests_to.reset();
  website.routing_rules = std::vector<s3::RoutingRule>(
      kRoutingRulesMax + 1, s3::RoutingRule{.redirect = s3::Redirect{.host_name = "a"}});
  EXPECT_TRUE(world.refused(website).starts_with("InvalidRequest: 51 routing rules"));
}

TEST(Logging, GoesToABucketThatExists) {
  SettingsWorld world;
  s3::PutBucketLoggingRequest in{.bucket = "data"};
  auto& logging = in.bucket_logging_status.emplace().logging_enabled.emplace();
  logging.target_bucket = "logs";
  logging.target_prefix = "";
  EXPECT_EQ(world.refusal<s3::PutBucketLogging>(in),
            "InvalidTargetBucketForLogging: The target bucket for logging does not exist");
  world.made<s3::CreateBucket>({.bucket = "logs"});
  world.made<s3::PutBucketLogging>(in);
  EXPECT_EQ(world.made<s3::GetBucketLogging>({.bucket = "data"}).logging_enabled->target_bucket,
            "logs");
  logging.target_grants.emplace().emplace_back().permission = "READ";
  EXPECT_EQ(world.refusal<s3::PutBucketLogging>(in),
            "AccessControlListNotSupported: The bucket does not allow ACLs");
  in.bucket_logging_status->logging_enabled.reset();
  world.made<s3::PutBucketLogging>(in);
  EXPECT_FALSE(world.made<s3::GetBucketLogging>({.bucket = "data"}).logging_enabled);
}

TEST(Notifications, HaveNoDestinations) {
  SettingsWorld world;
  s3::PutBucketNotificationConfigurationRequest in{.bucket = "data"};
  auto& queue = in.notification_configuration.emplace().queue_configurations.emplace();
  queue.push_back(
      {.queue_arn = "arn:aws:sqs:us-east-1:123456789012:q", .events = Texts{"s3:ObjectCreated:*"}});
  EXPECT_EQ(world.refusal<s3::PutBucketNotificationConfiguration>(in),
            "InvalidArgument: Unable to validate the following destination configurations");
  in.skip_destination_validation = true;
  world.made<s3::PutBucketNotificationConfiguration>(in);
  EXPECT_EQ(world.made<s3::GetBucketNotificationConfiguration>({.bucket = "data"})
                .queue_configurations->size(),
            1u);
  in.notification_configuration = s3::NotificationConfiguration();
  world.made<s3::PutBucketNotificationConfiguration>(in);
  EXPECT_FALSE(
      world.made<s3::GetBucketNotificationConfiguration>({.bucket = "data"}).queue_configurations);
}

TEST(Acceleration, NeedsANameWithoutPeriods) {
  SettingsWorld world;
  world.made<s3::CreateBucket>({.bucket = "a.b"});
  s3::PutBucketAccelerateConfigurationRequest in{.bucket = "a.b"};
  in.accelerate_configuration.emplace().status = "Enabled";
  EXPECT_TRUE(world.refusal<s3::PutBucketAccelerateConfiguration>(in).starts_with(
      "InvalidRequest: S3 Transfer Acceleration is not supported"));
  in.bucket = "data";
  in.accelerate_configuration->status = "Suspended";
  for (int i = 0; i < 2; ++i) {
    world.made<s3::PutBucketAccelerateConfiguration>(in);
    EXPECT_FALSE(world.made<s3::GetBucketAccelerateConfiguration>({.bucket = "data"}).status)
        << "it was never enabled";
  }
  in.accelerate_configuration->status = "Enabled";
  world.made<s3::PutBucketAccelerateConfiguration>(in);
  EXPECT_EQ(world.made<s3::GetBucketAccelerateConfiguration>({.bucket = "data"}).status, "Enabled");
  in.accelerate_configuration->status = "On";
  EXPECT_EQ(world.refusal<s3::PutBucketAccelerateConfiguration>(in), kMalformed);
}

}  // namespace
}  // namespace trainyard::api::s3
