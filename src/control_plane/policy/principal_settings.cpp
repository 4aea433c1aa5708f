#include "policy/principal_settings.hpp"

namespace trainyard::policy {

double RateLimits::per_second(OperationClass operations) const {
  switch (operations) {
    case OperationClass::reads:
      return reads_per_second;
    case OperationClass::changes:
      return changes_per_second;
    case OperationClass::objects:
      break;
  }
  return objects_per_second;
}

}  // namespace trainyard::policy
