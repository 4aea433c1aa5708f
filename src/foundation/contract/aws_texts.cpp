#include "contract/aws_texts.hpp"

namespace trainyard::contract {

std::string training_job_arn(const std::string& account, const std::string& region,
                             const std::string& name) {
  return "arn:aws:sagemaker:" + region + ":" + account + ":training-job/" + name;
}

std::string event_rule_arn(const std::string& account, const std::string& region,
                           const std::string& name) {
  return "arn:aws:events:" + region + ":" + account + ":rule/" + name;
}

}  // namespace trainyard::contract
