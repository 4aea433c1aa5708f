#include "boosting/library/communicator.hpp"

#include <xgboost/c_api.h>

#include "base/json.hpp"
#include "boosting/library/library_call.hpp"

namespace trainyard::boosting {

Result<std::unique_ptr<Communicator>> Communicator::join(const WorkerOptions& options) {
  const Json config = {{"xgboost_communicator", "rabit"},
                       {"DMLC_TRACKER_URI", options.tracker_host},
                       {"DMLC_TRACKER_PORT", std::to_string(options.tracker_port)},
                       {"DMLC_TASK_ID", options.task_id}};
  if (auto done = library_result(XGCommunicatorInit(dump(config).c_str())); !done)
    return unavailable(done.error().message);
  std::unique_ptr<Communicator> joined(new Communicator);
  if (XGCommunicatorIsDistributed() == 0) return unavailable("the library has joined no tracker");
  return joined;
}

Communicator::~Communicator() { XGCommunicatorFinalize(); }
int Communicator::rank() const { return XGCommunicatorGetRank(); }
int Communicator::size() const { return XGCommunicatorGetWorldSize(); }

}  // namespace trainyard::boosting
