// Trains a model for each fold of a cross validation, on the rows outside of it.
//
// Each host divides its own rows, so every fold has rows of each host. After each cross validation,
// a line with the means of the metrics is printed, as SageMaker does.
//
// Threads: as train_model. Errors: as train_model; invalid: a host has fewer rows than folds.
#pragma once

#include <vector>

#include "base/result.hpp"
#include "boosting/training/trainer.hpp"

namespace trainyard::boosting {

// Returns the models in the order of the folds. After `stop` there are fewer.
Result<std::vector<TrainedModel>> cross_validate(const TrainerOptions& options,
                                                 const DataMatrix& rows);

// Returns the mean of each metric over the models, first of train and then of validation.
std::vector<Evaluation> mean_evaluations(const std::vector<TrainedModel>& models);

}  // namespace trainyard::boosting
