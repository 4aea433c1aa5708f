#include "boosting/failures.hpp"

#include <algorithm>
#include <string_view>

namespace trainyard::boosting {
namespace {

// Messages of the library that data or hyperparameters cause, by SageMaker's list.
constexpr std::string_view kCustomerErrors[] = {
    "label must be in [0,1] for logistic regression",
    "label must be in [0, num_class)",
    "feature_names mismatch",
    "Check failed: preds.size() == info.labels_.size()",
    "AUC: the dataset only contains pos or neg samples",
    "base_score must be in (0,1) for logistic loss",
    "PoissonRegression: label must be nonnegative",
    "TweedieRegression: label must be nonnegative",
    "Parameter reg_lambda should be greater equal to 0",
};
// The library's messages when a connection to another host ends.
constexpr std::string_view kLostConnections[] = {"Allreduce failed", "Failed to poll",
                                                 "Broadcast failed", "Connection reset"};

bool is_lost_connection(std::string_view message) {
  return std::ranges::any_of(kLostConnections, [&](std::string_view each) {
    return message.find(each) != std::string_view::npos;
  });
}

}  // namespace

Error training_failure(Error error) {
  for (const std::string_view each : kCustomerErrors)
    if (error.message.find(each) != std::string::npos) return error;
  error.kind = Kind::internal;
  return std::move(error).in("XGB train call failed with exception");
}

std::string first_cause(const std::vector<std::string>& messages) {
  std::string lost;
  for (const std::string& each : messages) {
    if (each.empty()) continue;
    if (!is_lost_connection(each)) return each;
    if (lost.empty()) lost = each;
  }
  return lost;
}

std::string failure_text_of(const Error& error) {
  const bool is_customers = error.kind == Kind::invalid || error.kind == Kind::corrupt ||
                            error.kind == Kind::exhausted || error.kind == Kind::not_found;
  return (is_customers ? "Customer Error: " : "") + error.message;
}

}  // namespace trainyard::boosting
