// Tests requests and replies in each format, metrics, and hyperparameters.
#include "forest/predict.hpp"

#include <gtest/gtest.h>

#include "base/bytes/record_io.hpp"
#include "base/json.hpp"
#include "channels/tensor_record.hpp"
#include "forest/metrics.hpp"
#include "forest/model_file.hpp"
#include "forest/settings.hpp"

namespace trainyard::forest {
namespace {

using Row = std::vector<float>;

Forest trained() {
  Forest forest({.dimensions = 2, .trees = 50, .samples_per_tree = 32, .seed = 1});
  for (int i = 0; i < 200; ++i) forest.update(Row{float(i % 14), float(i % 9)});
  return forest;
}

std::string record(const Row& row) {
  const std::string message = channels::encode_record({row, {}});
  const auto head = record_head(message.size());
  return std::string(head.data(), head.size()) + message +
         std::string(record_padding(message.size()), '\0');
}

std::string reply(const std::string& request, const PredictOptions& options) {
  Forest forest = trained();
  const auto done = predict(forest, request, options);
  return done ? *done : done.error().message;
}

TEST(Predict, EveryFormatGivesTheSameScores) {
  const Forest forest = trained();
  const double first = forest.score(Row{1, 2}), second = forest.score(Row{0, 70});
  const std::string expected =
      dump(Json{{"scores", {{{"score", first}}, {{"score", second}}}}}) + "\n";
  const std::pair<const char*, std::string> requests[] = {
      {"text/csv", "1,2\n0,70\n"},
      {"text/csv;label_size=0", "1,2\n0,70"},
      {"application/json", R"({"instances":[{"features":[1,2]},{"features":[0,70]}]})"},
      {"application/json", R"({"instances":[{"data":{"features":{"values":[1,2]}}},)"
                           R"({"data":{"features":{"keys":[1],"shape":[2],"values":[70]}}}]})"},
      {"application/jsonlines", "{\"features\":[1,2]}\n\n{\"features\":{\"values\":[0,70]}}\n"},
      {"application/x-recordio-protobuf", record({1, 2}) + record({0, 70})},
  };
  for (const auto& [type, request] : requests)
    EXPECT_EQ(reply(request, {.content_type = type}), expected) << type;
  EXPECT_EQ(reply("1,2\n", {.accept = "application/jsonlines"}),
            dump(Json{{"score", first}}) + "\n");
}

TEST(Predict, ARecordReplyHasTheLabelScore) {
  RecordDecoder decoder(1 << 20);
  decoder.push(reply("1,2\n0,70\n", {.accept = "application/x-recordio-protobuf"}));
  for (const Row& row : {Row{1, 2}, Row{0, 70}}) {
    const auto record = decoder.next();
    ASSERT_TRUE(record && *record);
    EXPECT_EQ(**record, channels::encode_label("score", float(trained().score(row))));
  }
  EXPECT_TRUE(decoder.finish());
}

TEST(Predict, AttributesScoresAndLearnsRows) {
  Forest forest = trained();
  const auto done = predict(forest, "0,70\n0,70\n", {.attribution = true, .update = true});
  ASSERT_TRUE(done);
  const Json scores = parse_json(*done)->at("scores");
  for (const Json& each : scores)
    EXPECT_NEAR(each.at("attribution")[0].get<double>() + each.at("attribution")[1].get<double>(),
                each.at("score").get<double>(), 1e-12);
  EXPECT_GT(scores[0].at("attribution")[1].get<double>(),
            5 * scores[0].at("attribution")[0].get<double>());
  EXPECT_LT(scores[1].at("score").get<double>(), scores[0].at("score").get<double>());
  EXPECT_EQ(forest.rows_seen(), 202u);
}

TEST(Predict, RejectsInvalidRequestsWithTheReason) {
  const std::tuple<const char*, const char*, const char*> wrong[] = {
      {"text/csv", "1\n", "line 1: the row has 1 columns"},
      {"text/csv", "1,nan\n", "line 1: column 2: 'nan' is not a finite number"},
      {"application/json", "[]", "the document has no array 'instances'"},
      {"application/json", R"({"instances":[{"features":[1]}]})",
       "instance 1: the row has 1 features, but feature_dim is 2"},
      {"application/json", R"({"instances":[{"features":[1,"a"]}]})",
       "instance 1: a feature is not a number"},
      {"application/json", R"({"instances":[{"features":[1,1e300]}]})",
       "instance 1: a feature is not a finite number"},
      {"application/json", R"({"instances":[{}]})",
       "instance 1: a row must have the member 'features'"},
      {"application/json", R"({"instances":[{"features":{"keys":[2],"values":[1]}}]})",
       "instance 1: invalid key 2: must be an integer from 0 to 1"},
      {"application/json", R"({"instances":[{"features":{"keys":[-1],"values":[1]}}]})",
       "instance 1: invalid key -1: must be an integer from 0 to 1"},
      {"application/jsonlines", "{\"features\":[1,2]}\nx", "line 2: "},
      {"application/x-recordio-protobuf", "1,2\n5,6,7,8", "record 1: "},
      {"image/png", "", "'image/png' is not one of ['text/csv', "},
  };
  for (const auto& [type, request, text] : wrong)
    EXPECT_EQ(reply(request, {.content_type = type}).find(text), 0u)
        << reply(request, {.content_type = type});
  EXPECT_EQ(reply("1,2", {.accept = "text/csv"}).find("'text/csv' is not one of ['application/"),
            0u);
}

TEST(Evaluation, AnomaliesAreThreeStandardDeviationsAboveTheMean) {
  std::vector<ScoredRow> rows(97, {1.0, false});
  rows.push_back({9.0, true});   // a true positive
  rows.push_back({8.0, false});  // a false positive
  rows.push_back({1.0, true});   // a false negative
  const Evaluation evaluation = evaluate(rows);
  // the mean is 1.15; the standard deviation is sqrt(1.1075)
  EXPECT_NEAR(evaluation.threshold, 1.15 + 3 * std::sqrt(1.1075), 1e-12);
  EXPECT_EQ(evaluation.accuracy(), 0.98);
  EXPECT_EQ(evaluation.precision(), 0.5);
  EXPECT_EQ(evaluation.recall(), 0.5);
  EXPECT_EQ(evaluation.f1(), 0.5);
  EXPECT_EQ(evaluation_of_normal_rows(evaluation).recall(), 97.0 / 98);
  std::ranges::reverse(rows);
  EXPECT_EQ(evaluate(rows).threshold, evaluation.threshold);
  const Evaluation equal = evaluate({{1, false}, {1, true}});
  EXPECT_EQ(equal.precision(), 0);
  EXPECT_EQ(equal.f1(), 0);
}

using Hyperparameters = std::map<std::string, std::string>;

TEST(ForestSettings, ParsesValuesAsTheSdkSendsThem) {
  const auto few = parse_forest_settings({{"feature_dim", "4"}});
  ASSERT_TRUE(few) << few.error().message;
  EXPECT_EQ(few->forest.trees, 100u);
  EXPECT_EQ(few->forest.samples_per_tree, 256u);
  EXPECT_TRUE(few->has_accuracy && few->has_fscore);
  const auto all = parse_forest_settings({{"feature_dim", "\"4\""},
                                          {"num_trees", "50"},
                                          {"num_samples_per_tree", "2048"},
                                          {"mini_batch_size", "1000"},
                                          {"eval_metrics", "[\"accuracy\"]"},
                                          {"_tuning_objective_metric", "test:f1"},
                                          {"sagemaker_region", "\"eu-west-1\""}});
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ(all->forest.dimensions, 4u);
  EXPECT_EQ(all->forest.trees, 50u);
  EXPECT_EQ(all->forest.samples_per_tree, 2048u);
  EXPECT_TRUE(all->has_accuracy && !all->has_fscore);
}

TEST(ForestSettings, RejectsInvalidValuesWithTheReason) {
  const std::tuple<Hyperparameters, const char*> wrong[] = {
      {Hyperparameters(), "'feature_dim' is a required property"},
      {{{"feature_dim", "4"}, {"trees", "9"}},
       "Additional properties are not allowed ('trees' was unexpected)"},
      {{{"feature_dim", "0"}}, "hyperparameter feature_dim: 0 is less than the minimum of 1"},
      {{{"feature_dim", "10001"}},
       "hyperparameter feature_dim: 10001 is greater than the maximum of 10000"},
      {{{"feature_dim", "1.5"}}, "hyperparameter feature_dim: '1.5' is not of type 'integer'"},
      {{{"feature_dim", "4"}, {"num_trees", "49"}},
       "hyperparameter num_trees: 49 is less than the minimum of 50"},
      {{{"feature_dim", "4"}, {"num_trees", "1001"}},
       "hyperparameter num_trees: 1001 is greater than the maximum of 1000"},
      {{{"feature_dim", "4"}, {"num_samples_per_tree", "2049"}},
       "hyperparameter num_samples_per_tree: 2049 is greater than the maximum of 2048"},
      {{{"feature_dim", "4"}, {"eval_metrics", "accuracy"}},
       "hyperparameter eval_metrics: 'accuracy' is not of type 'array'"},
      {{{"feature_dim", "4"}, {"eval_metrics", "[\"auc\"]"}},
       "hyperparameter eval_metrics: 'auc' is not one of ['accuracy', 'precision_recall_fscore']"},
  };
  for (const auto& [given, text] : wrong) {
    const auto parsed = parse_forest_settings(given);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().message, text);
  }
}

}  // namespace
}  // namespace trainyard::forest
