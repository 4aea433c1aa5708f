// Decides which failures of a job are the customer's, with SageMaker's texts.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"

namespace trainyard::boosting {

// Adds SageMaker's text for an exception of the library in training, unless it is one of those that
// SageMaker counts as errors of the customer.
Error training_failure(Error error);

// Chooses the reason of a failure that all hosts have: the first that is not only the loss of a
// connection to another host. `messages` by rank; "" for a host without one.
std::string first_cause(const std::vector<std::string>& messages);

// Returns the text of the failure file: "Customer Error: .." for errors of hyperparameters and
// data.
std::string failure_text_of(const Error& error);

}  // namespace trainyard::boosting
