// Tests plans and decisions, without regions, a catalogue or a clock.
#include <gtest/gtest.h>

#include "base/text.hpp"
#include "campaign/capacity.hpp"
#include "campaign/decide.hpp"
#include "campaign/definition.hpp"
#include "campaign/followers.hpp"
#include "campaign/plan.hpp"
#include "campaign/region.hpp"
#include "campaign/template.hpp"

namespace trainyard::campaign {
namespace {

constexpr const char* kStreets = R"({
  "name": "streets", "query": "SELECT 1", "retries": 1,
  "placement": {"rule": "data"},
  "results": {"best": "accuracy", "rate": "images"},
  "training_job": {
    "HyperParameters": {"lr": "{lr}", "epochs": "3"},
    "InputDataConfig": [{"DataSource": {"S3DataSource": {"S3Uri": "{job.data}"}}}],
    "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": "{hosts}"}}})";

Definition streets(Rule rule = Rule::data, const std::string& copy_to = "") {
  Definition definition = *read_definition(kStreets);
  definition.placement.rule = rule;
  definition.placement.copy_to = copy_to;
  return definition;
}

QueryResult rows(std::vector<std::vector<Json>> values) {
  return {{"name", "region", "data", "bytes", "lr", "hosts"}, std::move(values)};
}

PlanInputs three_regions() {
  PlanInputs inputs;
  inputs.home = "home";
  const auto region = [&](const char* name, double price, int64_t total, int64_t free) {
    inputs.regions[name] = {true, {{"ml.m5.large", {price, price / 2, total, free, 0}}}};
  };
  region("a", 1.0, 4, 1);
  region("b", 0.5, 4, 4);
  region("c", 0.4, 1, 1);
  inputs.copy_price_per_gib[{"a", "b"}] = 0.02;
  inputs.copy_price_per_gib[{"a", "c"}] = 0.02;
  return inputs;
}

constexpr const char* kCopies = "s3://copies-{job.region}/{name}/";

std::string placed(const Definition& definition, const QueryResult& query_result,
                   const PlanInputs& inputs) {
  const auto plan = make_plan(definition, query_result, inputs);
  if (!plan) return plan.error().message;
  std::string text;
  for (const Row& row : plan->rows)
    text += (text.empty() ? "" : " ") + row.region + (row.copy_to.empty() ? "" : "<");
  return text;
}

TEST(Template, FillsInNamedValues) {
  const Values values{
      {"a", 1.0}, {"b", "x"}, {"c", nullptr}, {"job.data", "s3://b/k"}, {"f", 0.25}};
  const std::pair<const char*, const char*> table[] = {{"{a}{b}", "1x"},
                                                       {"-{c}-", "--"},
                                                       {"{job.data}/", "s3://b/k/"},
                                                       {"{f}", "0.25"},
                                                       {"${b}", "${b}"},
                                                       {"{{b}}", "{b}"},
                                                       {"{ b }", "{ b }"},
                                                       {"{1}", "{1}"},
                                                       {"awk '{print $1}{'", "awk '{print $1}{'"},
                                                       {"{\"a\": 1}", "{\"a\": 1}"},
                                                       {"{b", "{b"},
                                                       {"{missing}", "unknown name {missing}"}};
  for (const auto& [from, to] : table) {
    const auto filled = fill_text(from, values);
    const std::string said = filled ? *filled : shorten(filled.error().message, 80);
    EXPECT_TRUE(said.starts_with(to)) << from << " became " << said;
  }
}

TEST(Template, KeepsNumbersWhereAwsHasNumbers) {
  const Json document = *parse_json(
      R"({"ResourceConfig":{"InstanceCount":"{n}"},"HyperParameters":{"n":"{n}"},"list":["{n}",{"x":"a{n}"}],"k":true})");
  const Json filled = *fill(document, {{"n", 2.0}});
  EXPECT_EQ(
      dump(filled),
      R"({"HyperParameters":{"n":"2"},"ResourceConfig":{"InstanceCount":2.0},"k":true,"list":[2.0,{"x":"a2"}]})");
  EXPECT_FALSE(fill(document, {}));
}

