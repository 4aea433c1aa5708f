#include "boosting/training/cross_validation.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "base/text.hpp"
#include "boosting/training/folds.hpp"

namespace trainyard::boosting {
namespace {

struct FoldRows {
  std::vector<int> train, validation;
};

FoldRows rows_of_fold(const std::vector<int>& fold_of, int fold) {
  FoldRows rows;
  for (size_t row = 0; row < fold_of.size(); ++row)
    (fold_of[row] == fold ? rows.validation : rows.train).push_back(int(row));
  return rows;
}

bool has_classes(const BoostingSettings& settings) {
  return settings.classes > 0 || settings.objective.starts_with("binary:");
}

uint64_t seed_of(const BoostingSettings& settings) {
  const auto seed = settings.parameters.find("seed");
  if (seed == settings.parameters.end()) return 0;
  const auto value = parse_int(seed->second);
  return value ? uint64_t(*value) : 0;
}

}  // namespace

std::vector<Evaluation> mean_evaluations(const std::vector<TrainedModel>& models) {
  std::vector<Evaluation> means;
  if (models.empty()) return means;
  for (const Evaluation& first : models.front().evaluations) {
    if (first.set != "train") continue;
    for (const char* set : {"train", "validation"}) {
      double sum = 0, count = 0;
      for (const TrainedModel& model : models)
        for (const Evaluation& each : model.evaluations)
          if (each.set == set && each.metric == first.metric) {
            sum += each.value;
            count += 1;
          }
      means.push_back({set, first.metric, sum / count});
    }
  }
  return means;
}

Result<std::vector<TrainedModel>> cross_validate(const TrainerOptions& options,
                                                 const DataMatrix& rows) {
  const BoostingSettings& settings = options.settings;
  if (rows.rows() < uint64_t(settings.folds))
    return invalid("Hyperparameter _kfold: " + std::to_string(settings.folds) + " folds of only " +
                   std::to_string(rows.rows()) + " rows of a host");
  if (rows.rows() > INT32_MAX)
    return invalid("Hyperparameter _kfold: a host has more than 2147483647 rows");
  TrainerOptions each = options;
  each.save_checkpoint = {};
  std::vector<TrainedModel> models;
  for (int64_t round = 0; round < settings.fold_rounds; ++round) {
    const auto fold_of =
        divide_into_folds(rows.labels(), int(settings.folds), has_classes(settings),
                          seed_of(settings) + uint64_t(round));
    std::vector<TrainedModel> of_round;
    for (int fold = 0; fold < int(settings.folds); ++fold) {
      const FoldRows chosen = rows_of_fold(fold_of, fold);
      const DataMatrix train = TRY(rows.rows_of(chosen.train));
      const DataMatrix validation = TRY(rows.rows_of(chosen.validation));
      of_round.push_back(TRY(train_model(each, train, &validation, {})));
      models.push_back(of_round.back());
      if (models.back().stopped) return models;
    }
    if (options.group.rank() != 0) continue;
    options.print("The metrics of round " + std::to_string(round + 1) + " cross validation");
    options.print(metric_line(settings.rounds, mean_evaluations(of_round)));
  }
  if (settings.fold_rounds > 1 && options.group.rank() == 0) {
    options.print("The overall metrics of " + std::to_string(settings.fold_rounds) +
                  "-round cross validation");
    options.print(metric_line(settings.rounds, mean_evaluations(models)));
  }
  return models;
}

}  // namespace trainyard::boosting
