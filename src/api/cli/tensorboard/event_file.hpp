// Formats the records of TensorBoard's event files. A file is the start record, followed by records
// in any order; more may be appended while TensorBoard reads it.
//
// Formats: TFRecord; tensorflow/core/util/event.proto and framework/summary.proto; the plugin data
// of hyperparameters is tensorboard/plugins/hparams/plugin_data.proto.
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

// One value of a metric. `step` counts its values.
std::string scalar_record(Instant at, int64_t step, std::string_view metric, double value);

// The hyperparameters of the run, which TensorBoard compares with those of other runs. A text that
// is a number is shown as one.
std::string hyperparameters_record(Instant started, std::string_view group,
                                   const std::map<std::string, std::string>& values);
// The end of the run, for the page of hyperparameters.
std::string end_record(Instant at, bool succeeded);

}  // namespace trainyard::cli::tensorboard