TEST(Definition, RejectsUnknownKeysAndInvalidValues) {
  const auto with = [](const std::string& from, const std::string& to) {
    std::string text = kStreets;
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    const auto read = read_definition(text.replace(at, from.size(), to));
    return read ? std::string("read") : read.error().message;
  };
  EXPECT_EQ(with("retries", "retries"), "read");
  EXPECT_TRUE(
      with("\"retries\"", "\"retrys\"").starts_with("unknown key 'retrys'; known keys: at_once"));
  EXPECT_EQ(with("\"retries\": 1", "\"retries\": 11"),
            "retries must be a whole number between 0 and 10");
  EXPECT_EQ(with("\"rule\": \"data\"", "\"rule\": \"near\""),
            "placement.rule must be \"data\", \"cheapest\" or \"capacity\"");
  EXPECT_TRUE(with("\"streets\"", "\"-streets\"").starts_with("name must be"));
  EXPECT_TRUE(with("training_job", "batch_job").starts_with("read"));
  EXPECT_TRUE(
      with("\"training_job\"", "\"batch_job\": {}, \"training_job\"").starts_with("one of"));
  EXPECT_EQ(read_definition("[]").error().message, "a campaign must be an object");
}

TEST(Definition, BatchJobsAllowOnlyPlacementByData) {
  Definition definition = streets();
  definition.request_kind = RequestKind::batch_job;
  EXPECT_TRUE(check(definition));
  for (const Rule rule : {Rule::cheapest, Rule::capacity}) {
    definition.placement.rule = rule;
    definition.request_kind = RequestKind::training_job;
    EXPECT_TRUE(check(definition));
    definition.request_kind = RequestKind::batch_job;
    EXPECT_TRUE(check(definition)
                    .error()
                    .message.starts_with("placement.rule \"" + std::string(to_string(rule)) +
                                         "\" is for [training_job]"));
    EXPECT_TRUE(read_definition(dump(to_json(definition)))) << "a stored definition can be read";
  }
}

TEST(Definition, IsEqualAfterWritingAndReading) {
  Definition definition = streets(Rule::capacity, kCopies);
  definition.standing = true;
  definition.watches.push_back({"a", "bucket", "in/", ".csv", "datasets", {{"name", "{key}"}}});
  const std::string text = dump(to_json(definition));
  EXPECT_EQ(dump(to_json(*read_definition(text))), text);
}

TEST(Plan, PlacesRowsByItsRule) {
  const auto two_in_a =
      rows({{"x", "a", "s3://d/x/", 1 << 30, 0.1, 1}, {"y", "a", "s3://d/y/", 1 << 30, 0.2, 1}});
  const auto large = rows({{"x", "a", "s3://d/x/", 1 << 30, 0.1, 2}});
  const auto huge = rows({{"x", "a", "s3://d/x/", 1 << 30, 0.1, 9}});
  const auto far = rows({{"x", "a", "s3://d/x/", int64_t(100) << 30, 0.1, 1}});
  const auto without_data = rows({{"x", "a", nullptr, 0, 0.1, 1}});
  struct Case {
    const char* about;
    Rule rule;
    const char* copy_to;
    const QueryResult& query_result;
    const char* expected;
  };
  const Case cases[] = {
      {"where the data is", Rule::data, kCopies, two_in_a, "a a"},
      {"without copies, jobs run at their data", Rule::cheapest, "", two_in_a, "a a"},
      {"the cheapest region", Rule::cheapest, kCopies, two_in_a, "c< c<"},
      {"a region that can never hold the gang is left out", Rule::cheapest, kCopies, large, "b<"},
      {"no region is large enough: it waits at its data", Rule::cheapest, kCopies, huge, "a"},
      {"an expensive copy outweighs a cheap host", Rule::cheapest, kCopies, far, "a"},
      {"without data nothing is copied", Rule::cheapest, "", without_data, "c"},
      {"capacity at the data is used first, and counted", Rule::capacity, kCopies, two_in_a,
       "a c<"},
      {"capacity elsewhere", Rule::capacity, kCopies, large, "b<"},
      {"capacity nowhere", Rule::capacity, kCopies, huge, "a"}};
  for (const Case& one : cases)
    EXPECT_EQ(placed(streets(one.rule, one.copy_to), one.query_result, three_regions()),
              one.expected)
        << one.about;
}

TEST(Plan, LimitsExtremeNumbersSoThatSumsStayFinite) {
  for (const Rule rule : {Rule::data, Rule::cheapest, Rule::capacity})
    for (const Json& hosts :
         {Json(INT64_MAX), Json(INT64_MIN), Json(UINT64_MAX), Json(-1), Json(0)}) {
      const auto two = rows({{"x", "a", "s3://d/x/", 1e308, 0.1, hosts},
                             {"y", "a", "s3://d/y/", -1e308, 0.2, hosts}});
      const auto plan = make_plan(streets(rule, kCopies), two, three_regions());
      ASSERT_TRUE(plan) << plan.error().message;
      EXPECT_EQ(plan->rows.size(), 2u);
    }
}

