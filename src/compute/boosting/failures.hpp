// Decides which failures of a job are the customer's, and writes them with SageMaker's texts.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"

namespace trainyard::boosting {

// Adds SageMaker's text for an exception of the library during training. Errors that SageMaker
// counts as the customer's are returned unchanged.
Error training_failure(Error error);

// Returns the cause of a failure on several hosts: the first message that is not just a lost
// connection to another host. `messages` are by rank, and "" for a host without an error.
std::string first_cause(const std::vector<std::string>& messages);

// Returns the text of the failure file: "Customer Error: .." for errors of hyperparameters and
// data.
std::string failure_text_of(const Error& error);

}  // namespace trainyard::boosting
