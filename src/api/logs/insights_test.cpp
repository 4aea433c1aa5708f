#include "insights/queries.hpp"

#include "log_routing/exports.hpp"
#include "log_routing/router.hpp"
#include "logs/operations.hpp"
#include "operations/testing/operation_caller.hpp"
#include "shapes/logs.hpp"

namespace trainyard::api::logs {
namespace {

namespace aws = shapes::logs;

constexpr Duration kQueryDeadline = 120s;
const std::string kDestinations = "arn:aws:logs:eu-west-1:123456789012:destination:";

struct InsightsWorld : OperationsWorld {
  insights::Queries queries{*logs, clock, random};
  std::unique_ptr<log_routing::LogRouter> router = *log_routing::LogRouter::start(
      *logs, *metrics, clock,
      [](const log_routing::Webhook&, const std::string&) -> Result<int> { return 200; },
      {.account = "123456789012", .webhooks = {{"hook", "http://127.0.0.1:1/", "secret", ""}}});
  log_routing::Exports exports{*logs, *objects, clock, random};

  InsightsWorld() {
    services.queries = &queries;
    services.log_router = router.get();
    services.log_exports = &exports;
    add_operations(table, settings, services);
    context.principal.kind = PrincipalKind::user;
  }
  int64_t now() { return to_milliseconds(clock.now()); }
  void put(const std::string& group, const std::vector<std::string>& messages) {
    ASSERT_TRUE(logs->ensure_stream({"eu-west-1", group, "s"}));
    std::vector<observe::LogEvent> events;
    for (const auto& message : messages) events.push_back({clock.now(), {}, message});
    ASSERT_TRUE(logs->append({"eu-west-1", group, "s"}, events));
  }
  aws::StartQueryRequest request(const std::string& text) {
    return {.log_group_name = "g",
            .start_time = now() / 1000 - 60,
            .end_time = now() / 1000 + 60,
            .query_string = text};
  }
  std::string start(const std::string& text) {
    const auto out = call<aws::StartQuery>(request(text));
    EXPECT_TRUE(out);
    if (!out) return "";
    queries.wait(*(*out).query_id, kQueryDeadline);
    return *(*out).query_id;
  }
  // "a=1 b=2; ..": without @ptr.
  std::string results(const std::string& id) {
    const auto out = call<aws::GetQueryResults>({.query_id = id});
    if (!out) return "refused";
    std::string all = *(*out).status + ":";
    for (const auto& row : *(*out).results) {
      all += " ";
      for (const auto& field : row)
        if (*field.field != "@ptr") all += *field.field + "=" + *field.value + ";";
    }
    return all;
  }
};

TEST(InsightsOperations, RunAQuery) {
  InsightsWorld world;
  world.put("g", {R"({"v": 1})", R"({"v": 3})", "text"});
  const std::string id = world.start("stats avg(v) as average, count(*)");
  EXPECT_EQ(world.results(id), "Complete: average=2;count(*)=3;");
  const auto out = world.call<aws::GetQueryResults>({.query_id = id});
  EXPECT_EQ((*out).statistics->records_scanned, 3);
  EXPECT_EQ((*out).statistics->records_matched, 3);
  EXPECT_GT(*(*out).statistics->bytes_scanned, 26 * 3);
  const auto listed = world.call<aws::DescribeQueries>({.log_group_name = "g"});
  ASSERT_EQ((*listed).queries->size(), 1u);
  EXPECT_EQ((*listed).queries->at(0).status, "Complete");
  EXPECT_EQ((*listed).queries->at(0).create_time, world.now());
  EXPECT_EQ(world.refusal<aws::StopQuery>({.query_id = id}),
            "InvalidParameterException: Query is not running and cannot be stopped.");
}

TEST(InsightsOperations, ReturnResultsInPages) {
  InsightsWorld world;
  world.put("g", {"1", "2", "3"});
  const std::string id = world.start("fields @message");
  aws::GetQueryResultsRequest in{.query_id = id, .max_items = 2};
  auto page = world.call<aws::GetQueryResults>(in);
  ASSERT_EQ((*page).results->size(), 2u);
  in.next_token = (*page).next_token;
  page = world.call<aws::GetQueryResults>(in);
  ASSERT_EQ((*page).results->size(), 1u);
  EXPECT_EQ((*page).results->at(0).at(0).value, "3");
  EXPECT_FALSE((*page).next_token);
}

TEST(InsightsOperations, ReportThePositionOfASyntaxError) {
  InsightsWorld world;
  world.put("g", {"1"});
  const auto out = world.call<aws::StartQuery>(world.request("fields @message | filterr x"));
  const Failure failure = out.failure(*aws::StartQuery::shape().service);
  EXPECT_EQ(failure.code, "MalformedQueryException");
  EXPECT_EQ(failure.message, "unexpected symbol found filterr at line 1 and position 19");
  EXPECT_NE(failure.json_members.find(R"("location":{"endCharOffset":25,"startCharOffset":18})"),
            std::string::npos)
      << failure.json_members;
}

TEST(InsightsOperations, HideQueriesOfOthers) {
  InsightsWorld world;
  world.put("g", {"secret"});
  const std::string id = world.start("fields @message");
  world.context.principal.name = "mallory";
  const std::string unknown = "ResourceNotFoundException: The specified query does not exist.";
  EXPECT_EQ(world.refusal<aws::GetQueryResults>({.query_id = id}), unknown);
  EXPECT_EQ(world.refusal<aws::StopQuery>({.query_id = id}), unknown);
  EXPECT_TRUE(world.call<aws::DescribeQueries>({})->queries->empty());
  world.context.principal.kind = PrincipalKind::owner;
  EXPECT_EQ(world.results(id), "Complete: @message=secret;");
  world.context.region = "us-east-1";
  EXPECT_EQ(world.refusal<aws::GetQueryResults>({.query_id = id}), unknown);
}

TEST(InsightsOperations, RemoveQueriesWithTheirGroup) {
  InsightsWorld world;
  world.put("g", {"secret"});
  const std::string id = world.start("fields @message");
  ASSERT_TRUE(world.call<aws::DeleteLogGroup>({.log_group_name = "g"}));
  EXPECT_EQ(world.results(id), "refused");
}

TEST(InsightsOperations, CheckTheGroupsOfAQuery) {
  InsightsWorld world;
  auto in = world.request("fields @message");
  EXPECT_EQ(world.refusal<aws::StartQuery>(in),
            "ResourceNotFoundException: The specified log group does not exist.");
  in.log_group_names = {{"g"}};
  EXPECT_EQ(world.refusal<aws::StartQuery>(in),
            "InvalidParameterException: Exactly one of logGroupName, logGroupNames and "
            "logGroupIdentifiers must be specified.");
  world.put("g", {"1"});
  world.put("h", {"2"});
  in.log_group_name.reset();
  in.log_group_names.reset();
  in.log_group_identifiers = {{"g", "arn:aws:logs:eu-west-1:123456789012:log-group:h", "g"}};
  const auto out = world.call<aws::StartQuery>(in);
  ASSERT_TRUE(out);
  world.queries.wait(*(*out).query_id, kQueryDeadline);
  EXPECT_EQ(world.results(*(*out).query_id), "Complete: @message=1; @message=2;");
}

TEST(InsightsOperations, FindARecordByItsPointer) {
  InsightsWorld world;
  world.put("g", {R"({"a": {"b": 1}})"});
  const auto out = world.call<aws::GetQueryResults>({.query_id = world.start("fields a.b")});
  const auto& row = (*out).results->at(0);
  ASSERT_EQ(row.back().field, "@ptr");
  const auto record = world.call<aws::GetLogRecord>({.log_record_pointer = row.back().value});
  ASSERT_TRUE(record);
  EXPECT_EQ((*record).log_record->at("a.b"), "1");
  EXPECT_EQ((*record).log_record->at("@logStream"), "s");
  EXPECT_EQ(world.refusal<aws::GetLogRecord>({.log_record_pointer = "x"}),
            "InvalidParameterException: The specified log record pointer is invalid.");
  const auto fields = world.call<aws::GetLogGroupFields>({.log_group_name = "g"});
  ASSERT_TRUE(fields);
  EXPECT_EQ((*fields).log_group_fields->size(), 6u);
}

TEST(InsightsOperations, SaveQueries) {
  InsightsWorld world;
  const auto put = world.call<aws::PutQueryDefinition>(
      {.name = "team/b", .log_group_names = {{"g"}}, .query_string = "fields @message"});
  ASSERT_TRUE(put);
  ASSERT_TRUE(world.call<aws::PutQueryDefinition>({.name = "team/a", .query_string = "limit 1"}));
  ASSERT_TRUE(
      world.call<aws::PutQueryDefinition>({.name = "team/b2",
                                           .query_definition_id = (*put).query_definition_id,
                                           .query_string = "limit 2"}));
  auto listed =
      world.call<aws::DescribeQueryDefinitions>({.query_definition_name_prefix = "team/"});
  ASSERT_EQ((*listed).query_definitions->size(), 2u);
  EXPECT_EQ((*listed).query_definitions->at(1).name, "team/b2");
  EXPECT_EQ((*listed).query_definitions->at(1).query_string, "limit 2");
  const auto id = (*put).query_definition_id;
  EXPECT_TRUE(world.call<aws::DeleteQueryDefinition>({.query_definition_id = id}));
  EXPECT_EQ(world.refusal<aws::DeleteQueryDefinition>({.query_definition_id = id}),
            "ResourceNotFoundException: The specified query definition does not exist.");
  EXPECT_EQ(world.refusal<aws::PutQueryDefinition>(
                {.name = "x", .query_definition_id = "none", .query_string = "limit 1"}),
            "ResourceNotFoundException: The specified query definition does not exist.");
}

TEST(InsightsOperations, ReadAndWriteStoredQueriesInOneForm) {
  InsightsWorld world;
  const std::string body = R"({"groups":["g"],"name":"team/a","query":"limit 1"})";
  ASSERT_TRUE(world.logs->definitions().put("eu-west-1", observe::DefinitionKind::query,
                                            {"", "id", body, world.clock.now()}, 10));
  const auto listed = world.call<aws::DescribeQueryDefinitions>({});
  ASSERT_TRUE(listed);
  const aws::QueryDefinition& read = (*listed).query_definitions->at(0);
  EXPECT_EQ(read.name, "team/a");
  EXPECT_EQ(read.query_string, "limit 1");
  EXPECT_EQ(read.log_group_names, std::vector<std::string>{"g"});
  ASSERT_TRUE(world.call<aws::PutQueryDefinition>({.name = *read.name,
                                                   .query_definition_id = "id",
                                                   .log_group_names = read.log_group_names,
                                                   .query_string = *read.query_string}));
  const auto stored =
      world.logs->definitions().find("eu-west-1", observe::DefinitionKind::query, "", "id");
  ASSERT_TRUE(stored && *stored);
  EXPECT_EQ((*stored)->body, body);
}

TEST(FilterOperations, StoreMetricFilters) {
  InsightsWorld world;
  aws::PutMetricFilterRequest in{
      .log_group_name = "g",
      .filter_name = "errors",
      .filter_pattern = "ERROR",
      .metric_transformations = {
          {{.metric_name = "errors", .metric_namespace = "N", .metric_value = "1"}}}};
  EXPECT_EQ(world.refusal<aws::PutMetricFilter>(in),
            "ResourceNotFoundException: The specified log group does not exist.");
  world.put("g", {"1"});
  ASSERT_TRUE(world.call<aws::PutMetricFilter>(in));
  auto listed = world.call<aws::DescribeMetricFilters>({.metric_name = "errors"});
  ASSERT_EQ((*listed).metric_filters->size(), 1u);
  EXPECT_EQ((*listed).metric_filters->at(0).log_group_name, "g");
  EXPECT_TRUE(
      world.call<aws::DescribeMetricFilters>({.metric_name = "x"})->metric_filters->empty());
  EXPECT_EQ(world.call<aws::DescribeLogGroups>({})->log_groups->at(0).metric_filter_count, 1);
  in.metric_transformations->at(0).metric_value = "one";
  EXPECT_EQ(world.refusal<aws::PutMetricFilter>(in),
            "InvalidParameterException: Invalid metric value: one");
  world.router->enqueue({"eu-west-1", "g", "s"}, {{world.clock.now(), {}, "ERROR"}});
  ASSERT_TRUE(world.router->drain(kQueryDeadline));
  EXPECT_TRUE(*world.metrics->last({"eu-west-1", "N", "errors", {}}));
  const aws::DeleteMetricFilterRequest removal{.log_group_name = "g", .filter_name = "errors"};
  EXPECT_TRUE(world.call<aws::DeleteMetricFilter>(removal));
  EXPECT_EQ(world.refusal<aws::DeleteMetricFilter>(removal),
            "ResourceNotFoundException: The specified metric filter does not exist.");
}

TEST(FilterOperations, ShowTheValuesOfATestedMetricFilter) {
  InsightsWorld world;
  const auto out = world.call<aws::TestMetricFilter>(
      {.filter_pattern = "[ip, bytes > 1]", .log_event_messages = {{"a 1", "b 2", "c"}}});
  ASSERT_TRUE(out);
  ASSERT_EQ((*out).matches->size(), 1u);
  EXPECT_EQ((*out).matches->at(0).event_number, 2);
  EXPECT_EQ((*out).matches->at(0).extracted_values->at("$ip"), "b");
}

TEST(FilterOperations, AcceptOnlyConfiguredWebhooksForSubscriptions) {
  InsightsWorld world;
  world.put("g", {"1"});
  aws::PutSubscriptionFilterRequest in{.log_group_name = "g",
                                       .filter_name = "all",
                                       .filter_pattern = "",
                                       .destination_arn = kDestinations + "hook"};
  ASSERT_TRUE(world.call<aws::PutSubscriptionFilter>(in));
  const auto listed = world.call<aws::DescribeSubscriptionFilters>({.log_group_name = "g"});
  ASSERT_EQ((*listed).subscription_filters->size(), 1u);
  EXPECT_EQ((*listed).subscription_filters->at(0).destination_arn, kDestinations + "hook");
  for (const std::string& arn :
       {kDestinations + "other", kDestinations, std::string("http://169.254.169.254/"),
        std::string("arn:aws:logs:us-east-1:123456789012:destination:hook"),
        std::string("arn:aws:lambda:eu-west-1:123456789012:function:f"),
        std::string("arn:aws:kinesis:eu-west-1:123456789012:stream/s")}) {
    in.destination_arn = arn;
    EXPECT_TRUE(
        world.refusal<aws::PutSubscriptionFilter>(in).starts_with("InvalidParameterException: "))
        << arn;
  }
  const auto destinations = world.call<aws::DescribeDestinations>({});
  ASSERT_EQ((*destinations).destinations->size(), 1u);
  EXPECT_FALSE((*destinations).destinations->at(0).target_arn) << "the URL may have a secret";
  const aws::DeleteSubscriptionFilterRequest removal{.log_group_name = "g", .filter_name = "all"};
  EXPECT_TRUE(world.call<aws::DeleteSubscriptionFilter>(removal));
  EXPECT_EQ(world.refusal<aws::DeleteSubscriptionFilter>(removal),
            "ResourceNotFoundException: The specified subscription filter does not exist.");
}

TEST(GroupOperations, SetRetentionAndTags) {
  InsightsWorld world;
  ASSERT_TRUE(world.call<aws::CreateLogGroup>(
      {.log_group_name = "g", .tags = std::map<std::string, std::string>{{"a", "1"}}}));
  ASSERT_TRUE(
      world.call<aws::PutRetentionPolicy>({.log_group_name = "g", .retention_in_days = 3653}));
  EXPECT_EQ(world.call<aws::DescribeLogGroups>({})->log_groups->at(0).retention_in_days, 3653);
  EXPECT_TRUE(
      world.refusal<aws::PutRetentionPolicy>({.log_group_name = "g", .retention_in_days = 2})
          .starts_with("InvalidParameterException: 1 validation error detected: Value '2' "
                       "at 'retentionInDays' failed"));
  ASSERT_TRUE(world.call<aws::DeleteRetentionPolicy>({.log_group_name = "g"}));
  EXPECT_FALSE(world.call<aws::DescribeLogGroups>({})->log_groups->at(0).retention_in_days);
  const std::string arn = "arn:aws:logs:eu-west-1:123456789012:log-group:g";
  ASSERT_TRUE(world.call<aws::TagResource>(
      {.resource_arn = arn, .tags = std::map<std::string, std::string>{{"b", "2"}}}));
  ASSERT_TRUE(world.call<aws::UntagResource>({.resource_arn = arn, .tag_keys = {{"a"}}}));
  EXPECT_EQ(world.call<aws::ListTagsForResource>({.resource_arn = arn})->tags,
            (std::map<std::string, std::string>{{"b", "2"}}));
  std::map<std::string, std::string> many;
  for (int i = 0; i < 51; ++i) many.emplace(std::to_string(i), "");
  EXPECT_EQ(world.refusal<aws::TagLogGroup>({.log_group_name = "g", .tags = many}),
            "TooManyTagsException: A resource can have at most 50 tags.");
}

TEST(ExportOperations, CopyEventsToABucket) {
  InsightsWorld world;
  world.put("g", {"one", "two"});
  aws::CreateExportTaskRequest in{.log_group_name = "g",
                                  .from = world.now() - 1000,
                                  .to = world.now(),
                                  .destination = "bucket"};
  EXPECT_EQ(world.refusal<aws::CreateExportTask>(in),
            "InvalidParameterException: The given bucket does not exist. Please make sure the "
            "bucket is valid.");
  ASSERT_TRUE(world.objects->create_bucket("bucket", "eu-west-1"));
  const auto made = world.call<aws::CreateExportTask>(in);
  ASSERT_TRUE(made);
  const std::string id = *(*made).task_id;
  world.exports.wait(id, kQueryDeadline);
  const auto tasks = world.call<aws::DescribeExportTasks>({.task_id = id});
  EXPECT_EQ((*tasks).export_tasks->at(0).status->code, "COMPLETED");
  EXPECT_TRUE(world.objects->head("bucket", "exportedlogs/" + id + "/s/000000.gz"));
  EXPECT_TRUE(world.objects->head("bucket", "aws-logs-write-test"));
  EXPECT_EQ(world.refusal<aws::CancelExportTask>({.task_id = id}),
            "InvalidOperationException: The specified export task has already finished");
  EXPECT_EQ(world.refusal<aws::CancelExportTask>({.task_id = "none"}),
            "ResourceNotFoundException: The specified export task does not exist.");
}

}  // namespace
}  // namespace trainyard::api::logs