TEST(Plan, ReservedHostsCostNothing) {
  PlanInputs inputs = three_regions();
  inputs.regions["b"].offers["ml.m5.large"].hosts_reserved = 1;
  const auto two = rows({{"x", "a", nullptr, 0, 0.1, 1}, {"y", "a", nullptr, 0, 0.2, 1}});
  EXPECT_EQ(placed(streets(Rule::cheapest), two, inputs), "b c");
}

TEST(Plan, CountsAnUnreachableRegionAsFull) {
  PlanInputs inputs = three_regions();
  inputs.regions["a"] = {};
  const auto one = rows({{"x", "a", "s3://d/x/", 1, 0.1, 1}});
  EXPECT_EQ(placed(streets(Rule::capacity, kCopies), one, inputs), "c<");
  EXPECT_EQ(placed(streets(Rule::data), one, inputs), "a");  // it waits for it
}

TEST(Plan, FillsInRequestsAndComparesThem) {
  const auto plan = *make_plan(streets(Rule::cheapest, kCopies),
                               rows({{"x", "a", "s3://d/drives/x/", 1 << 30, 0.1, 1},
                                     {"y", "b", "s3://d/drives/y/", 1 << 30, 0.2, 1}}),
                               three_regions());
  const Row& row = plan.rows[0];
  EXPECT_EQ(row.copy_to, "s3://copies-c/x/");
  EXPECT_EQ(row.request["InputDataConfig"][0]["DataSource"]["S3DataSource"]["S3Uri"], row.copy_to);
  EXPECT_EQ(row.request["ResourceConfig"]["InstanceCount"], 1);
  EXPECT_EQ(row.request["HyperParameters"]["lr"], "0.1");
  EXPECT_EQ(row.state, RowState::waiting);
  EXPECT_DOUBLE_EQ(row.price_per_hour, 0.4);
  EXPECT_EQ(plan.comparison.same, (std::map<std::string, std::string>{{"epochs", "3"}}));
  ASSERT_EQ(plan.comparison.different.size(), 2u);
  EXPECT_EQ(plan.comparison.different.at("HyperParameters.lr"),
            (std::vector<std::string>{"0.1", "0.2"}));
}

TEST(Plan, CountsChildrenOrNodesOfABatchRowAsHosts) {
  const std::pair<const char*, int64_t> cases[] = {{R"({})", 1},
                                                   {R"({"arrayProperties":{"size":7}})", 7},
                                                   {R"({"nodeOverrides":{"numNodes":20}})", 20}};
  for (const auto& [request, hosts] : cases) {
    Definition definition = streets();
    definition.request_kind = RequestKind::batch_job;
    definition.request = *parse_json(request);
    EXPECT_EQ(make_plan(definition, {{"name"}, {{"x"}}}, three_regions())->rows[0].hosts, hosts)
        << request;
  }
}

TEST(Plan, NamesTheInvalidRow) {
  EXPECT_TRUE(placed(streets(), {{"name"}, {{"x"}}}, three_regions())
                  .starts_with("row 1 (x): the job's template: "));
  EXPECT_EQ(placed(streets(), rows({{"x", "a", "/data", 0, 0.1, 1}}), three_regions()),
            "row 1: the column `data` must be an s3:// URI, not '/data'");
}

TEST(Row, IsEqualAfterWritingAndReading) {
  Row row = make_plan(streets(Rule::cheapest, kCopies), rows({{"x", "a", "s3://d/x/", 7, 0.1, 1}}),
                      three_regions())
                ->rows[0];
  row.started = from_milliseconds(5);
  row.metrics["accuracy"] = 0.5;
  EXPECT_EQ(to_json(*row_from_json(to_json(row))), to_json(row));
}

// -- deciding

Row a_row(RowState state, int64_t number = 1, int64_t attempt = 1) {
  Row row;
  row.number = number;
  row.region = "a";
  row.state = state;
  row.attempt = state == RowState::ready ? 0 : attempt;
  return row;
}

SeenJob seen(SeenJob::End end) {
  SeenJob job;
  job.end = end;
  job.cost = 2;
  job.reason = end == SeenJob::End::failed ? "why" : "";
  return job;
}

