#include "operations/commit_records.hpp"

#include <future>
#include <utility>

namespace trainyard::api {

Result<std::shared_ptr<const domain::Records>> commit_records(control::Control& control,
                                                              control::RecordsRequest request) {
  auto promise = std::make_shared<std::promise<Result<std::shared_ptr<const domain::Records>>>>();
  auto answered = promise->get_future();
  control.change_records(std::move(request),
                         [promise](auto answer) { promise->set_value(std::move(answer)); });
  return answered.get();
}

}  // namespace trainyard::api
