#include "boosting/training/trainer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "base/text.hpp"
#include "boosting/metrics/own_metrics.hpp"
#include "boosting/number_ranges.hpp"
#include "boosting/training/early_stopping.hpp"

namespace trainyard::boosting {
namespace {

// an attribute that XGBoost's Python package reads, too
constexpr const char* kBestRound = "best_iteration";
constexpr const char* kBestValue = "best_score";

// Returns the number of classes of the objective; 0 for regression.
size_t classes_of(const BoostingSettings& settings) {
  if (settings.classes > 0) return size_t(settings.classes);
  return settings.objective.starts_with("binary:") || settings.objective == "reg:logistic" ? 2 : 0;
}

double class_of(std::span<const float> margins) {
  if (margins.size() == 1) return margins[0] > 0 ? 1 : 0;
  return double(std::max_element(margins.begin(), margins.end()) - margins.begin());
}

class ModelTrainer {
 public:
  ModelTrainer(const TrainerOptions& options, const DataMatrix& train, const DataMatrix* validation,
               Booster booster, const TrainingStart& start)
      : options_(options),
        settings_(options.settings),
        train_(train),
        booster_(std::move(booster)),
        first_round_(start.rounds_done),
        stopping_(settings_.early_stopping_rounds, is_maximized(settings_.stopping_metric)) {
    sets_.push_back({"train", &train});
    if (validation) sets_.push_back({"validation", validation});
  }

  Result<TrainedModel> run() {
    TRY(resume());
    TrainedModel trained;
    trained.rounds = first_round_;
    for (int64_t round = first_round_; round < settings_.rounds; ++round) {
      TRY(booster_.update(rounds_before_ + round, train_));
      trained.evaluations = TRY(evaluate(round));
      trained.rounds = round + 1;
      if (is_first()) options_.print(metric_line(round, trained.evaluations));
      TRY(watch(round, trained.evaluations));
      if (is_first() && options_.save_checkpoint)
        TRY(options_.save_checkpoint(round, TRY(booster_.save())).in("saving a checkpoint"));
      // The first host decides by its metrics, so all hosts stop after the same round.
      std::array<double, 2> ends = {options_.stop ? 1.0 : 0.0,
                                    is_first() && stopping_.stops() ? 1.0 : 0.0};
      TRY(options_.group.allreduce(std::span(ends), collectives::Reduction::maximum));
      trained.stopped = ends[0] > 0;
      if (ends[0] > 0 || ends[1] > 0) break;
    }
    trained.model = TRY(finish());
    return trained;
  }

 private:
  bool is_first() const { return options_.group.rank() == 0; }
  bool is_linear() const {
    const auto booster = settings_.parameters.find("booster");
    return booster != settings_.parameters.end() && booster->second == "gblinear";
  }

  // Reads from the model the number of rounds before this job, and the best round so far.
  Result<void> resume() {
    if (!is_linear()) rounds_before_ = TRY(booster_.rounds()) - first_round_;
    if (first_round_ == 0) return ok();
    const auto round = TRY(booster_.attribute(kBestRound));
    const auto value = TRY(booster_.attribute(kBestValue));
    if (!round || !value) return ok();
    stopping_.resume(TRY(parse_int(*round).in(kBestRound)) - rounds_before_,
                     TRY(parse_double(*value).in(kBestValue)));
    return ok();
  }

  Result<std::vector<Evaluation>> evaluate(int64_t round) {
    auto all = TRY(booster_.evaluate(round, sets_));
    if (settings_.own_metrics.empty()) return all;
    for (const EvaluatedSet& set : sets_) {
      const MetricSums classes = TRY(sums_of(*set.matrix, true));
      const MetricSums values = TRY(sums_of(*set.matrix, false));
      for (const auto& metric : settings_.own_metrics)
        all.push_back({set.name, metric,
                       (metric == "mse" || metric == "r2" ? values : classes).value(metric)});
    }
    return all;
  }

  // Returns the sums over the rows of all hosts.
  Result<MetricSums> sums_of(const DataMatrix& matrix, bool as_classes) {
    const size_t classes = as_classes ? classes_of(settings_) : 0;
    MetricSums sums(classes);
    const Predictions found = TRY(booster_.predict(matrix, as_classes));
    for (size_t row = 0; row < matrix.rows(); ++row) {
      const auto own = std::span(found.values).subspan(row * found.per_row, found.per_row);
      sums.add(double(matrix.labels()[row]), as_classes ? class_of(own) : double(own[0]));
    }
    TRY(options_.group.allreduce(sums.sums(), collectives::Reduction::sum));
    return sums;
  }

  Result<void> watch(int64_t round, const std::vector<Evaluation>& all) {
    if (settings_.early_stopping_rounds == 0 || all.empty()) return ok();
    const std::string& set = sets_.back().name;
    const Evaluation* watched = nullptr;
    for (const Evaluation& each : all)
      if (each.set == set && (!watched || watched->metric != settings_.stopping_metric))
        watched = &each;
    if (round == first_round_ && settings_.stopping_metric.empty())
      stopping_.set_maximized(is_maximized(watched->metric));
    if (!stopping_.add(round, watched->value)) return ok();
    TRY(booster_.set_attribute(kBestRound, std::to_string(rounds_before_ + round)));
    return booster_.set_attribute(kBestValue, python_number(watched->value));
  }

  Result<std::string> finish() {
    if (!is_first()) return std::string();
    const int64_t best = stopping_.best_round();
    if (settings_.early_stopping_rounds == 0 || best < 0 || is_linear()) return booster_.save();
    options_.print("the best round is " + std::to_string(best));
    return TRY(booster_.first_rounds(rounds_before_ + best + 1)).save();
  }

  const TrainerOptions& options_;
  const BoostingSettings& settings_;
  const DataMatrix& train_;
  Booster booster_;
  const int64_t first_round_;
  int64_t rounds_before_ = 0;
  std::vector<EvaluatedSet> sets_;
  EarlyStopping stopping_;
};

Result<void> set_parameters(const TrainerOptions& options, Booster& booster) {
  const BoostingSettings& settings = options.settings;
  TRY(booster.set("nthread", std::to_string(options.threads)));
  // Without this, a resumed job would draw the same random rows as in its first rounds.
  TRY(booster.set("seed_per_iteration", "1"));
  for (const auto& [name, value] : settings.parameters)
    TRY(booster.set(name, value).in("Hyperparameter " + name));
  for (const auto& metric : settings.library_metrics) TRY(booster.set("eval_metric", metric));
  return ok();
}

}  // namespace

Result<TrainedModel> train_model(const TrainerOptions& options, const DataMatrix& train,
                                 const DataMatrix* validation, const TrainingStart& start) {
  std::vector<const DataMatrix*> matrices{&train};
  if (validation) matrices.push_back(validation);
  Booster booster = TRY(Booster::make(matrices));
  if (!start.model.empty()) TRY(booster.load(start.model));
  TRY(set_parameters(options, booster));
  return ModelTrainer(options, train, validation, std::move(booster), start).run();
}

std::string metric_line(int64_t round, const std::vector<Evaluation>& evaluations) {
  std::string line = "[" + std::to_string(round) + "]";
  for (const Evaluation& each : evaluations) {
    char value[64];
    std::snprintf(value, sizeof value, "%.5f", each.value);
    line += "#011" + each.set + "-" + each.metric + ":" + value;
  }
  return line;
}

}  // namespace trainyard::boosting