TEST(Decide, MovesARowByTheStateOfItsJob) {
  using End = SeenJob::End;
  using Act = Move::Act;
  struct Case {
    const char* about;
    Row row;
    std::optional<End> end;
    bool stopping;
    std::string after;  // "": no move
    Act act;
  };
  const Case cases[] = {
      {"it may start", a_row(RowState::ready), {}, false, "submitting", Act::submit},
      {"data is not there yet", a_row(RowState::waiting), {}, false, "", Act::none},
      {"killed before the request reached the region",
       a_row(RowState::submitting),
       {},
       false,
       "submitting",
       Act::submit},
      {"killed after the request reached the region", a_row(RowState::submitting), End::none, false,
       "running", Act::none},
      {"it runs", a_row(RowState::running), End::none, false, "running", Act::none},
      {"the region has lost the job",
       a_row(RowState::running),
       {},
       false,
       "submitting",
       Act::submit},
      {"done", a_row(RowState::running), End::completed, false, "completed", Act::none},
      {"completed before the first query", a_row(RowState::submitting), End::completed, false,
       "completed", Act::none},
      {"retried under another name", a_row(RowState::running), End::failed, false, "submitting",
       Act::submit},
      {"no more retries than allowed", a_row(RowState::running, 1, 2), End::failed, false, "failed",
       Act::none},
      {"a user stopped the job", a_row(RowState::running), End::stopped, false, "stopped",
       Act::none},
      {"stopping a running job", a_row(RowState::running), End::none, true, "running", Act::stop},
      {"stopping a row without a job", a_row(RowState::ready), {}, true, "stopped", Act::none},
      {"stopping a copy", a_row(RowState::copying), {}, true, "stopped", Act::none},
      {"stopping a job that never arrived",
       a_row(RowState::submitting),
       {},
       true,
       "stopped",
       Act::none},
      {"a failure while stopping is not retried", a_row(RowState::running), End::failed, true,
       "stopped", Act::none},
      {"over", a_row(RowState::completed), {}, false, "", Act::none}};
  for (const Case& one : cases) {
    SeenJobs jobs;
    if (one.end) jobs[job_name("streets", one.row)] = seen(*one.end);
    const auto moves = decide(streets(), {one.row}, jobs, one.stopping, from_milliseconds(9));
    ASSERT_EQ(moves.size(), one.after.empty() ? 0u : 1u) << one.about;
    if (moves.empty()) continue;
    EXPECT_EQ(to_string(moves[0].row.state), one.after) << one.about;
    EXPECT_EQ(moves[0].act, one.act) << one.about;
  }
}

TEST(Decide, GivesARetryAnotherNameAndAddsItsCost) {
  auto moves = decide(streets(), {a_row(RowState::running)},
                      {{"streets-1", seen(SeenJob::End::failed)}}, false, {});
  EXPECT_EQ(job_name("streets", moves[0].row), "streets-1-2");
  EXPECT_EQ(moves[0].row.reason, "try 1 failed: why");
  moves = decide(streets(), {moves[0].row}, {{"streets-1-2", seen(SeenJob::End::completed)}}, false,
                 {});
  EXPECT_DOUBLE_EQ(moves[0].row.cost, 4);
}

TEST(Decide, LimitsTheActiveJobs) {
  Definition definition = streets();
  definition.at_once = 2;
  std::vector<Row> all{a_row(RowState::running, 1), a_row(RowState::ready, 2),
                       a_row(RowState::ready, 3)};
  auto moves = decide(definition, all, {{"streets-1", seen(SeenJob::End::none)}}, false, {});
  ASSERT_EQ(moves.size(), 2u);  // the first one's cost, and the second
  EXPECT_EQ(moves[1].row.number, 2);
  moves = decide(definition, all, {{"streets-1", seen(SeenJob::End::completed)}}, false, {});
  EXPECT_EQ(moves.size(), 3u);
}

TEST(Decide, EqualInputsGiveEqualDecisions) {
  const std::vector<Row> all{a_row(RowState::submitting, 1), a_row(RowState::running, 2)};
  const SeenJobs jobs{{"streets-2", seen(SeenJob::End::none)}};
  std::vector<Row> after;
  for (const Move& move : decide(streets(), all, jobs, false, {})) after.push_back(move.row);
  for (const Move& move : decide(streets(), after, jobs, false, {})) EXPECT_FALSE(move.changed);
}

TEST(Results, SelectTheBestCompletedRow) {
  std::vector<Row> all{a_row(RowState::completed, 1), a_row(RowState::completed, 2),
                       a_row(RowState::failed, 3)};
  all[0].metrics["accuracy"] = 0.9;
  all[1].metrics["accuracy"] = 0.8;
  all[2].metrics["accuracy"] = 0.99;
  EXPECT_EQ(best_row({"accuracy", true, ""}, all)->number, 1);
  EXPECT_EQ(best_row({"accuracy", false, ""}, all)->number, 2);
  EXPECT_EQ(best_row({"", true, ""}, all), nullptr);
  EXPECT_EQ(best_row({"loss", true, ""}, all), nullptr);
}

