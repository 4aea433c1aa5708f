// Formats records of TensorBoard's event files. A file has the start record, then records in any
// order. More may be appended while TensorBoard reads it.
//
// Formats: TFRecord with tensorflow/core/util/event.proto and framework/summary.proto; the plugin
// data of hyperparameters is tensorboard/plugins/hparams/plugin_data.proto.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/time.hpp"

namespace trainyard::cli::tensorboard {

std::string start_record(Instant at);

// Formats one value of a metric. `step`: the number of the value.
std::string scalar_record(Instant at, int64_t step, std::string_view metric, double value);

// Formats the hyperparameters of the run, which TensorBoard compares between runs. The text of a
// number becomes a number.
std::string hyperparameters_record(Instant started, std::string_view group,
                                   const std::map<std::string, std::string>& values);
// Formats the end of the run, for TensorBoard's page of hyperparameters.
std::string end_record(Instant at, bool succeeded);

}  // namespace trainyard::cli::tensorboard
