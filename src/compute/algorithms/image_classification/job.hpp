// Runs one host's part of a job of image classification under the job contract.
//
//   channels  train, validation   .rec files, content type application/x-recordio; or images,
//                                 application/x-image, with the lists train_lst, validation_lst
//             model               image-classification.safetensors, from which training continues
//   model/                        image-classification.safetensors: the best model, or the last one
//                                 without a validation channel; with checkpoint_frequency also
//                                 image-classification-0005.safetensors of epoch 5
//   output/failure                the reason of a failure
//
// Threads: confined to one. Errors: returned as values; the failure file is written before.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::algorithms {

struct ClassifierJobOptions {
  std::string base;           // /opt/ml
  std::string shared_value;   // a secret of this job, equal on all of its hosts: its ARN
  std::string activity = {};  // the activity table of its host; "": none
  int cpus = 1;               // processors of this machine
};

// The port on which the ranks of a job listen.
inline constexpr uint16_t kClassifierPort = 7831;
// After `stop` is set, all hosts end after the same step. A host that cannot agree with the others
// within this time ends without them. (SageMaker sends SIGKILL 120 s after SIGTERM.)
inline constexpr Duration kClassifierStopTimeout = 30s;

Result<void> run_classifier_job(const ClassifierJobOptions& options, Clock& clock,
                                const std::atomic<bool>& stop,
                                const std::function<void(std::string_view line)>& print);

}  // namespace trainyard::algorithms