TEST(Results, AreSummedByRegion) {
  std::vector<Row> all{a_row(RowState::running, 1), a_row(RowState::running, 2),
                       a_row(RowState::completed, 3)};
  for (Row& row : all) row.metrics["images"] = 100, row.hosts = 2, row.cost = 1;
  all[2].attempt = 3;
  all[2].bytes_copied = int64_t(2) << 30;
  all[2].bytes_moved = 1 << 30;
  all[2].copy_price_per_gib = 0.5;
  const auto sum = sum_by_region({"", true, "images"}, all).at("a");
  EXPECT_EQ(sum.hosts, 4);
  EXPECT_EQ(sum.rate, 200);
  EXPECT_EQ(sum.cost, 3);
  EXPECT_EQ(sum.copy_cost, 0.5);
  EXPECT_EQ(sum.tried_again, 2);
}

TEST(Region, ReadsItsJobs) {
  const SeenJob job = seen_training_job(*parse_json(
      R"({"Status":"Failed","SecondaryStatus":"Failed","FailureReason":"why","TrainingStartTime":1.5,"Cost":{"Amount":"0.250000"}})"));
  EXPECT_EQ(job.end, SeenJob::End::failed);
  EXPECT_EQ(job.reason, "why");
  EXPECT_EQ(job.cost, 0.25);
  EXPECT_EQ(to_milliseconds(*job.started), 1500);
  const SeenJob batch = seen_batch_job(*parse_json(
      R"({"jobId":"i","status":"FAILED","statusReason":"a","container":{"reason":"b"},"startedAt":7})"));
  EXPECT_EQ(batch.reason, "a: b");
  EXPECT_EQ(batch.id, "i");
  EXPECT_EQ(seen_batch_job(*parse_json(R"({"status":"RUNNABLE"})")).end, SeenJob::End::none);
  const SeenJob gang =
      seen_batch_job(*parse_json(R"({"status":"RUNNING","nodeProperties":{"numNodes":20}})"));
  EXPECT_EQ(
      decide(streets(), {a_row(RowState::running)}, {{"streets-1", gang}}, false, {})[0].row.hosts,
      20);
}

TEST(Region, ReadsTheReportOfAJob) {
  const Report one = report_in(
      *parse_json(
          R"({"Cost":{"Amount":"0.5"},"Metrics":[{"Name":"accuracy","Value":0.75},{"Name":"loss"}]})"),
      {});
  EXPECT_EQ(one.cost, 0.5);
  EXPECT_EQ(one.metrics, (std::map<std::string, double>{{"accuracy", 0.75}}));
  const Json array = *parse_json(
      R"({"Array":{"Metrics":[{"Name":"loss","Highest":0.9,"HighestIndex":1,"Lowest":0.25,"LowestIndex":7},
                              {"Name":"speed","Highest":30,"HighestIndex":2,"Lowest":10,"LowestIndex":3}]}})");
  ResultMetrics lowest;
  lowest.best = "loss";
  lowest.highest = false;
  EXPECT_EQ(report_in(array, lowest).metrics,
            (std::map<std::string, double>{{"loss", 0.25}, {"best child", 7}, {"speed", 10}}));
  ResultMetrics highest;
  highest.best = "speed";
  EXPECT_EQ(report_in(array, highest).metrics,
            (std::map<std::string, double>{{"loss", 0.9}, {"best child", 2}, {"speed", 30}}));
  EXPECT_FALSE(report_in(array, highest).cost);
}

TEST(Capacity, CountsHostsThatFitOnOneMachine) {
  const domain::InstanceType type{"ml.x", 2, 8, 1};
  const std::vector<MachineCapacity> machines{{"m1", 5, int64_t(64) << 30, 4},
                                              {"m2", 2, int64_t(7) << 30, 4}};
  EXPECT_EQ(hosts_that_fit(machines, type), 2);
  EXPECT_EQ(hosts_that_fit(capacity_left(machines, {{"m1", 2, 0, 1}, {"gone", 9, 0, 0}}), type), 1);
}

TEST(Watch, MakesARowForAnObject) {
  Watch watch{"",     "drives",   "in/",
              ".csv", "datasets", {{"name", "{stem}"}, {"uri", "{uri}"}, {"bytes", "{bytes}"}}};
  objects::ObjectInfo object;
  object.key = "in/2026/seven.csv";
  object.bytes = 70;
  const auto row = *row_of_object(watch, "a", object);
  EXPECT_EQ(row,
            (std::map<std::string, std::string>{
                {"name", "seven"}, {"uri", "s3://drives/in/2026/seven.csv"}, {"bytes", "70"}}));
}

}  // namespace
}  // namespace trainyard::campaign
